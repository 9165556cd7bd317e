"""Drives one program with blocking reads, in a worker thread: the fast way for tools that are plain functions.

A call from plain code is answered in this thread: one read, the tool, one write. Calls from async code go to workers,
so that they run side by side. The worker that has an answer writes it. A call that is answered later (`Answering`)
takes no thread: the drive's thread writes its answer when its future is done.
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
from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.channel.frames import CallFrame, DropFrame, WaitFrame, WakeFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.channel.wire import LARGE_BYTES
from toolwire.sandbox.drive.conversation import Conversation, Effect, fault
from toolwire.sandbox.drive.later_answers import LaterAnswers
from toolwire.sandbox.drive.live_program import STOP_GRACE_S, LiveProgram
from toolwire.sandbox.forked import Child
from toolwire.sandbox.program import ProgramCall
from toolwire.sandbox.runner import Answering

READ_BYTES = 65_536
SHARE = PROGRAM_SHARE - 1
"""Parallel calls of one program that run at once. Together with the call of plain code, each may need one worker."""
_LONGEST_WAIT_S = 3600.0
"""Longest wait in one system call, in seconds: the kernel counts milliseconds, up to 24 days."""
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
        self._call, self._start_later = (call.answer, call.start) if isinstance(call, Answering) else (call, None)
        self._later: LaterAnswers | None = None
        """Calls that are answered later; None until the first."""
        self._callers = callers
        self._share_lock = threading.Lock()
        self._answering = 0
        """Number of calls that workers are answering."""
        self._has_room = threading.Event()
        """Set when a call has ended."""
        self._queue: deque[ProgramCall] = deque()
        """Calls that wait until fewer are being answered."""
        self._conversation = Conversation(live, _clock)
        self._write_lock = threading.Lock()
        self._look_at = 0.0
        """The time at which a clock may have run out."""
        self._wake: tuple[float, int] | None = None

    @property
    def fatal(self) -> BaseException | None:
        """An exception that ended the program; the run raises it to its caller."""
        return self._conversation.fatal

    def start(self) -> None:
        """Sends the program. Its clock starts here. Raises as `Conversation.start`."""
        self._write(self._conversation.start())

    def run(self) -> None:
        """Runs until the program is over and its last frames are read. Raises only our own faults."""
        try:
            self._serve()
        except ProtocolViolation as violation:
            self._live.give_up("protocol_violation", str(violation))
        finally:
            if self._later is not None:
                self._arrived.unregister(self._later.reader)
                self._later.close()
        if self._live.is_asked_where:
            self._hear_where()
        self._child.kill()

    def _serve(self) -> None:
        live, channel, take = self._live, self._conversation.channel, self._conversation.take
        arrived, read, receive = self._arrived.poll, self._child.reader.read, channel.receive
        while not live.is_over:
            now = _clock()
            if now >= self._look_at:
                self._look_at_clocks()
            elif events := arrived((self._look_at - now) * 1000):
                if self._later is not None and self._is_later_alone(events, self._later):
                    continue
                try:
                    data = read(channel.missing or READ_BYTES)
                except _CLOSED:
                    return
                if not data:
                    return
                for frame in receive(data):
                    effect = take(frame)
                    if type(effect) is ProgramCall:
                        self._make(effect)
                    else:
                        self._carry_out(effect)
                    if _clock() >= self._look_at:
                        self._look_at_clocks()
                    if live.is_over:
                        return

    def _carry_out(self, effect: Effect) -> None:
        if type(effect) is bytes:
            if effect:
                self._write(effect)
        elif type(effect) is ProgramCall:
            self._make(effect)
        elif type(effect) is WakeFrame:
            self._set_wake(effect)
        elif type(effect) is CallFrame:
            self._wait_for_room(effect)
        elif type(effect) is DropFrame and self._later is not None and self._later.drop(effect.ordinal):
            self._release(effect.ordinal)

    def _wait_for_room(self, frame: CallFrame) -> None:
        """Waits until the open calls leave room for this one. Nothing is read meanwhile; the clocks go on."""
        while not self._live.is_over:
            self._has_room.clear()
            if self._later is not None:
                self._answer_later(self._later)
            effect = self._conversation.take(frame)
            if effect is not frame:
                self._carry_out(effect)
                return
            now = _clock()
            if now >= self._look_at:
                self._look_at_clocks()
            else:
                self._has_room.wait(min(self._look_at - now, _LONGEST_WAIT_S))

    def _make(self, call: ProgramCall) -> None:
        if self._start_later is not None and (future := self._start_later(call)) is not None:
            self._open_later().add(call.ordinal, future)
            return
        if call.parallel:
            self._answer_beside(call)
            return
        self._answer(call)
        if self._live.weights:
            self._live.release(call.ordinal)

    def _open_later(self) -> LaterAnswers:
        if self._later is None:
            self._later = LaterAnswers(self._has_room.set)
            self._arrived.register(self._later.reader, select.POLLIN)
        return self._later

    def _is_later_alone(self, events: list[tuple[int, int]], later: LaterAnswers) -> bool:
        """Writes the answers that have arrived. True if there is nothing else to read."""
        count = len(events)
        if any(descriptor == later.reader for descriptor, _ in events):
            self._answer_later(later)
            count -= 1
        return count == 0 or self._live.is_over

    def _answer_later(self, later: LaterAnswers) -> None:
        for ordinal, future in later.take():
            self._tell(ordinal, future.result)
            self._release(ordinal)

    def _release(self, ordinal: int) -> None:
        self._live.release(ordinal)
        self._has_room.set()

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
            if self._live.is_awaited(call.ordinal):
                self._answer(call)
            self._release(call.ordinal)
            with self._share_lock:
                if not self._queue:
                    self._answering -= 1
                    return
                call = self._queue.popleft()

    def _answer(self, call: ProgramCall) -> None:
        self._tell(call.ordinal, lambda: self._call(call))

    def _tell(self, ordinal: int, answer_of: Callable[[], Answer | Parked]) -> None:
        try:
            answer = answer_of()
        except Exception as error:  # noqa: BLE001 - a port that raises is our fault; the program must not hang
            answer = fault(error)
        except BaseException as error:  # noqa: BLE001 - meant for the caller of the run, which raises it
            self._conversation.end_by(error)
            self._child.kill()
            return
        effect = self._conversation.answered(ordinal, answer)
        if type(effect) is not bytes:
            self._carry_out(effect)
        elif effect:
            self._write(effect)
        if self._live.is_over and not self._live.is_asked_where:
            # Another thread may be reading; the kill wakes it.
            self._child.kill()

    def _set_wake(self, frame: WakeFrame) -> None:
        self._wake = (_clock() + frame.seconds, frame.number)
        # Never later than before: a program that keeps setting timers would otherwise put off the other clocks.
        self._look_at = min(self._look_at, self._wake[0])

    def _look_at_clocks(self) -> None:
        patience_s = self._conversation.look_at_clocks()
        now = _clock()
        self._look_at = now + min(patience_s, _LONGEST_WAIT_S)
        if self._wake is None:
            return
        at, number = self._wake
        if now < at:
            self._look_at = min(self._look_at, at)
            return
        self._wake = None
        self._carry_out(self._conversation.woke(number))

    def _hear_where(self) -> None:
        """Asks the program for its place, and reads for at most `STOP_GRACE_S`."""
        self._child.signal(signal.SIGTERM)
        until = _clock() + STOP_GRACE_S
        channel = self._conversation.channel
        try:
            data = b""
            while True:
                for frame in channel.receive(data, at_most=LARGE_BYTES):
                    if not isinstance(frame, CallFrame | DropFrame | WakeFrame | WaitFrame):
                        self._live.take(frame)
                left = until - _clock()
                if self._live.place is not None or channel.has_whole or left <= 0:
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
