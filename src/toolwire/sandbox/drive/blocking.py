"""Drives one program with blocking reads, in a worker thread: the fast way for tools that are plain functions.

A call from plain code is answered in this thread: one read, the tool, one write. Calls from async code go to workers,
so that they run side by side. The worker that has an answer writes it.
"""

from __future__ import annotations

import contextlib
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable

from toolwire.runtime.workers import PROGRAM_SHARE, Workers, WorkersExhausted
from toolwire.sandbox.answers import Answer, AnswerError, Parked, Recorded, Unanswered
from toolwire.sandbox.channel.channel import Channel
from toolwire.sandbox.channel.frames import CallFrame, DropFrame, Frame, WaitFrame, WakeFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.channel.wire import LARGE_BYTES, Oversized
from toolwire.sandbox.drive.live import LIGHT_BYTES, STOP_GRACE_S, LiveProgram
from toolwire.sandbox.drive.replaying import Replaying
from toolwire.sandbox.forked import Child
from toolwire.sandbox.program import ProgramCall
from toolwire.vocabulary.errors import Unrepresentable

READ_BYTES = 65_536
SHARE = PROGRAM_SHARE - 1
"""Parallel calls of one program that run at once. Together with the call of plain code, each may need one worker."""
_LONGEST_WAIT_S = 3600.0
"""Longest wait in one system call, in seconds: the kernel counts milliseconds, up to 24 days."""
_CANNOT_WAIT = AnswerError(
    type_name="",
    family="denied",
    message="the call waits for a person, and this program cannot be suspended: it is not resumable",
)
_CLOSED = (OSError, ValueError)
"""Exceptions of reading and writing when the child has ended or the host has closed the channel."""
_clock = time.monotonic

Call = Callable[[ProgramCall], Answer | Parked]


