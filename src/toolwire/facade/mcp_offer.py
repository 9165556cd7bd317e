"""The tools of one MCP server that a registry or toolkit takes, and how they follow the server."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.definition.naming import is_named, program_name
from toolwire.facade.policy_sources import refuse_wrong_rules
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.errors import BindingError, ConfigurationError, DefinitionError, RegistrationError

if TYPE_CHECKING:
    from toolwire.definition.tool import Tool
    from toolwire.mcp.client import MCPClientBase
    from toolwire.mcp.config import Choice
    from toolwire.mcp.pins import Accept, McpPins, Wait
    from toolwire.mcp.tool_function import MCPToolFunction

_LOG = logging.getLogger("toolwire.registry")


_OPTIONS: Mapping[Choice, str] = {
    "enabled": "enable_funcs",
    "disabled": "disable_funcs",
    "presets": "preset_kwargs_mapping",
}
"""The choices that Python has, as `register_mcp_client` calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFault:
    """A choice of the owner that does not fit the tools of the server."""

    choice: Choice
    tool: str
    """The server's own name of the tool, or a pattern."""
    reason: str
    kind: type[BindingError | ConfigurationError] = ConfigurationError

    @property
    def error(self) -> BindingError | ConfigurationError:
        """The error for the owner who made the choice in Python."""
        return self.kind(f"{_OPTIONS[self.choice]}: {self.reason}" if self.kind is ConfigurationError else self.reason)


class FaultyChoices(Exception):
    """Choices of the owner that do not fit the tools of the server."""

    def __init__(self, faults: list[ChoiceFault]) -> None:
        super().__init__(faults[0].reason)
        self.faults = faults


