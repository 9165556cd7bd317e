"""Times as a person reads them."""

from __future__ import annotations

import datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(seconds: float) -> str:
    """A length of time in its largest unit, as `6 d`."""
    left = max(0, round(seconds))
    for size, unit in _UNITS:
        if left >= size:
            return f"{left // size} {unit}"
    return "0 s"


def ago(since: float, now: float) -> str:
    """How long ago a moment was."""
    return f"{span(now - since)} ago"


def moment(seconds: float) -> str:
    """Seconds since the epoch as `2026-11-22 02:10:05 UTC`."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
