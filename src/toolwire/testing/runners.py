"""A conformance kit for program runners: the guarantees that the invocation path relies on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from toolwire.sandbox.answers import PARKED, Answer, AnswerError, AnswerFamily, Parked, Recorded, Replay
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import MinIsolation, ProgramResult
from toolwire.sandbox.runner import ProgramRunner
from toolwire.testing.checks import holds, run_checks
from toolwire.testing.runner_programs import ASKS, BREAKS, CATCHES, GOES_ON, SUMS, TOOLS
from toolwire.vocabulary.errors import SandboxUnavailable

MakeRunner = Callable[[], ProgramRunner]
"""Creates the runner under test, or returns an existing one."""
Way = Literal["run", "run_async", "run_beside"]
_WAYS: tuple[Way, ...] = get_args(Way)
_PATIENCE_S = 20.0
"""Seconds allowed for an operation that takes milliseconds in a correct runner."""
_CALLS = 100_000
"""Calls after which a program should have been cancelled long ago: a runner checks `cancel` far more often."""

_LOOK_S = 0.05
"""Seconds between two looks at a program that calls all the time."""
_STILL_LOOKS = 10
"""Looks in a row without a new call after which it has ended. A busy machine can stop a thread for one of them."""


def check_runner(make_runner: MakeRunner) -> None:
    """Runs every check of `RUNNER_CHECKS`. Do not call it inside a running event loop: it starts its own.

    Raises:
        PortFails: At least one check failed.
    """
    run_checks(RUNNER_CHECKS, make_runner)


def _program(source: str, *, least: MinIsolation = "process", **options: Any) -> Program:
    return Program(source=source, tools=TOOLS, limits=Limits(calls=10 * _CALLS), min_isolation=least, **options)


def _echo(call: ProgramCall) -> Answer | Parked:
    return Answer(value=call.arguments["value"])


def _parks(call: ProgramCall) -> Answer | Parked:
    return PARKED if call.tool == "ask" else _echo(call)


def _ran(
    make: MakeRunner, way: Way, program: Program, answer: Callable[[ProgramCall], Answer | Parked]
) -> ProgramResult:
    runner = make()
    if way == "run":
        return runner.run(program, answer)

    async def later(call: ProgramCall) -> Answer | Parked:
        await asyncio.sleep(0)
        return answer(call)

    async def main() -> ProgramResult:
        running = runner.run_async(program, later) if way == "run_async" else runner.run_beside(program, answer)
        return await running

    return asyncio.run(main())


def _calls_come_in_order(make: MakeRunner) -> None:
    for way in _WAYS:
        came: list[tuple[int, str, dict[str, Any]]] = []

        def answer(call: ProgramCall, came: list[tuple[int, str, dict[str, Any]]] = came) -> Answer | Parked:
            came.append((call.ordinal, call.tool, dict(call.arguments)))
            return _echo(call)

        result = _ran(make, way, _program(SUMS), answer)
        right = [(1, "echo", {"value": 3}), (2, "echo", {"value": 1}), (3, "echo", {"value": 2})]
        holds(came == right, f"{way}: the calls {right} came as {came}")
        told = [(one.ordinal, one.tool, dict(one.arguments)) for one in result.calls]
        holds(told == right, f"{way}: the calls {right} are {told} in the result")
        statuses = [one.status for one in result.calls]
        holds(statuses == ["answered"] * 3, f"{way}: calls that were answered have the statuses {statuses}")


def _output_and_value_come_back(make: MakeRunner) -> None:
    for way in _WAYS:
        result = _ran(make, way, _program(SUMS), _echo)
        holds(result.status == "finished", f"{way}: a program that came to its end is {_how(result)}")
        holds(result.error is None, f"{way}: a program that finished has the error {result.error}")
        value = (result.has_value, result.value)
        holds(value == (True, {"rows": [3, 1, 2]}), f"{way}: has_value and value are {value}")
        printed = (result.stdout, result.stdout_bytes)
        holds(printed == ("told [3, 1, 2]\n", 15), f"{way}: stdout and stdout_bytes are {printed}")


_SEEN_AS: Mapping[AnswerFamily, str] = {
    "tool": "RateLimited",
    "denied": "ToolDenied",
    "timeout": "ToolTimeout",
    "limit": "LimitReached",
    "arguments": "InvalidArguments",
    "unavailable": "ToolUnavailable",
    "internal": "ToolError",
}


def _errors_reach_the_program(make: MakeRunner) -> None:
    for way in _WAYS:
        for family, name in _SEEN_AS.items():
            error = AnswerError(type_name="RateLimited", message="not now – 不行", family=family)
            result = _ran(make, way, _program(CATCHES), lambda _, error=error: Answer(error=error))
            said = f"{name} not now – 不行\n"
            holds(result.stdout == said, f"{way}: an error of the family {family} was seen as {result.stdout!r}")
            holds([one.status for one in result.calls] == ["failed"], f"{way}: the call's record does not say `failed`")


def _an_error_not_caught_fails_the_program(make: MakeRunner) -> None:
    error = AnswerError(type_name="RateLimited", message="not now")
    for way in _WAYS:
        result = _ran(make, way, _program(BREAKS), lambda _: Answer(error=error))
        holds(result.status == "failed", f"{way}: a program that did not catch an error is {_how(result)}")
        why = None if result.error is None else (result.error.type, result.error.message)
        holds(why == ("RateLimited", "not now"), f"{way}: the error RateLimited, 'not now', became {why}")
        holds(result.stdout == "before\n", f"{way}: it printed 'before', and {result.stdout!r} was kept")
        holds(not result.has_value, f"{way}: a program that failed has a value")


class _Stop(BaseException):
    """An exception for the caller of the runner."""


def _what_breaks_is_an_error_to_the_program(make: MakeRunner) -> None:
    def broken(_: ProgramCall) -> Answer | Parked:
        raise LookupError("of the host alone")

    for way in _WAYS:
        try:
            result = _ran(make, way, _program(CATCHES), broken)
        except Exception as error:  # noqa: BLE001 - the runner under test may raise anything
            holds(False, f"{way}: an exception of the answers came out of it: {error!r}")
            continue
        holds(result.stdout.startswith("ToolError "), f"{way}: a program saw what broke as {result.stdout!r}")
        holds("of the host" not in result.stdout, f"{way}: a program reads what an exception of the host says")


def _what_is_for_the_caller_is_raised(make: MakeRunner) -> None:
    def stop(_: ProgramCall) -> Answer | Parked:
        raise _Stop

    for way in _WAYS:
        try:
            result = _ran(make, way, _program(CATCHES), stop)
        except _Stop:
            continue
        holds(False, f"{way}: what is no Exception was not raised; the program is {_how(result)}")


def _a_cancelled_program_ends(make: MakeRunner) -> None:
    flag, came = threading.Event(), list[int]()

    def answer(call: ProgramCall) -> Answer | Parked:
        came.append(call.ordinal)
        if len(came) == 3:
            flag.set()
        if len(came) > _CALLS:
            raise _Stop
        return _echo(call)

    try:
        result = make().run(_program(GOES_ON), answer, cancel=flag)
    except _Stop:
        holds(False, f"run: a program made {_CALLS:,} calls after it was cancelled")
        return
    holds(result.status == "cancelled", f"run: a program that was cancelled is {_how(result)}")
    holds(len(result.calls) >= 3, "run: the calls until then are not in the result")


def _a_cancelled_task_ends_its_program(make: MakeRunner) -> None:
    for way in ("run_async", "run_beside"):
        left = asyncio.run(_cancelled(make(), way))
        holds(not left, f"{way}: {left}")


async def _cancelled(runner: ProgramRunner, way: str) -> str:
    """Cancels the task of a running program and returns the problem; empty if there was none."""
    loop, begun, made = asyncio.get_running_loop(), asyncio.Event(), list[int]()
    is_stopped = False

    async def later(_: ProgramCall) -> Answer | Parked:
        nonlocal is_stopped
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_stopped = True
        return Answer()

    def answer(call: ProgramCall) -> Answer | Parked:
        made.append(call.ordinal)
        if len(made) == 1:
            loop.call_soon_threadsafe(begun.set)
        if len(made) > _CALLS:
            raise _Stop
        return _echo(call)

    program = _program(GOES_ON)
    running: Awaitable[ProgramResult]
    running = runner.run_async(program, later) if way == "run_async" else runner.run_beside(program, answer)
    task = asyncio.ensure_future(running)
    if not await _within(begun.wait()):
        return "no call came"
    task.cancel()
    await asyncio.wait((task,), timeout=_PATIENCE_S)
    if not task.done():
        return "a task that was cancelled went on"
    if not task.cancelled():
        return "cancelling the task did not reach who awaits it"
    if way == "run_async":
        return "" if is_stopped else "the call under way was not cancelled"
    await _until_still(made)
    return f"a program made {_CALLS:,} calls after its task was cancelled" if len(made) > _CALLS else ""


async def _until_still(made: list[int]) -> None:
    before, still = len(made), 0
    while still < _STILL_LOOKS and len(made) <= _CALLS:
        await asyncio.sleep(_LOOK_S)
        still = still + 1 if len(made) == before else 0
        before = len(made)


async def _within(waited: Awaitable[Any]) -> bool:
    task = asyncio.ensure_future(waited)
    await asyncio.wait((task,), timeout=_PATIENCE_S)
    return task.done()


def _the_loop_goes_on_beside(make: MakeRunner) -> None:
    threads: set[int] = set()

    def answer(call: ProgramCall) -> Answer | Parked:
        threads.add(threading.get_ident())
        return _echo(call)

    _ran(make, "run_beside", _program(SUMS), answer)
    holds(threading.get_ident() not in threads, "run_beside: calls are answered in the loop's own thread")


def _replay(recorded: tuple[Recorded, ...] = (), told: list[Recorded] | None = None) -> Replay:
    on_recorded = None if told is None else told.append
    return Replay(seed=7, started_at=1_700_000_000.0, recorded=recorded, on_recorded=on_recorded)


def _a_parked_call_suspends(make: MakeRunner) -> None:
    for way in _WAYS:
        told: list[Recorded] = []
        result = _ran(make, way, _program(ASKS, replay=_replay(told=told)), _parks)
        holds(result.status == "suspended", f"{way}: a program whose call waits for a person is {_how(result)}")
        statuses = [one.status for one in result.calls]
        holds(statuses == ["answered", "parked"], f"{way}: its calls have the statuses {statuses}")
        kept_of_it = (result.stdout, result.has_value)
        holds(kept_of_it == ("before\n", False), f"{way}: its stdout and has_value are {kept_of_it}")
        kept = [(one.ordinal, one.tool, one.answer) for one in result.recorded]
        right = [(1, "echo", Answer(value=1)), (2, "ask", PARKED)]
        holds(kept == right, f"{way}: its record {right} is {kept}")
        heard = [(one.ordinal, one.tool, one.answer) for one in told]
        holds(heard == right, f"{way}: `on_recorded` was told {heard}")


def _a_suspended_program_goes_on(make: MakeRunner) -> None:
    for way in _WAYS:
        first = _ran(make, way, _program(ASKS, replay=_replay()), _parks)
        made: list[int] = []

        def answer(call: ProgramCall, made: list[int] = made) -> Answer | Parked:
            made.append(call.ordinal)
            return _echo(call)

        second = _ran(make, way, _program(ASKS, replay=_replay(first.recorded)), answer)
        holds(made == [2], f"{way}: of a program that had made call 1 the calls {made} were repeated")
        holds((second.status, second.value) == ("finished", [1, 2]), f"{way}: it is {_how(second)}, {second.value}")


def _another_program_is_stopped(make: MakeRunner) -> None:
    for way in _WAYS:
        first = _ran(make, way, _program(ASKS, replay=_replay()), _parks)
        other = replace(first.recorded[0], arguments_digest="sha256:0")
        made: list[int] = []

        def answer(call: ProgramCall, made: list[int] = made) -> Answer | Parked:
            made.append(call.ordinal)
            return _echo(call)

        result = _ran(make, way, _program(ASKS, replay=_replay((other, *first.recorded[1:]))), answer)
        holds(result.status == "divergence", f"{way}: a program that is not the recorded one is {_how(result)}")
        holds(not made, f"{way}: its calls {made} were made")


def _an_answer_may_end_the_program(make: MakeRunner) -> None:
    for way in _WAYS:
        for recorded in (None, ()):
            replay = None if recorded is None else _replay(recorded)
            first = _ran(make, way, _program(SUMS, replay=replay), _ends_at_2)
            _holds_ended(first, way, [1, 2])
            if replay is None:
                continue
            kept = [(one.ordinal, one.answer) for one in first.recorded]
            holds(kept == [(1, Answer(value=3)), (2, PARKED)], f"{way}: the record of a program that ended is {kept}")
            made: list[int] = []

            def answer(call: ProgramCall, made: list[int] = made) -> Answer | Parked:
                made.append(call.ordinal)
                return _ends_at_2(call)

            _holds_ended(_ran(make, way, _program(SUMS, replay=_replay(first.recorded)), answer), way, [1, 2])
            holds(made == [2], f"{way}: of a program that had ended at call 2 the calls {made} were repeated")


def _ends_at_2(call: ProgramCall) -> Answer | Parked:
    return Answer(ends="It ended.") if call.ordinal == 2 else _echo(call)


def _holds_ended(result: ProgramResult, way: Way, made: list[int]) -> None:
    holds(result.status == "finished", f"{way}: a program that an answer ended is {_how(result)}")
    told = (result.has_value, result.stdout, result.notice)
    holds(told == (False, "", "It ended."), f"{way}: its has_value, stdout and notice are {told}")
    calls = [(one.ordinal, one.status) for one in result.calls]
    holds(calls == [(one, "answered") for one in made], f"{way}: its calls are {calls}")


def _without_a_record_nothing_waits(make: MakeRunner) -> None:
    for way in _WAYS:
        result = _ran(make, way, _program(ASKS), _parks)
        holds(result.status == "failed", f"{way}: a program that cannot be resumed is {_how(result)} at a parked call")


def _isolation_is_told_and_kept(make: MakeRunner) -> None:
    for least in get_args(MinIsolation):
        for way in _WAYS:
            made: list[int] = []

            def answer(call: ProgramCall, made: list[int] = made) -> Answer | Parked:
                made.append(call.ordinal)
                return _echo(call)

            try:
                result = _ran(make, way, _program(SUMS, least=least), answer)
            except SandboxUnavailable:
                holds(not made, f"{way}: it refused {least!r} after the program had begun")
                continue
            level = result.isolation.level
            holds(result.isolation.reaches(least), f"{way}: a program that needs {least!r} ran behind {level!r}")
            holds(bool(result.isolation.report), f"{way}: the isolation has no report of what was observed")


RUNNER_CHECKS: Mapping[str, Callable[[MakeRunner], None]] = {
    "calls come in order": _calls_come_in_order,
    "output and value come back": _output_and_value_come_back,
    "errors reach the program": _errors_reach_the_program,
    "an error not caught fails the program": _an_error_not_caught_fails_the_program,
    "what breaks is an error to the program": _what_breaks_is_an_error_to_the_program,
    "what is for the caller is raised": _what_is_for_the_caller_is_raised,
    "a cancelled program ends": _a_cancelled_program_ends,
    "a cancelled task ends its program": _a_cancelled_task_ends_its_program,
    "the loop goes on beside a program": _the_loop_goes_on_beside,
    "a parked call suspends": _a_parked_call_suspends,
    "a suspended program goes on": _a_suspended_program_goes_on,
    "another program is stopped": _another_program_is_stopped,
    "an answer may end the program": _an_answer_may_end_the_program,
    "without a record nothing waits": _without_a_record_nothing_waits,
    "isolation is told and kept": _isolation_is_told_and_kept,
}
"""The checks by name, to run one by one; each raises `PortFails`."""


def _how(result: ProgramResult) -> str:
    return result.status if result.error is None else f"{result.status} ({result.error.type}: {result.error.message})"
