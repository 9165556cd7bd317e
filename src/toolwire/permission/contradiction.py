"""Finds conditions that no value can meet, alone or under a schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toolwire.permission.condition import Condition, Kind, kind_of
from toolwire.permission.schema import KINDS, Schema, bounds, kinds, values

_WANTS: dict[str, frozenset[Kind]] = {
    **dict.fromkeys(("<", "<=", ">", ">="), frozenset[Kind]({"number"})),
    **dict.fromkeys(("starts_with", "ends_with", "matches", "under", "host_in"), frozenset[Kind]({"text"})),
}
_WORDS: dict[Kind, str] = {
    "text": "a text",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "list": "a list",
    "object": "an object",
}


def contradiction(conditions: Sequence[Condition]) -> str:
    """Returns why no call can meet all conditions; empty if one can."""
    by_path: dict[tuple[str, ...], list[Condition]] = {}
    for condition in conditions:
        by_path.setdefault(condition.tokens, []).append(condition)
    return next((clash for each in by_path.values() if (clash := _clash(each, None, (None, None)))), "")


def impossible(conditions: Sequence[Condition], schemas: Sequence[Schema]) -> str:
    """Returns why no value that the schemas allow can meet all conditions; empty if one can."""
    allowed = kinds(schemas)
    for condition in conditions:
        wanted = _wanted(condition)
        if not wanted & allowed:
            return f"{condition} looks at {_either(wanted)}, and {condition.path!r} is {_either(allowed)} in its schema"
    return _clash(conditions, values(schemas), bounds(schemas))


def _wanted(condition: Condition) -> frozenset[Kind]:
    """Returns the types of values for which the condition can be decided."""
    match condition.op:
        case "==" | "!=":
            return frozenset({kind_of(condition.value)})
        case "in" | "not_in":
            return frozenset(kind_of(value) for value in condition.value)
        case "contains":
            return frozenset({"list", "text"} if kind_of(condition.value) == "text" else {"list"})
        case other:
            return _WANTS.get(other, KINDS)


def _clash(conditions: Sequence[Condition], listed: list[Any] | None, limits: tuple[float | None, float | None]) -> str:
    said = " and ".join(map(str, conditions))
    ops = {condition.op for condition in conditions}
    if "absent" in ops and len(ops) > 1:
        return f"{said} can never hold together: what is absent has no value"
    candidates = _candidates(conditions, listed)
    if candidates is not None:
        if any(all(each.holds_of(value) is True for each in conditions) for value in candidates):
            return ""
        among = f" among {', '.join(map(repr, listed))}" if listed is not None else " together" * (len(conditions) > 1)
        return f"{said} can never hold{among}"
    if _is_empty(conditions, limits):
        return f"{said} can never hold" + (" together" if len(conditions) > 1 else " within the schema's limits")
    starts = [condition.value for condition in conditions if condition.op == "starts_with"]
    longest = max(starts, key=len, default="")
    if not all(longest.startswith(start) for start in starts):
        return f"{said} can never hold together"
    return ""


def _candidates(conditions: Sequence[Condition], listed: list[Any] | None) -> list[Any] | None:
    """Returns a list of every value that might meet all conditions; None if such a list is not known."""
    if any(condition.op == "absent" for condition in conditions):
        return None
    for condition in conditions:
        if condition.op == "==" and listed is None:
            return [condition.value]
        if condition.op == "in" and listed is None:
            return list(condition.value)
    return listed


def _is_empty(conditions: Sequence[Condition], limits: tuple[float | None, float | None]) -> bool:
    """True if no number lies within all bounds."""
    least, most = limits
    low = (-math.inf if least is None else least, False)
    high = (math.inf if most is None else most, False)
    for condition in conditions:
        end = (condition.value, condition.op in ("<", ">"))
        if condition.op in (">", ">="):
            low = max(low, end)
        elif condition.op in ("<", "<="):
            high = min(high, end, key=lambda each: (each[0], not each[1]))
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))


def _either(wanted: frozenset[Kind]) -> str:
    return " or ".join(word for kind, word in _WORDS.items() if kind in wanted)
