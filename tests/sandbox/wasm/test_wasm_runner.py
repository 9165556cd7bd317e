"""The runner in WebAssembly: which programs it takes, how they end, and what they cannot do."""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from tests.sandbox.programs import ECHO, TOOLS, FakeTools, answer
from toolwire import ConfigurationError, Limits, ProgramResult, SandboxUnavailable, Session, ToolRegistry, WasmRunner
from toolwire.sandbox.child.world.imports import MODULES as MODULES_OF_CHILD
from toolwire.sandbox.program import Answer, Program, ProgramCall
from toolwire.sandbox.wasm import wasm_runner
from toolwire.testing import check_runner
from toolwire.vocabulary.calls import PROGRAM_MODULES

RUNNER = WasmRunner()


def run(source: str, tools: Any = answer, *, checked: bool = False, **limits: Any) -> ProgramResult:
    program = Program(source=source, tools=TOOLS, limits=Limits(**limits), source_checks=checked, min_isolation="wasm")
    return RUNNER.run(program, tools)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def test_it_passes_all_checks_of_runners() -> None:
    check_runner(lambda: RUNNER)


def test_programs_call_tools_by_name_in_all_ways_to_choose_it() -> None:
    registry = ToolRegistry(runner="wasm")
    registry.register(add)
    assert (registry.run_program("add(1, 2)").value, registry.run_program("1").isolation.level) == (3, "wasm")
    other = ToolRegistry()
    other.register(add)
    assert other.run_program("add(1, 2)", runner="wasm").isolation.level == "wasm"
    assert other.run_program("add(1, 2)").isolation.level != "wasm"
    other.enable_code_execution(runner=RUNNER)
    assert other.invoke("code_execution", {"code": "add(2, 3)"}).metadata["isolation"]["level"] == "wasm"
    session = Session([add], protocol="json", programs=True, runner="wasm")
    turn = session.run_turn('{"name": "code_execution", "arguments": {"code": "add(3, 4)"}}')
    assert turn.results[0].metadata["isolation"]["level"] == "wasm"


def test_the_most_specific_choice_counts() -> None:
    registry = ToolRegistry(runner="wasm")
    assert registry.run_program("1", runner="kernel").isolation.level != "wasm"
    session = Session(registry, protocol="json", programs=True)
    turn = session.run_turn('{"name": "code_execution", "arguments": {"code": "1"}}')
    assert turn.results[0].metadata["isolation"]["level"] == "wasm"


def test_isolation_that_was_asked_for_always_counts() -> None:
    registry = ToolRegistry(runner="wasm")
    registry.register(add)
    with pytest.raises(SandboxUnavailable, match="needs isolation level 'kernel', and the runner 'wasm' gives 'wasm'"):
        registry.run_program("add(1, 2)", min_isolation="kernel")
    assert registry.run_program("1", min_isolation="process").value == 1


@pytest.mark.parametrize(
    ("runner", "told"),
    [
        ("docker", "runner='docker': give 'kernel', 'wasm', or an object that runs programs"),
        (3, "runner=3 has no method run: give 'kernel', 'wasm'"),
        (WasmRunner, "give 'kernel', 'wasm', or an object"),
    ],
)
def test_what_is_no_runner_is_refused(runner: Any, told: str) -> None:
    for make in (
        lambda: ToolRegistry(runner=runner),
        lambda: ToolRegistry().run_program("1", runner=runner),
        lambda: ToolRegistry().enable_code_execution(runner=runner),
        lambda: Session([add], runner=runner),
    ):
        with pytest.raises(ConfigurationError) as refused:
            make()
        assert told in str(refused.value)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wasm_runner, "_loaded", [])
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(SandboxUnavailable, match=r"pip install 'toolwire\[wasm\]'"):
        ToolRegistry(runner="wasm").run_program("1")
    assert ToolRegistry().run_program("1").isolation.level.startswith("kernel")


def test_the_report_names_wasmtime_the_interpreter_and_the_guest() -> None:
    report = run("1").isolation.report
    assert (report["wasm"].split()[0], report["wasm"].split()[-1]) == ("CPython", "native")
    assert RUNNER.replay_engine == f"wasm-{report['guest']}"


def test_a_program_may_import_the_same_modules_in_both() -> None:
    assert PROGRAM_MODULES == MODULES_OF_CHILD
    imported = "\n".join(f"import {name}" for name in PROGRAM_MODULES)
    assert run(f"{imported}\n'all'", checked=True).value == "all"


