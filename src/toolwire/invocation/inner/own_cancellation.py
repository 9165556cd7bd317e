"""asyncio's cancellations. asyncio is not imported for them, because a blocking call needs none of it."""

from __future__ import annotations

import sys
from typing import Any


def is_cancelled_error(error: BaseException) -> bool:
    """True for `asyncio.CancelledError`."""
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def is_from_caller(error: BaseException) -> bool:
    """True if the error cancels the current task, and False if the task's own work raised it. Use it in a task."""
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
