"""Each limit on both sides: a program under it finishes, a program over it is stopped for that reason alone."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.conftest import IN_WASM
from tests.patience import PATIENCE_S
from tests.sandbox.programs import FakeTools, Runner
from toolwire.sandbox.drive.live_program import NOT_KEPT, RECORDED_BYTES
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, ProgramCall
from toolwire.vocabulary.errors import ConfigurationError

LATE_S = 6
"""Seconds after its clock within which a program is over. All its other clocks are later than that."""
LINES = {2: "while True:", 3: "pass"}
"""The lines at which an endless loop is told: the second from Python 3.14 on."""
EARLY_CPU_S, LATE_CPU_S = 0.7, 1.5
"""The kernel enforces the time counted at ticks, and reports the time measured: on a busy machine these drift apart."""


@pytest.mark.threat(49)
@pytest.mark.of_processes
def test_processor_time(run: Runner) -> None:
    result = run("print('start')\nwhile True:\n    pass", cpu_s=1, wall_s=150, deadline_s=150)
    assert result.error is not None
    assert (result.status, result.stdout, result.error.line in LINES) == ("timeout_cpu", "start\n", True)
    assert result.error.message == "the program used more than 1 s of processor time."
    assert 1 - EARLY_CPU_S < result.cpu_s < 1 + LATE_CPU_S


@pytest.mark.threat(49)
@pytest.mark.of_processes
def test_processor_time_of_a_program_that_ignores_the_signal(run: Runner) -> None:
    source = """
signal = statistics.sys.modules["signal"]
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
print("start")
while True: pass
"""
    result = run(source, cpu_s=1, wall_s=150, deadline_s=150)
    assert (result.status, result.stdout) == ("timeout_cpu", "start\n")
    assert 2 - EARLY_CPU_S < result.cpu_s < 2 + LATE_CPU_S


@pytest.mark.requirement("attp.isolation.timeout")
def test_a_program_has_ten_seconds_of_its_own_unless_said_otherwise() -> None:
    assert Limits().wall_s == 10


@pytest.mark.requirement("attp.isolation.timeout", "ptc.safety.process")
@pytest.mark.threat(49)
@pytest.mark.of_processes
def test_time_of_the_program(run: Runner) -> None:
    result = run("print('a', end='')\nwhile True:\n    pass", wall_s=1)
    assert result.error is not None
    assert (result.status, result.stdout, result.error.line in LINES) == ("timeout_program", "a", True)
    assert result.for_model == (
        "a\n"
        "Traceback (most recent call last):\n"
        f'  File "<program>", line {result.error.line}, in <module>\n'
        f"    {LINES[result.error.line or 0]}\n"
        "Stopped: the program ran for more than 1 s, time spent waiting for tools not counted."
    )
    assert result.duration_s < 1 + LATE_S


def test_sleeping_is_time_of_the_program(run: Runner) -> None:
    assert run("await asyncio.sleep(5)", wall_s=0.1).status == "timeout_program"


@pytest.mark.threat(49)
def test_a_program_that_does_not_answer_the_signal_is_killed(run: Runner) -> None:
    source = "signal = statistics.sys.modules['signal']\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass"
    result = run(source, wall_s=0.1)
    assert result.status == "timeout_program"
    assert result.duration_s < 0.1 + LATE_S


def test_waiting_for_tools_does_not_count_as_time_of_the_program(run: Runner) -> None:
    def slow(call: ProgramCall) -> Answer:
        time.sleep(0.6)
        return Answer(value=call.arguments["value"])

    result = run("echo(1), echo(2), await asyncio.gather(echo(3), echo(4))", FakeTools(echo=slow), wall_s=1.5)
    assert (result.status, result.value) == ("finished", (1, 2, [3, 4]))


@pytest.mark.of_processes
def test_deadline(run: Runner) -> None:
    result = run("print('a')\nwhile True:\n    pass", deadline_s=1.5)
    assert result.error is not None
    assert (result.status, result.stdout, result.error.line) == ("deadline", "a\n", 2)
    assert result.error.message == "the program was not done 1.5 s after its start, tools included."


@pytest.mark.threat(51)
@pytest.mark.parametrize("source", ["print('a')\necho(1)", "print('a')\nawait asyncio.gather(echo(1), echo(2))"])
def test_a_tool_that_never_returns_does_not_hold_up_the_run(run: Runner, source: str) -> None:
    release = threading.Event()

    def stuck(call: ProgramCall) -> Answer:
        release.wait(PATIENCE_S)
        return Answer()

    started = time.monotonic()
    result = run(source, FakeTools(echo=stuck), deadline_s=1.5)
    assert time.monotonic() - started < 1.5 + LATE_S
    assert (result.status, result.stdout, {call.status for call in result.calls}) == ("deadline", "a\n", {"cancelled"})
    release.set()


@pytest.mark.threat(49)
def test_clocks_longer_than_the_kernel_s(run: Runner) -> None:
    """A wait of the kernel's is at most 24 days."""
    source = "import asyncio\nawait asyncio.sleep(0.01)\necho(1)"
    assert run(source, wall_s=1e8, deadline_s=1e9).value == 1


@pytest.mark.requirement("attp.isolation.memory", "ptc.safety.process")
def test_memory(run: Runner) -> None:
    result = run("print('a')\nrows = []\nwhile True:\n    rows.append('x' * 1_000_000)", memory_mb=64)
    assert result.error is not None
    assert (result.status, result.stdout, result.error.type, result.error.line) == ("memory", "a\n", "MemoryError", 4)
    assert result.error.hint == "It needed more than 64 MiB. Handle the data in smaller pieces."
    assert run("1 + 1", memory_mb=64).value == 2


