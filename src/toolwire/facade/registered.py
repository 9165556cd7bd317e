"""The tools of `register_tool_function`: their definition, and the object that a toolkit keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from toolwire.catalogue.entry import Entry
from toolwire.definition.chat_form import chat_form, from_chat_form, from_tool_function
from toolwire.definition.from_function import tool_of
from toolwire.definition.parameters import ToolParameter, parameters_of
from toolwire.definition.tool import Tool
from toolwire.facade.tools.base_tool import ToolPermission
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.blocks import ContentBlock, new_blocks
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolwire.facade.tool_stream import ToolStream


class ToolFunction(Protocol):
    """A function, method, partial, coroutine function, sync or async generator function, or a coroutine function that
    returns a generator.

    It returns or yields a `ToolResponse`, content blocks, or any plain value.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class RegisteredToolFunction:
    """A tool as a toolkit has it: the function, and the options of its registration."""

    __slots__ = ("_entry", "_execute", "_stream")

    def __init__(
        self,
        entry: Entry,
        stream: Callable[[ToolCall], ToolStream],
        execute: Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]],
    ) -> None:
        """`stream` and `execute` make a call of its toolkit."""
        self._entry = entry
        self._stream = stream
        self._execute = execute

    def __repr__(self) -> str:
        # Presets are often secrets.
        presets = f", preset: {', '.join(self.preset_kwargs)}" if self.preset_kwargs else ""
        return f"<RegisteredToolFunction {self.name!r} in {self.group!r}{presets}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegisteredToolFunction) and self._entry is other._entry

    def __hash__(self) -> int:
        return id(self._entry)

    @property
    def name(self) -> str:
        """The name for models."""
        return self._entry.name

    @property
    def description(self) -> str:
        """The description for models; empty when its author wrote none."""
        return self._entry.tool_view.description

    @property
    def permission(self) -> ToolPermission:
        """The permission that it was registered with, or else the tool's own. Rules may override both."""
        return ToolPermission(self._entry.own_permission)

    @property
    def function(self) -> Any:
        """The same object that was registered."""
        return self._entry.handle

    @property
    def group(self) -> str:
        """The name of its group."""
        return self._entry.group

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema for models, in the nested chat form; a copy that you may change."""
        return chat_form(self._entry.tool_view)

    @property
    def preset_kwargs(self) -> dict[str, Any]:
        """The preset arguments: the same objects, in a new dict."""
        return self._entry.tool.bindings.presets

    @property
    def postprocess_func(self) -> Callable[[Any, ToolResponse], Any] | None:
        """The function that may replace its responses before any reader gets them; None without one."""
        return self._entry.finalise

    @property
    def extended_model(self) -> type[BaseModel] | None:
        """The model that `set_extended_model` gave it."""
        from toolwire.definition.extended import model_of

        return model_of(self._entry.tool)

    def get_parameters(self) -> list[ToolParameter]:
        """Returns the parameters that a model can give, without presets and bound ones.

        `type` is string, integer, number, boolean, array or object. Alternatives read as `integer or string`; `any`
        takes every value, and `null` takes only None. A parameter without a default has None as its `default`.
        """
        return parameters_of(self._entry.tool_view)

    async def execute(self, /, **params: Any) -> ToolResult:
        """Runs a call down the toolkit's whole path, with its rules, group and log; returns the result.

        Never raises for a call that fails: the result's `failure` says why.
        """
        return await self._execute(self.name, params)

    def call(self, *, arguments: Mapping[str, Any], stream_print: bool | None = None) -> AsyncIterator[ToolResponse]:
        """Returns the responses of a call as they come, down the toolkit's whole path, with its rules, group and log.

        With `stream_print` the text of each response is also printed once, as it comes.
        """
        stream = self._stream(ToolCall(self.name, arguments, id=new_id("r")))
        return _print_chunks(stream) if stream_print else stream


async def _print_chunks(stream: AsyncIterator[ToolResponse]) -> AsyncIterator[ToolResponse]:
    before: list[ContentBlock] = []
    has_printed = False
    async for chunk in stream:
        new = new_blocks(before, chunk.content)
        for block in chunk.content if new is None else new:
            if block["type"] == "text":
                has_printed = True
                print(block["text"], end="", flush=True)  # noqa: T201 - `stream_print` asks for it
        if chunk.is_last and has_printed:
            print(flush=True)  # noqa: T201 - it ends the line
        before = chunk.content
        yield chunk


def check_postprocess(function: object) -> None:
    """Raises if `function` is neither callable nor None.

    Raises:
        DefinitionError: it cannot be called.
    """
    if function is not None and not callable(function):
        raise DefinitionError(f"postprocess_func={function!r:.80}: give a function (tool_use_block, response)")


def tool_for(
    function: Any,
    *,
    presets: Mapping[str, Any],
    description: str | None,
    json_schema: Mapping[str, Any] | None,
    include_long_description: bool,
    include_var_positional: bool,
    include_var_keyword: bool,
) -> Tool:
    """Returns the tool for a registration of a function, or of an object that is a tool already.

    Raises:
        DefinitionError: it cannot become a tool, or the json_schema has an unknown form.
        BindingError: the function does not take one of the presets.
    """
    if not isinstance(cast("object", presets), Mapping):
        raise DefinitionError(f"preset_kwargs={presets!r:.80}: give a dict, each parameter's name with its value")
    if hasattr(function, "__tool__"):
        tool = tool_of(function)
        if json_schema is not None or not include_long_description or include_var_positional or include_var_keyword:
            raise DefinitionError(
                f"tool {tool.name!r} is a tool already and knows its arguments: "
                "leave json_schema and include_... out, or register its function"
            )
        tool = tool if description is None else tool.with_description(description)
    elif json_schema is not None:
        tool = from_chat_form(function, json_schema, description=description, given=presets)
    else:
        tool = from_tool_function(
            function,
            description=description,
            include_long_description=include_long_description,
            include_var_positional=include_var_positional,
            include_var_keyword=include_var_keyword,
        )
    tool = tool.with_presets(presets) if presets else tool
    tool.verify()
    return tool
