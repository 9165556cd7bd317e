"""One running program as the host keeps it: clocks, counters, output, calls, and how it ended.

Both drivers feed it; it knows no socket, thread or loop. Times come in as seconds of a monotonic clock.

The program's own clock stands still while at least one call waits for its answer. A program that computes in the
meantime is bounded by its processor seconds and its deadline all the same.
"""

from __future__ import annotations

import threading

from toolwire.sandbox.answers import DROPPED, Answer, Parked, Recorded, Unanswered
from toolwire.sandbox.frames import (
    CallFrame,
    FailedFrame,
    Frame,
    PrintFrame,
    ResultFrame,
    StoppedFrame,
    UnfitFrame,
    WaitFrame,
)
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.replaying import Diverged, Replaying
from toolwire.sandbox.report import CallRecord, CallStatus, ProgramStatus

_SHORTEST_S = 0.02
RECORDED_BYTES = 1_048_576
"""Bytes of arguments, as they were sent, that the records of one program's calls keep in all. Arguments of which
each byte takes more than `_RECORDED_FACTOR` bytes of memory count as more."""
_RECORDED_FACTOR = 8
OPEN_CALLS_BYTES = 67_108_864
"""Bytes of memory that the arguments of one program's open calls take in all; its pipe waits with the next call."""
LIGHT_BYTES = 16_384
"""Bytes of memory up to which a call's arguments do not count there: 64 such calls take a megabyte."""
NOT_KEPT = "(not kept: the arguments of this program's calls are too large)"
NOT_RESUMABLE = "NotResumable"
"""`ProgramError.type` of a resumable program that was not run: what it would depend on cannot be served here."""
STOP_GRACE_S = 0.15
"""Seconds that a program gets to say where it is, once a clock of ours has run out."""


