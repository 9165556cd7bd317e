"""One run of a scripted program, with calls, record and result as in the sandbox."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from toolwire.sandbox.answers import PARKED, Answer, AnswerError, Parked, Recorded, Unanswered, arguments_digest
from toolwire.sandbox.drive.conversation import fault, only_answer
from toolwire.sandbox.drive.outcome import STOPPED, reason
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import CallStatus, Isolation, ProgramCallRecord, ProgramError, ProgramResult, ProgramStatus
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes


@dataclass(frozen=True, slots=True)
class ScriptEnded:
    """The end of a script."""

    status: ProgramStatus
    """The status of the program."""
    value: Any = None
    """The result; None without one."""
    type_name: str = STOPPED
    """Name of the exception if the program did not finish."""
    message: str = ""
    """The message of the exception; empty if the status says everything."""
    notice: str = ""
    """The text for a program without output and result; empty without one."""


class ScriptedProgram:
    """Numbers the calls of one run, answers them from the record or has them made, and keeps their outcomes."""

    def __init__(self, program: Program, isolation: Isolation) -> None:
        self._program = program
        self._isolation = isolation
        self._started = time.monotonic()
        self._calls: list[ProgramCallRecord] = []
        self._answered = 0
        replay = program.replay
        self._recorded = {} if replay is None else {one.ordinal: one for one in replay.recorded}

    async def answer(
        self, tool: str, arguments: dict[str, Any], call: Callable[[ProgramCall], Awaitable[Answer | Parked]]
    ) -> Answer | ScriptEnded:
        """Returns the answer to a call, or the end of the script at this call."""
        if tool not in {one.name for one in self._program.tools}:
            return Answer(error=AnswerError(type_name="NameError", message=f"name {tool!r} is not defined"))
        made = ProgramCall(ordinal=len(self._calls) + 1, tool=tool, arguments=arguments, parallel=False)
        if self._program.replay is not None:
            return await self._replay_call(replace(made, arguments_digest=arguments_digest(arguments)), call)
        answer = only_answer(await self._call_tool(made, call))
        self._note(made, answer)
        return ScriptEnded("finished", notice=answer.ends) if answer.ends else answer

    def finish(self, value: Any) -> ScriptEnded:
        """Returns the end of a script that returned. A recorded call that it did not make is a divergence."""
        left = sorted(ordinal for ordinal in self._recorded if ordinal > len(self._calls))
        if left:
            tool = self._recorded[left[0]].tool
            return ScriptEnded("divergence", message=f"the program ended without step {left[0]}, a call of {tool!r}")
        return ScriptEnded("finished", value)

    def result(self, ended: ScriptEnded, output: str) -> ProgramResult:
        """Returns the result of a program that has ended."""
        return ProgramResult(
            status=ended.status,
            value=ended.value,
            has_value=ended.value is not None,
            stdout=output,
            stdout_bytes=len(utf8_bytes(output)),
            error=self._error(ended),
            calls=tuple(self._calls),
            isolation=self._isolation,
            duration_s=time.monotonic() - self._started,
            cpu_s=0.0,
            notice=ended.notice,
            recorded=tuple(self._recorded[ordinal] for ordinal in sorted(self._recorded)),
        )

    def _error(self, ended: ScriptEnded) -> ProgramError | None:
        if ended.status == "finished":
            return None
        message = ended.message
        if ended.status != "failed":
            message = reason(ended.status, self._program.limits, message, None)
        return ProgramError(type=ended.type_name, message=message, traceback=f"{ended.type_name}: {message}")

    async def _replay_call(
        self, made: ProgramCall, call: Callable[[ProgramCall], Awaitable[Answer | Parked]]
    ) -> Answer | ScriptEnded:
        known = self._recorded.get(made.ordinal)
        if known is not None and (differs := _difference(known, made)):
            return ScriptEnded("divergence", message=f"step {made.ordinal} is a call of {made.tool!r}{differs}")
        if known is not None and isinstance(known.answer, Answer):
            self._answered += 1
            self._note(made, known.answer, replayed=True)
            return known.answer
        record = Recorded(
            ordinal=made.ordinal,
            tool=made.tool,
            arguments_digest=made.arguments_digest,
            answer=PARKED,
            after=self._answered,
        )
        answer = await self._call_tool(made, call)
        if isinstance(answer, Answer) and not answer.ends:
            self._answered += 1
            record = replace(record, answer=answer, completed=self._answered, at=time.time())
        self._keep(record)
        self._note(made, answer)
        if not isinstance(answer, Answer):
            return ScriptEnded("suspended")
        return ScriptEnded("finished", notice=answer.ends) if answer.ends else answer

    def _keep(self, record: Recorded) -> None:
        replay = self._program.replay
        self._recorded[record.ordinal] = record
        if replay is not None and replay.on_recorded is not None:
            replay.on_recorded(record)

    async def _call_tool(
        self, made: ProgramCall, call: Callable[[ProgramCall], Awaitable[Answer | Parked]]
    ) -> Answer | Parked:
        try:
            return await call(made)
        except Exception as error:  # noqa: BLE001 - as in the sandbox: a port that raises is an error to the program
            return fault(error)

    def _note(self, made: ProgramCall, answer: Answer | Parked, *, replayed: bool = False) -> None:
        status: CallStatus = "parked"
        if not isinstance(answer, Unanswered):
            status = "answered" if answer.error is None else "failed"
        one = ProgramCallRecord(
            ordinal=made.ordinal,
            tool=made.tool,
            arguments=made.arguments,
            status=status,
            duration_ms=0.0,
            arguments_digest=made.arguments_digest,
            completed=self._answered if self._program.replay is not None and status != "parked" else 0,
            replayed=replayed,
        )
        self._calls.append(one)


def _difference(known: Recorded, made: ProgramCall) -> str:
    if known.tool != made.tool:
        return f", it was one of {known.tool!r}"
    return "" if known.arguments_digest == made.arguments_digest else " with other arguments than before"
