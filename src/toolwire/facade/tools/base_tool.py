"""`BaseTool`: a tool as a class, with its parameters listed and its work in `execute`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any

from toolwire.definition.live_tool import LiveTool
from toolwire.definition.parameters import ToolParameter
from toolwire.definition.tool import Tool
from toolwire.facade.given_calls import fit_arguments
from toolwire.facade.tools import direct
from toolwire.vocabulary.effects import UNDECLARED, Effects
from toolwire.vocabulary.results import ToolResult


class ToolPermission(Enum):
    """The permission of a tool: run its calls, ask a person first, or refuse them."""

    AUTO = "auto"
    """Run at once."""
    CONFIRM = "confirm"
    """Ask a person first; without an approver the call does not run."""
    DENY = "deny"
    """Never run."""


class BaseTool(ABC):
    """A tool with its own class. Keywords that the constructor does not know become `config`.

    >>> class Next(BaseTool):
    ...     def get_parameters(self):
    ...         return [ToolParameter("number", "integer", "The number before")]
    ...     async def execute(self, number):
    ...         return ToolResult(success=True, data=number + 1)
    >>> Session([Next("next", "Returns the next number.")], protocol="openai").request_tools[0]["function"]["name"]
    'next'

    `permission`, `description` and the parameters are read anew at each call and each description, also in programs,
    toolkits and resumed runs. The tool's name is the one under which it was registered.

    Attributes:
        effects: The effects of its calls, whether a call may be repeated, and the labels of its results. A subclass
            that declares them sets this; they are read once.
    """

    effects: Effects = UNDECLARED

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
        """Returns the parameters, in order. Called at each call, so return an existing list, or one that is quick to
        make.
        """

    @abstractmethod
    async def execute(self, *_: Any, **params: Any) -> ToolResult:
        """Does the work with validated arguments. A plain value that it returns becomes the result's data.

        A subclass may list its parameters by name. The arguments are always keywords.
        """

    def validate_params(self, params: dict[str, Any]) -> str | None:
        """Returns the error in the arguments, in words for the model, or None.

        Called with arguments that fit the schema, before permission is asked. Override it for rules that a schema
        cannot express. The default checks for missing and unknown parameters. The returned text becomes the call's
        `error` unchanged, and the model reads it. If it returns another value than a text or None, the tool does not
        run and the owner is told.
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
        """Validates and runs. This is the owner's own call, without permission checks."""
        tool = self.__tool__()
        return await direct.run_async(tool, fit_arguments(params, tool, is_guessed=True))

    def run(self, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Works as a call of the object, for callers without an event loop."""
        tool = self.__tool__()
        return direct.run_blocking(tool, fit_arguments(arguments or {}, tool, is_guessed=True))

    def __tool__(self) -> Tool:
        """Returns the live tool below. It is made on first use, and again after the object was renamed or copied."""
        tool = getattr(self, "_defined", None)
        if tool is None or not tool.is_of(self):
            tool = self._defined = LiveTool(self)
        return tool
