"""Nulls of optional fields that take none, inside the objects and lists of one argument."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from toolwire.definition.words import flatten_schema, limit_references

STEPS_LIMIT = 100_000
"""Maximum number of fields, items and schemas looked at for one argument. Nulls beyond it stay and are refused."""

FORMS_LIMIT = 64
"""Maximum number of schemas that one schema combines. With more, nothing is known of its fields."""

_INDEX = re.compile(r"\[\d+\]")

_WRONG = ""
"""Stands for all places at or under a wrong one."""


@limit_references
def drop_untaken_nulls(value: Any, schema: Any, root: Mapping[str, Any], *, name: str, wrong: Collection[str]) -> bool:
    """Deletes the nulls of declared, optional fields that take none, and returns whether there were any.

    `name` is the argument's name. Only nulls at or under the places of `wrong` are deleted, and all items of one list
    count as one place: a message about nulls lists only the first ones. A key of a map is data and stays.
    """
    places = frozenset(_INDEX.sub("[]", place) for place in wrong)
    known, steps, is_changed = _Forms(root), STEPS_LIMIT, False
    start = _place(places, name, name)
    waiting: list[tuple[Any, list[Any], str]] = [] if start is None else [(value, [schema], start)]
    while waiting:
        holder, schemas, place = waiting.pop()
        nodes = known.of(schemas)
        # Taken off before the work: one list of many items is beyond the limit by itself.
        steps -= len(nodes) * (1 + len(holder))
        if steps < 0:
            break
        if type(holder) is list:
            items = cast("list[Any]", holder)
            below = _place(places, place, f"{place}[]")
            if below is not None:
                waiting.extend((item, _item(nodes, at), below) for at, item in enumerate(items) if _is_filled(item))
            continue
        fields = cast("dict[str, Any]", holder)
        for key, item in list(fields.items()):
            below = _place(places, place, f"{place}.{key}")
            if item is None and below == _WRONG and known.takes_no_null(key, nodes):
                del fields[key]
                is_changed = True
            elif below is not None and _is_filled(item):
                waiting.append((item, _field_schemas(nodes, key), below))
    return is_changed


def _place(places: frozenset[str], above: str, place: str) -> str | None:
    """Returns the place without its indexes, `_WRONG`, or None if no place of `places` is there or below."""
    if above == _WRONG:
        return _WRONG
    plain = _INDEX.sub("[]", place)
    if plain in places:
        return _WRONG
    return plain if any(wrong.startswith(plain) for wrong in places) else None


def _is_filled(item: Any) -> bool:
    return isinstance(item, (list, dict)) and bool(cast("list[Any] | dict[str, Any]", item))


def takes_null(node: Mapping[str, Any]) -> bool:
    """True if null fits this schema, which combines no others."""
    kinds = node.get("type")
    if "const" in node or "enum" in node:
        return None in node.get("enum", [node.get("const", False)])
    return kinds is None or kinds == "null" or (isinstance(kinds, list) and "null" in kinds)


class _Forms:
    """The schemas without references that a schema stands for, each found once for one walk."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._found: dict[int, tuple[Any, list[dict[str, Any]]]] = {}

    def of(self, schemas: list[Any]) -> list[dict[str, Any]]:
        """Returns the alternatives of all these schemas, each once: those of a type that holds itself would double
        with each level.
        """
        return list({id(node): node for schema in schemas for node in self._of_one(schema)}.values())

    def takes_no_null(self, key: str, nodes: list[dict[str, Any]]) -> bool:
        """True if the key is a field of an object, no form requires it, and null fits none of its schemas."""
        declared = [node["properties"][key] for node in nodes if key in node.get("properties", ())]
        if not declared or any(key in node.get("required", ()) for node in nodes):
            return False
        return not any(takes_null(node) for node in self.of(declared))

    def _of_one(self, schema: Any) -> list[dict[str, Any]]:
        kept = self._found.get(id(schema))
        if kept is None:
            # The schema is kept beside its forms, so that no other object takes its identity.
            kept = self._found[id(schema)] = (schema, self._expand_options(schema))
        return kept[1]

    def _expand_options(self, schema: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        waiting = [schema]
        for _ in range(FORMS_LIMIT):
            node = flatten_schema(waiting.pop(), self._root)
            options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
            waiting.extend(options)
            if not options or "properties" in node:
                found.append(node)
            if not waiting:
                return found
        return [{}]


def _item(nodes: list[dict[str, Any]], at: int) -> list[Any]:
    """Returns the schemas of the item at this index."""
    first: list[list[Any]] = [node.get("prefixItems", []) for node in nodes]
    return [
        places[at] if at < len(places) else node["items"]
        for node, places in zip(nodes, first, strict=True)
        if at < len(places) or "items" in node
    ]


def _field_schemas(nodes: list[dict[str, Any]], key: str) -> list[Any]:
    """Returns the schemas of the value under this key: of the field, or of a map's values."""
    declared = [node["properties"][key] for node in nodes if key in node.get("properties", ())]
    return declared or [node["additionalProperties"] for node in nodes if "additionalProperties" in node]
