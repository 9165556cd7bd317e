"""The host's handle of a child: its state after a kill, and its exit status."""

from __future__ import annotations

import array
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox.programs import ECHO, Runner
from toolwire.sandbox import forked
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Answer, Program, ProgramCall
from toolwire.vocabulary.errors import SandboxUnavailable

BUSY = "sum(range(5_000_000))"


def open_files() -> list[str]:
    return sorted(str(entry) for entry in Path("/proc/self/fd").iterdir())


def test_a_host_that_may_open_no_more_files_is_told_so_and_keeps_none() -> None:
    """The kernel then hands over those descriptors for which there is room."""
    before = open_files()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    rights = array.array("i", [0, 1])
    theirs.sendmsg([b'{"started":1}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    released: list[int] = []
    with pytest.raises(SandboxUnavailable, match="may open no more files") as refused:
        forked.Spawning(ours, {"level": "kernel"}, lambda: released.append(1)).wait()
    theirs.close()
    assert "ulimit -n" in refused.value.how_to_fix
    # Files that tests before this one left behind may be closed meanwhile.
    assert (released, set(open_files()) - set(before)) == ([1], set())


def gone() -> int:
    raise FileNotFoundError("/proc/self/fdinfo")


def foreign() -> int:
    raise ValueError


def test_a_program_that_told_its_result_is_not_waited_for(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zygote, which would report the program's end, is stopped while it runs."""
    zygote = sandbox.zygotes.current().process_id

    def stop(call: ProgramCall) -> Answer:
        os.kill(zygote, signal.SIGSTOP)
        return Answer(value=call.arguments["value"])

    def used() -> float:
        program = Program(source=f"echo(1)\n{BUSY}", tools=(ECHO,))
        try:
            result = sandbox.run(program, stop)
        finally:
            os.kill(zygote, signal.SIGCONT)
        assert result.status == "finished"
        return result.cpu_s

    assert used() > 0.01
    # The control: if its clock cannot be read, its time is unknown.
    monkeypatch.setattr(forked, "_process_id", lambda _: gone())
    assert used() == 0


@pytest.mark.parametrize("reason", [gone, foreign])
def test_its_processor_time_is_the_same_with_and_without_waiting(
    run: Runner, monkeypatch: pytest.MonkeyPatch, reason: Callable[[], int]
) -> None:
    quick = run(BUSY)
    monkeypatch.setattr(forked, "_process_id", lambda _: reason())
    waited = run(BUSY)
    assert waited.status == quick.status == "finished"
    assert 0.3 < quick.cpu_s / waited.cpu_s < 3


def test_the_processor_clock_is_the_process_s_own(run: Runner) -> None:
    busy, idle = run(BUSY), run("1")
    assert busy.cpu_s > 4 * idle.cpu_s


def test_a_process_is_known_by_the_number_it_has_here() -> None:
    pidfd = os.pidfd_open(os.getpid())
    try:
        assert forked._process_id(pidfd) == os.getpid()
    finally:
        os.close(pidfd)


def test_a_descriptor_of_something_else_names_no_process(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file, pytest.raises(ValueError, match="invalid literal"):
        forked._process_id(file.fileno())


def test_a_process_that_is_gone_has_no_number() -> None:
    process = os.posix_spawn("/bin/true", ["true"], {})
    pidfd = os.pidfd_open(process)
    try:
        os.waitpid(process, 0)
        with pytest.raises(ValueError, match="-1"):
            forked._process_id(pidfd)
    finally:
        os.close(pidfd)


def test_a_proc_of_another_namespace_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "readlink", lambda _: "1")
    pidfd = os.pidfd_open(os.getpid())
    try:
        with pytest.raises(ValueError, match="another namespace"):
            forked._process_id(pidfd)
    finally:
        os.close(pidfd)