@dataclass(slots=True, kw_only=True)
class Offer:
    """The tools of one server that a registry takes, and how."""

    client: MCPClientBase
    enabled: frozenset[str] | None
    disabled: frozenset[str]
    presets: Mapping[str, Mapping[str, Any]]
    is_wrapped: bool
    options: Mapping[str, Any]
    pins: McpPins
    accept: Accept
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names for tools here, by the server's own."""
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other descriptions of tools, by the server's own names."""
    is_configured: bool = False
    """True if a configuration has the server."""
    _offered: frozenset[str] = frozenset()
    """Names of the tools at the last look. The host took away one that is no longer registered."""
    _off: set[str] = field(default_factory=set[str])
    """Names of the tools that wait until their definitions are accepted."""

    is_watched: bool = False
    """True if a thread looks at the file of pins."""
    listed: int = 0
    """Number of tools that the server listed at last."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """The chosen tools that cannot be used here, by their names without the server's, each with the reason."""

    @property
    def has_waiting_tools(self) -> bool:
        """True if tools wait until their definitions are accepted."""
        return bool(self._off)

    def take(self, scope: Scope) -> None:
        """Adds the tools for the first time. Nothing is added after an error.

        Raises:
            FaultyChoices: A choice does not fit the tools, such as that of a missing tool.
            ConfigurationError: A rule fits none of their calls, or the pins cannot be used.
        """
        faults = self._find_faults()
        if faults:
            raise FaultyChoices(faults)
        waiting = self._find_waiting()
        found = self._entries(self._choose_tools())
        requests = self._requests()
        refuse_wrong_rules(scope.policy, [*found, *requests], is_whole=False, came_later=True)
        written = _provider_names(scope.catalogue)
        # Before the tools: a call of one may need them at once.
        scope.catalogue.server_requests.add_all(requests)
        for entry in found:
            self._add(scope.catalogue, entry, waiting, written)
        self._offered = frozenset(entry.name for entry in found)

    def take_again(self, scope: Scope) -> None:
        """Makes the registered tools those that the server has now. A tool that is unchanged stays as it is."""
        catalogue, waiting = scope.catalogue, self._find_waiting()
        written = _provider_names(catalogue)
        before = {entry.name: entry for entry in catalogue if server_of(entry) == self.client.name}
        found = {entry.name: entry for entry in self._entries(self._choose_tools())}
        for name in before.keys() - found.keys():
            catalogue.remove(name)
        for name, entry in found.items():
            there = before.get(name)
            if there is None and name in self._offered:
                continue  # The host took it away.
            if there is not None and _definition(there) == _definition(entry):
                continue
            why = _why_off(scope, there, entry)
            if why:
                _LOG.warning("the changed tool %r of an MCP server is off: %s", name, why)
                if there is not None:
                    catalogue.remove(name)
            elif there is None:
                self._add(catalogue, entry, waiting, written)
            else:
                # Disabled first: no call may reach a definition that waits. The host's own reason stays.
                if name in waiting and there.disabled is None:
                    catalogue.disable(name, self._off_because(name, waiting[name]))
                catalogue.add(entry, replace=True)
        self._offered = frozenset(found)
        self._switch(catalogue, waiting)

    def _find_waiting(self) -> dict[str, Wait]:
        """Returns the registered names of the tools whose definitions are not accepted."""
        from toolwire.mcp.pins import digest_of

        # The first of two tools with one name counts.
        digests = {tool.name: digest_of(tool) for tool in reversed(self.client.list_tools())}
        off = self.pins.check(self.client.name, digests, self.accept)
        return {self._registered_name(name): why for name, why in off.items()}

    def _registered_name(self, own: str) -> str:
        """Returns the name here of a tool."""
        return f"{self.client.name}/{self.renames.get(own, own)}"

    def _switch(self, catalogue: Catalogue, waiting: Mapping[str, Wait]) -> None:
        """Disables the tools that wait, and enables those that this object disabled and that are accepted now."""
        for name in self._offered:
            entry = catalogue.find(name)
            if entry is None or server_of(entry) != self.client.name:
                continue
            if name in waiting and entry.disabled is None:
                catalogue.disable(name, self._off_because(name, waiting[name]))
            elif name not in waiting and name in self._off:
                catalogue.enable(name)
        self._off &= waiting.keys()

    def _add(self, catalogue: Catalogue, entry: Entry, waiting: Mapping[str, Wait], written: dict[str, str]) -> None:
        from toolwire.protocols.tool_names import provider_name

        why = waiting.get(entry.name)
        try:
            same = written.setdefault(provider_name(entry.name), entry.name)
            if same != entry.name:
                # A server may choose two long names with one digest. No provider could be told of any tool then.
                raise RegistrationError(f"a provider could not tell it and {same!r} apart")
            catalogue.add_new(entry, disabled=None if why is None else self._off_because(entry.name, why))
        except RegistrationError as error:
            _LOG.warning("the tool %r of an MCP server is off: %s", entry.name, error)
            self.refused[entry.name.partition("/")[2]] = str(error)

    def _off_because(self, name: str, why: Wait) -> str:
        """Returns what a model reads of a tool that waits, and tells the operator how to accept it."""
        self._off.add(name)
        server, _, called = name.partition("/")
        tool = next((own for own, new in self.renames.items() if new == called), called)
        mend = f"registry.mcp.accept({server!r}, [{tool!r}])"
        if self.pins.path is not None:
            mend = f"toolwire mcp accept {server} {tool} --pins {self.pins.path}"
        _LOG.warning("the tool %r of an MCP server is off: its definition is %s; accept it by %s", name, why, mend)
        return _REASONS[why]

    def _choose_tools(self) -> list[str]:
        """Returns the names of the tools to add, in the server's order and each once."""
        listed = [tool.name for tool in self.client.list_tools()]
        self.listed, there, requests = len(listed), dict.fromkeys(listed), self._methods()
        for name, times in Counter(listed).items():
            if times > 1:
                message = "the MCP server %r has several tools named %a: each but the first is off"
                _LOG.warning(message, self.client.name, name)
                if self._is_chosen(name):
                    self.refused[name] = "it is there several times, and only the first is on"
        chosen = [name for name in there if self._is_chosen(name)]
        for name in sorted({*chosen} & {*requests}):
            self._refuse(name, "it has the name of a request")
        return [name for name in chosen if name not in requests]

    def _refuse(self, name: str, why: str) -> None:
        self.refused[name] = why
        _LOG.warning("the tool %a of the MCP server %r is off: %s", name, self.client.name, why)

    def _find_faults(self) -> list[ChoiceFault]:
        """Returns the choices of the owner that do not fit. A server may drop a tool later: then it is not there."""
        there, requests = dict.fromkeys(tool.name for tool in self.client.list_tools()), self._methods()
        chosen = [name for name in there if self._is_chosen(name) and name not in requests]
        return [*self._unknown_names(there, requests), *self._equal_names(chosen), *self._unfit_presets(chosen)]

    def _unknown_names(self, there: Collection[str], requests: Collection[str]) -> Iterator[ChoiceFault]:
        choices: dict[Choice, Collection[str]] = {
            "enabled": self.enabled or (),
            "disabled": self.disabled,
            "presets": self.presets,
            "renames": self.renames,
            "descriptions": self.descriptions,
        }
        for choice, names in choices.items():
            for name in sorted(names):
                # The first two may be patterns, and choose requests too.
                is_pattern = choice in ("enabled", "disabled")
                if any(is_named(one, {name}) for one in (*there, *requests)) if is_pattern else name in there:
                    continue
                reason = f"the MCP server {self.client.name!r} has no tool {name!r}{suggestion(nearest(name, there))}"
                yield ChoiceFault(choice=choice, tool=name, reason=reason)

    def _equal_names(self, chosen: Iterable[str]) -> Iterator[ChoiceFault]:
        """Finds new names that another tool has. A server may take it later too: then the later tool is off."""
        owners: dict[str, str] = {}
        for own in chosen:
            called = self.renames.get(own, own)
            other = owners.setdefault(_name_in_programs(called), own)
            renamed = own if own in self.renames else other
            if other != own and renamed in self.renames:
                reason = (
                    f"the tools {other!r} and {own!r} of the MCP server {self.client.name!r} are both named {called!r} "
                    "then: write another name"
                )
                yield ChoiceFault(choice="renames", tool=renamed, reason=reason)

    def _unfit_presets(self, chosen: Collection[str]) -> Iterator[ChoiceFault]:
        for name, presets in self.presets.items():
            if name not in chosen:
                continue
            try:
                tool = self._function(name).__tool__()
                tool.verify()
            except DefinitionError:
                continue
            yield from self._unknown_parameters(name, tool, presets)
            try:
                tool.with_presets(presets).verify()
            except (BindingError, DefinitionError) as error:
                yield ChoiceFault(choice="presets", tool=name, reason=str(error), kind=BindingError)

    def _unknown_parameters(self, name: str, tool: Tool, presets: Collection[str]) -> Iterator[ChoiceFault]:
        """Finds presets of parameters that the tool does not list. Nothing would hold the one that was meant."""
        schema = tool.input_schema
        known = schema.get("properties", {})
        if not known or schema.get("additionalProperties") or "patternProperties" in schema:
            return
        for preset in sorted({*presets} - {*known}):
            reason = (
                f"the tool {name!r} of the MCP server {self.client.name!r} has no parameter "
                f"{preset!r}{suggestion(nearest(preset, known))}"
            )
            yield ChoiceFault(choice="presets", tool=name, reason=reason, kind=BindingError)

    def _is_chosen(self, name: str) -> bool:
        return (self.enabled is None or is_named(name, self.enabled)) and not is_named(name, self.disabled)

    def _methods(self) -> list[str]:
        """Returns the server's own names of the requests that can be passed on, such as `resources:read`."""
        passed_on = self.client.offers
        tools = () if passed_on is None else (*passed_on.tools, *passed_on.feature_tools)
        return [tool.name.partition("/")[2] for tool in tools]

    def _requests(self) -> list[Entry]:
        """Returns the entries of the chosen requests, with the permission of the server's tools."""
        passed_on, permission = self.client.offers, self.options.get("permission")
        if passed_on is None:
            return []
        chosen = [tool for tool in passed_on.tools if self._is_chosen(tool.name.partition("/")[2])]
        made = [Entry(name=tool.name, tool=tool, handle=passed_on, permission=permission) for tool in chosen]
        # The owner has allowed them by name, whatever the permission of the server's tools is.
        return [*made, *(Entry(name=tool.name, tool=tool, handle=passed_on) for tool in passed_on.feature_tools)]

    def _entries(self, names: Iterable[str]) -> list[Entry]:
        """Returns the entries of the tools that can be used here. A warning names each other one."""
        made = (self._entry(name) for name in names)
        return [replace(entry, **self.options) for entry in made if entry is not None]

    def _entry(self, name: str) -> Entry | None:
        """Returns the entry, or None for a tool that cannot be used here. A warning says why."""
        from toolwire.facade.tools.intake import check_reserved

        function, presets = self._function(name), self.presets.get(name)
        try:
            tool = function.__tool__()
            tool.verify()
            check_reserved(tool.name, tool)
        except (DefinitionError, RegistrationError) as error:
            self._refuse(name, str(error))
            return None
        if presets:
            tool = tool.with_presets(presets)
            tool.verify()
        return Entry(name=tool.name, tool=tool, handle=function)

    def _function(self, name: str) -> MCPToolFunction:
        function = self.client.get_callable_function(name, self.is_wrapped)
        if name in self.renames or name in self.descriptions:
            function.called, function.description = self.renames.get(name), self.descriptions.get(name)
        return function


