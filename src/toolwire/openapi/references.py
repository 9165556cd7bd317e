"""The references of a document: all lead into the document itself, to places that the parser can follow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import unquote

from toolwire.openapi.api_document import REFERENCE_DATA, ApiDocument
from toolwire.vocabulary.errors import DefinitionError

_PLAIN = re.compile(r"#/components/(?:schemas|parameters|requestBodies)/[A-Za-z0-9._-]+")
"""The references that the parser follows."""
_MAPS = frozenset(
    {
        *("callbacks", "content", "definitions", "dependentSchemas", "encoding", "headers", "links", "mapping"),
        *("parameters", "pathItems", "paths", "patternProperties", "properties", "requestBodies", "responses"),
        *("schemas", "securitySchemes", "variables", "webhooks", "$defs"),
    }
)
"""Keywords whose objects have free names as keys, such as a property that is called `example`."""
_KINDS = frozenset({"parameters", "responses", "headers", "links", "callbacks", "requestBodies", "securitySchemes"})
"""The kinds of components besides schemas."""
_MISSING = object()
CHAIN_LIMIT = 20
"""Maximum references that lead to each other one by one. Real documents have two."""

Place = tuple[str, ...]
"""The keys that lead to a value."""


def resolve_references(document: ApiDocument) -> None:
    """Checks each `$ref`, and changes those that the parser cannot follow to others with the same target.

    Raises:
        DefinitionError: A reference leads out of the document, to nothing, or to itself. Nothing is ever fetched.
    """
    content, components = document.content, _Components(document.content)
    for holder, place in list(_references(content)):
        reference = cast("str", holder["$ref"])
        where = f"{document.label}: {'.'.join(place)}"
        if not reference.startswith("#"):
            raise DefinitionError(
                f"{where}: $ref {reference!r:.200} leads out of the document, and no reference is fetched: bundle the "
                "document into one file, for example with `npx @redocly/cli bundle FILE`"
            )
        target = _target(content, reference, where)
        if place[0] == "paths" and len(place) == 2:
            holder.pop("$ref")
            holder |= {key: value for key, value in target.items() if key not in holder}
        elif _PLAIN.fullmatch(reference) is None:
            holder["$ref"] = components.reference_to(target, _kind_of(place))


def _references(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Place]]:
    """Yields each object with a `$ref`, and its place."""
    for members, place, is_map in objects_in(content):
        if isinstance(members.get("$ref"), str) and not is_map:
            yield members, place


def objects_in(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Place, bool]]:
    """Yields each object that is not data, its place, and whether its keys are free names."""
    stack: list[tuple[object, Place, bool]] = [(content, (), False)]
    while stack:
        node, place, is_map = stack.pop()
        if isinstance(node, list):
            items = cast("list[object]", node)
            stack += [(item, (*place, str(index)), False) for index, item in enumerate(items)]
        elif isinstance(node, dict):
            members = cast("dict[str, Any]", node)
            yield members, place, is_map
            for key, inner in members.items():
                if is_map or not (key in REFERENCE_DATA or key.startswith("x-")):
                    stack.append((inner, (*place, key), key in _MAPS and not is_map))


def _target(content: dict[str, Any], reference: str, where: str) -> dict[str, Any]:
    """Returns the object that a reference means. Several in a row are followed."""
    seen, wanted = set[str](), reference
    while True:
        found = _value_at(content, wanted)
        if any(found is holder for holder in _holders(content)):
            # Put where the reference stands, it would hold itself without end.
            found = _MISSING
        if not isinstance(found, dict) or wanted in seen or len(seen) > CHAIN_LIMIT:
            what = "leads to nothing that a reference can mean" if not isinstance(found, dict) else "leads to no end"
            raise DefinitionError(f"{where}: $ref {reference!r:.200} {what}: correct the document")
        target = cast("dict[str, Any]", found)
        if not isinstance(target.get("$ref"), str):
            return target
        seen.add(wanted)
        wanted = target["$ref"]


def _holders(content: dict[str, Any]) -> list[object]:
    """Returns the objects that hold all others, which no reference can mean."""
    components = content.get("components")
    kinds = cast("dict[str, object]", components).values() if isinstance(components, dict) else ()
    return [content, content.get("paths"), components, *kinds]


def _value_at(content: dict[str, Any], reference: str) -> object:
    """Returns the value at a JSON pointer such as `#/paths/~1pets/get`."""
    value: object = content
    for part in reference.removeprefix("#").split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            items = cast("list[object]", value)
            value = items[int(key)] if key.isdecimal() and int(key) < len(items) else _MISSING
        else:
            value = cast("dict[str, object]", value).get(key, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _kind_of(place: Place) -> str:
    """Returns the kind of component that is wanted at a place."""
    if place[-1] == "requestBody":
        return "requestBodies"
    above = place[-2] if len(place) > 1 else ""
    return above if above in _KINDS else "schemas"


class _Components:
    """The components of a document, to which targets of references are added."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._components = _object_in(content, "components")
        self._names: dict[tuple[str, int], str] = {}

    def reference_to(self, target: dict[str, Any], kind: str) -> str:
        """Adds the target to the components of this kind, once, and returns the reference to it."""
        there = _object_in(self._components, kind)
        name = self._names.get((kind, id(target)))
        if name is None:
            number = len(there) + 1
            while (name := f"Shared{number}") in there:
                number += 1
            there[name] = target
            self._names[kind, id(target)] = name
        return f"#/components/{kind}/{name}"


def _object_in(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the object under the key. An empty one is put there if there is none."""
    if not isinstance(holder.get(key), dict):
        holder[key] = {}
    return holder[key]