ENDLESS = {
    "a loop": "while True: pass",
    "a regular expression": "re.match(r'(a+)+$', 'a' * 40 + 'b')",
    "a power": "x = 10 ** 10 ** 8",
    "a sleep": "time.sleep(1e6)",
    "a wait in WASI": "import select\nselect.select([], [], [], 1e6)",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_nothing_goes_on_after_its_time(source: str) -> None:
    is_refused = "select" in source
    result = run(source, wall_s=20 if is_refused else 0.4)
    assert result.status == ("crashed" if is_refused else "timeout_program")
    assert result.duration_s < 0.4 + PATIENCE_S / 10


def test_time_in_a_tool_is_not_the_programs() -> None:
    def busy(call: ProgramCall) -> Answer:
        until = time.thread_time() + 1.7
        while time.thread_time() < until:
            pass
        return Answer(value=1)

    result = run("echo(1)", FakeTools(echo=busy), cpu_s=1, wall_s=1.5)
    assert (result.status, result.cpu_s < 1) == ("finished", True)


CRASHES = {
    "import os\nos._exit(3)": "the program broke its interpreter: it ended its interpreter.",
    "import os\nos.abort()": (
        "the program broke its interpreter: it did what no interpreter survives, such as using up its memory inside of "
        "C code."
    ),
    "x" + ".a" * 20_000: "the program broke its interpreter: it recursed too deeply.",
}


@pytest.mark.parametrize(("source", "message"), CRASHES.items(), ids=["exit", "abort", "recursion"])
def test_a_trap_is_told_in_words_and_the_next_program_runs(source: str, message: str) -> None:
    result = run(source)
    assert result.error is not None
    assert (result.status, result.error.message) == ("crashed", message)
    assert run("1 + 1").value == 2


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("'\\x00\\x00\\x00\\x05hello'", "protocol_violation"),
        ("'\\x7f\\xff\\xff\\xff'", "protocol_violation"),
        ("'\\u4e2d'", "protocol_violation"),
        ("'\\x00\\x00\\x00'", "finished"),
    ],
    ids=["no JSON", "a huge frame", "no bytes", "half a frame"],
)
def test_a_guest_that_lies_is_ended(sent: str, status: str) -> None:
    source = f"host = time.sleep.__globals__['host']\nhost.write({sent})\nwhile True: pass"
    result = run(source, wall_s=1 if status == "finished" else 20)
    # Half a frame is no violation: the guest is silent from there, until its time is over.
    assert result.status == (status if status != "finished" else "timeout_program")
    assert run("1 + 1").value == 2


def test_the_guests_streams_lead_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    source = "import os\nfor number in range(8):\n    try: os.write(number, b'SECRET')\n    except OSError: pass"
    run(source)
    assert "SECRET" not in "".join(capfd.readouterr())
    os.write(1, b"SECRET")
    assert capfd.readouterr().out == "SECRET"


def test_the_end_of_one_program_does_not_end_the_next() -> None:
    # The engine of the first is used again, and being stopped late must not touch the second.
    for _ in range(20):
        assert run("while True: echo(1)", calls=3).status == "calls"
        assert run("sum(range(1000))").value == 499_500


def test_forty_programs_at_once_all_end() -> None:
    with ThreadPoolExecutor(40) as threads:
        values = [each.value for each in threads.map(lambda number: run(f"echo({number}) + 1"), range(40))]
    assert values == [number + 1 for number in range(40)]


def test_a_program_beside_loops_and_floods_is_not_held_up() -> None:
    hostile = ["while True: pass", "while True: print('x' * 1000)", "while True: echo(1)"]
    run("1")
    with ThreadPoolExecutor(3) as threads:
        running = [threads.submit(run, source, wall_s=3, calls=10**6, output_flood_bytes=10**9) for source in hostile]
        time.sleep(0.3)
        taken = min(run("1 + 1").duration_s for _ in range(10))
        for each in running:
            each.result()
    assert taken < 0.5


def test_addresses_and_orders_are_the_same_in_every_attempt() -> None:
    source = "class Thing: pass\nthings = {Thing() for _ in range(20)}\n[id(one) for one in things], hash('a')"
    assert len({repr(run(source).value) for _ in range(3)}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_forked_child_makes_its_own() -> None:
    assert run("1 + 1").value == 2
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(run("echo(20) + 1").value).encode())
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b"21"
    os.close(reading)
    os.waitpid(child, 0)
    assert run("1 + 1").value == 2


def test_a_run_that_waits_goes_on_with_the_same_guest_alone(tmp_path: Any) -> None:
    from toolwire import DecisionRefused, ToolSpec

    tool = ToolSpec.from_function(add, permission="confirm")
    url, reply = f"sqlite:///{tmp_path}/runs.db", '{"name": "code_execution", "arguments": {"code": "add(3, 4) * 2"}}'

    def session(runner: Any) -> Session:
        return Session([tool], protocol="json", programs=True, runner=runner, store=url)

    waiting = session("wasm").run_turn(reply).suspended
    assert waiting is not None
    decision = {"request_id": waiting.pending[0].id, "verdict": "approve"}
    with pytest.raises(DecisionRefused, match=RUNNER.replay_engine):
        session("kernel").run_resume(waiting.run_id, [decision])
    assert session("wasm").run_resume(waiting.run_id).results[0].data == "14"


def test_what_a_guest_waits_for_ends_with_the_run() -> None:
    release, threads = threading.Event(), threading.active_count()

    def stuck(call: ProgramCall) -> Answer:
        release.wait(PATIENCE_S)
        return Answer()

    assert run("echo(1)", FakeTools(echo=stuck), deadline_s=0.4).status == "deadline"
    assert run("1 + 1").value == 2
    release.set()
    until(lambda: threading.active_count() <= threads + 2)
    assert ECHO.name == "echo"
