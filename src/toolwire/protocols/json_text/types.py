"""Short descriptions of tools for models that write JSON, with JSON types for the parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolwire.definition.tool import Tool
from toolwire.definition.words import bounded, resolve

CHOICES_LIMIT = 24
"""Maximum number of allowed values that are listed."""

_DEPTH = 4
_CHOICE_LIMIT = 200
"""Maximum number of characters of an allowed value that are shown."""

_DEFAULT_LIMIT = 60
"""Maximum length in characters of a default that is shown."""


@bounded
def tool_text(tool: Tool) -> str:
    """Describes a tool as `search(query: string, limit?: integer = 10): What it does`.

    A line for each described parameter follows. Names are those that a call uses; `?` marks optional parameters.
    """
    schema = tool.input_schema
    fields = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = cast("list[str]", schema.get("required") or [])
    listed = [_field(name, node, schema, is_required=name in required) for name, node in fields.items()]
    head = f"{tool.name}({', '.join(listed)})"
    description = " ".join(tool.description.split())
    lines = [f"{head}: {description}" if description else head]
    for name, node in fields.items():
        text = _description(node, schema)
        if text:
            lines.append(f"  {name}: {text}")
    return "\n".join(lines)


def type_text(node: Any, root: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """Describes the JSON type of a schema: `string[]`, `"a" | "b"`, `{name: string, age?: integer}`, `any`."""
    schema = resolve(node, root)
    if "const" in schema:
        return _choice(schema["const"])
    if "enum" in schema:
        return _choices(cast("list[Any]", schema["enum"]))
    options = cast("list[Any]", schema.get("anyOf") or schema.get("oneOf") or [])
    if options:
        return _either([type_text(option, root, depth - 1) for option in options]) if depth > 0 else "any"
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return _either([type_text({**schema, "type": one}, root, depth) for one in cast("list[str]", kind)])
    if kind == "array":
        return _array(schema, root, depth)
    if kind == "object":
        return _object(schema, root, depth)
    return str(kind or "any")


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    places = cast("list[Any]", schema.get("prefixItems") or [])
    if places and depth > 0:
        return f"[{', '.join(type_text(place, root, depth - 1) for place in places)}]"
    inner = type_text(schema.get("items"), root, depth - 1) if depth > 0 else "any"
    return f"({inner})[]" if " | " in inner and not inner.startswith("{") else f"{inner}[]"


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    fields = cast("Mapping[str, Any]", schema.get("properties") or {})
    if not fields or depth <= 0:
        more = schema.get("additionalProperties")
        return f"{{[key]: {type_text(more, root, depth - 1)}}}" if isinstance(more, dict) and depth > 0 else "object"
    required = cast("list[str]", schema.get("required") or [])
    inner = [
        _field(name, node, root, is_required=name in required, depth=depth - 1, note=_description(node, root))
        for name, node in fields.items()
    ]
    return f"{{{', '.join(inner)}}}"


def _field(
    name: str, node: Any, root: Mapping[str, Any], *, is_required: bool, depth: int = _DEPTH, note: str = ""
) -> str:
    text = f"{name}{'' if is_required else '?'}: {type_text(node, root, depth)}"
    schema = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    default = _json(schema["default"]) if schema.get("default") is not None else ""
    if default and len(default) <= _DEFAULT_LIMIT:
        text += f" = {default}"
    return f"{text} /* {note.replace('*/', '* /')} */" if note else text


def _description(node: Any, root: Mapping[str, Any]) -> str:
    schema = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    return " ".join(str(schema.get("description") or resolve(node, root).get("description") or "").split())


def _choices(values: list[Any]) -> str:
    listed = " | ".join(map(_choice, values[:CHOICES_LIMIT]))
    return f"{listed} | ..." if len(values) > CHOICES_LIMIT else listed


def _choice(value: Any) -> str:
    if isinstance(value, list | dict):
        return "array" if isinstance(value, list) else "object"
    is_long = isinstance(value, str) and len(value) > _CHOICE_LIMIT
    return f"{_json(value[:_CHOICE_LIMIT])}..." if is_long else _json(value)


def _either(options: list[str]) -> str:
    return " | ".join(dict.fromkeys(options))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
