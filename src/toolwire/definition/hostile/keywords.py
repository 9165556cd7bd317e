"""JSON Schema keywords with bounded cost: jsonschema's own with a step counter, or replacements.

A `SchemaRun` is one validation. Keyword functions find it in a context variable, since jsonschema passes on no data
of ours.
Error messages use `repr` of values. Values and schemas are therefore made `brief`, so that their `repr` is short.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from jsonschema import _keywords
from jsonschema import validators as _validators
from jsonschema.exceptions import ValidationError

from toolwire.definition.hostile.patterns import Patterns
from toolwire.definition.words import SHOWN_LIMIT, short_repr
from toolwire.vocabulary.texts.counting import count_of

STEPS_LIMIT = 20_000
"""Maximum number of schemas and keywords applied in one validation: 10,000 plain values, or about 0.3 s at most."""

DEPTH_LIMIT = 128
"""Maximum nesting of keywords in one validation: 64 levels of a value, with a reference at each."""

_BATCH = 16
"""Number of members of a keyword or value that are examined in the time of one step."""

_CHARACTER_STATES = 5_000
"""Product of characters and pattern states that the engine searches in the time of one step."""

_ORIGINAL: Any = _keywords
_VALIDATORS: Any = _validators
"""jsonschema's own functions, which have no type hints."""

_SHOWN_BITS = 256
"""Bits of the largest integer that an error message shows: 78 digits."""

Keyword = Callable[[Any, Any, Any, Any], "Iterator[ValidationError] | None"]


class Exceeded(Exception):
    """A validation took more steps, or went deeper, than is allowed."""