_REASONS: Mapping[Wait, str] = {
    "new": "its server offers it only since later, and the owner has not accepted it",
    "changed": "its server changed it, and the owner has not accepted that",
}
"""The text about a tool that waits, for a model."""


def _provider_names(catalogue: Catalogue) -> dict[str, str]:
    """Returns the names of the tools by those that providers get."""
    from toolwire.protocols.tool_names import provider_name

    return {provider_name(entry.name): entry.name for entry in catalogue}


def server_of(entry: Entry) -> str | None:
    """Returns the name of the MCP server whose tool this is; None for any other tool."""
    from toolwire.mcp.tool_function import MCPToolFunction

    return entry.handle.server if isinstance(entry.handle, MCPToolFunction) else None


def _why_off(scope: Scope, there: Entry | None, entry: Entry) -> str:
    """Returns the reason why a new or changed tool is not taken; empty if it is."""
    if there is not None and there.tool.bindings.current.keys() != entry.tool.bindings.current.keys():
        return "parameters of it were bound here; register the server again, and bind them"
    try:
        refuse_wrong_rules(scope.policy, [entry], is_whole=False, came_later=True)
    except ConfigurationError as error:
        return str(error)
    return ""


def _definition(entry: Entry) -> object:
    from toolwire.mcp.tool_function import MCPToolFunction

    return entry.handle.value if isinstance(entry.handle, MCPToolFunction) else None


def _name_in_programs(name: str) -> str:
    """Returns the name of a tool as programs and clients write it."""
    try:
        return program_name(name)
    except DefinitionError:
        # The tool is off: its name cannot be used.
        return name
