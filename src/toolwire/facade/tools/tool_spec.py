"""`ToolSpec`: one tool, defined once, described to any model, called by its owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, Unpack

from toolwire.definition.author_options import FunctionOptions, McpOptions, SchemaOptions
from toolwire.definition.derived import output_schema_of
from toolwire.definition.tool import MISSING, Tool
from toolwire.facade.tools import direct
from toolwire.facade.tools.spec_exports import SpecExports
from toolwire.vocabulary.results import ToolResult


class ToolSpec(SpecExports):
    """A tool: its name, its parameters and output, and how to run it.

    >>> def add(a: int, b: int = 1) -> int:
    ...     return a + b
    >>> spec = ToolSpec.from_function(add)
    >>> spec(a="2"), spec.run({"a": 2}).data, spec.signature(a=2)
    (3, 3, 'add(a=2)')

    Calling a spec, or its `exec` and `run`, is the owner's own call: validated and run, without permission checks. A
    model's calls go through a registry, a toolkit or a session instead.
    """

    def __init__(self, tool: Tool) -> None:
        """Takes an existing tool. Use `from_function` and the other class methods instead."""
        self._tool = tool

    @classmethod
    def from_function(cls, func: Callable[..., Any], **options: Unpack[FunctionOptions]) -> ToolSpec:
        """Returns a tool made from a function, method, `functools.partial` or callable object.

        Options: parse_docstring (True), examples, name, title, description, tags, annotations, output_schema,
        permission ("auto", "confirm" or "deny"), effects, labels, effects_of, idempotent, reconcile, meta, icons,
        version.

        `title`, `version` (a text), `icons` (dicts with `src`, perhaps `mimeType`, `sizes`, `theme`, or MCP's `Icon`)
        and `meta` (a dict of JSON values) are kept for exports such as `to_mcp`. No model reads them.

        Raises:
            DefinitionError: it cannot become a tool, or an option is unknown. The message names the place and the
                remedy.
        """
        from toolwire.definition.from_function import from_function

        return cls(from_function(func, **options))

    @classmethod
    def from_code(
        cls,
        code: str,
        func_name: str | None = None,
        env: Mapping[str, Any] | None = None,
        **options: Unpack[FunctionOptions],
    ) -> ToolSpec:
        """Returns a tool made from source text that defines one function. The text runs in this process: use only your
        own.

        `func_name` picks one of several functions; `env` holds the globals of the text; options are those of
        `from_function`.

        Raises:
            DefinitionError: the text does not run, or it is unclear which function is meant.
        """
        from toolwire.definition.from_code import from_code

        return cls(from_code(code, func_name=func_name, env=env, **options))

    @classmethod
    def from_jsonschema(
        cls,
        *,
        name: str,
        description: str = "",
        input_schema: Mapping[str, Any],
        output_schema: Mapping[str, Any] | None = None,
        function: Callable[..., Any] | None = None,
        **options: Unpack[SchemaOptions],
    ) -> ToolSpec:
        """Returns a tool made from its schema. `function` takes the arguments as keywords; without one it cannot be
        called.

        Raises:
            DefinitionError: the schema is not the schema of an object, or refers to another document.
        """
        from toolwire.definition.from_schema import from_schema

        return cls(
            from_schema(
                name=name,
                description=description,
                input_schema=input_schema,
                output_schema=output_schema,
                function=function,
                **options,
            )
        )

    @classmethod
    def from_mcp(
        cls, tool: object, function: Callable[..., Any] | None = None, **options: Unpack[McpOptions]
    ) -> ToolSpec:
        """Returns a tool made from an MCP tool value, with its fields in either spelling (`inputSchema`,
        `input_schema`).

        A person is asked before each call of it, unless a rule, the registration or `permission=` here says otherwise:
        the
        server's own annotations grant nothing. Its title, icons, `_meta` and version are kept for exports. Options:
        permission, effects, labels, effects_of, idempotent, reconcile, tags, meta, icons, version.

        Raises:
            DefinitionError: it lacks a name or an input schema.
        """
        from toolwire.mcp.convert import from_mcp

        return cls(from_mcp(tool, function=function, **options))

    @classmethod
    def from_fastmcp(cls, tool: object, **options: Unpack[McpOptions]) -> ToolSpec:
        """Returns a tool made from a tool of FastMCP, whose `run` makes the call. Needs the extra `toolwire[fastmcp]`.

        `tool` is a `fastmcp.tools.Tool`: `Tool.from_function(f)`, or `await server.get_tool("name")`. Arguments and
        structured content are checked here. The middleware of its server does not run, and a tool that takes
        FastMCP's `Context` fails: connect to the server by `MCPClient` for these. A person is asked before each call,
        as with `from_mcp`, which has the same options.

        Raises:
            ConfigurationError: The extra is not installed.
            DefinitionError: It is not a tool of FastMCP, or its schema cannot be used.
        """
        from toolwire.facade.tools.fastmcp_export import fastmcp_tools

        return cls(fastmcp_tools().from_fastmcp(tool, **options))

    def __tool__(self) -> Tool:
        """Returns the live tool below."""
        return self._tool

    def __repr__(self) -> str:
        return f"<ToolSpec {self._tool.name!r}>"

    @property
    def name(self) -> str:
        """The tool's name."""
        return self._tool.name

    @property
    def title(self) -> str | None:
        """A name for people, if it has one."""
        return self._tool.title

    @property
    def version(self) -> str | None:
        """The tool's version, as its author counts; None without one."""
        return self._tool.published.version

    @property
    def icons(self) -> list[dict[str, Any]]:
        """The icons as MCP spells them, each with `src`; a copy."""
        return self._tool.published.own_icons()

    @property
    def meta(self) -> dict[str, Any]:
        """The fields of MCP's `_meta`; a copy."""
        return self._tool.published.own_meta()

    @property
    def description(self) -> str:
        """The description for the model."""
        return self._tool.description

    @property
    def tags(self) -> frozenset[str]:
        """Words to group it by."""
        return self._tool.tags

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Its author's annotations. They never allow a call."""
        return self._tool.annotations

    @property
    def examples(self) -> tuple[Any, ...]:
        """Example uses, as its author gave them."""
        return self._tool.examples

    @property
    def permission(self) -> str:
        """`auto`, `confirm` or `deny`."""
        return self._tool.permission

    # -- binding ------------------------------------------------------------------------------------------------

    def bind(self, param: str, state_key: str | None = None, default: Any = MISSING) -> Self:
        """Takes a parameter from state instead of from the model; returns this spec.

        The call's `state=` is looked up first, then the session's, the toolkit's, this spec's. `state_key` is the
        parameter's name by default; dots lead into nested mappings. `default` is used while no state has the whole key;
        without one a call then fails and names the key.

        A value must fit the parameter's annotation. It is passed unchanged, so "5" does not fit `int`. An object may
        replace one of another class; plain data may not. Each call checks the values that it reads from state. A value
        that does not fit raises `BindingError` to the caller of that call; no model is told.

        Raises:
            BindingError: the parameter does not exist, or does not take `default`.
        """
        self._tool.bindings.bind(param, state_key, default)
        return self

    def unbind(self, param: str) -> Self:
        """Gives a parameter back to the model; returns this spec.

        Raises:
            BindingError: it is not bound.
        """
        self._tool.bindings.unbind(param)
        return self

    @property
    def state(self) -> dict[str, Any]:
        """Values of bound parameters for all callers of this spec, read anew at each call. Any objects; never copied.

        Sessions and threads share it. Pass values of one user or request as `Session(state=...)`, `Toolkit(state=...)`
        or `invoke(..., state=...)`: these are looked up first.
        """
        return self._tool.bindings.state

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._tool.bindings.state = value

    @property
    def binds(self) -> dict[str, str]:
        """State keys by bound parameter."""
        return self._tool.bindings.binds

    @property
    def binded(self) -> Tool:
        """The tool with its bindings applied."""
        return self._tool

    def clone(self) -> Self:
        """Returns an independent copy, with its own bindings and state."""
        return type(self)(self._tool.clone())

    def _clear_cache(self) -> None:
        """Clears values computed from the bindings. `bind` and `unbind` do so themselves."""
        self._tool.clear_cache()

    # -- calling ------------------------------------------------------------------------------------------------

    def __call__(self, **arguments: Any) -> Any:
        """Returns the tool's main value; see `call`."""
        return self.call(**arguments)

    def call(self, **arguments: Any) -> Any:
        """Returns the main value: the only property of its output if it has just one, else the structured content.

        An async tool runs on the runtime's own loop, so this works inside a running loop too (and blocks it meanwhile).

        Raises:
            CallFailed: the call failed; an exception that the tool itself raised is raised unchanged.
        """
        return _value(self._tool, self.run(arguments))

    async def acall(self, **arguments: Any) -> Any:
        """Works as `call`, for callers that run an event loop."""
        return _value(self._tool, await self.aexec(**arguments))

    def exec(self, **arguments: Any) -> ToolResult:
        """Runs the call and returns its result. Never raises for a call that fails."""
        return self.run(arguments)

    async def aexec(self, **arguments: Any) -> ToolResult:
        """Works as `exec`, for callers that run an event loop."""
        return await direct.run_async(self._tool, arguments)

    def run(self, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Works as `exec`, with the arguments in one mapping."""
        return direct.run_blocking(self._tool, arguments or {})

    # -- describing ---------------------------------------------------------------------------------------------

    @property
    def input_schema(self) -> dict[str, Any]:
        """The parameters as a JSON schema, bound ones left out."""
        return self._tool.input_schema

    @property
    def params(self) -> dict[str, Any]:
        """The schema of each parameter, by name."""
        return self._tool.input_schema.get("properties", {})

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The output as a JSON schema; None when it was not declared."""
        return self._tool.output_schema


def _value(tool: Tool, result: ToolResult) -> Any:
    result.unwrap()
    return _main_value(tool, result)


def _main_value(tool: Tool, result: ToolResult) -> Any:
    schema = output_schema_of(tool)
    if tool.is_wrapped_output or (schema is None and not isinstance(result.data, Mapping)):
        return result.data
    content = result.structured_content
    names = list((schema or {}).get("properties", {}))
    return content[names[0]] if content is not None and len(names) == 1 and names[0] in content else content
