"""A wide corpus of honest programs: none may fail because of the names that the sandbox removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.child.kernel.weakened import weakened
from tests.sandbox.programs import TOOLS, Runner, answer
from toolwire.sandbox.child.warmup import LAZY
from toolwire.sandbox.program import Program

_TEXT = (Path(__file__).parent / "honest_programs.txt").read_text("utf-8")
PROGRAMS = dict(part.split("\n", 1) for part in _TEXT.removeprefix("=== ").split("\n=== "))


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_an_honest_program_finishes(run: Runner, source: str) -> None:
    result = run(source)
    assert (result.status, result.error) == ("finished", None)
    assert result.has_value


@pytest.mark.parametrize("name", LAZY)
def test_lazily_imported_modules_are_loaded_in_advance(run: Runner, name: str) -> None:
    # Modules of other versions of Python are not there to be imported.
    result = run(f"import {name}", source_checks=False)
    assert result.status == "finished" or name in ("_colorize", "_pylong", "_sha2")


MINIMUM = ("munmap", "mremap", "brk", "getrandom", "exit_group")
"""With reading and writing on the channel and mapping memory, all that honest programs need of the kernel.

The filter's other calls are for other versions of the C library, for signals, sleeping and waiting in threads.
"""


def test_honest_programs_need_no_more_than_the_minimum() -> None:
    with weakened(("kernel/seccomp.py", f"ALLOWED = {MINIMUM!r}")) as sandbox:
        results = {
            name: sandbox.run(Program(source=source, tools=TOOLS, min_isolation="process"), answer)
            for name, source in PROGRAMS.items()
        }
    assert {name: result.error for name, result in results.items() if result.status != "finished"} == {}


ENCODINGS = (
    "utf-8 utf-16 utf-7 latin-1 cp1252 gbk gb18030 gb2312 big5 shift_jis euc_jp euc_kr cp1251 koi8_r idna punycode"
)


def test_texts_can_be_encoded_as_people_do(run: Runner) -> None:
    source = f"{{name: 'a'.encode(name).decode(name) for name in {ENCODINGS.split()!r}}}"
    assert run(source).value == dict.fromkeys(ENCODINGS.split(), "a")
