"""Names for objects that a schema uses in several places or recursively, so that they are described once."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.words import resolve

_NODES_LIMIT = 5_000
"""Maximum number of schema nodes that are visited. The text about a larger schema is cut anyway."""

_WITHIN = ("items", "additionalProperties", "contains", "not")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "patternProperties")
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTypes:
    """The named objects of one schema."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The name of each reference, in the order of first use."""

    def name_of(self, schema: Any) -> str:
        """Returns the name of the object that this schema refers to. Empty if it has no name."""
        reference = _reference(schema)
        return self.names.get(reference, "") if reference else ""


NO_NAMES = NamedTypes()


def named_types(root: Mapping[str, Any]) -> NamedTypes:
    """Returns names for the objects that the root's properties use more than once, or recursively."""
    counts: dict[str, int] = {}
    open_nodes = [iter([cast("Any", root)])]
    seen = 0
    while open_nodes and seen < _NODES_LIMIT:
        node = next(open_nodes[-1], None)
        if node is None:
            open_nodes.pop()
            continue
        seen += 1
        reference = _reference(node)
        if reference:
            counts[reference] = counts.get(reference, 0) + 1
            # The inside of an object is walked once. A second use, also from its own inside, makes a name worthwhile.
            if counts[reference] == 1:
                open_nodes.append(_below(resolve(node, root)))
        elif isinstance(node, dict):
            open_nodes.append(_below(cast("dict[str, Any]", node)))
    return NamedTypes(names=_named([key for key, count in counts.items() if count > 1], root))


def _named(references: list[str], root: Mapping[str, Any]) -> dict[str, str]:
    names: dict[str, str] = {}
    for reference in references:
        if not _is_object(resolve({"$ref": reference}, root)):
            continue
        stem = _NO_WORD.sub("_", reference.rpartition("/")[2]).strip("_") or "Arguments"
        if stem[0].isdigit() or keyword.iskeyword(stem) or not stem.isidentifier():
            stem = f"Type_{stem}"
        name, number = stem, 1
        while name in names.values():
            number += 1
            name = f"{stem}_{number}"
        names[reference] = name
    return names


def _is_object(node: Mapping[str, Any]) -> bool:
    return bool(node.get("properties") or node.get("allOf"))


def _reference(schema: Any) -> str:
    reference = cast("dict[str, Any]", schema).get("$ref") if isinstance(schema, dict) else None
    return reference if isinstance(reference, str) else ""


def _below(node: Mapping[str, Any]) -> Iterator[Any]:
    for key in _MAPS:
        inner = cast("Any", node.get(key))
        yield from cast("dict[str, Any]", inner).values() if isinstance(inner, dict) else ()
    for key in _LISTS:
        inner = cast("Any", node.get(key))
        yield from cast("list[Any]", inner) if isinstance(inner, list) else ()
    for key in _WITHIN:
        if isinstance(node.get(key), dict):
            yield node[key]
