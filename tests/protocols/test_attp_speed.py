"""Reading a reply takes time in proportion to its length, whatever it holds. Measured in processor time."""

from __future__ import annotations

import statistics
import time
import tomllib
from collections.abc import Callable

import pytest

from toolwire.protocols import get

ATTP = get("attp")
HEAD = 'thought = "t"\n[tool_call]\nstatus = "success"\ntarget = "g"\n'
SIZE = 65_536

PUMPS: dict[str, Callable[[int], str]] = {
    "prose": lambda size: "it's one word. " * (size // 15),
    "spaces": lambda size: " " * size + "x",
    "nesting": lambda size: HEAD + "x = " + "[" * size,
    "dotted keys": lambda size: (".".join(["a"] * 60) + " = 1\n") * (size // 123),
    "digits": lambda size: HEAD + "x = [" + "1 " * (size // 2),
    "comments": lambda size: "#\n" * (size // 2),
    "fences": lambda size: f"```toml\n{HEAD}code = '''\nx\n" + "```\n" * (size // 4),
    "thinking": lambda size: "<think></think>" * (size // 15) + HEAD,
    "triple quotes": lambda size: HEAD + "code = '''\n" + "'''\n" * (size // 4),
    "escapes": lambda size: HEAD + 'code = """\n' + "\\n" * (size // 2) + '\\d"""\n',
    "keys": lambda size: HEAD + "status = \n" * (size // 10),
    "unclosed programs": lambda size: HEAD + "code = '''\n" + "x\n" * (size // 8) + "__result__ = x\n",
}


def processor_ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1_000


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_twice_the_text_takes_at_most_about_twice_the_time(pump: Callable[[int], str]) -> None:
    half, full = pump(SIZE // 2), pump(SIZE)
    # In pairs: what else the machine does weighs on both of a pair alike.
    pairs = [(processor_ms(lambda: ATTP.parse(half)), processor_ms(lambda: ATTP.parse(full))) for _ in range(11)]
    assert min(time_full for _, time_full in pairs) <= 50
    # Below a millisecond it is the clock that is measured.
    assert statistics.median(time_full / max(time_half, 1) for time_half, time_full in pairs) <= 2.5


def test_a_clean_reply_takes_little_more_than_its_toml() -> None:
    reply = HEAD + "code = '''\n" + "row = search('x')\n" * 50 + "'''\n"
    pairs = [
        (
            processor_ms(lambda: [tomllib.loads(reply) for _ in range(50)]),
            processor_ms(lambda: [ATTP.parse(reply) for _ in range(50)]),
        )
        for _ in range(11)
    ]
    assert statistics.median(read / bare for bare, read in pairs) <= 2.5