class LiveProgram:
    """What is known of a program while it runs. The first reason to end is the reason it ended."""

    def __init__(self, program: Program, started: float) -> None:
        self.program = program
        self._names = [tool.name for tool in program.tools]
        self.limits = program.limits
        self.started = started
        self.end: ResultFrame | FailedFrame | None = None
        """The program's own last word."""
        self.stop: ProgramStatus | None = None
        """Why the host ended it."""
        self.is_over = False
        """Whether it has ended or is to be ended."""
        self.detail = ""
        """More about `stop`: what the violation was."""
        self.place: StoppedFrame | None = None
        """Where it was when it was stopped, in its own words."""
        self.printed_bytes = 0
        self._lock = threading.Lock()
        self._kept: list[str] = []
        self._kept_bytes = 0
        self._calls: list[CallRecord] = []
        self._open: dict[int, tuple[CallRecord, float]] = {}
        """Calls under way, with when they were made."""
        self._weights: dict[int, int] = {}
        """Bytes of each open call's arguments, until the call has ended in the host."""
        self._parked: dict[int, tuple[CallRecord, float]] = {}
        self._spent = 0.0
        self._recorded_bytes = 0
        self._running_since: float | None = None
        self.replaying: Replaying | None = None
        """The record of a resumable program."""

    @property
    def output(self) -> str:
        """What was printed, as far as it is kept."""
        return "".join(self._kept)

    @property
    def is_asked_where(self) -> bool:
        """Whether one of its clocks has run out, so that it gets to say where it is."""
        return self.stop in ("timeout_program", "deadline")

    def started_running(self, now: float) -> None:
        """Its clock starts."""
        self._running_since = now

    def give_up(self, reason: ProgramStatus, detail: str = "") -> bool:
        """Notes why it has to end; False when it is over already."""
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
        elif isinstance(frame, ResultFrame | FailedFrame):
            self._end(frame)
        elif isinstance(frame, UnfitFrame):
            self.end = FailedFrame(NOT_RESUMABLE, frame.what, "", "Nothing of the program has run.", None)
            self.is_over = True

    def reserve(self, frame: CallFrame) -> bool:
        """Takes room for a call's arguments; False when there is none now. A single call always finds room."""
        with self._lock:
            if self._weights and sum(self._weights.values()) + frame.weight > OPEN_CALLS_BYTES:
                return False
            self._weights[frame.ordinal] = frame.weight
            return True

    def release(self, ordinal: int) -> None:
        """Gives back the room of a call that has ended in the host."""
        with self._lock:
            self._weights.pop(ordinal, None)

    def called(self, frame: CallFrame, now: float) -> ProgramCall | None:
        """The call to make; None when there is none: it was answered before, or the program is over."""
        if self.is_over:
            # Several come in one piece: none counts after the one that ended it.
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
        record = CallRecord(
            ordinal=ordinal,
            tool=tool,
            arguments=arguments if is_kept else dict.fromkeys(arguments, NOT_KEPT),
            status="unknown",
        )
        if not is_kept:
            # There may still be room for those of a later call.
            self._recorded_bytes -= size
        if self.replaying is not None and self._is_replayed(record, frame, now, self.replaying):
            return None
        with self._lock:
            if self._running_since is not None and not self._open:
                # Its own clock stands still.
                self._spent += now - self._running_since
                self._running_since = None
            self._open[ordinal] = record, now
            self._calls.append(record)
        if len(self._open) > limits.outstanding_calls:
            self.give_up("protocol_violation", f"more than {limits.outstanding_calls} calls at the same time")
            return None
        return ProgramCall(
            ordinal=ordinal,
            tool=tool,
            arguments=arguments,
            parallel=frame.parallel,
            arguments_digest=record.arguments_digest,
        )

    def waits(self, frame: WaitFrame, now: float) -> None:
        """Notes that a resumable program waits."""
        try:
            if self.replaying is not None:
                self.replaying.waits(frame, now)
        except Diverged as diverged:
            self.give_up("divergence", str(diverged))

    def settled(self, ordinal: int, answer: Answer | Parked, now: float) -> None:
        """Notes how a resumable program's call ended, and what is to be sent for it. Raises what `on_recorded` does."""
        if self.replaying is None or self.is_over:
            return
        if isinstance(answer, Unanswered):
            self.replaying.parked(ordinal, now)
            self._close(ordinal, "parked", now)
        else:
            self.replaying.settled(ordinal, answer, now)
            self.answered(ordinal, answer, now)

    def next(self, now: float) -> bytes:
        """What is to be sent to a resumable program now. Ends one that only people can bring on."""
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

    def answered(self, ordinal: int, answer: Answer, now: float) -> bool:
        """Notes the answer; False when nobody waits for it any more."""
        return self._close(ordinal, "answered" if answer.error is None else "failed", now)

    def dropped(self, ordinal: int, now: float) -> None:
        """Notes that the program does not wait for a call any more. Raises what `on_recorded` does."""
        if self.replaying is not None and not self.is_over:
            self.replaying.dropped(ordinal, now)
        self._close(ordinal, "dropped", now)

    def overdue(self, now: float) -> ProgramStatus | None:
        """The clock that has run out, if one has."""
        if now - self.started >= self.limits.deadline_s:
            return "deadline"
        running = self._running_since
        if running is not None and self._spent + now - running >= self.limits.wall_s:
            return "timeout_program"
        return None

    def patience(self, now: float) -> float:
        """Seconds during which no clock can run out, whatever happens; above 0."""
        left = self.started + self.limits.deadline_s - now
        running = self._running_since
        # An answer may set the program's clock going again at any moment.
        wall = self.limits.wall_s - self._spent - (now - running if running is not None else 0.0)
        return max(min(left, wall), _SHORTEST_S)

    def records(self, now: float) -> tuple[CallRecord, ...]:
        """Its calls, once it is over: what a tool still gives after that changes nothing."""
        with self._lock:
            for record, made_at in self._open.values():
                record.duration_ms = (now - made_at) * 1000
            self._open.clear()
            self._parked.clear()
        completed = {one.ordinal: one.completed for one in self.recorded}
        for record in self._calls if completed else ():
            record.completed = completed.get(record.ordinal, 0)
        return tuple(self._calls)

    @property
    def recorded(self) -> tuple[Recorded, ...]:
        """What a next attempt is held to."""
        return self.replaying.records if self.replaying is not None else ()

    def _is_replayed(self, record: CallRecord, frame: CallFrame, now: float, replaying: Replaying) -> bool:
        """Whether a call is not to be made: it has been, or it is not the one that was."""
        record.arguments_digest = frame.arguments_digest
        try:
            known = replaying.made(frame, record.tool, record.arguments_digest, now)
        except Diverged as diverged:
            self.give_up("divergence", str(diverged))
            return True
        if known is None:
            return False
        record.replayed = True
        if known.answer is DROPPED:
            record.status = "dropped"
        else:
            record.status = "answered" if isinstance(known.answer, Answer) and known.answer.error is None else "failed"
        with self._lock:
            self._calls.append(record)
        return True

    def _end(self, frame: ResultFrame | FailedFrame) -> None:
        try:
            if self.replaying is not None:
                self.replaying.ended()
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
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        self.printed_bytes += size
        room = self.limits.output_bytes - self._kept_bytes
        if size <= room:
            self._kept.append(text)
            self._kept_bytes += size
        elif room > 0:
            # Cut at a character; nothing after it may be kept, or the output would have a hole.
            part = text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
            self._kept.append(part)
            self._kept_bytes = self.limits.output_bytes
        if self.printed_bytes >= self.limits.output_flood_bytes:
            self.give_up("output")
