"""Decides what a frame, an answer or a clock of one program leads to; the drive reads, writes and makes the calls.

It has no descriptor, thread or loop, and its clock is a parameter.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any

from toolwire.sandbox.answers import Answer, AnswerError, Parked, Recorded, Unanswered
from toolwire.sandbox.channel.channel import Channel
from toolwire.sandbox.channel.frames import CallFrame, DropFrame, Frame, WaitFrame, WakeFrame
from toolwire.sandbox.drive.live_program import LIGHT_BYTES, LiveProgram
from toolwire.sandbox.drive.replaying import Replaying
from toolwire.sandbox.program import Program, ProgramCall, ProgramTool
from toolwire.sandbox.tool_paths import tool_paths
from toolwire.sandbox.wire import Oversized
from toolwire.vocabulary.calls import PROGRAM_MODULES
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.variables import VARIABLES_LIMIT_BYTES

Effect = ProgramCall | CallFrame | DropFrame | WakeFrame | bytes
"""The drive's next step, if the program is not over.

- `ProgramCall`: make the call, and pass its outcome to `answer_call`.
- `CallFrame`: read nothing until a call has ended, and then take this frame again: its arguments have no room yet.
- `DropFrame`: the program no longer waits for this call.
- `WakeFrame`: call `woke` after so many seconds; it replaces an earlier one.
- `bytes`: write them; often there are none.
"""
_CANNOT_WAIT = AnswerError(
    type_name="",
    family="denied",
    message="the call waits for a person, and this program cannot be suspended: it is not resumable",
)


class Conversation:
    """The host's side of one program. `take` belongs to one thread; the other methods may be called from any."""

    def __init__(self, live: LiveProgram, clock: Callable[[], float]) -> None:
        self._live = live
        self._clock = clock
        replay = live.program.replay
        has_variables = live.program.variables is not None
        self.channel = Channel(
            live.program.tools, live.limits, resumable=replay is not None, has_variables=has_variables
        )
        if replay is not None:
            live.replaying = Replaying(replay, self._frame_of_record, self.channel.batch, self.channel.woke(0))
        self.fatal: BaseException | None = None
        """An exception that ended the program and that the run raises to its caller."""

    def start(self) -> bytes:
        """Starts the program's clock; returns the bytes that start the program.

        Raises:
            DefinitionError: a name of a tool or parameter is not an identifier, so a program could not write it.
        """
        live = self._live
        options = _start_options(live.program)
        live.start_clock(self._clock())
        first = self.channel.start(live.program.source, options)
        return first if live.replaying is None else first + live.replaying.begin()

    def take(self, frame: Frame) -> Effect:
        """Notes a frame."""
        live = self._live
        if type(frame) is CallFrame:
            if live.is_over:
                return b""
            if frame.weight > LIGHT_BYTES and not live.reserve(frame):
                return frame
            call = live.begin_call(frame, self._clock())
            if call is not None and not frame.is_withdrawn:
                return call
            if frame.is_withdrawn:
                self._run_note(lambda: live.withdraw_call(frame.ordinal, self._clock()))
            live.release(frame.ordinal)
            return self._go_on()
        if type(frame) is WakeFrame:
            return frame
        if type(frame) is DropFrame:
            self._run_note(lambda: live.drop_call(frame.ordinal, self._clock(), is_left=frame.is_left))
            return frame
        if type(frame) is WaitFrame:
            live.waits(frame, self._clock())
            return self._go_on()
        live.take(frame)
        return b""

    def answer_call(self, ordinal: int, answer: Answer | Parked) -> Effect:
        """Notes how a call ended."""
        live = self._live
        if isinstance(answer, Answer) and answer.ends:
            # A resumable program's record keeps the call as unanswered: a replay makes it once more, and ends there.
            live.end_at_call(ordinal, answer, self._clock())
            return b""
        if live.replaying is not None:
            self._run_note(lambda: live.settle_call(ordinal, answer, self._clock()))
            return self._go_on()
        if isinstance(answer, Unanswered):
            answer = only_answer(answer)
        frame = self._answer_frame(ordinal, answer)
        # Noted before the program reads it: a program that does not read must not stop its own clock.
        return frame if live.note_answer(ordinal, answer, self._clock()) else b""

    def woke(self, number: int) -> Effect:
        """Notes that the time of a `WakeFrame` is over."""
        return self.channel.woke(number) if self._live.replaying is None else self._go_on()

    def look_at_clocks(self) -> float:
        """Ends the program if a clock has run out; returns seconds during which none can run out."""
        now = self._clock()
        status = self._live.overdue(now)
        if status is not None:
            self._live.give_up(status)
        return self._live.patience(now)

    def end_by(self, error: BaseException) -> None:
        """Ends the program by an exception that is meant for the caller of the run."""
        self.fatal = error
        self._live.give_up("cancelled")

    def _go_on(self) -> Effect:
        """Returns a waiting resumable program's next answers or its timer, or ends it."""
        live = self._live
        if live.replaying is None or not live.replaying.is_waiting or live.is_over:
            return b""
        data = live.next(self._clock())
        if data or live.is_over:
            return data
        seconds = live.replaying.patience()
        return b"" if seconds is None else WakeFrame(0, seconds)

    def _run_note(self, note: Callable[[], None]) -> None:
        """Runs a step that may write the record; the run raises the exceptions of that step."""
        try:
            note()
        except BaseException as error:  # noqa: BLE001 - the run raises it
            self.end_by(error)

    def _frame_of_record(self, one: Recorded) -> bytes:
        return self._answer_frame(one.ordinal, only_answer(one.answer), one.elapsed_s, one.at)

    def _answer_frame(self, ordinal: int, answer: Answer, *times: float) -> bytes:
        """Returns the frame for an answer; a value that cannot be sent becomes an error that says so."""
        if answer.error is not None:
            return self.channel.error(ordinal, answer.error, *times)
        try:
            return self.channel.answer(ordinal, answer.value, *times)
        except (Unrepresentable, Oversized) as error:
            return self.channel.error(ordinal, _unsendable(error), *times)


