"""Tools by their names, made from tools, functions and other objects when a reader asks for one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import methodcaller
from typing import Any

from toolwire.definition.from_function import name_of, tool_of
from toolwire.definition.tool import Tool

_TOOL = methodcaller("__tool__")


def tools_by_name(values: Iterable[Any]) -> Mapping[str, Tool]:
    """Returns the tools of these values by name. A function becomes a tool when it is looked up.

    Raises:
        DefinitionError: One of the values is not a tool.
    """
    values = tuple(values)
    try:
        return {tool.name: tool for tool in map(_TOOL, values)}
    except (AttributeError, TypeError):
        # At least one of them is a function.
        return _ToolsByName(values)


class _ToolsByName(Mapping[str, Tool]):
    def __init__(self, values: Iterable[Any]) -> None:
        self._values = dict(_named(value) for value in values)

    def __getitem__(self, name: str) -> Tool:
        value = self._values[name]
        if not isinstance(value, Tool):
            value = self._values[name] = tool_of(value)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _named(value: Any) -> tuple[str, Any]:
    if callable(value) and not hasattr(value, "__tool__") and not isinstance(value, type):
        return name_of(value), value
    tool = tool_of(value)
    return tool.name, tool