class BlockingDrive:
    """Reads frames until the program is over. Call `run` from one thread."""

    def __init__(self, live: LiveProgram, child: Child, call: Call, callers: Workers) -> None:
        self._live = live
        self._child = child
        self._arrived = select.poll()
        self._arrived.register(child.reader, select.POLLIN)
        self._call = call
        self._callers = callers
        self._share_lock = threading.Lock()
        self._answering = 0
        """Number of calls that workers are answering."""
        self._has_room = threading.Event()
        """Set when a call has ended."""
        self._queue: deque[ProgramCall] = deque()
        """Calls that wait until fewer are being answered."""
        self._channel = channel_of(live)
        self._write_lock = threading.Lock()
        self._look_at = 0.0
        """The time at which a clock may have run out."""
        self._wake: tuple[float, int] | None = None
        self.fatal: BaseException | None = None
        """A BaseException of a call that is not an Exception; the run raises it to its caller."""

    def start(self, options: dict[str, object]) -> None:
        """Sends the program. Its clock starts here."""
        self._live.started_running(_clock())
        first = self._channel.start(self._live.program.source, options)
        self._write(first if self._live.replaying is None else first + self._live.replaying.begin())

    def run(self) -> None:
        """Runs until the program is over and its last frames are read. Raises only our own faults."""
        try:
            self._serve()
        except ProtocolViolation as violation:
            self._live.give_up("protocol_violation", str(violation))
        if self._live.is_asked_where:
            self._hear_where()
        self._child.kill()

    def _serve(self) -> None:
        live, channel = self._live, self._channel
        arrived, read, receive = self._arrived.poll, self._child.reader.read, channel.receive
        while not live.is_over:
            now = _clock()
            if now >= self._look_at:
                self._look_at_clocks(now)
            elif arrived((self._look_at - now) * 1000):
                try:
                    data = read(channel.missing or READ_BYTES)
                except _CLOSED:
                    return
                if not data:
                    return
                for frame in receive(data):
                    if type(frame) is CallFrame:
                        self._take_call(frame)
                    else:
                        self._take(frame)
                    if (now := _clock()) >= self._look_at:
                        self._look_at_clocks(now)
                    if live.is_over:
                        return

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, WakeFrame):
            self._set_wake(frame.seconds, frame.number)
        elif isinstance(frame, DropFrame):
            self._noted(lambda: self._live.dropped(frame.ordinal, _clock()))
        elif isinstance(frame, WaitFrame):
            self._live.waits(frame, _clock())
            self._go_on()
        else:
            self._live.take(frame)

    def _take_call(self, frame: CallFrame) -> None:
        if frame.parallel and frame.weight > LIGHT_BYTES:
            self._wait_for_room(frame)
        call = self._live.called(frame, _clock())
        if call is None:
            self._live.release(frame.ordinal)
            self._go_on()
            return
        if call.parallel:
            self._answer_beside(call)
        else:
            self._answer(call)

    def _wait_for_room(self, frame: CallFrame) -> None:
        """Waits until the open calls leave room for this one. Nothing is read meanwhile; the clocks go on."""
        live = self._live
        while not live.is_over:
            self._has_room.clear()
            if live.reserve(frame):
                return
            now = _clock()
            if now >= self._look_at:
                self._look_at_clocks(now)
            else:
                self._has_room.wait(min(self._look_at - now, _LONGEST_WAIT_S))

    def _answer_beside(self, call: ProgramCall) -> None:
        """Answers a call in a worker: at once, or after another call of this program when its share is in use."""
        with self._share_lock:
            if self._answering == SHARE:
                self._queue.append(call)
                return
            self._answering += 1
        try:
            self._callers.start(lambda: self._answer_in_turn(call))
        except WorkersExhausted:
            # Other programs use all workers: this thread answers the call, and reads nothing meanwhile.
            self._answer_in_turn(call)

    def _answer_in_turn(self, call: ProgramCall) -> None:
        while True:
            if not self._live.is_over:
                self._answer(call)
            self._live.release(call.ordinal)
            self._has_room.set()
            with self._share_lock:
                if not self._queue:
                    self._answering -= 1
                    return
                call = self._queue.popleft()

    def _answer(self, call: ProgramCall) -> None:
        try:
            answer = self._call(call)
        except Exception as error:  # noqa: BLE001 - a port that raises is our fault; the program must not hang
            answer = Answer(error=fault(error))
        except BaseException as error:  # noqa: BLE001 - meant for the caller of the run, which raises it
            self._end_by(error)
            return
        if self._live.replaying is not None:
            self._noted(lambda: self._live.settled(call.ordinal, answer, _clock()))
            self._go_on()
            return
        answer = only_answer(answer)
        frame = answer_frame(self._channel, call.ordinal, answer)
        if self._live.answered(call.ordinal, answer, _clock()):
            self._write(frame)

    def _end_by(self, error: BaseException) -> None:
        self.fatal = error
        self._live.give_up("cancelled")
        self._child.kill()

    def _noted(self, note: Callable[[], None]) -> None:
        """Runs a step that may write the record; the run raises the exceptions of that step."""
        try:
            note()
        except BaseException as error:  # noqa: BLE001 - the run raises it
            self._end_by(error)

    def _go_on(self) -> None:
        """Sends a waiting resumable program its next answers, sets its timer, or ends it."""
        live = self._live
        if live.replaying is None or not live.replaying.is_waiting or live.is_over:
            return
        data = live.next(_clock())
        if data:
            self._write(data)
        elif live.is_over:
            # Another thread may be reading; the kill wakes it.
            self._child.kill()
        elif (seconds := live.replaying.patience()) is not None:
            self._set_wake(seconds, 0)

    def _set_wake(self, seconds: float, number: int) -> None:
        self._wake = (_clock() + seconds, number)
        # Never later than before: a program that keeps setting timers would otherwise put off the other clocks.
        self._look_at = min(self._look_at, self._wake[0])

    def _look_at_clocks(self, now: float) -> None:
        self._look_at = now + min(self._live.patience(now), _LONGEST_WAIT_S)
        status = self._live.overdue(now)
        if status is not None:
            self._live.give_up(status)
        if self._wake is None:
            return
        at, number = self._wake
        if now < at:
            self._look_at = min(self._look_at, at)
            return
        self._wake = None
        if self._live.replaying is None:
            self._write(self._channel.woke(number))
        else:
            self._go_on()

    def _hear_where(self) -> None:
        """Asks the program for its place, and reads for at most `STOP_GRACE_S`."""
        self._child.signal(signal.SIGTERM)
        until = _clock() + STOP_GRACE_S
        try:
            data = b""
            while True:
                for frame in self._channel.receive(data, at_most=LARGE_BYTES):
                    if not isinstance(frame, CallFrame | DropFrame | WakeFrame | WaitFrame):
                        self._live.take(frame)
                left = until - _clock()
                if self._live.place is not None or self._channel.has_whole or left <= 0:
                    return
                data = self._child.reader.read(READ_BYTES) if self._arrived.poll(left * 1000) else b""
                if not data:
                    return
        except (*_CLOSED, ProtocolViolation):
            # Only the place was missing; the reason of the end is known.
            return

    def _write(self, data: bytes) -> None:
        # A failed write means that the child has ended; frames that it sent before are still to be read.
        with contextlib.suppress(*_CLOSED), self._write_lock:
            written = self._child.writer.write(data) or 0
            if written < len(data):
                self._write_rest(memoryview(data)[written:])

    def _write_rest(self, rest: memoryview) -> None:
        """Waits until the child reads, and writes the rest; the caller holds the lock."""
        until = _clock() + min(self._live.limits.wall_s, self._live.limits.deadline_s)
        has_room = select.poll()
        has_room.register(self._child.writer, select.POLLOUT)
        while rest:
            left = min(until - _clock(), _LONGEST_WAIT_S)
            if left <= 0:
                # The child has not read for as long as it may run, and the frame is cut in two: no other can follow it.
                self._live.give_up(self._live.overdue(_clock()) or "timeout_program")
                return
            if has_room.poll(left * 1000):
                rest = rest[self._child.writer.write(rest) or 0 :]


