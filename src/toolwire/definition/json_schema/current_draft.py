"""Schemas of older drafts, and of careless writers, in the words of JSON Schema 2020-12."""

from __future__ import annotations

import re
from typing import Any, cast

from toolwire.definition.hostile.schema_walk import map_schemas, schemas_in, with_inner
from toolwire.definition.words import resolve_pointer

_BOOLEAN = ("additionalProperties", "unevaluatedItems", "unevaluatedProperties")
"""Keywords whose value stays true or false."""

_DEFINITION = re.compile(r"#|#/(?:\$defs|definitions)/[^/]+")
"""A reference that stays right wherever the parts of its schema go."""

_OLDER = "#/definitions/"

_VALUES = frozenset({"default", "const", "example", "examples"})
"""Keywords whose value is data, so that null is a value."""


def read_outside_forms(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema in a form that can be checked, where its writer's meaning is plain.

    A keyword that is null, as Go writes an empty list, is left out. `"required": true` in a property, as older drafts
    have it, and a name that is required twice, become one name in the list of its object. A root of the one type object
    in a list has that type. Words of older drafts are rewritten unless the schema names such a draft.
    """
    found = cast("dict[str, Any]", map_schemas(map_schemas(schema, _without_nulls), _with_required_names))
    kinds = found.get("type")
    if isinstance(kinds, list) and "object" in kinds and set(cast("list[Any]", kinds)) <= {"object", "null"}:
        found["type"] = "object"
    if "/draft-0" in str(found.get("$schema")) or not _has_older_words(found):
        return found
    return cast("dict[str, Any]", map_schemas(move_targets(found), write_in_current_draft))


def _without_nulls(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if value is not None or key in _VALUES}


def _with_required_names(node: dict[str, Any]) -> dict[str, Any]:
    properties, listed = node.get("properties"), node.get("required", [])
    flags: dict[str, bool] = {}
    if isinstance(properties, dict):
        given = cast("dict[str, Any]", properties)
        flags = {
            name: inner["required"]
            for name, inner in given.items()
            if isinstance(inner, dict) and isinstance(cast("dict[str, Any]", inner).get("required"), bool)
        }
        if flags:
            kept = {name: {key: value for key, value in given[name].items() if key != "required"} for name in flags}
            node = {**node, "properties": {**given, **kept}}
    names = cast("list[Any]", listed) if isinstance(listed, list) else []
    wanted = [*names, *(name for name, is_required in flags.items() if is_required)]
    if not wanted or not all(isinstance(name, str) for name in wanted):
        return node
    return {**node, "required": list(dict.fromkeys(wanted))}


def _has_older_words(schema: dict[str, Any]) -> bool:
    return any(
        isinstance(node.get("items"), list)
        or isinstance(node.get("exclusiveMinimum"), bool)
        or isinstance(node.get("exclusiveMaximum"), bool)
        or isinstance(node.get("dependencies"), dict)
        for node in schemas_in(schema)
    )


def write_in_current_draft(node: dict[str, Any]) -> dict[str, Any]:
    """Returns one schema in the words of 2020-12. Those of older drafts have the same meaning there."""
    told = {key: value for key, value in node.items() if key != "$schema"}
    if isinstance(told.get("items"), list):
        if first := told.pop("items"):
            told["prefixItems"] = first
        if "additionalItems" in told:
            told["items"] = told["additionalItems"]
    told.pop("additionalItems", None)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(told.get(exclusive), bool) and told.pop(exclusive) and bound in told:
            told[exclusive] = told.pop(bound)
    for name, needs in cast("dict[str, Any]", told.pop("dependencies", {})).items():
        key = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        told[key] = {**told.get(key, {}), name: needs}
    kinds = told.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and "items" not in told:
        told["items"] = {}
    # No provider reads true or false as a schema, but for these.
    open_or_closed = {key: told[key] for key in _BOOLEAN if key in told}
    return {**with_inner(told, _as_object), **open_or_closed}


def _as_object(schema: Any) -> Any:
    return {} if schema is True else {"not": {}} if schema is False else schema


def move_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with its `definitions`, as older drafts have them, under `$defs`.

    It stays as it is if a name is in both.
    """
    older, current = schema.get("definitions"), cast("dict[str, Any]", schema.get("$defs", {}))
    if not isinstance(older, dict) or cast("dict[str, Any]", older).keys() & current.keys():
        return schema

    def redirect_node(node: dict[str, Any]) -> dict[str, Any]:
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith(_OLDER):
            return node
        return {**node, "$ref": f"#/$defs/{reference.removeprefix(_OLDER)}"}

    others = {key: value for key, value in schema.items() if key != "definitions"}
    return cast("dict[str, Any]", map_schemas({**others, "$defs": {**older, **current}}, redirect_node))


def move_targets(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with a definition for each target of a reference that is none.

    Properties are renamed, and the places of a tuple's items change, so a reference by place would lead nowhere.
    """
    definitions = dict(cast("dict[str, Any]", schema.get("$defs", {})))
    names: dict[str, str] = {}

    def redirect_node(node: dict[str, Any]) -> dict[str, Any]:
        reference = node.get("$ref")
        if not isinstance(reference, str) or _DEFINITION.fullmatch(reference):
            return node
        if resolve_pointer(reference, schema) is None:
            return node
        if reference not in names:
            names[reference] = next(
                name for number in range(len(definitions) + 1) if (name := f"target_{number}") not in definitions
            )
            definitions[names[reference]] = {}
        return {**node, "$ref": f"#/$defs/{names[reference]}"}

    found = map_schemas(schema, redirect_node)
    done = 0
    while done < len(names):
        reference, name = list(names.items())[done]
        definitions[name] = map_schemas(resolve_pointer(reference, schema), redirect_node)
        done += 1
    if not names:
        return schema
    return {**found, "$defs": {**definitions, **found.get("$defs", {})}}
