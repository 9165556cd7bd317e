"""The fields of a schema whose root combines others: by a reference, `allOf`, `anyOf` or `oneOf`.

Texts, grammars and readers of replies use them. The whole schema still checks the arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.words import limit_references, resolve

FIELDS_LIMIT = 5_000
"""Maximum number of fields and schemas that are looked at. The texts of a larger tool are cut anyway."""

LEVELS_LIMIT = 8
"""Maximum nesting of combined schemas. Ten definitions that refer to each other twice make a thousand."""

FORMS_LIMIT = 16
"""Maximum number of schemas of one field. With more, the field takes any value in texts."""

_COMBINING = ("$ref", "allOf", "anyOf", "oneOf")


def with_root_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with the fields of all schemas that its root combines, or the same object.

    The parts of `allOf` are merged. The fields of `anyOf` and `oneOf` are joined, and all of them are optional.
    """
    return _combine_fields(schema) if any(key in schema for key in _COMBINING) else schema


@dataclass(slots=True)
class _RootFields:
    certain: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    possible: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    required: list[str] = field(default_factory=list[str])


@limit_references
def _combine_fields(schema: dict[str, Any]) -> dict[str, Any]:
    found, left = _RootFields(), FIELDS_LIMIT
    waiting: list[tuple[Any, bool, int]] = [(schema, True, 0)]
    while waiting and left > 0:
        node, is_certain, level = waiting.pop(0)
        left -= 1
        if not isinstance(node, dict):
            continue
        keyed = cast("dict[str, Any]", node)
        left -= _take(keyed, found, left, is_certain=is_certain)
        if level < LEVELS_LIMIT:
            waiting.extend((part, is_part and is_certain, level + 1) for part, is_part in _parts(keyed, schema))
    kept = {key: value for key, value in schema.items() if key not in _COMBINING}
    required = [name for name in dict.fromkeys(found.required) if name in found.certain]
    return kept | {"properties": _join_forms(found)} | ({"required": required} if required else {})


def _take(node: Mapping[str, Any], found: _RootFields, limit: int, *, is_certain: bool) -> int:
    """Adds the fields of one schema, and returns their number."""
    properties: Any = node.get("properties")
    fields = list(cast("dict[str, Any]", properties).items())[:limit] if isinstance(properties, dict) else []
    for name, schema in fields:
        forms = (found.certain if is_certain else found.possible).setdefault(name, [])
        if len(forms) <= FORMS_LIMIT and schema not in forms:
            forms.append(schema)
    required: Any = node.get("required")
    if is_certain and isinstance(required, list):
        found.required.extend(name for name in cast("list[Any]", required) if isinstance(name, str))
    return len(fields)


def _parts(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yields each schema that this one combines. True: its fields always apply."""
    if "$ref" in node:
        yield resolve({"$ref": node["$ref"]}, root), True
    for key in ("allOf", "anyOf", "oneOf"):
        inner: Any = node.get(key)
        for part in cast("list[Any]", inner) if isinstance(inner, list) else ():
            yield part, key == "allOf"


def _join_forms(found: _RootFields) -> dict[str, Any]:
    """Returns one schema for each field."""
    fields = dict[str, Any]()
    for name in (*found.certain, *found.possible):
        key, forms = ("allOf", found.certain[name]) if name in found.certain else ("anyOf", found.possible[name])
        fields[name] = forms[0] if len(forms) == 1 else {key: forms} if len(forms) <= FORMS_LIMIT else {}
    return fields
