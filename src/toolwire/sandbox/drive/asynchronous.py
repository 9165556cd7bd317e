"""Drives one program on an asyncio loop: a callback reads its frames, and each call is a task."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from toolwire.runtime.cleanup import cancel_once
from toolwire.runtime.workers import PROGRAM_SHARE, program_share
from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.channel.frames import CallFrame, DropFrame, Frame, WakeFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.channel.wire import LARGE_BYTES
from toolwire.sandbox.drive.conversation import Conversation, Effect, fault
from toolwire.sandbox.drive.live_program import STOP_GRACE_S, LiveProgram
from toolwire.sandbox.forked import Child
from toolwire.sandbox.program import ProgramCall
from toolwire.vocabulary.gate import Gate
from toolwire.vocabulary.texts.counting import count_of

Call = Callable[[ProgramCall], Awaitable[Answer | Parked]]

PIECE_BYTES = 16_384
"""Bytes of small frames to read before other callbacks of the loop run: a thousand frames, a few milliseconds. An
asyncio transport would read sixteen times as many.
"""


class AsyncDrive:
    """Feeds a live program from a loop's callbacks. All methods run in the loop's thread, except `_next_frame`."""

    def __init__(self, live: LiveProgram, child: Child, call: Call, reader: Executor) -> None:
        self._live = live
        self._child = child
        self._call = call
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._conversation = Conversation(live, time.monotonic)
        self._channel = self._conversation.channel
        self._share = Gate(PROGRAM_SHARE)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """Calls without an answer, by ordinal. Those that were cancelled are cleaning up."""
        self._reading: asyncio.Future[Frame | None] | None = None
        """The large frame that another thread is reading, or None."""
        self._held: CallFrame | None = None
        """A call that must wait until the open calls leave room. The drive reads nothing meanwhile."""
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._writing: asyncio.WriteTransport | None = None
        self._writable = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._wake: asyncio.TimerHandle | None = None
        self._unread = 0

    async def run(self) -> None:
        """Runs until the program is over, and cancels the calls that it left. On cancellation it does the same and
        raises CancelledError.
        """
        self._writable.set()
        try:
            self._writing, _ = await self._loop.connect_write_pipe(lambda: _Writing(self._writable), self._child.writer)
            self._loop.add_reader(self._child.reader, self._read)
            self._write(self._conversation.start())
            self._look_at_clocks()
            await self._over
            if self._live.is_asked_where:
                await self._hear_where()
        except asyncio.CancelledError:
            self._live.give_up("cancelled")
            raise
        finally:
            self._child.kill()
            await self._close()
        if self._conversation.fatal is not None:
            raise self._conversation.fatal

    def _read(self) -> None:
        data = self._child.reader.read(self._channel.missing or PIECE_BYTES)
        if data:
            self._take(data)
        else:
            self._loop.remove_reader(self._child.reader)
            self._finish()
        if (self._live.place is not None or not data) and not self._heard.done():
            self._heard.set_result(None)

    def _take(self, data: bytes, first: Callable[[], Frame | None] | None = None) -> None:
        """Handles the frames of one piece of the channel, after the frame that `first` returns."""
        live, channel = self._live, self._channel
        try:
            if first is not None and (frame := first()) is not None:
                self._carry_out(self._conversation.take(frame))
            for frame in channel.receive(data, at_most=LARGE_BYTES) if self._held is None else ():
                if live.is_over and not live.is_asked_where:
                    break
                self._carry_out(self._conversation.take(frame))
                if self._held is not None:
                    break
            if not live.is_over and self._held is None and channel.has_whole:
                self._read_large()
        except ProtocolViolation as violation:
            live.give_up("protocol_violation", str(violation))
        except Exception as error:  # noqa: BLE001 - the loop would only log it and call again; `run` raises it
            self._end_by(error)
        if live.is_over:
            self._finish()

    def _read_large(self) -> None:
        """Starts reading the next frame in another thread; the loop reads nothing meanwhile."""
        self._loop.remove_reader(self._child.reader)
        self._reading = asyncio.wrap_future(self._reader.submit(self._next_frame))
        self._reading.add_done_callback(self._take_large)

    def _next_frame(self) -> Frame | None:
        return next(iter(self._channel.receive(b"")), None)

    def _take_large(self, reading: asyncio.Future[Frame | None]) -> None:
        self._reading = None
        if self._live.is_over:
            # Retrieve the exception, or asyncio logs that it was never retrieved.
            reading.exception()
            return
        self._loop.add_reader(self._child.reader, self._read)
        self._take(b"", reading.result)

    def _carry_out(self, effect: Effect) -> None:
        if type(effect) is ProgramCall:
            self._make(effect)
        elif type(effect) is bytes:
            if effect:
                self._write(effect)
        elif type(effect) is WakeFrame:
            self._set_wake(effect)
        elif type(effect) is DropFrame:
            self._cancel(effect.ordinal)
        elif type(effect) is CallFrame:
            self._held = effect
            self._loop.remove_reader(self._child.reader)
        if self._live.is_over:
            self._finish()

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
        # Now, and not when `run` wakes up: no call begins after the end of its program.
        for task in self._tasks.values():
            cancel_once(task)

    def _make(self, call: ProgramCall) -> None:
        task = self._loop.create_task(self._answer(call))
        self._tasks[call.ordinal] = task
        if call.ordinal in self._live.weights:
            task.add_done_callback(lambda _: self._ended(call.ordinal))

    def _ended(self, ordinal: int) -> None:
        """Releases the room of a call, and reads on if the program's pipe waits for it."""
        self._live.release(ordinal)
        held = self._held
        if held is None or self._live.is_over:
            return
        self._held = None
        self._loop.add_reader(self._child.reader, self._read)
        self._take(b"", lambda: held)

    async def _answer(self, call: ProgramCall) -> None:
        program_share.set(self._share)
        try:
            answer = await self._call(call)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a port that raises is our fault; the program must not hang
            answer = fault(error)
        except BaseException as error:  # noqa: BLE001 - meant for the caller of `run`, which raises it
            self._end_by(error)
            return
        finally:
            self._tasks.pop(call.ordinal, None)
        effect = self._conversation.answered(call.ordinal, answer)
        # A resumable program waits for these bytes and gets no others until it waits again, so nothing piles up.
        if effect and self._live.replaying is None and not self._writable.is_set():
            await self._wait_to_write()
            if self._live.is_over:
                return
        self._carry_out(effect)

    def _end_by(self, error: BaseException) -> None:
        self._conversation.end_by(error)
        self._finish()

    async def _wait_to_write(self) -> None:
        self._unread += 1
        if self._unread > self._live.limits.outstanding_calls:
            self._live.give_up(
                "protocol_violation", f"more than {count_of(self._live.limits.outstanding_calls, 'unread answer')}"
            )
            self._finish()
        try:
            await self._writable.wait()
        finally:
            self._unread -= 1

    def _cancel(self, ordinal: int) -> None:
        task = self._tasks.get(ordinal)
        if task is not None:
            cancel_once(task)

    def _set_wake(self, frame: WakeFrame) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self._loop.call_later(frame.seconds, self._woke, frame.number)

    def _woke(self, number: int) -> None:
        self._carry_out(self._conversation.woke(number))

    def _look_at_clocks(self) -> None:
        patience_s = self._conversation.look_at_clocks()
        if self._live.is_over:
            self._finish()
        else:
            self._timer = self._loop.call_later(patience_s, self._look_at_clocks)

    def _write(self, data: bytes) -> None:
        if self._writing is not None and not self._writing.is_closing():
            self._writing.write(data)

    async def _hear_where(self) -> None:
        self._child.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_GRACE_S):
                await self._heard

    async def _close(self) -> None:
        for timer in (self._timer, self._wake):
            if timer is not None:
                timer.cancel()
        self._finish()
        self._loop.remove_reader(self._child.reader)
        if self._writing is not None and not self._writing.is_closing():
            self._writing.abort()
        if self._reading is not None:
            await asyncio.wait((self._reading,))


class _Writing(asyncio.BaseProtocol):
    """The write end of the channel."""

    def __init__(self, writable: asyncio.Event) -> None:
        self._writable = writable

    def pause_writing(self) -> None:
        """The program does not read: answers wait in their tasks."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The program reads again."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio gives the name
        """The program will not read any more. Frames that it sent before are still read."""
        self._writable.set()