def channel_of(live: LiveProgram) -> Channel:
    """Returns the program's channel, and sets `live.replaying` for a resumable program."""
    replay = live.program.replay
    channel = Channel(live.program.tools, live.limits, resumable=replay is not None)
    if replay is not None:

        def encode(one: Recorded) -> bytes:
            return answer_frame(channel, one.ordinal, only_answer(one.answer), one.elapsed_s, one.at)

        live.replaying = Replaying(replay, encode, channel.batch, channel.woke(0))
    return channel


def only_answer(answer: Answer | Unanswered) -> Answer:
    """Returns the answer itself; a program that is not resumable cannot wait for a person and gets an error."""
    return Answer(error=_CANNOT_WAIT) if isinstance(answer, Unanswered) else answer


def answer_frame(channel: Channel, ordinal: int, answer: Answer, *times: float) -> bytes:
    """Returns the frame for an answer; a value that cannot be sent becomes an error that says so."""
    if answer.error is not None:
        return channel.error(ordinal, answer.error, *times)
    try:
        return channel.answer(ordinal, answer.value, *times)
    except (Unrepresentable, Oversized) as error:
        return channel.error(ordinal, refusal(error), *times)


def refusal(error: Unrepresentable | Oversized) -> AnswerError:
    """Returns the error for a program when the tool's value cannot be sent to it."""
    if isinstance(error, Oversized):
        return AnswerError(
            type_name="",
            family="limit",
            message=f"the tool's answer is too large for a program: {error}. Ask for less.",
        )
    return AnswerError(
        type_name="", family="internal", message=f"the tool's answer cannot be given to a program: {error}"
    )


def fault(error: Exception) -> AnswerError:
    """Returns the error for a program when the host's own code failed; it names only the exception's type."""
    return AnswerError(type_name="", family="internal", message=f"the call could not be made: {type(error).__name__}")
