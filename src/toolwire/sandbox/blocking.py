"""Drives one program with blocking reads, in a worker thread: the quick way for tools that are plain functions.

A call from plain code is answered in this very thread: one read, the tool, one write. Calls from async code go to
workers, so that they run side by side; their answers are written by whoever has them.
"""

from __future__ import annotations

import signal
import socket
import struct
import threading
import time
from collections.abc import Callable

from toolwire.runtime.workers import Workers, WorkersExhausted
from toolwire.sandbox.answers import Answer, AnswerError, Parked, Recorded, Unanswered
from toolwire.sandbox.channel import Channel, ProtocolViolation
from toolwire.sandbox.forked import Child
from toolwire.sandbox.frames import CallFrame, DropFrame, Frame, WaitFrame, WakeFrame
from toolwire.sandbox.live import STOP_GRACE_S, LiveProgram
from toolwire.sandbox.program import ProgramCall
from toolwire.sandbox.replaying import Replaying
from toolwire.sandbox.wire import Oversized
from toolwire.vocabulary.errors import Unrepresentable

READ_BYTES = 65_536
_REARM_S = 0.1
"""A wait may be too long by this much before it is set anew: setting it for every read would be a third call."""
_CANNOT_WAIT = AnswerError(
    type_name="",
    family="denied",
    message="the call waits for a person, and this program cannot be suspended: it is not resumable",
)
_clock = time.monotonic

Call = Callable[[ProgramCall], Answer | Parked]


class BlockingDrive:
    """Reads frames until the program is over. `run` is for one thread, `stop` for any other."""

    def __init__(self, live: LiveProgram, child: Child, call: Call, workers: Workers) -> None:
        self._live = live
        self._child = child
        self._socket = child.channel
        self._call = call
        self._workers = workers
        self._channel = channel_of(live)
        self._write_lock = threading.Lock()
        self._arm_at = 0.0
        self._look_at = 0.0
        self._wake: tuple[float, int] | None = None
        self.fatal: BaseException | None = None
        """What a call raised that is no error of a tool: it belongs to whoever runs the program."""

    def start(self, options: dict[str, object]) -> None:
        """Sends the program. Its clock runs from here."""
        _send_timeout(self._socket, min(self._live.limits.wall_s, self._live.limits.deadline_s))
        self._live.started_running(_clock())
        first = self._channel.start(self._live.program.source, options)
        self._write(first if self._live.replaying is None else first + self._live.replaying.begin())

    def run(self) -> None:
        """Until the program is over and its last words are read. Raises nothing."""
        try:
            self._serve()
        except ProtocolViolation as violation:
            self._live.give_up("protocol_violation", str(violation))
        except OSError:
            # The channel was closed: by the child's end, or by a host that has waited long enough.
            pass
        if self._live.stop in ("timeout_program", "deadline"):
            self._hear_where()
        self._child.kill()

    def _serve(self) -> None:
        live, receive, read = self._live, self._channel.receive, self._socket.recv
        while not live.is_over:
            if _clock() >= self._arm_at:
                self._arm()
            try:
                data = read(self._channel.missing or READ_BYTES)
            except BlockingIOError:
                data = None
            if _clock() >= self._look_at:
                self._look_at_clocks()
            if data is None:
                continue
            if not data:
                return
            for frame in receive(data):
                if type(frame) is CallFrame:
                    self._take_call(frame)
                else:
                    self._take(frame)

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, WakeFrame):
            self._wake = (_clock() + frame.seconds, frame.number)
            self._arm_at = 0.0
        elif isinstance(frame, DropFrame):
            self._noted(lambda: self._live.dropped(frame.ordinal, _clock()))
        elif isinstance(frame, WaitFrame):
            self._live.waits(frame, _clock())
            self._go_on()
        else:
            self._live.take(frame)

    def _take_call(self, frame: CallFrame) -> None:
        call = self._live.called(frame, _clock())
        if call is None:
            self._go_on()
            return
        if call.parallel:
            try:
                self._workers.start(lambda: self._answer(call))
            except WorkersExhausted:
                # Then one after the other, in this thread.
                self._answer(call)
        else:
            self._answer(call)

    def _answer(self, call: ProgramCall) -> None:
        try:
            answer = self._call(call)
        except Exception as error:  # noqa: BLE001 - a port that raises is a fault of ours; the program must not hang
            answer = Answer(error=fault(error))
        except BaseException as error:  # noqa: BLE001 - meant for whoever runs the program: raised there
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
        """Does what may write the record; what that raises belongs to whoever runs the program."""
        try:
            note()
        except BaseException as error:  # noqa: BLE001 - raised there
            self._end_by(error)

    def _go_on(self) -> None:
        """Sends a resumable program what it waits for, sets its timer, or ends it."""
        live = self._live
        if live.replaying is None or not live.replaying.is_waiting or live.is_over:
            return
        data = live.next(_clock())
        if data:
            self._write(data)
        elif live.is_over:
            # Another thread may be reading.
            self._child.kill()
        elif (seconds := live.replaying.patience()) is not None:
            self._wake = (_clock() + seconds, 0)
            self._arm_at = 0.0

    def _look_at_clocks(self) -> None:
        now = _clock()
        self._arm_at = 0.0
        if self._wake is not None and now >= self._wake[0]:
            number, self._wake = self._wake[1], None
            if self._live.replaying is None:
                self._write(self._channel.woke(number))
            else:
                self._go_on()
        status = self._live.overdue(now)
        if status is not None:
            self._live.give_up(status)

    def _hear_where(self) -> None:
        """Asks the program where it is, and listens for a moment."""
        self._child.signal(signal.SIGTERM)
        until = _clock() + STOP_GRACE_S
        try:
            while self._live.place is None and (left := until - _clock()) > 0:
                _receive_timeout(self._socket, left)
                data = self._socket.recv(READ_BYTES)
                if not data:
                    return
                for frame in self._channel.receive(data):
                    if not isinstance(frame, CallFrame | DropFrame | WakeFrame | WaitFrame):
                        self._live.take(frame)
        except (OSError, ProtocolViolation):
            # It was only to be told where; why it ended is known.
            return

    def _arm(self) -> None:
        """Keeps the next reads from outlasting the next clock."""
        now = _clock()
        # Who asks for timers without end would otherwise put this off without end.
        status = self._live.overdue(now)
        if status is not None:
            self._live.give_up(status)
        patience = self._live.patience(now)
        if self._wake is not None:
            patience = min(patience, self._wake[0] - now)
        self._look_at = now + patience
        self._arm_at = now + _REARM_S
        _receive_timeout(self._socket, max(patience, 0.0))

    def _write(self, data: bytes) -> None:
        try:
            with self._write_lock:
                sent = self._socket.send(data)
                while sent < len(data):
                    sent += self._socket.send(memoryview(data)[sent:])
        except BlockingIOError:
            # It has not read for as long as it may run, and the frame is cut in two: nothing can be sent any more.
            self._live.give_up(self._live.overdue(_clock()) or "timeout_program")
        except OSError:
            # The child has ended. What it said before that is still to be read.
            return


