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

LEAST_RESULT_BYTES = 1_000
"""The least limit of a result, in bytes: a page of it with the note on how to read on."""
_KEYS = ("rate", "concurrency", "resultBytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The limits of one group of calls.

    Attributes:
        calls: Calls that may begin in `per_s` seconds; None for any number.
        per_s: The seconds of a rate.
        concurrency: Calls under way at a time; None for any number.
        result_bytes: Bytes of a result's text; None leaves the server's own limit.
    """

    calls: int | None = None
    per_s: float = 60.0
    concurrency: int | None = None
    result_bytes: int | None = None


def read_call_limits(given: object) -> CallLimits:
    """Returns the limits of a table.

    Raises:
        ValueError: It is not one. The message begins with the key, and says what to write.
    """
    if not isinstance(given, Mapping):
        raise ValueError("limits: write a table such as {'rate': '60/min', 'concurrency': 4}")
    table = dict(cast("Mapping[str, Any]", given))
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"limits.{key}: is not known: write {', '.join(_KEYS[:-1])} or {_KEYS[-1]}")
    concurrency, result_bytes = table.get("concurrency"), table.get("resultBytes")
    if concurrency is not None and not _is_number(concurrency, 1):
        raise ValueError(f"limits.concurrency: {concurrency!r:.80} is not a number of calls: write 1 or more")
    if result_bytes is not None and not _is_number(result_bytes, LEAST_RESULT_BYTES):
        said = f"is not a number of bytes: write {LEAST_RESULT_BYTES} or more"
        raise ValueError(f"limits.resultBytes: {result_bytes!r:.80} {said}")
    calls, per_s = _read_rate(table.get("rate"))
    return CallLimits(calls=calls, per_s=per_s, concurrency=concurrency, result_bytes=result_bytes)


def _is_number(given: object, least: int) -> bool:
    return type(given) is int and given >= least


def _read_rate(rate: object) -> tuple[int | None, float]:
    """Returns the calls of a rate, and its seconds."""
    if rate is None:
        return None, _SECONDS["min"]
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None or int(found[1]) > RATE_LIMIT:
        raise ValueError(f"limits.rate: {rate!r:.80} is not a rate: write calls and a time: 60/min, 5/s or 100/h")
    return int(found[1]), _SECONDS[found[2]]
