"""Waits for a run that a worker has."""

from __future__ import annotations

import asyncio
from typing import Any

from toolwire.journal.run import SuspendedRun

FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.25
"""Seconds between two looks at the run. They double: short runs are told at once, and long ones cost few queries."""


async def wait_for_run(store: Any, run_id: str) -> SuspendedRun | None:
    """Waits for a run of a `Store`. Returns it if it waits for people, or None if it has ended.

    Raises:
        DecisionRefused: `unknown_run`.
    """
    pause_s = FIRST_LOOK_S
    while True:
        run = await asyncio.to_thread(store.run, run_id)
        if run.status == "suspended" and not run.is_held and run.pending:
            return await asyncio.to_thread(store.suspended_run, run_id)
        # The end of a parked run is its refusal, which names what to do.
        if run.status in ("finished", "stopped", "diverged", "parked"):
            return None
        await asyncio.sleep(pause_s)
        pause_s = min(LAST_LOOK_S, 2 * pause_s)
