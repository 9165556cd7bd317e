"""Times in the form that people read and write."""

from __future__ import annotations

import datetime
import re

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_WRITTEN = re.compile(rf"(\d{{1,9}})({'|'.join(unit for _, unit in _UNITS)})")
_SECONDS = {unit: seconds for seconds, unit in _UNITS}


def span(seconds: float) -> str:
    """Returns a duration in its largest unit, such as `6 d`."""
    left = max(0, round(seconds))
    for size, unit in _UNITS:
        if left >= size:
            return f"{left // size} {unit}"
    return "0 s"


def seconds_of(text: str) -> float | None:
    """Parses a duration such as `30min`, `2h` or `7d` into seconds. None if the text is not a duration."""
    found = _WRITTEN.fullmatch(text)
    return None if found is None else float(int(found[1]) * _SECONDS[found[2]])


def ago(since: float, now: float) -> str:
    """Returns the time since a moment, such as `6 d ago`."""
    return f"{span(now - since)} ago"


def moment(seconds: float) -> str:
    """Returns seconds since the epoch as `2026-11-22 02:10:05 UTC`."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
