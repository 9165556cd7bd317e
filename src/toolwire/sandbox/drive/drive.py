"""Drives a program in a process: one thread reads frames from its pipe, and whoever has an answer writes it."""

from __future__ import annotations

import select
import signal

from toolwire.runtime.workers import Workers
from toolwire.sandbox.channel.frames import CallFrame, DropFrame, WaitFrame, WakeFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.drive.call_drive import Call, CallDrive, clock
from toolwire.sandbox.drive.live_program import STOP_GRACE_S, LiveProgram
from toolwire.sandbox.drive.outbox import CLOSED, Outbox
from toolwire.sandbox.drive.waker import Waker
from toolwire.sandbox.processes import PipeProcess
from toolwire.sandbox.wire import LARGE_BYTES
from toolwire.vocabulary.texts.counting import count_of

READ_BYTES = 65_536


class Drive(CallDrive):
    """Reads frames of a process from its pipe."""

    def __init__(self, live: LiveProgram, child: PipeProcess, call: Call, callers: Workers) -> None:
        super().__init__(live, call, callers)
        self._child = child
        self._reading, self._writing = child.reader.fileno(), child.writer.fileno()
        self._waker = Waker()
        self._outbox = Outbox(child.writer, self._waker.wake)
        self._poll = select.poll()
        self._is_writing = False
        """True while the drive waits for room in the program's pipe."""

    def run(self) -> None:
        """Sends the program, and returns when it is over and its last frames are read."""
        try:
            self._write(self._conversation.start())
            self._poll.register(self._waker.descriptor, select.POLLIN)
            self._poll.register(self._reading, select.POLLIN)
            self._serve()
        except ProtocolViolation as violation:
            self._live.give_up("protocol_violation", str(violation))
        finally:
            self._cancel_later()
            self._waker.close()
        if self._live.is_asked_where:
            self._hear_where()
        self._child.kill()
        self.raise_fatal()

    def stop(self) -> None:
        """Kills the process; the drive's thread then ends."""
        self._child.kill()
        self._cancel_later()
        self._waker.wake()

    def _serve(self) -> None:
        live, channel, read = self._live, self._conversation.channel, self._child.reader.read
        while not live.is_over:
            if not self._wait():
                continue
            try:
                data = read(channel.missing or READ_BYTES)
            except CLOSED:
                return
            if data is None:
                continue
            if not data:
                return
            self._take(data)

    def _wait(self) -> bool:
        """Waits for the next event, and handles it. Returns True if the event is that the program has written."""
        now = clock()
        if now >= self._look_at:
            self._look_at_clocks()
            return False
        has_written = False
        for descriptor, _ in self._poll.poll((self._look_at - now) * 1000):
            if descriptor == self._waker.descriptor:
                self._waker.clear()
                self._watch_outbox()
            elif descriptor == self._reading:
                has_written = True
            else:
                self._outbox.write_rests()
                self._watch_outbox()
        return has_written

    def _watch_outbox(self) -> None:
        """Waits for room in the program's pipe as long as frames wait for it."""
        if self._is_writing != bool(self._outbox.unread):
            self._is_writing = not self._is_writing
            if self._is_writing:
                self._poll.register(self._writing, select.POLLOUT)
            else:
                self._poll.unregister(self._writing)

    def _wait_for_room(self, frame: CallFrame) -> None:
        self._poll.unregister(self._reading)
        self._is_full = True
        effect = self._conversation.take(frame)
        while effect is frame and not self._live.is_over:
            self._wait()
            effect = self._conversation.take(frame)
        self._is_full = False
        if effect is not frame:
            self._poll.register(self._reading, select.POLLIN)
            self._carry_out(effect)

    def _hear_where(self) -> None:
        """Asks the program for its place, and reads for at most `STOP_GRACE_S`."""
        self._child.signal(signal.SIGTERM)
        until = clock() + STOP_GRACE_S
        has_written = select.poll()
        channel = self._conversation.channel
        try:
            has_written.register(self._child.reader, select.POLLIN)
            data = b""
            while True:
                for frame in channel.receive(data, at_most=LARGE_BYTES):
                    if not isinstance(frame, CallFrame | DropFrame | WakeFrame | WaitFrame):
                        self._live.take(frame)
                left = until - clock()
                if self._live.place is not None or channel.has_whole or left <= 0:
                    return
                read = self._child.reader.read(READ_BYTES) if has_written.poll(left * 1000) else b""
                if read == b"":
                    return
                data = read or b""
        except (*CLOSED, ProtocolViolation):
            # Only the place was missing; the reason of the end is known.
            return

    def _write(self, data: bytes) -> None:
        limit = self._live.limits.outstanding_calls
        if self._outbox.write(data) > limit:
            self._live.give_up("protocol_violation", f"more than {count_of(limit, 'unread answer')}")
            self._waker.wake()

    def _rouse(self) -> None:
        self._waker.wake()
