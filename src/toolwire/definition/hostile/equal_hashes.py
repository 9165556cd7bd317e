"""Protection against sets and mappings of values with chosen equal hashes.

They are refused before pydantic builds them.

Hashes of numbers are predictable. A set of n values with one hash takes n * n / 2 comparisons: 50,000 integers, 1 MB of
JSON, block every thread for minutes. The core schema is rewritten. Each set, and each mapping whose keys pydantic
converts, counts the comparisons beyond the usual one per member. Each call has one budget for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

from pydantic_core import PydanticCustomError, core_schema

from toolwire.definition.hostile.core_tree import CLASSES, with_children, with_label

COMPARISONS_LIMIT = 500_000
"""Maximum number of comparisons of different values with equal hashes in one call: 1,000 such integers, or 10 ms."""
CLASS_COMPARISON = 50
"""Cost of comparing two models or dataclasses, in comparisons of numbers. It runs Python code."""

Validate = Callable[[Any], Any]


def with_hash_counters(schema: Any) -> tuple[Any, bool, bool]:
    """Returns the core schema with counting sets and mappings, and whether it has any, and any inside a class."""
    found: list[bool] = []
    return _wrap_members(schema, False, found), bool(found), any(found)


def within_budget(validate: Validate) -> Validate:
    """Returns the validator with a new budget for each call. Its schema comes from `with_hash_counters`."""

    def validate_with_budget(value: Any) -> Any:
        # A tool's own validator may call another tool, which enters here again.
        outer = _STATE.open, _STATE.left
        _STATE.open, _STATE.left = [], COMPARISONS_LIMIT
        try:
            return validate(value)
        finally:
            _STATE.open, _STATE.left = outer

    return validate_with_budget


class _BuildState(threading.local):
    """The sets and mappings that this thread is building, innermost last, and the remaining budget."""

    def __init__(self) -> None:
        self.open: list[_Members] = []
        self.left = 0


class _Members:
    """The members of one set or mapping by hash."""

    __slots__ = ("first", "others")

    def __init__(self) -> None:
        self.first: dict[int, Any] = {}
        self.others: dict[int, list[Any]] = {}


class _TooManyEqual(Exception):
    """The budget is used up. This is not a ValueError, so that pydantic stops at once."""


_STATE = _BuildState()

_MAPPINGS = frozenset({"dict", "ordered-dict", "frozendict", "counter"})
_SAFE_KEYS = frozenset({"any", "str", "bytes", "literal", "enum", "bool", "none"})
"""Types whose hashes are secret or few. Keys of type any are not converted, so their mapping already exists."""
_SAFE_MEMBERS = _SAFE_KEYS - {"any"}


def _wrap_members(schema: dict[str, Any], in_class: bool, found: list[bool]) -> Any:
    kind = schema.get("type")
    below = with_children(schema, lambda child: _wrap_members(child, in_class or kind in CLASSES, found))
    if kind == "union":
        return {**below, "choices": list(map(with_label, schema["choices"], below["choices"]))}
    if kind in ("set", "frozenset"):
        members, safe = "items_schema", _SAFE_MEMBERS
    elif kind in _MAPPINGS:
        members, safe = "keys_schema", _SAFE_KEYS
    else:
        return below
    inner = below.get(members, {"type": "any"})
    if inner["type"] in safe:
        return below
    found.append(in_class)
    counted = core_schema.no_info_after_validator_function(_count_member, cast("core_schema.CoreSchema", inner))
    return core_schema.no_info_wrap_validator_function(
        _validate_members, cast("core_schema.CoreSchema", {**below, members: counted})
    )


def _validate_members(value: Any, validate: Validate) -> Any:
    _STATE.open.append(_Members())
    try:
        return validate(value)
    except _TooManyEqual:
        raise PydanticCustomError(
            "equal_hashes", "too many of its members have the same hash, as multiples of 2**61 - 1 have: give fewer"
        ) from None
    finally:
        _STATE.open.pop()


def _count_member(member: Any) -> Any:
    """Counts the comparisons that the member costs, and returns the member."""
    members = _STATE.open[-1]
    try:
        hashed = hash(member)
    except TypeError:
        # pydantic reports that it cannot be a member.
        return member
    first = members.first.setdefault(hashed, member)
    if first is not member and first != member:
        _compare(member, members.others.setdefault(hashed, []))
    return member


def _compare(member: Any, others: list[Any]) -> None:
    _STATE.left -= (1 + len(others)) * _weight(member)
    if _STATE.left < 0:
        raise _TooManyEqual
    if member not in others:
        others.append(member)


def _weight(member: Any) -> int:
    """Returns the cost of a comparison with this member, in comparisons of two numbers."""
    if isinstance(member, tuple | frozenset):
        return 1 + sum(map(_weight, cast("tuple[Any, ...]", member)))
    return 1 if type(member).__eq__.__class__ is _BUILT_IN else CLASS_COMPARISON


_BUILT_IN = type(int.__eq__)
