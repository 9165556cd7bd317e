"""Drives one program on an asyncio loop: a callback for what it says, and a task for each call."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Awaitable, Callable

from toolwire.runtime.workers import Workers, WorkersExhausted
from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.blocking import answer_frame, channel_of, fault, only_answer
from toolwire.sandbox.channel import ProtocolViolation
from toolwire.sandbox.forked import SPAWN_TIMEOUT_S, Child, Exit, Spawning, ZygoteGone
from toolwire.sandbox.frames import CallFrame, DropFrame, WaitFrame, WakeFrame
from toolwire.sandbox.isolation import require
from toolwire.sandbox.live import STOP_GRACE_S, LiveProgram
from toolwire.sandbox.outcome import compose, start_options
from toolwire.sandbox.places import Overloaded, Places
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import Isolation, ProgramResult
from toolwire.sandbox.zygote import Zygote, Zygotes, lost

Call = Callable[[ProgramCall], Awaitable[Answer | Parked]]

EXIT_TIMEOUT_S = 0.2
PIECE_BYTES = 16_384
"""Bytes of small frames that are taken in before others on the loop have their turn: a thousand frames, some
milliseconds. A transport of the loop's would take sixteen times as many."""
_TASKS_GRACE_S = 0.2
"""Seconds that cancelled calls get to end."""
_clock = time.monotonic


async def run_on_loop(
    zygotes: Zygotes, places: Places, workers: Workers, program: Program, call: Call, started: float
) -> ProgramResult:
    """Runs a program whose tools are awaited. Errors as `Sandbox.run_async`."""
    place = places.take()
    try:
        if not place.done():
            await _place(asyncio.wrap_future(place), places, started + program.limits.deadline_s)
        try:
            child, isolation = await _spawn(zygotes, workers, program)
        except WorkersExhausted:
            raise places.overloaded() from None
        try:
            require(program, isolation)
            live = LiveProgram(program, started)
            await AsyncDrive(live, child, call).run()
            end = (child.killed() if live.end is not None else None) or await _exit(child)
            return compose(live, end, isolation, _clock())
        finally:
            child.close()
    finally:
        places.give_back(place)


async def run_in_worker(workers: Workers, run: Callable[[threading.Event], ProgramResult]) -> ProgramResult:
    """Awaits a blocking run. When the awaiting task is cancelled, the run is told by its flag."""
    flag = threading.Event()
    try:
        running = workers.start(lambda: run(flag))
    except WorkersExhausted as error:
        raise Overloaded(f"{error}; try again later", live=0, waiting=0) from None
    try:
        return await asyncio.wrap_future(running)
    except asyncio.CancelledError:
        flag.set()
        raise


