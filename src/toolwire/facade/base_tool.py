"""`BaseTool`: a tool as a class, with its parameters listed and its work in `execute`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any

from toolwire.definition.live import LiveTool
from toolwire.definition.parameters import ToolParameter
from toolwire.definition.tool import Tool
from toolwire.facade import direct
from toolwire.vocabulary.results import ToolResult


class ToolPermission(Enum):
    """Whether a tool's calls run unasked."""

    AUTO = "auto"
    """Run at once."""
    CONFIRM = "confirm"
    """Ask a person first; with nobody to ask, do not run."""
    DENY = "deny"
    """Never run."""


class BaseTool(ABC):
    """A tool with a class of its own. Keywords that the constructor does not know become `config`.

    `permission`, `description` and the parameters count as they are at each call and each description, in programs,
    toolkits and resumed runs too. The name is the one under which it was registered.
    """

    def __init__(
        self, name: str, description: str, permission: ToolPermission = ToolPermission.AUTO, **kwargs: Any
    ) -> None:
        self.name = name
        self.description = description
        self.permission = permission
        self.config: dict[str, Any] = kwargs
        self._defined: LiveTool | None = None

    @abstractmethod
    def get_parameters(self) -> list[ToolParameter]:
        """The parameters, in order. Asked at each call: give a list that is there already, or one quickly made."""

    @abstractmethod
    async def execute(self, **params: Any) -> ToolResult:
        """Does the work with validated arguments. A plain value that it returns counts as the data."""

    def validate_params(self, params: dict[str, Any]) -> str | None:
        """What is wrong with the arguments, in words for the model, or None.

        Called with arguments that fit the schema, before permission is asked. Override it for rules that a schema
        cannot say; as it stands it checks for missing and unknown parameters. The text that it returns is the call's
        `error` as it is, and the model reads it. Anything else but None runs nothing, and the owner is told.
        """
        names = {parameter.name for parameter in self.get_parameters()}
        missing = [
            parameter.name for parameter in self.get_parameters() if parameter.required and parameter.name not in params
        ]
        unknown = [name for name in params if name not in names]
        said = [f"missing required parameter {name!r}" for name in missing]
        said += [f"unknown parameter {name!r}" for name in unknown]
        return "; ".join(said) or None

    async def __call__(self, **params: Any) -> ToolResult:
        """Validates and runs: its owner's own call, asked of nobody."""
        return await direct.run_async(self.__tool__(), params)

    def run(self, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """The same for callers without an event loop."""
        return direct.run(self.__tool__(), arguments or {})

    def __tool__(self) -> Tool:
        """The live tool below, made when first asked for, and again after the object was renamed or copied."""
        tool = getattr(self, "_defined", None)
        if tool is None or not tool.is_of(self):
            tool = self._defined = LiveTool(self)
        return tool
