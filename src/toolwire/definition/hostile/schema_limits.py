"""Limits on a JSON schema, checked before any code recurses into it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolwire.definition.words import path_text, resolve_pointer
from toolwire.vocabulary.errors import DefinitionError

SCHEMA_NODES_LIMIT = 20_000
"""Maximum number of JSON values in one schema.

The largest among a thousand tools of public services has under 3,000.
"""

SCHEMA_LEVELS_LIMIT = 60
"""Maximum nesting of objects and arrays in one schema. A digest allows 64 levels, and adds one of its own."""

SCHEMA_TEXT_LIMIT = 1_000_000
"""Maximum number of characters of all texts in one schema. A prompt of that size fits no model."""


def check_limits(schema: object, label: str, *, place: str = "schema") -> None:
    """Refuses a schema that is too large, too deep, or not JSON.

    Raises:
        DefinitionError: The schema exceeds a limit, a key is not a text, or a number does not fit a double.
    """
    nodes = characters = 0
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(schema, (place,))]
    while waiting:
        value, path = waiting.pop()
        nodes += 1
        characters += len(value) if isinstance(value, str) else 0
        size = len(cast("list[Any]", value)) if isinstance(value, Mapping | list | tuple) else 0
        if nodes + len(waiting) + size > SCHEMA_NODES_LIMIT:
            raise DefinitionError(
                f"{label}: the {place} holds more than {SCHEMA_NODES_LIMIT:,} values: leave out the parts that no "
                "call needs"
            )
        if isinstance(value, Mapping):
            keyed = cast("Mapping[object, Any]", value)
            characters += _key_characters(keyed, path, label)
            waiting.extend((inner, (*path, cast("str", key))) for key, inner in keyed.items())
        elif isinstance(value, list | tuple):
            waiting.extend((inner, (*path, index)) for index, inner in enumerate(cast("list[Any]", value)))
        elif isinstance(value, int | float):
            _check_number(value, path, label)
        if len(path) > SCHEMA_LEVELS_LIMIT + 1:
            raise DefinitionError(
                f"{label}: the {place} is nested deeper than {SCHEMA_LEVELS_LIMIT} levels, at {_short_path(path)}: "
                "move inner schemas to '$defs' and refer to them"
            )
        if characters > SCHEMA_TEXT_LIMIT:
            raise DefinitionError(
                f"{label}: the texts of the {place} have more than {SCHEMA_TEXT_LIMIT:,} characters: shorten them"
            )


def check_loops(schema: Mapping[str, Any], label: str) -> None:
    """Refuses a schema that applies itself to the same value, because its validation would never end.

    Raises:
        DefinitionError: A reference closes such a loop. The message names it.
    """
    ended: set[int] = set()
    for reference in dict.fromkeys(references(schema)):
        start: Any = {"$ref": reference}
        # Each entry is a schema in progress, with the schemas that it still applies to the same value.
        open_nodes: list[tuple[int, Iterator[Any]]] = [(id(start), iter([_target(start, schema)]))]
        on_the_way = {id(start)}
        while open_nodes:
            node = next(open_nodes[-1][1], None)
            if node is None:
                done, _ = open_nodes.pop()
                on_the_way.discard(done)
                ended.add(done)
            elif id(node) in on_the_way:
                raise DefinitionError(
                    f"{label}: the schema's reference {reference!r} refers to itself, so that a check of a value "
                    "would never end: put it under 'properties' or 'items'"
                )
            elif id(node) not in ended:
                on_the_way.add(id(node))
                open_nodes.append((id(node), _schemas_of_same_value(node, schema)))


def references(schema: Any) -> Iterator[str]:
    """Yields every `$ref` that is a reference, and not a property of that name or a part of a default or example."""
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from references(item)
    if not isinstance(schema, dict):
        return
    for key, value in cast("dict[str, Any]", schema).items():
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            yield value
        elif key in _NAMED and isinstance(value, dict):
            for named in cast("dict[str, Any]", value).values():
                yield from references(named)
        elif key not in _VALUES:
            yield from references(value)


_VALUES = frozenset({"enum", "const", "default", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "extends")


def _schemas_of_same_value(node: Any, root: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the schemas that a schema applies to its own value."""
    if not isinstance(node, dict):
        return
    found = cast("dict[str, Any]", node)
    if isinstance(found.get("$ref"), str):
        yield _target(found, root)
    for key in _IN_PLACE:
        inner: Any = found.get(key)
        if isinstance(inner, list):
            yield from cast("list[Any]", inner)
        elif isinstance(inner, dict):
            named = cast("dict[str, Any]", inner)
            yield from named.values() if key in ("dependentSchemas", "dependencies") else (named,)


def _target(node: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Returns the schema that a reference names, without following that schema's own references."""
    return resolve_pointer(str(node["$ref"]), root)


def _key_characters(keyed: Mapping[object, Any], path: tuple[str | int, ...], label: str) -> int:
    for key in keyed:
        if not isinstance(key, str):
            raise DefinitionError(f"{label}: {_short_path(path)} has the key {key!r:.80}: keys of a schema are strings")
    return sum(len(key) for key in cast("Mapping[str, Any]", keyed))


def _check_number(value: float, path: tuple[str | int, ...], label: str) -> None:
    if value != value:
        raise DefinitionError(f"{label}: {_short_path(path)} is NaN, which JSON lacks: write a number, or leave it out")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise DefinitionError(f"{label}: {_short_path(path)} is too large a number for JSON: write one below 1.8e308")


def _short_path(path: tuple[str | int, ...]) -> str:
    text = path_text(path)
    return text if len(text) <= _PATH_LIMIT else f"{text[:_PATH_LIMIT]}..."


_PATH_LIMIT = 200
"""Maximum length in characters of a place in a message."""