def test_memory_under_the_limit(run: Runner) -> None:
    assert run("len('x' * 40_000_000)", memory_mb=64).value == 40_000_000


def test_a_memory_error_can_be_caught(run: Runner) -> None:
    source = "try:\n    'x' * 100_000_000\nexcept MemoryError:\n    print('caught')\nadd(1, 2)"
    result = run(source, memory_mb=64)
    assert (result.status, result.stdout, result.value) == ("finished", "caught\n", 3)


def test_memory_taken_by_small_objects(run: Runner) -> None:
    # Near the limit CPython 3.13 asks the kernel in vain for each object, which takes seconds for the smallest ones.
    result = run("rows = []\nwhile True:\n    rows.append(str(len(rows)) * 60)", memory_mb=32)
    # In WebAssembly it may run out inside of C code, which no interpreter survives, and then says so.
    assert result.status == "memory" or (IN_WASM and "using up its memory" in str(result.error))


def test_output_beyond_what_is_kept_is_counted(run: Runner) -> None:
    result = run("for n in range(100): print('ü' * 10)", output_bytes=100)
    assert (result.status, result.stdout, result.stdout_bytes) == (
        "finished",
        ("ü" * 10 + "\n") * 4 + "ü" * 8,
        2100,
    )
    assert result.for_model.splitlines()[-1] == "[output cut: the first 100 of 2,100 bytes are shown]"


def test_output_cut_within_a_character_loses_that_character(run: Runner) -> None:
    result = run("print('ü' * 10)\nprint('x')", output_bytes=5)
    assert (result.stdout, result.stdout_bytes) == ("üü", 23)


@pytest.mark.threat(49)
def test_output_flood(run: Runner) -> None:
    result = run("while True: print('x' * 1000)", output_flood_bytes=2_000_000, output_bytes=50)
    assert result.error is not None
    assert (result.status, result.stdout) == ("output", "x" * 50)
    assert result.error.message == "the program printed more than 2,000,000 bytes."
    assert 2_000_000 <= result.stdout_bytes < 2_200_000


def test_one_long_print_arrives_whole(run: Runner) -> None:
    result = run("print('ü' * 100_000, end='')", output_bytes=250_000)
    assert result.stdout == "ü" * 100_000


def test_result_size(run: Runner) -> None:
    assert run("'x' * 900", result_bytes=1000).value == "x" * 900
    result = run("print('a')\n'x' * 1_000_000", result_bytes=1000)
    assert result.error is not None
    assert (result.status, result.stdout, result.error.type) == ("failed", "a\n", "ResultTooLarge")
    assert result.for_model == (
        "a\nthe result is 1,000,055 bytes, at most 1,000 fit. Give less of it: a part, a count or a summary"
    )


def test_number_of_calls(run: Runner) -> None:
    assert run("for n in range(3): add(n, 1)", calls=3).status == "finished"
    tools = FakeTools()
    result = run("for n in range(4): print(add(n, 1))", tools, calls=3)
    assert result.error is not None
    assert (result.status, result.stdout, len(result.calls), len(tools.calls)) == ("calls", "1\n2\n3\n", 3, 3)
    assert result.error.message == "the program made more than 3 tool calls."


def test_size_of_a_call(run: Runner) -> None:
    assert run("len(echo('x' * 900))", call_bytes=1000).value == 900
    result = run("try:\n    echo('x' * 2000)\nexcept LimitReached as error:\n    print(error)", call_bytes=1000)
    assert result.stdout == "echo() cannot be given so much: 2,031 bytes, at most 1,000 fit\n"


def test_size_of_an_answer(run: Runner) -> None:
    tools = FakeTools(echo=lambda call: Answer(value="x" * 1_000_000))
    source = "try:\n    echo(1)\nexcept LimitReached as error:\n    print(error)"
    assert run(source, tools, call_bytes=1000).stdout == (
        "the tool's answer is too large for a program: 1,000,049 bytes, at most 1,000 fit. Ask for less.\n"
    )


def test_size_of_the_source(run: Runner) -> None:
    assert run("#" * 1000, source_bytes=1000).status == "finished"
    result = run("#" * 1001, source_bytes=1000)
    assert result.error is not None
    assert (result.status, result.error.type, result.error.message) == (
        "failed",
        "SourceRefused",
        "the program is 1,001 bytes long, at most 1,000 are allowed",
    )


@pytest.mark.threat(49)
@pytest.mark.of_processes
def test_a_program_cannot_start_others(run: Runner) -> None:
    source = "try:\n    random._os.pipe()\nexcept OSError as error:\n    print(error)"
    assert run(source).stdout == "[Errno 1] Operation not permitted\n"


@pytest.mark.parametrize("value", [0, -1, True, "10", None, float("nan")])
def test_a_limit_that_is_not_a_positive_number_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="Limits\\(wall_s="):
        Limits(wall_s=value)


def test_the_records_of_calls_keep_so_many_bytes_of_arguments(run: Runner) -> None:
    result = run("for n in range(3):\n    echo('x' * 400_000)")
    kept = [call.arguments["value"] for call in result.calls]
    assert kept == ["x" * 400_000, "x" * 400_000, NOT_KEPT]
    assert 2 * 400_000 < RECORDED_BYTES < 3 * 400_000