class AsyncDrive:
    """Feeds a live program from a loop's callbacks. All of it in the loop's own thread."""

    def __init__(self, live: LiveProgram, child: Child, call: Call) -> None:
        self._live = live
        self._child = child
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._channel = channel_of(live)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._writing: asyncio.WriteTransport | None = None
        self._writable = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._wake: asyncio.TimerHandle | None = None
        self._unread = 0
        self._fatal: BaseException | None = None

    async def run(self) -> None:
        """Until the program is over and its calls have ended. Cancelled, it ends both and passes it on."""
        options = start_options(self._live.program)
        self._writable.set()
        try:
            self._writing, _ = await self._loop.connect_write_pipe(lambda: _Writing(self._writable), self._child.writer)
            self._loop.add_reader(self._child.reader, self._read)
            self._live.started_running(_clock())
            self._write(self._channel.start(self._live.program.source, options))
            if self._live.replaying is not None:
                self._write(self._live.replaying.begin())
            self._look_at_clocks()
            await self._over
            if self._live.stop in ("timeout_program", "deadline"):
                await self._hear_where()
        finally:
            self._child.kill()
            await self._close()
        if self._fatal is not None:
            raise self._fatal

    def _read(self) -> None:
        data = self._child.reader.read(self._channel.missing or PIECE_BYTES)
        if data:
            self._take(data)
        else:
            self._loop.remove_reader(self._child.reader)
            self._finish()
        if (self._live.place is not None or not data) and not self._heard.done():
            self._heard.set_result(None)

    def _take(self, data: bytes) -> None:
        try:
            for frame in self._channel.receive(data):
                if type(frame) is CallFrame:
                    self._take_call(frame)
                elif type(frame) is WakeFrame:
                    self._set_wake(frame)
                elif type(frame) is DropFrame:
                    self._drop(frame.ordinal)
                elif type(frame) is WaitFrame:
                    self._live.waits(frame, _clock())
                    self._go_on()
                else:
                    self._live.take(frame)
        except ProtocolViolation as violation:
            self._live.give_up("protocol_violation", str(violation))
        except Exception as error:  # noqa: BLE001 - a loop would only log it, and call again: raised by `run`
            self._end_by(error)
        if self._live.is_over:
            self._finish()

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _take_call(self, frame: CallFrame) -> None:
        if self._live.is_over:
            return
        call = self._live.called(frame, _clock())
        if call is None:
            self._go_on()
        else:
            task = self._loop.create_task(self._answer(call))
            self._tasks[call.ordinal] = task

    async def _answer(self, call: ProgramCall) -> None:
        try:
            answer = await self._call(call)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a port that raises is a fault of ours; the program must not hang
            answer = Answer(error=fault(error))
        except BaseException as error:  # noqa: BLE001 - meant for whoever runs the program: raised by `run`
            self._end_by(error)
            return
        finally:
            self._tasks.pop(call.ordinal, None)
        if self._live.replaying is not None:
            self._noted(lambda: self._live.settled(call.ordinal, answer, _clock()))
            self._go_on()
            return
        answer = only_answer(answer)
        frame = answer_frame(self._channel, call.ordinal, answer)
        # Answered before it is read: a program that reads nothing must not make its own clock stand still.
        if not self._live.answered(call.ordinal, answer, _clock()):
            return
        if not self._writable.is_set():
            await self._wait_to_write()
        if not self._live.is_over:
            self._write(frame)

    def _end_by(self, error: BaseException) -> None:
        self._fatal = error
        self._live.give_up("cancelled")
        self._finish()

    def _noted(self, note: Callable[[], None]) -> None:
        """Does what may write the record; what that raises belongs to whoever runs the program."""
        try:
            note()
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self._end_by(error)

    def _go_on(self) -> None:
        """Sends a resumable program what it waits for, sets its timer, or ends it."""
        live = self._live
        if live.replaying is None or not live.replaying.is_waiting or live.is_over:
            return
        data = live.next(_clock())
        if data:
            # It waits for this one, and gets no other until it waits again: nothing piles up.
            self._write(data)
        elif live.is_over:
            self._finish()
        elif (seconds := live.replaying.patience()) is not None:
            self._set_wake(WakeFrame(0, seconds))

    async def _wait_to_write(self) -> None:
        self._unread += 1
        if self._unread > self._live.limits.outstanding_calls:
            self._live.give_up("protocol_violation", f"more than {self._live.limits.outstanding_calls} unread answers")
            self._finish()
        try:
            await self._writable.wait()
        finally:
            self._unread -= 1

    def _drop(self, ordinal: int) -> None:
        self._noted(lambda: self._live.dropped(ordinal, _clock()))
        task = self._tasks.get(ordinal)
        if task is not None:
            task.cancel()

    def _set_wake(self, frame: WakeFrame) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self._loop.call_later(frame.seconds, self._woke, frame.number)

    def _woke(self, number: int) -> None:
        if self._live.replaying is not None:
            self._go_on()
            return
        self._write(self._channel.woke(number))

    def _look_at_clocks(self) -> None:
        now = _clock()
        status = self._live.overdue(now)
        if status is not None and self._live.give_up(status):
            self._finish()
            return
        self._timer = self._loop.call_later(self._live.patience(now), self._look_at_clocks)

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
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        self._loop.remove_reader(self._child.reader)
        if self._writing is not None and not self._writing.is_closing():
            self._writing.abort()
        if tasks:
            await asyncio.wait(tasks, timeout=_TASKS_GRACE_S)


class _Writing(asyncio.BaseProtocol):
    """The end of the channel that is written to."""

    def __init__(self, writable: asyncio.Event) -> None:
        self._writable = writable

    def pause_writing(self) -> None:
        """The program does not read: answers wait in their tasks."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio gives the name
        """It will not read any more. What it said before is still to be read."""
        self._writable.set()


async def _place(place: asyncio.Future[None], places: Places, until: float) -> None:
    try:
        async with asyncio.timeout(until - _clock()):
            await place
    except TimeoutError:
        raise places.overloaded() from None


async def _spawn(zygotes: Zygotes, workers: Workers, program: Program) -> tuple[Child, Isolation]:
    for attempt in (1, 2):
        zygote = await zygote_of(zygotes, workers)
        try:
            return await _received(zygote.ask(program.limits)), zygote.isolation
        except ZygoteGone as gone:
            zygotes.discard()
            if attempt == 2:
                raise lost(gone) from None
    raise AssertionError("unreachable: the second attempt returns or raises")


async def zygote_of(zygotes: Zygotes, workers: Workers) -> Zygote:
    """A live zygote. Starting one takes a tenth of a second, too long for a loop to stand still.

    Raises:
        SandboxUnavailable: none can be started here.
    """
    return zygotes.current() if zygotes.is_ready else await asyncio.wrap_future(workers.start(zygotes.current))


async def _received(spawning: Spawning) -> Child:
    try:
        await _readable(spawning.status.fileno(), SPAWN_TIMEOUT_S)
    except BaseException:
        spawning.abandon()
        raise
    return spawning.receive()


async def _exit(child: Child) -> Exit | None:
    try:
        await _readable(child.status.fileno(), EXIT_TIMEOUT_S)
    except TimeoutError:
        return None
    return child.exit(EXIT_TIMEOUT_S)


async def _readable(descriptor: int, timeout_s: float) -> None:
    """Waits until the descriptor can be read.

    Raises:
        TimeoutError: it could not in so many seconds.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        # Not `wait_for`: before Python 3.12 it swallows a cancellation that comes as the future is done.
        async with asyncio.timeout(timeout_s):
            await ready
    finally:
        loop.remove_reader(descriptor)