def channel_of(live: LiveProgram) -> Channel:
    """The program's channel; a resumable one gets what it is to send from here on."""
    replay = live.program.replay
    channel = Channel(live.program.tools, live.limits, resumable=replay is not None)
    if replay is not None:

        def encode(one: Recorded) -> bytes:
            return answer_frame(channel, one.ordinal, only_answer(one.answer), one.elapsed_s, one.at)

        live.replaying = Replaying(replay, encode, channel.batch, channel.woke(0))
    return channel


def only_answer(answer: Answer | Unanswered) -> Answer:
    """The answer itself; a program that is not resumable cannot wait for a person."""
    return Answer(error=_CANNOT_WAIT) if isinstance(answer, Unanswered) else answer


def answer_frame(channel: Channel, ordinal: int, answer: Answer, *times: float) -> bytes:
    """The frame for an answer; a value that cannot be sent becomes an error that says so."""
    if answer.error is not None:
        return channel.error(ordinal, answer.error, *times)
    try:
        return channel.answer(ordinal, answer.value, *times)
    except (Unrepresentable, Oversized) as error:
        return channel.error(ordinal, refusal(error), *times)


def refusal(error: Unrepresentable | Oversized) -> AnswerError:
    """What a program reads when the tool's value cannot be sent to it."""
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
    """What a program reads when the host's own part failed; the exception itself is none of its business."""
    return AnswerError(type_name="", family="internal", message=f"the call could not be made: {type(error).__name__}")


def _receive_timeout(receiver: socket.socket, seconds: float) -> None:
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(seconds))


def _send_timeout(sender: socket.socket, seconds: float) -> None:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(seconds))


def _timeval(seconds: float) -> bytes:
    """A deadline for the kernel; zero would mean none."""
    whole = int(seconds)
    return struct.pack("@ll", whole, max(int((seconds - whole) * 1_000_000), 0 if whole else 1))
