"""Without the inner layers, a program sees an empty machine of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S
from tests.sandbox.child.kernel.weakened import VOID, has_namespaces, weakened
from tests.sandbox.programs import TOOLS, FakeTools, Meeting, Runner, answer
from tests.sandbox.test_zygote import is_gone
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import ProgramResult

ALONE = has_namespaces()
"""If this machine refuses namespaces, these tests cover the fallback."""


@pytest.fixture(scope="module")
def open_sandbox() -> Iterator[Sandbox]:
    """Without filter and without Landlock, namespaces and limits remain."""
    with weakened(VOID["seccomp"], VOID["landlock"]) as sandbox:
        yield sandbox


def outcome(sandbox: Sandbox, expression: str) -> object:
    """The expression's value, or the number of its OSError."""
    source = (
        f"os = random._os\ntry:\n    __result__ = {expression}\nexcept OSError as error:\n    __result__ = error.errno"
    )
    program = Program(source=source, source_checks=False, min_isolation="process")
    return sandbox.run(program, answer).value


LOOKS = {
    "its own process id": ("os.getpid()", 1),
    "its parent": ("os.getppid()", 0),
    "the host's process": ("os.kill(HOST, 0)", 3),
    "the first process of the machine": ("os.kill(2, 0)", 3),
    "its user": ("os.getuid()", 65534),
    "its group": ("os.getgid()", 65534),
    "a file": ("os.stat('/etc/passwd')", 2),
    "a folder": ("os.stat('/proc')", 2),
    "the folder above": ("os.stat('/..').st_ino == os.stat('/').st_ino", True),
    "making a folder": ("os.mkdir('/x')", 30),
    "making a link": ("os.symlink('/', '/x')", 30),
    "the machine's name": ("os.uname().nodename", "program"),
}


@pytest.mark.threat(48)
@pytest.mark.parametrize("name", LOOKS)
def test_the_environment_that_a_program_finds(open_sandbox: Sandbox, name: str) -> None:
    expression, expected = LOOKS[name]
    if ALONE:
        assert outcome(open_sandbox, expression.replace("HOST", str(os.getpid()))) == expected
    else:
        assert open_sandbox.zygotes.current().isolation.report["namespaces"].startswith("NOT there: ")


@pytest.mark.threat(48)
def test_two_programs_at_once_do_not_see_each_other(open_sandbox: Sandbox) -> None:
    meeting = Meeting(2)
    source = "os = random._os\necho(1)\n__result__ = [os.getpid(), os.getppid()]"
    found: list[object] = []

    def run() -> None:
        program = Program(source=source, tools=TOOLS, source_checks=False, min_isolation="process")
        found.append(open_sandbox.run(program, FakeTools(echo=meeting)).value)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(found) == 2
    if ALONE:
        assert found == [[1, 0], [1, 0]]
    else:
        assert found[0] != found[1]


@pytest.mark.threat(49)
def test_the_process_left_behind_ends_with_the_zygote(sandbox: Sandbox) -> None:
    Runner(sandbox)("1")
    zygote = sandbox.zygotes.current()
    outer, inner = zygote._process.pid, zygote.process_id
    assert (outer == inner) is not ALONE
    os.kill(inner, 9)
    assert is_gone(inner)
    assert is_gone(outer)


@pytest.mark.threat(49)
def test_a_zygote_whose_outer_process_is_killed_takes_its_programs_with_it(sandbox: Sandbox) -> None:
    run = Runner(sandbox)

    def kills(call: object) -> object:
        os.kill(sandbox.zygotes.current()._process.pid, 9)
        return answer(call)  # type: ignore[arg-type]

    result: ProgramResult = run("print('before')\necho(1)\nwhile True: pass", FakeTools(echo=kills))  # type: ignore[arg-type]
    assert (result.status, result.stdout) == ("crashed", "before\n")
    assert run("2").value == 2


def test_time_is_told_in_the_hosts_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with Sandbox() as own:
        source = "at = datetime(2024, 1, 1, 12).astimezone()\n[at.strftime('%H:%M %Z %z'), at.astimezone().isoformat()]"
        assert Runner(own)(source).value == ["12:00 JST +0900", "2024-01-01T12:00:00+09:00"]
