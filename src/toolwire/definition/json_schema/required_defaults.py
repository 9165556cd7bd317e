"""Defaults of required fields: a server that publishes both takes calls without the field."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from toolwire.definition.hostile.schema_walk import objects_in
from toolwire.definition.words import limit_references, path_text, resolve

Fits = Callable[[Any, Any], bool]
"""True if a value, the second argument, fits a schema, the first."""

_STEPS_LIMIT = 10_000
"""Maximum number of values looked at in one call. Fields beyond it are not filled in."""


class RequiredDefaults:
    """The defaults of the required fields of one schema. Defaults that do not fit their own schema are left out."""

    def __init__(self, schema: dict[str, Any], fits: Fits) -> None:
        self._schema = schema
        self._fits = fits
        self._by_node: dict[int, dict[str, Any]] = {}
        """The defaults of each object schema, by its identity. The whole schema keeps the objects alive."""
        self._has_any = any(map(_defaults_of, objects_in(schema)))

    def of_root(self) -> dict[str, Any]:
        """Returns the defaults of the root's own properties."""
        return self._of(self._schema)

    @limit_references
    def fill_in(self, values: dict[str, Any]) -> list[str]:
        """Fills in the fields that are missing, at every depth, and returns their paths.

        `values` is changed in place. Objects of a union with several alternatives are left as they are.
        """
        filled: list[str] = []
        waiting: list[tuple[Any, dict[str, Any], tuple[str | int, ...]]] = [(values, self._schema, ())]
        for _ in range(_STEPS_LIMIT if self._has_any else 0):
            if not waiting:
                break
            value, node, place = waiting.pop()
            if isinstance(value, dict):
                fields = cast("dict[str, Any]", value)
                missing = {name: default for name, default in self._of(node).items() if name not in fields}
                fields |= copy.deepcopy(missing)
                filled += [path_text((*place, name)) for name in missing]
            waiting.extend(
                (item, below, (*place, step)) for step, item, below in _containers_below(value, node, self._schema)
            )
        return filled

    def _of(self, node: dict[str, Any]) -> dict[str, Any]:
        found = self._by_node.get(id(node))
        if found is None:
            properties = node.get("properties", {})
            found = {name: one for name, one in _defaults_of(node).items() if self._fits(properties[name], one)}
            self._by_node[id(node)] = found
        return found


def _defaults_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of an object's required properties as its schema has them."""
    properties, required = node.get("properties"), node.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    nodes = {str(name): cast("dict[str, Any]", properties).get(str(name)) for name in cast("list[Any]", required)}
    return {name: one["default"] for name, one in nodes.items() if isinstance(one, dict) and "default" in one}


def _containers_below(
    value: Any, node: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[tuple[str | int, Any, dict[str, Any]]]:
    """Yields the members that are objects or lists, with their schemas."""
    if isinstance(value, dict):
        properties = cast("Mapping[str, Any]", node.get("properties") or {})
        found = [(name, item, properties.get(name)) for name, item in cast("dict[str, Any]", value).items()]
    else:
        found = [(place, item, node.get("items")) for place, item in enumerate(cast("list[Any]", value))]
    for step, item, schema in found:
        if isinstance(item, dict | list) and isinstance(schema, dict):
            yield step, cast("Any", item), _only_option(schema, root)


def _only_option(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema without references, and `X | null` as X."""
    node = resolve(schema, root)
    listed = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
    options = [option for option in (resolve(one, root) for one in listed) if option.get("type") != "null"]
    return options[0] if len(options) == 1 else node