def only_answer(answer: Answer | Unanswered) -> Answer:
    """Returns the answer itself; a program that is not resumable cannot wait for a person and gets an error."""
    return Answer(error=_CANNOT_WAIT) if isinstance(answer, Unanswered) else answer


def fault(error: Exception) -> Answer:
    """Returns the answer for a program when the host's own code failed; it names only the exception's type."""
    message = f"the call could not be made: {type(error).__name__}"
    return Answer(error=AnswerError(type_name="", family="internal", message=message))


def _unsendable(error: Unrepresentable | Oversized) -> AnswerError:
    if isinstance(error, Oversized):
        return AnswerError(
            type_name="",
            family="limit",
            message=f"the tool's answer is too large for a program: {error}. Ask for less.",
        )
    return AnswerError(
        type_name="", family="internal", message=f"the tool's answer cannot be given to a program: {error}"
    )


def _start_options(program: Program) -> dict[str, Any]:
    """Returns the options that the child needs besides the source."""
    limits, replay = program.limits, program.replay
    options: dict[str, Any] = {
        "tools": [_tool_fields(tool) for tool in program.tools],
        "source_checks": program.source_checks,
        "result_bytes": limits.result_bytes,
        "call_bytes": limits.call_bytes,
        "outstanding_calls": limits.outstanding_calls,
    }
    if unnamed := [tool.program_name for tool in program.tools if not tool.is_nameable]:
        options["unnamed"] = unnamed
    if paths := tool_paths(program):
        options["paths"] = paths
    if program.variables is not None:
        options["variables"], options["variables_bytes"] = dict(program.variables), VARIABLES_LIMIT_BYTES
    if program.modules != PROGRAM_MODULES:
        options["modules"] = list(program.modules)
    if replay is not None:
        options["replay"] = {"seed": replay.seed, "started_at": replay.started_at}
    return options


def _tool_fields(tool: ProgramTool) -> list[Any]:
    for name in (tool.program_name, *(parameter.program_name for parameter in tool.parameters)):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise DefinitionError(
                f"tool {tool.name!r}: a program cannot write the name {name!r}; give it an identifier"
            )
    parameters = [[item.name, item.program_name, item.kind, item.required] for item in tool.parameters]
    return [tool.program_name, tool.signature, list(tool.raises), parameters, tool.docstring]
