"""Runs programs for an event loop: awaits a place, a child and its end without blocking the loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor

from toolwire.runtime.workers import Workers, WorkersExhausted
from toolwire.sandbox import forked
from toolwire.sandbox.admission import Overloaded, Places
from toolwire.sandbox.drive.asynchronous import AsyncDrive, Call
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.forked import SPAWN_TIMEOUT_S, Child, Exit, Spawning, ZygoteGone
from toolwire.sandbox.isolation import require
from toolwire.sandbox.outcome import compose
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import Isolation, ProgramResult
from toolwire.sandbox.zygote import Zygote, Zygotes, lost

_clock = time.monotonic


async def run_on_loop(
    zygotes: Zygotes, places: Places, workers: Workers, reader: Executor, program: Program, call: Call, started: float
) -> ProgramResult:
    """Runs a program whose tools are awaited. Raises as `Sandbox.run_async`."""
    place = places.take()
    try:
        if not place.done():
            await _have_place(asyncio.wrap_future(place), places, started + program.limits.deadline_s)
        try:
            child, isolation = await _spawn(zygotes, workers, program)
        except WorkersExhausted:
            raise places.overloaded() from None
        try:
            require(program, isolation)
            live = LiveProgram(program, started)
            await AsyncDrive(live, child, call, reader).run()
            end = (child.killed() if live.end is not None else None) or await _exit(child)
            return compose(live, end, isolation, _clock())
        finally:
            child.close()
    finally:
        places.give_back(place)


async def run_in_worker(workers: Workers, run: Callable[[threading.Event], ProgramResult]) -> ProgramResult:
    """Awaits a blocking run. When the awaiting task is cancelled, the flag tells the run to stop."""
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


async def _have_place(place: asyncio.Future[None], places: Places, until: float) -> None:
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
    """Returns a live zygote. A worker thread starts one if needed, since that takes a tenth of a second.

    Raises:
        SandboxUnavailable: a zygote cannot be started here.
        WorkersExhausted: all worker threads are busy.
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
        await _readable(child.status.fileno(), forked.EXIT_TIMEOUT_S)
    except TimeoutError:
        return None
    return child.exit(forked.EXIT_TIMEOUT_S)


async def _readable(descriptor: int, timeout_s: float) -> None:
    """Waits until the descriptor can be read.

    Raises:
        TimeoutError: it could not be read within `timeout_s` seconds.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        # Not `wait_for`: before Python 3.12 it loses a cancellation that comes just as the future is done.
        async with asyncio.timeout(timeout_s):
            await ready
    finally:
        loop.remove_reader(descriptor)