@dataclass(slots=True, kw_only=True)
class SchemaRun:
    """The state of one validation."""

    patterns: Patterns
    steps_limit: int = STEPS_LIMIT
    depth_limit: int = DEPTH_LIMIT
    steps: int = 0
    depth: int = 0
    choices: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    """Canonical texts of the values that the schema lists, by the identity of their keyword.

    They are kept between runs.
    """

    texts: dict[int, str] = field(default_factory=dict[int, str])
    """Canonical texts of lists, objects, long texts and large integers in the arguments, by their identity."""

    def take(self, steps: int) -> None:
        """Counts steps.

        Raises:
            Exceeded: The step limit is exceeded.
        """
        self.steps += steps
        if self.steps > self.steps_limit:
            raise Exceeded

    def is_among(self, key: Any, values: Iterable[Any], instance: Any) -> bool:
        """True if the value is one of `values`. `key` is the part of the schema that holds them."""
        texts = self.choices.get(id(key))
        if texts is None:
            texts = self.choices[id(key)] = frozenset(map(_canonical, values))
        return self.canonical(instance) in texts

    def canonical(self, instance: Any) -> str:
        """Returns a text that is equal for equal JSON values. It is made once for each value that may be large."""
        if not isinstance(instance, list | dict | BriefText | BriefInteger):
            return _canonical(instance)
        text = self.texts.get(id(cast("object", instance)))
        if text is None:
            self.take(1 + _members(instance) // _BATCH)
            text = self.texts[id(cast("object", instance))] = _canonical(instance)
        return text

    def matches(self, pattern: str, text: str) -> bool:
        """True if the text contains a match, or if the pattern is not checked here."""
        found = self.patterns.checked.get(pattern)
        if found is None:
            return True
        self.take(len(text) * found.states // _CHARACTER_STATES)
        return found.found_in(text)


RUN: ContextVar[SchemaRun] = ContextVar("run")
"""The current validation."""


@cache
def validator_with_counter(draft: Any) -> Any:
    """Returns the draft's validator class with every keyword counted."""
    keywords = cast("dict[str, Keyword]", draft.VALIDATORS)
    made = _VALIDATORS.extend(
        draft, {name: _with_step_counter(_REPLACED.get(function, function)) for name, function in keywords.items()}
    )
    made.evolve = _evolve
    return made


class BriefList(list[Any]):
    """A list with a short `repr`."""

    __slots__ = ("text",)

    def __repr__(self) -> str:
        return _brief_text(self, list)


class BriefDict(dict[str, Any]):
    """A dict with a short `repr`."""

    __slots__ = ("text",)

    def __repr__(self) -> str:
        return _brief_text(self, dict)


class BriefText(str):
    """A long text with a short `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return short_repr(str(self[: 2 * SHOWN_LIMIT]))


class BriefInteger(int):
    """A large integer with a short `repr`: 4,000 digits take 0.1 ms to write."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<an integer of {self.bit_length():,} bits>"


def brief(value: Any) -> Any:
    """Returns a copy of a JSON value with a short `repr` at every depth, names of properties included."""
    if isinstance(value, str):
        return BriefText(value) if len(value) > SHOWN_LIMIT else value
    # Most numbers and empty values need no copy: a megabyte of JSON can hold 300,000 of them.
    if not value or isinstance(value, float):
        return value
    if isinstance(value, int):
        return BriefInteger(value) if value.bit_length() > _SHOWN_BITS else value
    if isinstance(value, list | tuple):
        return BriefList([brief(item) for item in cast("Sequence[Any]", value)])
    return BriefDict({brief(key): brief(item) for key, item in cast("Mapping[str, Any]", value).items()})


def _brief_text(value: Any, kind: type[list[Any]] | type[dict[str, Any]]) -> str:
    # Cached, because a union shows the same value once for each of its schemas.
    try:
        return cast("str", value.text)
    except AttributeError:
        value.text = text = short_repr(kind(value))
        return text


def _evolve(self: Any, **changes: Any) -> Any:
    """Returns the same validator for another schema.

    jsonschema's own method would switch to the unbounded class for an inner `$schema`.
    """
    RUN.get().take(1)
    return type(self)(
        changes.get("schema", self.schema),
        registry=self._registry,
        _resolver=changes.get("_resolver", self._resolver),
    )


def _with_step_counter(function: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        run = RUN.get()
        run.take(1 + (_member_count(value) + _member_count(instance)) // _BATCH)
        run.depth += 1
        if run.depth > run.depth_limit:
            raise Exceeded
        try:
            yield from function(validator, value, instance, schema) or ()
        finally:
            run.depth -= 1

    return check


def _member_count(value: Any) -> int:
    return len(cast("list[Any]", value)) if isinstance(value, list | dict) else 0


def _members(value: Any) -> int:
    """Counts members iteratively, because the depth limits of a schema do not apply to a host's own calls."""
    found, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        found += 1
        if isinstance(item, dict):
            waiting.extend(cast("dict[str, Any]", item).values())
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
    return found


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001  # jsonschema's form
    if isinstance(instance, str) and not RUN.get().matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    run = RUN.get()
    if not isinstance(instance, dict):
        return
    for pattern, inner in patterns.items():
        # A pattern that is not checked here matches an unknown set of names.
        for key, value in cast("dict[str, Any]", instance).items() if pattern in run.patterns.checked else ():
            run.take(1)
            if run.matches(pattern, key):
                yield from validator.descend(value, inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, more: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    run, properties = RUN.get(), schema.get("properties", {})
    patterns = list(schema.get("patternProperties", {}))
    run.take(_member_count(instance) * len(patterns) // _BATCH)
    names = [
        name
        for name in cast("dict[str, Any]", instance)
        if name not in properties and not any(run.matches(pattern, name) for pattern in patterns)
    ]
    if more is False:
        if names:
            yield ValidationError(f"{count_of(len(names), 'property is', 'properties are')} not allowed")
        return
    for name in names:
        yield from validator.descend(instance[name], more, path=name)


def _required_properties(validator: Any, required: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    """Gives one error for all names, because its reader looks for each of them."""
    if isinstance(instance, dict) and any(name not in instance for name in required):
        yield ValidationError("a required property is missing")


def _enum(validator: Any, values: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if not RUN.get().is_among(values, values, instance):
        yield ValidationError(f"{instance!r} is not one of {values!r}")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    # The schema serves as the key, because the value may be a number, whose identity is meaningless.
    if not RUN.get().is_among(schema, [value], instance):
        yield ValidationError(f"{value!r} was expected")


def _dependent_required(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    RUN.get().take(sum(map(len, names.values())) // _BATCH)
    yield from _ORIGINAL.dependentRequired(validator, names, instance, schema) or ()


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    try:
        yield from _ORIGINAL.multipleOf(validator, step, instance, schema) or ()
    except OverflowError:
        # A huge integer and a float, or infinity: neither is ever a multiple of the other.
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _unique_items(validator: Any, is_unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if not is_unique or not isinstance(instance, list):
        return
    run, items = RUN.get(), cast("list[Any]", instance)
    run.take(len(items) // _BATCH)
    if len({run.canonical(item) for item in items}) < len(items):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _canonical(item: Any) -> str:
    """Returns a text that is equal for equal JSON values: `1` and `1.0` are equal, `1` and `true` are not."""
    return json.dumps(_whole(item), sort_keys=True, ensure_ascii=False)


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _bound_unevaluated(original: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, dict) and RUN.get().patterns.are_for_names:
            # jsonschema would search the names with Python's engine, whose time is unbounded.
            return
        # jsonschema looks up each member in a list.
        RUN.get().take(_member_count(instance) ** 2 // 1_000)
        yield from original(validator, value, instance, schema) or ()

    return check


_REPLACED: dict[Any, Keyword] = {
    _ORIGINAL.pattern: _pattern,
    _ORIGINAL.patternProperties: _pattern_properties,
    _ORIGINAL.additionalProperties: _additional_properties,
    _ORIGINAL.required: _required_properties,
    _ORIGINAL.multipleOf: _multiple_of,
    _ORIGINAL.uniqueItems: _unique_items,
    _ORIGINAL.enum: _enum,
    _ORIGINAL.const: _const,
    _ORIGINAL.dependentRequired: _dependent_required,
    _ORIGINAL.unevaluatedItems: _bound_unevaluated(_ORIGINAL.unevaluatedItems),
    _ORIGINAL.unevaluatedProperties: _bound_unevaluated(_ORIGINAL.unevaluatedProperties),
}
