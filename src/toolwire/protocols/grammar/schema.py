"""Operations on schemas that a grammar needs: finding recursion and merging two schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolwire.definition.words import resolve


def recursive_references(root: Mapping[str, Any]) -> frozenset[str]:
    """Returns the references to schemas that contain themselves, directly or through other references."""
    reached: dict[str, set[str]] = {}
    waiting = set(_references(root))
    while waiting:
        reference = waiting.pop()
        reached[reference] = set(_references(resolve({"$ref": reference}, root)))
        waiting |= reached[reference] - reached.keys()
    return frozenset(reference for reference in reached if _is_reached(reference, reached))


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a schema for the values that both schemas accept.

    The merge is exact for keywords that a grammar supports. For all others, the second schema wins.
    """
    found = {**first, **second}
    for key in first.keys() & second.keys():
        one, other = first[key], second[key]
        if key == "properties":
            shared = {name: merged(one[name], other[name]) for name in one if name in other}
            found[key] = {**one, **other, **shared}
        elif key == "required":
            found[key] = [*one, *(name for name in other if name not in one)]
        elif key == "enum":
            found[key] = [value for value in one if value in other]
        elif key in _LARGER:
            found[key] = max(one, other)
        elif key in _SMALLER:
            found[key] = min(one, other)
        elif key == "type":
            found[key] = _common_type(one, other)
    return found


_LARGER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})


def _common_type(one: Any, other: Any) -> Any:
    second = cast("list[Any]", other) if isinstance(other, list) else [other]
    common = [kind for kind in (cast("list[Any]", one) if isinstance(one, list) else [one]) if kind in second]
    if not common:
        return cast("Any", other)
    return common[0] if len(common) == 1 else common


def _is_reached(reference: str, reached: Mapping[str, set[str]]) -> bool:
    seen: set[str] = set()
    waiting = set(reached[reference])
    while waiting:
        found = waiting.pop()
        if found == reference:
            return True
        seen.add(found)
        waiting |= reached[found] - seen
    return False


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _references(item)
    if not isinstance(schema, dict):
        return
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "$ref" and isinstance(value, str):
            yield value
        else:
            yield from _references(value)
