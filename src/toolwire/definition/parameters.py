"""Parameters as a list, and the schema that they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.errors import DefinitionError


@dataclass
class ToolParameter:
    """One parameter of a `BaseTool`."""

    name: str
    """What the model calls it."""
    type: str
    """string, integer, number, boolean, array or object."""
    description: str
    """What it is for."""
    required: bool = True
    """Whether a call without it is refused."""
    default: Any = None
    """Used when an optional parameter is left out; None is no default: `execute` then does not get it."""


def schema_of(parameters: Iterable[ToolParameter], label: str) -> dict[str, Any]:
    """The JSON schema of an object that has these properties and no others.

    Raises:
        DefinitionError: a type is unknown, or two parameters have one name.
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
