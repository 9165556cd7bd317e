"""The limits of calls that an operator writes into a file: `"limits": {"rate": "60/min", "concurrency": 4}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

_RATE = re.compile(r"([1-9][0-9]{0,5})/(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3_600.0}
RATE_LIMIT = 100_000
"""The most calls of a rate: the time of each is kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The limits of one group of calls.

    Attributes:
        calls: Calls that may begin in `per_s` seconds; None for any number.
        per_s: The seconds of a rate.
        concurrency: Calls under way at a time; None for any number.
    """

    calls: int | None = None
    per_s: float = 60.0
    concurrency: int | None = None


def read_call_limits(given: object) -> CallLimits:
    """Returns the limits of a table.

    Raises:
        ValueError: It is not one. The message begins with the key, and says what to write.
    """
    if not isinstance(given, Mapping):
        raise ValueError("limits: write a table such as {'rate': '60/min', 'concurrency': 4}")
    table = dict(cast("Mapping[str, Any]", given))
    rate, concurrency = table.pop("rate", None), table.pop("concurrency", None)
    if table:
        raise ValueError(f"limits.{next(iter(table))}: is not known: write rate or concurrency")
    if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
        raise ValueError(f"limits.concurrency: {concurrency!r:.80} is not a number of calls: write 1 or more")
    if rate is None:
        return CallLimits(concurrency=concurrency)
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None or int(found[1]) > RATE_LIMIT:
        raise ValueError(f"limits.rate: {rate!r:.80} is not a rate: write calls and a time: 60/min, 5/s or 100/h")
    return CallLimits(calls=int(found[1]), per_s=_SECONDS[found[2]], concurrency=concurrency)
