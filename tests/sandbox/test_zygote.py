"""The zygote's life: it is started when needed, again when it died, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.elsewhere.answers import pretend_system
from tests.patience import PATIENCE_S
from tests.sandbox.child.kernel.weakened import weakened
from tests.sandbox.programs import FakeTools, Runner
from tests.sandbox.subprocesses import run_script
from toolwire.sandbox import forked
from toolwire.sandbox import zygote as zygote_module
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Answer, ProgramCall
from toolwire.sandbox.zygote import Zygotes
from toolwire.vocabulary.errors import SandboxUnavailable

SPARES = 2


def is_gone(process: int) -> bool:
    """Whether the process has ended, or waits to be reaped."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        threading.Event().wait(0.002)
    return False


def open_descriptors(process: int | str = "self") -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def children_of(process: int) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def test_nothing_is_started_before_the_first_run() -> None:
    before = children_of(os.getpid())
    with Sandbox() as idle:
        assert not idle.zygotes.is_ready
        assert children_of(os.getpid()) == before


def test_the_warm_up_is_complete(run: Runner) -> None:
    assert run("1").isolation.report["warm_up"] == "complete"


def test_one_zygote_serves_many_runs(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    run("1")
    process = sandbox.zygotes.current().process_id
    run("2")
    assert sandbox.zygotes.current().process_id == process


def test_a_zygote_killed_between_runs_is_replaced(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    run("1")
    process = sandbox.zygotes.current().process_id
    os.kill(process, signal.SIGKILL)
    assert run("add(1, 2)").value == 3
    assert sandbox.zygotes.current().process_id != process


@pytest.mark.threat(49)
def test_a_zygote_killed_during_a_run_gives_a_typed_result(sandbox: Sandbox) -> None:
    run = Runner(sandbox)

    def kills(call: ProgramCall) -> Answer:
        os.kill(sandbox.zygotes.current().process_id, signal.SIGKILL)
        return Answer(value=1)

    result = run("print('before')\necho(1)\nwhile True: pass", FakeTools(echo=kills))
    assert result.error is not None
    assert (result.status, result.stdout) == ("crashed", "before\n")
    assert result.error.message == (
        "the program's process was lost together with the one that watched it: check what its calls have done "
        "before the program is sent once more."
    )
    assert run("2").value == 2


@pytest.mark.parametrize(("limit_s", "message"), [(PATIENCE_S, "exit code 7"), (0.05, "was lost together with")])
def test_the_exit_status_of_a_zygote_that_gets_no_processor_is_waited_for(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, limit_s: float, message: str
) -> None:
    monkeypatch.setattr(forked, "EXIT_TIMEOUT_S", limit_s)
    run = Runner(sandbox)
    run("1")
    process = sandbox.zygotes.current().process_id
    goes_on = threading.Timer(0.5, lambda: os.kill(process, signal.SIGCONT))

    def stops(call: ProgramCall) -> Answer:
        os.kill(process, signal.SIGSTOP)
        goes_on.start()
        return Answer(value=1)

    result = run("echo(1)\nrandom._os._exit(7)", FakeTools(echo=stops))
    goes_on.join(PATIENCE_S)
    assert result.error is not None
    assert message in result.error.message


def test_a_zygote_is_replaced_after_its_runs(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygote_module, "RUNS_PER_ZYGOTE", 2)
    run = Runner(sandbox)
    processes = []
    for _ in range(4):
        run("1")
        processes.append(sandbox.zygotes.current().process_id if sandbox.zygotes.is_ready else 0)
    assert run("1").value == 1
    assert is_gone(processes[0])


def test_a_program_outlives_the_change_of_its_zygote(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygote_module, "RUNS_PER_ZYGOTE", 1)
    run = Runner(sandbox)

    def runs_another(call: ProgramCall) -> Answer:
        return Answer(value=run("21").value)

    result = run("echo(1) * 2", FakeTools(echo=runs_another))
    assert (result.status, result.value) == ("finished", 42)


def test_closing_ends_the_zygote_and_its_children(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    started = threading.Event()

    def waits(call: ProgramCall) -> Answer:
        started.set()
        return Answer()

    results = []
    source = "echo(1)\nwhile True: pass"
    thread = threading.Thread(target=lambda: results.append(run(source, FakeTools(echo=waits), wall_s=20)))
    thread.start()
    assert started.wait(PATIENCE_S)
    process = sandbox.zygotes.current().process_id
    children = children_of(process)
    sandbox.close()
    thread.join(PATIENCE_S)
    assert [result.status for result in results] == ["crashed"]
    assert 1 <= len(children) <= 1 + SPARES
    assert is_gone(process)
    assert all(is_gone(child) for child in children)


def test_a_closed_sandbox_says_so(sandbox: Sandbox) -> None:
    sandbox.close()
    with pytest.raises(SandboxUnavailable, match="the sandbox is closed"):
        Runner(sandbox)("1")


def test_runs_leave_no_descriptors_and_no_processes(run: Runner) -> None:
    run("1")
    before = open_descriptors()
    for source in ("1", "1 / 0", "random._os._exit(1)", "echo(1)", "await asyncio.gather(echo(1), echo(2))"):
        run(source)
    assert open_descriptors() == before
    process = run.sandbox.zygotes.current().process_id
    assert len(children_of(process)) <= SPARES


def test_a_child_that_cannot_be_limited_is_refused_and_leaves_nothing_open() -> None:
    unlimited = """
limited = Lockdown.allow
def allow(self, process, allowance):
    if allowance.cpu_s == 77:
        raise ProcessLookupError("it is gone")
    limited(self, process, allowance)
Lockdown.allow = allow
"""
    with weakened(("kernel/lockdown.py", unlimited)) as sandbox:
        assert Runner(sandbox)("1").value == 1
        zygote = sandbox.zygotes.current().process_id
        before = open_descriptors(zygote)
        for _ in range(20):
            with pytest.raises(SandboxUnavailable, match="ProcessLookupError: it is gone"):
                Runner(sandbox)("1", cpu_s=77)
        # Each spare that is ready has two, and so has a child that is dying; each that was refused would have left two.
        until = time.monotonic() + PATIENCE_S
        while open_descriptors(zygote) > before + 2 * SPARES and time.monotonic() < until:
            threading.Event().wait(0.002)
        assert open_descriptors(zygote) <= before + 2 * SPARES


def test_a_zygote_that_does_not_start_says_what_failed() -> None:
    sandbox = Sandbox(zygotes=Zygotes(Path("/nonexistent/start.py")))
    with pytest.raises(SandboxUnavailable, match="does not start: it ended before it was ready"):
        Runner(sandbox)("1")


def test_another_system_is_told_where_its_programs_run(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_system("win32", monkeypatch)
    with pytest.raises(SandboxUnavailable) as refusal:
        Runner(sandbox)("1")
    monkeypatch.undo()
    assert str(refusal.value) == (
        "the runner 'kernel' needs Linux, and this is win32\n"
        "Or run programs in WebAssembly, one wall inside this process: pip install 'toolwire[wasm]', and runner='wasm'."
    )


def test_the_programs_environment_is_empty_and_its_paths_too(run: Runner) -> None:
    source = "sys = statistics.sys\n[dict(sys.modules['os'].environ), sys.path, sys.argv, sys.flags.hash_randomization]"
    assert run(source).value == [{}, [], [""], 0]


def test_the_interpreters_exit_leaves_nothing_and_says_nothing() -> None:
    code, output, errors = run_script("print(run('1').value, zygote())")
    assert (code, errors) == (0, "")
    value, process = output.split()
    assert value == "1"
    assert is_gone(int(process))


def test_an_exit_with_a_program_running_leaves_nothing() -> None:
    code, output, errors = run_script(
        """
        run("1")
        threading.Thread(target=lambda: run("while True: pass"), daemon=True).start()
        time.sleep(0.1)
        print(zygote(), flush=True)
        """
    )
    assert (code, errors) == (0, "")
    assert is_gone(int(output))


def test_a_host_killed_outright_takes_the_zygote_with_it() -> None:
    code, output, _ = run_script(
        """
        run("1")
        print(zygote(), flush=True)
        os.kill(os.getpid(), 9)
        """
    )
    assert code == -signal.SIGKILL
    assert is_gone(int(output))


def test_a_forked_child_of_the_host_has_a_zygote_of_its_own() -> None:
    code, output, errors = run_script(
        """
        first = run("1").value
        before = zygote()
        process = os.fork()
        if process == 0:
            print(run("2").value, zygote() != before, flush=True)
            sys.exit(0)
        _, status = os.waitpid(process, 0)
        print(first, run("3").value, zygote() == before, status)
        """
    )
    assert (code, errors) == (0, "")
    assert output.splitlines() == ["2 True", "1 3 True 0"]


def test_a_forked_child_that_outlives_its_parent_does_not_keep_the_zygote() -> None:
    code, output, errors = run_script(
        """
        import signal
        run("1")
        process = os.fork()
        if process == 0:
            os.close(1); os.close(2)
            signal.pause()
        print(zygote(), process, flush=True)
        os._exit(0)
        """
    )
    zygote, survivor = map(int, output.split())
    try:
        assert (code, errors) == (0, "")
        assert is_gone(zygote)
    finally:
        os.kill(survivor, signal.SIGKILL)
