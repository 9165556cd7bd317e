"""The host's state of one running program: clocks, counters, output, calls, and how it ended.

The drive feeds it; it has no socket, thread or loop. Times are seconds of a monotonic clock. The program's own clock
stands still while at least one call waits for its answer. A program that computes meanwhile is still bounded by its
processor seconds and its deadline.
"""

from __future__ import annotations

import threading

from toolwire.sandbox.answers import DROPPED, Answer, Parked, Recorded, Unanswered
from toolwire.sandbox.channel.frames import (
    CallFrame,
    FailedFrame,
    Frame,
    PrintFrame,
    ResultFrame,
    StoppedFrame,
    UnfitFrame,
    VariablesFrame,
    WaitFrame,
)
from toolwire.sandbox.drive.replaying import Diverged, Replaying
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import CallStatus, ProgramCallRecord, ProgramStatus
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

_SHORTEST_S = 0.02
RECORDED_BYTES = 1_048_576
"""Bytes of arguments, as they were sent, that the call records of one program keep in all. Arguments of which each byte
takes more than `_RECORDED_FACTOR` bytes of memory count as more.
"""
_RECORDED_FACTOR = 8
OPEN_CALLS_BYTES = 67_108_864
"""Bytes of memory that the arguments of one program's open calls may take in all; beyond it the next call waits in the
pipe.
"""
LIGHT_BYTES = 16_384
"""Bytes of memory up to which a call's arguments do not count there: 64 such calls take a megabyte."""
NOT_KEPT = "(not kept: the arguments of this program's calls are too large)"
NOT_RESUMABLE = "NotResumable"
"""`ProgramError.type` of a resumable program that was not run: a value it would depend on cannot be replayed here."""
STOP_GRACE_S = 0.15
"""Seconds that a program gets to report its place, after the host has found one of its clocks run out."""


