"""The tools of a grammar, with the rules of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.definition.derived import input_schema_of
from toolwire.definition.from_function import tool_of
from toolwire.definition.shape import Parameter
from toolwire.definition.tool import Tool
from toolwire.definition.words import limit_references
from toolwire.protocols.grammar.schema_rules import Values
from toolwire.vocabulary.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A parameter with the rule of its values."""

    parameter: Parameter
    rule: str
    """The name of the rule for the parameter's values."""

    @property
    def is_required(self) -> bool:
        """True if a call without the parameter is refused."""
        return self.parameter.required


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A tool that can be called."""

    tool: Tool
    slots: tuple[Slot, ...]
    """Required parameters first, then in the schema's order.

    Optional parameters without a writable value are left out.
    """


def callees(tools: Iterable[Any], values: Callable[[Mapping[str, Any]], Values]) -> list[Callee]:
    """Returns the tools that can be called. `values` makes the rules for one tool's schema.

    Raises:
        ConfigurationError: None of the tools can be called, so a model could write nothing.
        DefinitionError: One of the objects is not a tool.
    """
    given = [tool_of(tool) for tool in tools]
    found = [callee for tool in given if (callee := _callee(tool, values(input_schema_of(tool)))) is not None]
    if not found:
        raise ConfigurationError(
            f"a grammar needs a tool that can be called: {len(given)} were given, and none of them can"
        )
    return found


@limit_references
def _callee(tool: Tool, values: Values) -> Callee | None:
    slots: list[Slot] = []
    for parameter in sorted(tool.visible_parameters, key=lambda parameter: not parameter.required):
        rule = values.value(parameter.schema)
        if rule is not None:
            slots.append(Slot(parameter=parameter, rule=rule))
        elif parameter.required:
            return None
    return Callee(tool=tool, slots=tuple(slots))
