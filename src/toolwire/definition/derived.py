"""Values that are made from a tool once and kept with it, such as its text in a prompt.

All readers share such a value, and none changes it. It is dropped with the tool, so no cache outlives the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from toolwire.definition.root_fields import with_root_fields
from toolwire.definition.shape import MISSING
from toolwire.definition.tool import Tool

P = ParamSpec("P")
R = TypeVar("R")


def once_per_schema(make: Callable[[Tool], R]) -> Callable[[Tool], R]:
    """Decorator of a function that reads only the parameters of a tool. It runs once for each input schema."""

    @wraps(make)
    def find_or_make(tool: Tool) -> R:
        values = tool.value_cache
        found = values.get(make, MISSING)
        if found is MISSING:
            found = values[make] = make(tool)
        return found

    return find_or_make


def once_per_text(make: Callable[Concatenate[Tool, P], R]) -> Callable[Concatenate[Tool, P], R]:
    """Decorator of a function that reads any facts of a tool. It runs once for each description and schema.

    Its options must be hashable, and few: the tool keeps a value for each.
    """

    @wraps(make)
    def find_or_make(tool: Tool, *options: P.args, **named: P.kwargs) -> R:
        key: Hashable = (make, options, *named.items())
        told = tool.description
        values: dict[Any, Any] = tool.value_cache
        found = values.get(key)
        if found is None or found[0] != told:
            found = values[key] = (told, make(tool, *options, **named))
        return found[1]

    return find_or_make


@once_per_schema
def input_schema_of(tool: Tool) -> dict[str, Any]:
    """Returns `tool.input_schema` without copying it for each reader."""
    return tool.input_schema


@once_per_schema
def output_schema_of(tool: Tool) -> dict[str, Any] | None:
    """Returns `tool.output_schema` without copying it for each reader."""
    return tool.output_schema


@once_per_schema
def schema_with_root_fields(tool: Tool) -> dict[str, Any]:
    """Returns the shared input schema with the fields that its root combines (`with_root_fields`)."""
    return with_root_fields(input_schema_of(tool))
