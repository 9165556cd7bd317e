"""Parameters as a list, and conversion to and from a JSON schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from toolwire.definition.derived import input_schema_of
from toolwire.definition.json_schema.accepted_types import json_type
from toolwire.definition.shape import MISSING
from toolwire.definition.words import flatten_schema, limit_references
from toolwire.vocabulary.errors import DefinitionError

if TYPE_CHECKING:
    from toolwire.definition.tool import Tool


@dataclass
class ToolParameter:
    """One parameter of a tool.

    Attributes:
        name: The name in the arguments that a model gives.
        type: The JSON type: string, integer, number, boolean, array or object.
        description: The purpose of the parameter.
        required: True if a call without the parameter is refused.
        default: The value if an optional parameter is left out. None means no default, and `execute` then receives
            nothing for it.
    """

    name: str
    type: str
    description: str
    required: bool = True
    default: Any = None


def schema_of(parameters: Iterable[ToolParameter], label: str) -> dict[str, Any]:
    """Returns the JSON schema of an object with exactly these properties.

    Raises:
        DefinitionError: A type is unknown, or two parameters have the same name.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters:
        if parameter.name in properties:
            raise DefinitionError(f"{label}: two parameters are called {parameter.name!r}: rename one")
        properties[parameter.name] = _property(parameter, label)
        if parameter.required:
            required.append(parameter.name)
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


_TYPES = ("string", "integer", "number", "boolean", "array", "object")


def _property(parameter: ToolParameter, label: str) -> dict[str, Any]:
    if parameter.type not in _TYPES:
        raise DefinitionError(
            f"{label}: parameter {parameter.name!r} has the unknown type {parameter.type!r}: write {', '.join(_TYPES)}"
        )
    found: dict[str, Any] = {"type": parameter.type}
    if parameter.description:
        found["description"] = parameter.description
    if parameter.default is not None and not parameter.required:
        found["default"] = parameter.default
    return found


@limit_references
def parameters_of(tool: Tool) -> list[ToolParameter]:
    """Returns the parameters that a model can give, in the schema's order.

    `type` is one of the six words of `ToolParameter`; alternatives read as `integer or string`. `any` accepts every
    value, and `null` accepts only None. A parameter without a default has None as its `default`.
    """
    root = input_schema_of(tool)
    known = {parameter.name: parameter for parameter in tool.visible_parameters}
    return [
        ToolParameter(
            name,
            " or ".join(_types(node, root)) or "any",
            known[name].description,
            known[name].required,
            None if known[name].required or known[name].default is MISSING else known[name].default,
        )
        for name, node in root.get("properties", {}).items()
    ]


_DEPTH_LIMIT = 8
"""Maximum nesting of alternatives whose types are listed, because a schema may refer to itself."""


def _types(schema: Any, root: Mapping[str, Any], depth: int = _DEPTH_LIMIT) -> list[str]:
    """Lists the types that the schema allows. Empty if it allows all. `null` is listed only on its own."""
    node = flatten_schema(schema, root)
    choices = node["enum"] if "enum" in node else [node["const"]] if "const" in node else None
    if choices is not None:
        found = list(map(json_type, choices))
    elif "anyOf" in node or "oneOf" in node:
        options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
        parts = [_types(option, root, depth - 1) if depth else [] for option in options]
        found = [word for part in parts for word in part] if all(parts) else []
    else:
        kinds = node.get("type", [])
        found = [kinds] if isinstance(kinds, str) else list(kinds)
    words = list(dict.fromkeys(found))
    return [word for word in words if word != "null"] or words
