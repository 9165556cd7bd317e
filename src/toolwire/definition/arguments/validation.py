"""Validation by a pydantic core schema with bounded cost, including the cost of its errors.

pydantic makes an error of up to a kilobyte for each wrong value: 250,000 wrong items cost 237 MB. Arguments are
therefore validated up to the first error in each list, set and mapping. If small arguments are wrong, they are
validated again to the end, so that a complaint is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, cast

from pydantic_core import SchemaValidator, ValidationError

from toolwire.definition.arguments.problems import READ_LIMIT, TOO_LARGE, GivenError
from toolwire.definition.hostile.core_tree import CLASSES, SEVERAL, with_children
from toolwire.definition.hostile.equal_hashes import with_hash_counters, within_budget
from toolwire.definition.hostile.recursive_types import TooManySteps, with_step_counters, within_steps

SMALL_VALUES = 2_000
"""Maximum number of values in wrong arguments that are validated to the end. Each value can cause several errors."""
ERRORS_LIMIT = 50_000
"""Maximum number of pydantic's errors that are converted, about 40 MB. One object can have more unknown names."""


class Errors(NamedTuple):
    """The errors of one validation."""

    read: list[GivenError]
    """The first `READ_LIMIT` errors."""
    more: int
    """The number of pydantic's other errors."""
    is_partial: bool
    """True if pydantic stopped before it had found all errors."""


class Validation:
    """Validates by one core schema."""

    def __init__(self, schema: Any, *, is_rebuilt: bool = False) -> None:
        """`is_rebuilt` is True if schemas inside classes were already rewritten.

        Raises:
            SchemaError: pydantic cannot build the schema.
        """
        schema, self._has_sets, sets_in_classes = with_hash_counters(schema)
        schema, self._is_recursive, steps_in_classes = with_step_counters(schema)
        self._complete = schema
        self._is_rebuilt = is_rebuilt or sets_in_classes or steps_in_classes
        schema, self._has_several, several_in_classes = _with_early_stop(schema)
        self.validate = self._built(schema, is_rebuilt=self._is_rebuilt or several_in_classes)
        """Returns the validated value. Raises ValidationError or TooManySteps, which `errors` converts."""

    def errors(self, error: ValidationError | TooManySteps, given: Mapping[str, Any]) -> Errors:
        """Returns the errors of a value that `validate` refused."""
        if isinstance(error, TooManySteps):
            return Errors([_TOO_MANY_STEPS], 0, False)
        is_partial = self._has_several and not _is_small(given)
        if self._has_several and not is_partial:
            try:
                self._validate_all(given)
            except ValidationError as complete:
                error = complete
            except TooManySteps:
                is_partial = True
        count = error.error_count()
        if count > ERRORS_LIMIT:
            message = f"The arguments are wrong in {count:,} places: give less in one call."
            return Errors([_whole(message)], 0, False)
        made = cast("list[GivenError]", error.errors(include_url=False, include_context=False))
        return Errors(made[:READ_LIMIT], max(0, count - READ_LIMIT), is_partial)

    @cached_property
    def _validate_all(self) -> Callable[[Any], Any]:
        """The validator that continues after an error. Few tools ever need it."""
        return self._built(self._complete, is_rebuilt=self._is_rebuilt)

    def _built(self, schema: Any, *, is_rebuilt: bool) -> Callable[[Any], Any]:
        # A class's prebuilt validator would ignore the rewriting.
        rebuilt = {"_use_prebuilt": False} if is_rebuilt else {}
        validate = SchemaValidator(schema, None, **rebuilt).validate_python
        validate = within_budget(validate) if self._has_sets else validate
        return within_steps(validate) if self._is_recursive else validate


def _with_early_stop(schema: Any) -> tuple[Any, bool, bool]:
    """Returns the core schema that stops at errors, True if it has such places, and True if one is inside a class."""
    found: list[bool] = []

    def walk(node: dict[str, Any], in_class: bool) -> Any:
        kind = node.get("type")
        below = with_children(node, lambda child: walk(child, in_class or kind in CLASSES))
        if kind not in SEVERAL:
            return below
        found.append(in_class)
        return {**below, "fail_fast": True}

    return walk(schema, False), bool(found), any(found)


def _is_small(given: object) -> bool:
    waiting, count = [given], 0
    while waiting:
        value = waiting.pop()
        inner: Any = ()
        if isinstance(value, Mapping):
            inner = cast("Mapping[Any, Any]", value).values()
        elif isinstance(value, list | tuple | set | frozenset):
            inner = cast("list[Any]", value)
        count += len(inner)
        if count > SMALL_VALUES:
            return False
        waiting.extend(inner)
    return True


def _whole(message: str) -> GivenError:
    return GivenError(type=TOO_LARGE, loc=(), msg=message, input=None)


_TOO_MANY_STEPS = _whole("The arguments take too many steps to check: give fewer levels or fewer values in one call.")
