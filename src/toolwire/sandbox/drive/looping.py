"""Waits for a program on an event loop, which goes on meanwhile."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from toolwire.sandbox.drive.program_run import STOP_S, ProgramRun
from toolwire.sandbox.report import ProgramResult


async def watch_on_loop(driving: Future[ProgramResult], run: ProgramRun) -> ProgramResult:
    """Works as `watch`. When the awaiting task is cancelled, the program is ended."""
    waiting = asyncio.wrap_future(driving)
    # Retrieve the exception, or asyncio logs that it was never retrieved.
    waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait((waiting,), timeout=run.remaining_s)
    except asyncio.CancelledError:
        run.stop("cancelled")
        await asyncio.wait((waiting,), timeout=STOP_S)
        raise
    if not waiting.done():
        run.stop("deadline")
        await asyncio.wait((waiting,), timeout=STOP_S)
    return waiting.result() if waiting.done() else run.result()
