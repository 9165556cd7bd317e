"""Waits for a run that a worker has."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from toolwire.journal.run import SuspendedRun
from toolwire.vocabulary.errors import ConfigurationError

FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.25
"""Seconds between two looks at the run. They double: short runs are told at once, and long ones cost few queries.

News of a run (`Store.watch_run`) comes before the next look, if it comes.
"""

PRIORITY_LIMIT = 2**31
"""Priorities are below it: the queue has them as integers of 32 bits."""


def check_priority(priority: object) -> None:
    """Refuses a priority that no queue takes.

    Raises:
        ConfigurationError: It is not a whole number of 32 bits.
    """
    if not isinstance(priority, int) or isinstance(priority, bool) or not -PRIORITY_LIMIT <= priority < PRIORITY_LIMIT:
        raise ConfigurationError(f"submit(priority={priority!r:.80}): give a whole number, such as 0")


def check_timeout(timeout_s: object) -> None:
    """Refuses a time to wait that is none.

    Raises:
        ConfigurationError: It is neither None nor a number from 0.
    """
    if timeout_s is None:
        return
    if not isinstance(timeout_s, int | float) or isinstance(timeout_s, bool) or not timeout_s >= 0:
        raise ConfigurationError(f"wait(timeout_s={timeout_s!r:.80}): give seconds from 0, such as 60, or None")


async def wait_for_run(store: Any, run_id: str) -> SuspendedRun | None:
    """Waits for a run of a `Store`. Returns it if it waits for people, or None if it has ended.

    Raises:
        DecisionRefused: `unknown_run`.
    """
    pause_s, news, loop = FIRST_LOOK_S, asyncio.Event(), asyncio.get_running_loop()
    with store.watch_run(run_id, lambda: loop.call_soon_threadsafe(news.set)):
        while True:
            news.clear()
            run = await asyncio.to_thread(store.run, run_id)
            if run.status == "suspended" and not run.is_held and run.pending:
                return await asyncio.to_thread(store.suspended_run, run_id)
            # The end of a parked run is its refusal, which names what to do.
            if run.status in ("finished", "stopped", "diverged", "parked"):
                return None
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), pause_s)
            pause_s = min(LAST_LOOK_S, 2 * pause_s)
