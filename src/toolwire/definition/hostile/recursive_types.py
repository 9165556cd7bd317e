"""Bounded validation of recursive types: each call has a limited number of steps in them.

A union tries each of its members. In a recursive type, each member tries the union below it again: twenty levels take a
million steps, and each step can leave errors. The core schema is rewritten so that unions of such types, and single
values of them, count their steps. Each call has one budget of steps and one of errors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

from pydantic_core import ValidationError, core_schema

from toolwire.definition.hostile.core_tree import CLASSES, SEVERAL, children, with_children, with_label

STEPS_LIMIT = 150_000
"""Maximum number of values of recursive types in one call: half a second of processor time.

A megabyte holds 50,000 small values.
"""
ERRORS_LIMIT = 200_000
"""Maximum number of errors from recursive types in one call, counted at each level: 40 MB, or a fifth of a second."""

Validate = Callable[[Any], Any]


class TooManySteps(Exception):
    """A budget is used up. This is not a ValueError, so that pydantic stops at once."""


def with_step_counters(schema: Any) -> tuple[Any, bool, bool]:
    """Returns the core schema with counting recursive types, True if it has any, and True if one is inside a class."""
    recursive = _recursive(schema)
    if not recursive:
        return schema, False, False
    found: list[bool] = []
    # A value outside of all definitions is validated only once.
    inner = [_wrap_references(each, recursive, False, found) for each in schema["definitions"]]
    return {**schema, "definitions": inner}, bool(found), any(found)


def within_steps(validate: Validate) -> Validate:
    """Returns the validator with new budgets for each call. Its schema comes from `with_step_counters`."""

    def validate_with_budget(value: Any) -> Any:
        # A tool's own validator may call another tool, which enters here again.
        outer = _STATE.steps, _STATE.errors
        _STATE.steps, _STATE.errors = STEPS_LIMIT, ERRORS_LIMIT
        try:
            return validate(value)
        finally:
            _STATE.steps, _STATE.errors = outer

    return validate_with_budget


class _CallBudget(threading.local):
    """The remaining steps and errors of the call in this thread."""

    def __init__(self) -> None:
        self.steps = 0
        self.errors = 0


_STATE = _CallBudget()


def _step(value: Any, validate: Validate) -> Any:
    _STATE.steps -= 1
    if _STATE.steps < 0:
        raise TooManySteps
    try:
        return validate(value)
    except ValidationError as error:
        _STATE.errors -= error.error_count()
        if _STATE.errors < 0:
            raise TooManySteps from None
        raise


def _wrap_references(schema: dict[str, Any], recursive: frozenset[str], in_class: bool, found: list[bool]) -> Any:
    kind = schema.get("type")
    if kind == "definition-ref":
        return _wrap_in_counter(schema, in_class, found) if schema["schema_ref"] in recursive else schema
    inside = in_class or kind in CLASSES
    # A list stops at its first error and tries each item once. The labels in a union's errors are the names of its
    # choices, so the union itself is wrapped and its choices are not.
    is_left = kind == "union" or kind in SEVERAL
    below = with_children(
        schema,
        lambda child: child if is_left and _is_reference(child) else _wrap_references(child, recursive, inside, found),
    )
    if kind != "union":
        return below
    below = {**below, "choices": list(map(with_label, schema["choices"], below["choices"]))}
    is_recursive = any(_is_reference(child) and child["schema_ref"] in recursive for child in children(schema))
    return _wrap_in_counter(below, in_class, found) if is_recursive else below


def _is_reference(schema: dict[str, Any]) -> bool:
    return schema["type"] == "definition-ref"


def _wrap_in_counter(schema: dict[str, Any], in_class: bool, found: list[bool]) -> Any:
    found.append(in_class)
    inner = {key: value for key, value in schema.items() if key != "ref"}
    wrapped: Any = core_schema.no_info_wrap_validator_function(_step, cast("core_schema.CoreSchema", inner))
    return {**wrapped, "ref": schema["ref"]} if "ref" in schema else wrapped


def _recursive(schema: Any) -> frozenset[str]:
    """Returns the names of the recursive definitions."""
    leads_to = {found["ref"]: frozenset(_references(found)) for found in schema.get("definitions", ())}
    return frozenset(name for name in leads_to if name in _reachable_from(name, leads_to))


def _references(schema: dict[str, Any]) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if found.get("type") == "definition-ref":
            yield found["schema_ref"]
        waiting.extend(children(found))


def _reachable_from(name: str, leads_to: dict[str, frozenset[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = leads_to.get(waiting.pop(), frozenset[str]()) - reached
        reached |= new
        waiting.extend(new)
    return reached
