"""`Toolkit`: the tools that one agent may see and call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry, Middleware
from toolwire.catalogue.groups import BASIC, Groups, ToolGroup
from toolwire.catalogue.selection import Selection, Visible
from toolwire.facade.driving import async_scope, new_scope
from toolwire.facade.given_calls import check_given, decode_call, host_call
from toolwire.facade.named_tools import NamedTools
from toolwire.facade.observing.observation import Observable, Watchers
from toolwire.facade.observing.traced import Traceable
from toolwire.facade.old_names import OldMcpNames
from toolwire.facade.switching import Switching
from toolwire.invocation.judge import is_denied
from toolwire.invocation.scope import Scope
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.tracer import Tracer
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS, Caller, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolwire.facade.registered import RegisteredToolFunction, ToolFunction
    from toolwire.facade.tool_stream import ToolStream
    from toolwire.vocabulary.blocks import ToolUseBlock
    from toolwire.vocabulary.response import ToolResponse


class Toolkit(NamedTools, Traceable, Observable, Switching, OldMcpNames):
    """Tools of one agent: made by `registry.create_agent_toolkit` and under the registry's rules, or independent.

    `toolkit.add_tool(add)` adds a function; `await toolkit.execute_tool("add", {"a": 1})` returns its result.
    Tools belong to groups; only those of active groups are offered and can be called. `basic` is always active.
    """

    def __init__(
        self,
        agent_name: str = "",
        *,
        scope: Callable[[], Scope] | None = None,
        visible: Visible | None = None,
        caller: Caller | None = None,
        middleware: Iterable[Middleware] = (),
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Creates a toolkit; raises ConfigurationError if an argument cannot be used.

        Args:
            scope: Returns the scope of calls; without it, calls have no rules, no approver and no log.
            visible: `visible(tool_name, caller)` returns True if the caller may see the tool.
            caller: The caller on whose behalf calls are made, by default the agent.
            middleware: Layers around every call, inside of the registry's.
            state: Values of bound parameters for this toolkit alone, looked up before the `state` of their `ToolSpec`.
        """
        if not isinstance(cast("object", agent_name), str):
            raise ConfigurationError(
                f"Toolkit({agent_name!r:.80}): the first argument is the agent's name: write Session([...]) for a list "
                "of tools, or Toolkit('name') and register_tool_function(...)"
            )
        self.agent_name = agent_name
        self._catalogue = Catalogue()
        self._groups = Groups()
        self._visible = () if visible is None else (visible,)
        self._middleware = tuple(middleware)
        self._state = state
        self._caller = caller or Caller(agent=agent_name)
        own = new_scope(self._catalogue)
        self._shared = scope or (lambda: own)
        self._made: tuple[Scope, Scope] | None = None
        self._tracer: Tracer | None = None
        self._watchers = Watchers()
        # Wrong settings raise here, and not at the first call.
        _ = self._call_scope

    def __repr__(self) -> str:
        return f"<Toolkit {self.agent_name!r}: {count_of(len(self), 'tool')}>"

    def configure(self, *, visible: Visible | None = None, middleware: Iterable[Middleware] = ()) -> None:
        """Adds to the settings of this toolkit. Rules and an approver are its registry's or its session's.

        Args:
            visible: Hides more tools: `visible(tool_name, caller)` returns True if the caller may see the tool.
            middleware: Adds layers around every call, inside of the present ones.

        Raises:
            ConfigurationError: The predicate or a layer cannot be used.
        """
        layers = tuple(middleware)
        self._call_scope.narrow(visible=visible).with_middleware(layers)
        if visible is not None:
            self._visible += (visible,)
        self._middleware += layers
        self._made = None

    # -- what is here -------------------------------------------------------------------------------------------

    @property
    def tools(self) -> Mapping[str, RegisteredToolFunction]:
        """The registered tools by name, those of inactive groups too."""
        from toolwire.facade.registered import RegisteredToolFunction

        return MappingProxyType(
            {entry.name: RegisteredToolFunction(entry, self._stream, self.execute_tool) for entry in self._catalogue}
        )

    @property
    def groups(self) -> Mapping[str, ToolGroup]:
        """The groups by name, as they are now."""
        return MappingProxyType({group.name: group for group in self._groups})

    def add_tool(self, tool: object) -> None:
        """Adds a tool to the group `basic`: any object that `ToolRegistry.register` takes.

        Raises:
            DefinitionError: it cannot be a tool.
            RegistrationError: another tool has the name.
        """
        from toolwire.facade.tools.intake import entries_of

        self._catalogue.add_all(entries_of(tool))

    def add_tools(self, tools: Iterable[object]) -> None:
        """Adds several tools; see `add_tool`."""
        for tool in tools:
            self.add_tool(tool)

    def draw(self, catalogue: Catalogue, name: str) -> None:
        """Adds a registry's tool with all its settings there, and follows it: see `Catalogue.draw`."""
        self._catalogue.draw(catalogue, name, lambda entry: entry.bound_to(lambda: self._call_scope))

    def register_tool_function(
        self,
        tool_func: ToolFunction,
        group_name: str | Literal["basic"] = BASIC,
        preset_kwargs: dict[str, Any] | None = None,
        func_description: str | None = None,
        json_schema: dict[str, Any] | None = None,
        include_long_description: bool = True,
        include_var_positional: bool = False,
        include_var_keyword: bool = False,
        postprocess_func: Callable[[ToolUseBlock, ToolResponse], Any] | None = None,
    ) -> None:
        """Adds a function as a tool.

        `preset_kwargs` are passed at each call, any objects; no model sees them or can set them. `json_schema`, in the
        nested or flat chat form, replaces the schema of the signature, and its name the function's. `func_description`
        replaces the text of the docstring or json_schema. The `include_...` flags add the docstring's further
        paragraphs, `*args` and `**kwargs` to the description. `postprocess_func`, sync or async, gets each response
        first; its return value replaces the response, and None keeps it.

        Raises:
            RegistrationError: the name is taken, or the group does not exist (a ValueError).
            DefinitionError: it cannot be a tool, or the json_schema has another form (a TypeError).
            BindingError: the function does not take a preset, or the preset does not fit (a ValueError).
        """
        from toolwire.facade.registered import check_postprocess, tool_for
        from toolwire.facade.tools.intake import check_reserved

        self._groups.require_names([group_name])
        check_postprocess(postprocess_func)
        tool = tool_for(
            tool_func,
            presets={} if preset_kwargs is None else preset_kwargs,
            description=func_description,
            json_schema=json_schema,
            include_long_description=include_long_description,
            include_var_positional=include_var_positional,
            include_var_keyword=include_var_keyword,
        )
        check_reserved(tool.name, tool)
        self._catalogue.add_new(
            Entry(name=tool.name, tool=tool, handle=tool_func, group=group_name, finalise=postprocess_func)
        )

    def set_extended_model(self, finish_function_name: str, structured_model: type[BaseModel] | None) -> None:
        """Makes a registered function take a model's fields beside its own arguments; None removes them again.

        A call is validated by the model. Its result has the text in `metadata["response_msg"]` and the validated model
        in `metadata["structured"]`; the function itself receives the fields that it has parameters for.

        Raises:
            RegistrationError: no tool has that name.
            DefinitionError: it is not a model with fields, or one of the fields is preset.
        """
        from toolwire.definition.extended import extend_tool

        self._catalogue.change(finish_function_name, lambda tool: extend_tool(tool, structured_model))

    def get_tool(self, name: str) -> Any:
        """Returns the same object that was added under that name; None when there is none."""
        entry = self._catalogue.find(name)
        return None if entry is None else entry.handle

    def list_tools(self) -> list[Any]:
        """Returns the tools' objects, in the order in which they were added."""
        return [entry.handle for entry in self._catalogue]

    def get_json_schemas(self, group_names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Returns the schemas of the tools in the nested chat form: those of active groups, or of the named groups.

        Hidden, denied and disabled tools are left out. An offered tool can be called once its group is active. With
        tool search on and without `group_names`: `search_tools`, the `always` tools, and the tools found so far.

        Raises:
            RegistrationError: a group does not exist.
        """
        from toolwire.definition.chat_form import chat_form
        from toolwire.facade.finding import usable_finder

        scope, selection = self._call_scope, self._selection()
        finder = usable_finder(selection)
        if group_names is not None:
            entries = selection.in_groups(self._groups.require_names(group_names))
        elif finder is None:
            entries = list(selection)
        else:
            entries = [entry for entry in selection if finder.is_offered(entry.name)]
        return [
            chat_form(entry.tool_view)
            for entry in entries
            if entry.disabled is None and not is_denied(entry, scope.policy)
        ]

    # -- groups -------------------------------------------------------------------------------------------------

    def create_tool_group(
        self, group_name: str, description: str, active: bool = False, notes: str | None = None
    ) -> None:
        """Adds a group. The model reads `description`, and `notes` while the group is active.

        Raises:
            RegistrationError: the name is taken, or is `basic` (a ValueError).
        """
        self._groups.create(ToolGroup(group_name, description, active, notes))

    def update_tool_groups(self, group_names: Iterable[str], active: bool) -> None:
        """Switches groups on or off: all of them, or none when one cannot be switched.

        Raises:
            RegistrationError: a group does not exist, or `basic` would be switched off (a ValueError).
        """
        self._groups.switch(group_names, active=active)

    def remove_tool_groups(self, group_names: Iterable[str]) -> None:
        """Removes groups together with their tools: all of them, or none when one cannot be removed.

        Raises:
            RegistrationError: a group does not exist, or it is `basic` (a ValueError).
        """
        names = self._groups.require_names(group_names)
        self._groups.remove(names)
        for entry in list(self._catalogue):
            if entry.group in names:
                self._catalogue.remove(entry.name)

    def get_tool_group_notes(self) -> str:
        """Returns the notes of active groups as one text, each under its group's name; empty without notes."""
        return self._selection().group_notes()

    def allow_group_switching(self, group_names: Iterable[str] | None = None) -> None:
        """Adds the tool `activate_tool_groups`, with which the model switches these groups itself; None: all groups.

        Raises:
            RegistrationError: a group does not exist, or it is `basic`.
        """
        from toolwire.builtin.tool_groups import activate_tool_groups_tool

        self._groups.let_switch(group_names)
        if ACTIVATE_TOOL_GROUPS not in self._catalogue:
            tool = activate_tool_groups_tool(self._groups, self._selection)
            self._catalogue.add(Entry(name=tool.name, tool=tool, handle=tool))

    # -- saving -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Returns the active groups and the registered tools, by name, as JSON values; presets are left out."""
        from toolwire.facade.toolkits.toolkit_state import state_of

        return state_of(self._catalogue, self._groups)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Switches groups to their state when `state_dict` was made. Logs a warning for missing tools and groups.

        Raises:
            ConfigurationError: it is of a newer version, has an unknown key, or is not such a state (a ValueError).
        """
        from toolwire.facade.toolkits.toolkit_state import load_state

        load_state(state_dict, self._catalogue, self._groups)

    # -- calling ------------------------------------------------------------------------------------------------

    async def execute_tool(
        self, name: str, params: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> ToolResult:
        """Runs a tool for the agent, down the whole path, and returns its result. Never raises for a call that fails.

        Bound parameters are looked up in `state` first, for this call and the calls that it makes.

        Raises:
            ConfigurationError: `name` is not text, or `params` are not a mapping, such as a provider's JSON text.
        """
        from toolwire.invocation.invoker import invoke
        from toolwire.invocation.scope import require_result

        check_given(name, params)
        scope, selection = self._call_scope.with_state(state), self._selection()
        if name not in selection and selection.inactive_group(name) is None:
            return self._failure_of_absent(name, params, selection)
        return require_result(await invoke(host_call(name, params, selection, is_guessed=True), async_scope(scope)))

    def call_tool_function(self, tool_call: Mapping[str, Any], *, state: Mapping[str, Any] | None = None) -> ToolStream:
        """Runs a tool that a model asked for, down the whole path, and returns its output chunk by chunk.

        `tool_call` is a tool-use block, or any mapping with `name` and `input`. Use `async for`, with or without
        `await`. Never raises for a call that fails: its last chunk says so. `state` is as in `execute_tool`.

        Raises:
            DefinitionError: it is not such a mapping.
        """
        from toolwire.facade.tool_stream import call_of

        return self._stream(call_of(tool_call), state)

    def _watchers_and_runtime(self) -> tuple[Watchers, Runtime]:
        return self._watchers, self._call_scope.runtime

    def _trace_with(self, tracer: Tracer) -> None:
        """Traces this toolkit's calls from now on, in place of its registry's tracer."""
        self._tracer, self._made = tracer, None

    @property
    def _call_scope(self) -> Scope:
        """Returns the shared scope, narrowed to this toolkit; made anew when the shared one has changed."""
        shared, made = self._shared(), self._made
        if made is None or made[0] is not shared:
            narrowed = shared.narrow(caller=self._caller, groups=self._groups)
            for visible in self._visible:
                narrowed = narrowed.narrow(visible=visible)
            narrowed = narrowed.with_state(self._state).with_middleware(self._middleware)
            narrowed = replace(
                narrowed,
                catalogue=self._catalogue,
                watchers=(*narrowed.watchers, self._watchers),
                tracer=self._tracer or narrowed.tracer,
            )
            made = self._made = (shared, narrowed)
        return made[1]

    def _stream(self, call: ToolCall, state: Mapping[str, Any] | None = None) -> ToolStream:
        from toolwire.facade.tool_stream import stream_call

        return stream_call(decode_call(call, self._selection()), async_scope(self._call_scope.with_state(state)))

    def _selection(self) -> Selection:
        tools = self._call_scope.tools
        assert isinstance(tools, Selection)
        return tools

    def _failure_of_absent(self, name: str, params: Mapping[str, Any] | None, selection: Selection) -> ToolResult:
        near = selection.nearest(name)
        whose = f"{self.agent_name}'s" if self.agent_name else "this"
        return ToolResult.failed(
            "unknown_tool",
            f"Tool '{name}' not available in {whose} toolkit",
            hint=f"Did you mean {near!r}?" if near else "",
            data={"nearest": near},
            call=ToolCall(name, params),
        )


AgentToolkit = Toolkit
"""The name of the class in code for an older system."""