class LiveProgram:
    """The host's state of a program while it runs. The first reason to end it is the one that counts."""

    def __init__(self, program: Program, started: float) -> None:
        self.program = program
        self._names = [tool.name for tool in program.tools]
        self.limits = program.limits
        self.started = started
        self.end: ResultFrame | FailedFrame | None = None
        """The program's own last frame; None if it sent none."""
        self.stop: ProgramStatus | None = None
        """The reason why the host ended it; None if the host did not."""
        self.is_over = False
        """True if the program has ended or is to be ended."""
        self.detail = ""
        """More about `stop`, such as the text of the violation."""
        self.place: StoppedFrame | None = None
        """The place where it was stopped, as its process reported it."""
        self.variables: VariablesFrame | None = None
        """The program's variables at its end; None until it has sent them."""
        self.printed_bytes = 0
        self._lock = threading.Lock()
        self._kept: list[str] = []
        self._kept_bytes = 0
        self._calls: list[ProgramCallRecord] = []
        self._open: dict[int, tuple[ProgramCallRecord, float]] = {}
        """Open calls, with the time at which each was made."""
        self.weights: dict[int, int] = {}
        """Bytes of the arguments for which room is reserved, by ordinal, until the call has ended in the host."""
        self._parked: dict[int, tuple[ProgramCallRecord, float]] = {}
        self._spent = 0.0
        self._recorded_bytes = 0
        self._running_since: float | None = None
        self.replaying: Replaying | None = None
        """The record of a resumable program; None otherwise."""

    @property
    def output(self) -> str:
        """The printed text, as far as it is kept."""
        return "".join(self._kept)

    @property
    def is_asked_where(self) -> bool:
        """True if one of the host's clocks has run out, so that the program is asked for its place."""
        return self.stop in ("timeout_program", "deadline")

    def start_clock(self, now: float) -> None:
        """Starts the program's clock."""
        self._running_since = now

    def give_up(self, reason: ProgramStatus, detail: str = "") -> bool:
        """Notes the reason to end the program; returns False when it is over already."""
        with self._lock:
            if self.is_over:
                return False
            self.stop, self.detail, self.is_over = reason, detail, True
            return True

    def take(self, frame: Frame) -> None:
        """Notes output, a stop's place, or the end."""
        if isinstance(frame, PrintFrame):
            self._print(frame.text)
        elif isinstance(frame, StoppedFrame):
            self.place = frame
            if frame.reason == "cpu":
                self.give_up("timeout_cpu")
        elif isinstance(frame, VariablesFrame):
            self.variables = frame
        elif isinstance(frame, ResultFrame | FailedFrame):
            self._end(frame)
        elif isinstance(frame, UnfitFrame):
            self.end = FailedFrame(NOT_RESUMABLE, frame.what, "", "Nothing of the program has run.", None)
            self.is_over = True

    def reserve(self, frame: CallFrame) -> bool:
        """Reserves room for a call's arguments; returns False when room is lacking now. A single call always finds
        room.
        """
        with self._lock:
            if self.weights and sum(self.weights.values()) + frame.weight > OPEN_CALLS_BYTES:
                return False
            self.weights[frame.ordinal] = frame.weight
            return True

    def release(self, ordinal: int) -> None:
        """Releases the room of a call that has ended in the host, if it has any."""
        with self._lock:
            self.weights.pop(ordinal, None)

    def begin_call(self, frame: CallFrame, now: float) -> ProgramCall | None:
        """Returns the call to make; None when its answer is recorded, or when the program is over."""
        if self.is_over:
            # Several calls can come in one piece; those after the one that ended the program do not count.
            return None
        limits = self.limits
        if len(self._calls) >= limits.calls:
            self.give_up("calls")
            return None
        ordinal, tool, arguments = frame.ordinal, self._names[frame.tool], frame.arguments
        size = frame.size
        if frame.weight > size * _RECORDED_FACTOR:
            size = frame.weight // _RECORDED_FACTOR
        self._recorded_bytes += size
        is_kept = self._recorded_bytes <= RECORDED_BYTES
        record = ProgramCallRecord(
            ordinal=ordinal,
            tool=tool,
            arguments=arguments if is_kept else dict.fromkeys(arguments, NOT_KEPT),
            status="cancelled",
        )
        if not is_kept:
            # A later call's smaller arguments may still fit.
            self._recorded_bytes -= size
        if self.replaying is not None and self._is_replayed(record, frame, now, self.replaying):
            return None
        with self._lock:
            if self._running_since is not None and not self._open:
                # The program's own clock stands still from here.
                self._spent += now - self._running_since
                self._running_since = None
            self._open[ordinal] = record, now
            self._calls.append(record)
        if len(self._open) > limits.outstanding_calls:
            self.give_up(
                "protocol_violation", f"more than {count_of(limits.outstanding_calls, 'call')} at the same time"
            )
            return None
        return ProgramCall(
            ordinal=ordinal,
            tool=tool,
            arguments=arguments,
            parallel=frame.parallel,
            arguments_digest=record.arguments_digest,
            line=frame.line,
        )

    def is_awaited(self, ordinal: int) -> bool:
        """True if the program runs and still waits for the answer of this call."""
        with self._lock:
            return not self.is_over and ordinal in self._open

    def waits(self, frame: WaitFrame, now: float) -> None:
        """Notes that a resumable program waits."""
        try:
            if self.replaying is not None:
                self.replaying.waits(frame, now)
        except Diverged as diverged:
            self.give_up("divergence", str(diverged))

    def settle_call(self, ordinal: int, answer: Answer | Parked, now: float) -> None:
        """Notes how a resumable program's call ended, and queues its answer. Raises what `on_recorded` raises."""
        if self.replaying is None or self.is_over:
            return
        if isinstance(answer, Unanswered):
            self.replaying.park_call(ordinal, now)
            self._close(ordinal, "parked", now)
        else:
            self.replaying.settle_call(ordinal, answer, now)
            self.note_answer(ordinal, answer, now)

    def next(self, now: float) -> bytes:
        """Returns the bytes to send to a resumable program now. Suspends the program if only people can bring it
        further.
        """
        if self.replaying is None or self.is_over:
            return b""
        try:
            data = self.replaying.next(now)
        except Diverged as diverged:
            self.give_up("divergence", str(diverged))
            return b""
        if not data and self.replaying.is_suspended:
            self.give_up("suspended")
        return data

    def note_answer(self, ordinal: int, answer: Answer, now: float) -> bool:
        """Notes the answer; returns False when the program no longer waits for it."""
        return self._close(ordinal, "answered" if answer.error is None else "failed", now)

    def end_at_call(self, ordinal: int, answer: Answer, now: float) -> None:
        """Ends the program at one of its calls, also if it no longer waits for that call."""
        self._close(ordinal, "answered", now)
        self.give_up("finished", answer.ends)

    def drop_call(self, ordinal: int, now: float, *, is_left: bool = False) -> None:
        """Notes that the program no longer waits for a call. Raises what `on_recorded` raises."""
        if self.replaying is not None and not self.is_over:
            self.replaying.drop_call(ordinal, now)
        self._close(ordinal, "cancelled" if is_left else "dropped", now)

    def withdraw_call(self, ordinal: int, now: float) -> None:
        """Notes that a call is not made: the program gave it up before it sent it. Raises as `drop_call`."""
        if self.replaying is not None and not self.is_over:
            self.replaying.drop_call(ordinal, now)
        self._close(ordinal, "not_started", now)

    def overdue(self, now: float) -> ProgramStatus | None:
        """Returns the status for the clock that has run out; None when none has."""
        if now - self.started >= self.limits.deadline_s:
            return "deadline"
        running = self._running_since
        if running is not None and self._spent + now - running >= self.limits.wall_s:
            return "timeout_program"
        return None

    def patience(self, now: float) -> float:
        """Returns seconds during which no clock can run out, in any case; above 0."""
        left = self.started + self.limits.deadline_s - now
        running = self._running_since
        # An answer may restart the program's clock at any moment.
        wall = self.limits.wall_s - self._spent - (now - running if running is not None else 0.0)
        return max(min(left, wall), _SHORTEST_S)

    def records(self, now: float) -> tuple[ProgramCallRecord, ...]:
        """Returns the program's calls, once it is over; a tool that answers later changes nothing."""
        with self._lock:
            for record, made_at in self._open.values():
                record.duration_ms = (now - made_at) * 1000
            self._open.clear()
            self._parked.clear()
        completed = {one.ordinal: one.completed for one in self.replay_records}
        for record in self._calls if completed else ():
            record.completed = completed.get(record.ordinal, 0)
        return tuple(self._calls)

    @property
    def replay_records(self) -> tuple[Recorded, ...]:
        """The records that the next attempt is compared with."""
        return self.replaying.records if self.replaying is not None else ()

    def _is_replayed(self, record: ProgramCallRecord, frame: CallFrame, now: float, replaying: Replaying) -> bool:
        """Returns True if the call must not be made: it is recorded, or it differs from the recorded one."""
        record.arguments_digest = frame.arguments_digest
        try:
            known = replaying.match_call(frame, record.tool, record.arguments_digest, now)
        except Diverged as diverged:
            self.give_up("divergence", str(diverged))
            return True
        if known is None:
            return False
        record.replayed = True
        if known.answer is DROPPED:
            record.status = "not_started" if frame.is_withdrawn else "dropped"
        else:
            record.status = "answered" if isinstance(known.answer, Answer) and known.answer.error is None else "failed"
        with self._lock:
            self._calls.append(record)
        return True

    def _end(self, frame: ResultFrame | FailedFrame) -> None:
        try:
            if self.replaying is not None:
                self.replaying.check_end()
        except Diverged as diverged:
            self.give_up("divergence", str(diverged))
        with self._lock:
            if not self.is_over:
                self.end, self.is_over = frame, True

    def _close(self, ordinal: int, status: CallStatus, now: float) -> bool:
        with self._lock:
            found = self._open.pop(ordinal, None)
            if found is None:
                return self._give_up_parked(ordinal, status, now)
            record, made_at = found
            record.status, record.duration_ms = status, (now - made_at) * 1000
            if status == "parked":
                self._parked[ordinal] = found
            if not self._open:
                self._running_since = now
            return not self.is_over

    def _give_up_parked(self, ordinal: int, status: CallStatus, now: float) -> bool:
        found = self._parked.pop(ordinal, None)
        if found is not None:
            record, made_at = found
            record.status, record.duration_ms = status, (now - made_at) * 1000
        return False

    def _print(self, text: str) -> None:
        size = len(text) if text.isascii() else len(utf8_bytes(text))
        self.printed_bytes += size
        room = self.limits.output_bytes - self._kept_bytes
        if size <= room:
            self._kept.append(text)
            self._kept_bytes += size
        elif room > 0:
            # Cut at a character; later text must not be kept, or the output would have a hole.
            part = utf8_bytes(text)[:room].decode("utf-8", "ignore")
            self._kept.append(part)
            self._kept_bytes = self.limits.output_bytes
        if self.printed_bytes >= self.limits.output_flood_bytes:
            self.give_up("output")
