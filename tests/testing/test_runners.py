"""The kit for program runners passes the sandbox and scripts, and names the fault of each bad one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.sandbox.child.kernel.weakened import VOID, weakened
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import PARKED, Answer, AnswerError, Parked, Program, ProgramCall
from toolwire.sandbox.report import Isolation, ProgramResult
from toolwire.sandbox.runner import Flag
from toolwire.testing import PortFails, ScriptedRunner
from toolwire.testing.runner_programs import RUNNER_PROGRAMS
from toolwire.testing.runners import RUNNER_CHECKS, check_runner


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def scripted() -> ScriptedRunner:
    return ScriptedRunner(RUNNER_PROGRAMS)


@pytest.mark.parametrize("check", RUNNER_CHECKS)
def test_the_sandbox_passes(check: str, sandbox: Sandbox) -> None:
    RUNNER_CHECKS[check](lambda: sandbox)


@pytest.mark.parametrize("check", RUNNER_CHECKS)
def test_scripts_pass(check: str) -> None:
    RUNNER_CHECKS[check](scripted)


def test_weak_scripts_and_a_weak_sandbox_refuse_what_needs_more() -> None:
    RUNNER_CHECKS["isolation is told and kept"](lambda: ScriptedRunner(RUNNER_PROGRAMS, isolation="none"))
    with weakened(VOID["seccomp"]) as weak:
        RUNNER_CHECKS["isolation is told and kept"](lambda: weak)


Call = Callable[[ProgramCall], Answer | Parked]


class Broken(ScriptedRunner):
    """Makes one mistake, which its subclass defines, however it is called."""

    def __init__(self) -> None:
        super().__init__(RUNNER_PROGRAMS)

    def asked(self, call: ProgramCall) -> ProgramCall:
        return call

    def answered(self, answer: Answer | Parked) -> Answer | Parked:
        return answer

    def ended(self, result: ProgramResult) -> ProgramResult:
        return result

    def begins(self, program: Program) -> Program:
        return program

    def run(self, program: Program, call: Call, /, *, cancel: Flag | None = None) -> ProgramResult:
        heard = super().run(self.begins(program), lambda made: self.answered(call(self.asked(made))), cancel=cancel)
        return self.ended(heard)

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        async def answer(made: ProgramCall) -> Answer | Parked:
            return self.answered(await call(self.asked(made)))

        return self.ended(await super().run_async(self.begins(program), answer))


class CountsFromZero(Broken):
    def asked(self, call: ProgramCall) -> ProgramCall:
        return replace(call, ordinal=call.ordinal - 1)


class LosesOutput(Broken):
    def ended(self, result: ProgramResult) -> ProgramResult:
        return replace(result, stdout="", stdout_bytes=0) if result.status == "finished" else result


class HasOneError(Broken):
    def answered(self, answer: Answer | Parked) -> Answer | Parked:
        if isinstance(answer, Answer) and answer.error is not None and answer.error.family != "tool":
            return Answer(error=AnswerError(type_name="", message=answer.error.message))
        return answer


class CallsFailuresCrashes(Broken):
    def ended(self, result: ProgramResult) -> ProgramResult:
        return replace(result, status="crashed") if result.status == "failed" else result


class LetsErrorsOut(ScriptedRunner):
    """An exception of an answer comes out of `run`."""

    def __init__(self) -> None:
        super().__init__(RUNNER_PROGRAMS)

    def run(self, program: Program, call: Call, /, *, cancel: Flag | None = None) -> ProgramResult:
        errors: list[Exception] = []

        def answer(made: ProgramCall) -> Answer | Parked:
            try:
                return call(made)
            except Exception as error:
                errors.append(error)
                raise

        result = super().run(program, answer, cancel=cancel)
        if errors:
            raise errors[0]
        return result


class SwallowsAll(Broken):
    def run(self, program: Program, call: Call, /, *, cancel: Flag | None = None) -> ProgramResult:
        def answer(made: ProgramCall) -> Answer | Parked:
            try:
                return call(made)
            except Exception:
                raise
            except BaseException as error:
                raise RuntimeError from error

        return super().run(program, answer, cancel=cancel)


class CannotBeCancelled(Broken):
    def run(self, program: Program, call: Call, /, *, cancel: Flag | None = None) -> ProgramResult:
        return super().run(program, call)


class HoldsOnToTasks(Broken):
    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        try:
            return await super().run_async(program, call)
        except asyncio.CancelledError:
            return cast("Any", None)


class HoldsTheLoop(Broken):
    async def run_beside(self, program: Program, call: Call, /) -> ProgramResult:
        return self.run(program, call)


class WaitsForNobody(Broken):
    def answered(self, answer: Answer | Parked) -> Answer | Parked:
        return Answer() if answer is PARKED else answer


class GoesOnAfterTheEnd(Broken):
    def answered(self, answer: Answer | Parked) -> Answer | Parked:
        return Answer(value=1) if isinstance(answer, Answer) and answer.ends else answer


class ForgetsWhatWas(Broken):
    def ended(self, result: ProgramResult) -> ProgramResult:
        return replace(result, recorded=())


class StartsAfresh(Broken):
    def begins(self, program: Program) -> Program:
        replay = program.replay
        return program if replay is None else replace(program, replay=replace(replay, recorded=()))


class BelievesTheProgram(Broken):
    """Takes whatever call comes for the recorded one."""

    def begins(self, program: Program) -> Program:
        replay = program.replay
        if replay is None:
            return program
        known = tuple(one for one in replay.recorded if one.arguments_digest != "sha256:0")
        return replace(program, replay=replace(replay, recorded=known if len(known) == len(replay.recorded) else ()))


class NeverSaysWhere(Broken):
    def ended(self, result: ProgramResult) -> ProgramResult:
        return replace(result, isolation=Isolation(level="none", report={}))


BROKEN: list[tuple[type[ScriptedRunner], list[str]]] = [
    (CountsFromZero, ["calls come in order", "a suspended program goes on", "an answer may end the program"]),
    (LosesOutput, ["output and value come back", "errors reach the program", "what breaks is an error to the program"]),
    (HasOneError, ["errors reach the program"]),
    (CallsFailuresCrashes, ["an error not caught fails the program", "without a record nothing waits"]),
    (LetsErrorsOut, ["what breaks is an error to the program"]),
    (SwallowsAll, ["what is for the caller is raised"]),
    (CannotBeCancelled, ["a cancelled program ends", "a cancelled task ends its program"]),
    (HoldsOnToTasks, ["a cancelled task ends its program"]),
    (HoldsTheLoop, ["a cancelled task ends its program", "the loop goes on beside a program"]),
    (WaitsForNobody, ["a parked call suspends", "a suspended program goes on", "without a record nothing waits"]),
    (GoesOnAfterTheEnd, ["an answer may end the program"]),
    (
        ForgetsWhatWas,
        [
            *("a parked call suspends", "a suspended program goes on", "another program is stopped"),
            "an answer may end the program",
        ],
    ),
    (StartsAfresh, ["a suspended program goes on", "another program is stopped", "an answer may end the program"]),
    (BelievesTheProgram, ["another program is stopped"]),
    (NeverSaysWhere, ["isolation is told and kept"]),
]


@pytest.mark.parametrize(("kind", "broken"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
def test_a_wrong_runner_is_told_by_what_it_does(kind: Callable[[], ScriptedRunner], broken: list[str]) -> None:
    with pytest.raises(PortFails) as failed:
        check_runner(kind)
    assert [line.partition(": ")[0] for line in str(failed.value).splitlines()] == broken


def test_each_check_has_a_runner_that_fails_it() -> None:
    assert {check for _, checks in BROKEN for check in checks} == set(RUNNER_CHECKS)
