"""The tools that a session's model sees, and those that it may call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.selection import Selection
from toolwire.definition.tool import Tool
from toolwire.facade.finding import is_allowed, list_allowed, tools_to_offer
from toolwire.facade.given_calls import decode_reply
from toolwire.invocation.judge import is_denied
from toolwire.invocation.resolve import may_name
from toolwire.invocation.scope import Scope
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply
from toolwire.vocabulary.texts.lone_surrogates import encodable_text


def visible_tools(scope: Scope, protocol: CallingProtocol) -> list[Tool]:
    """Returns the tools that the model sees: see `Session.tools`."""
    told, programs = tools_to_offer(scope), _programs(scope, protocol)
    if programs is None:
        return [tool for _, tool in told]
    by_name = {**dict(told), CODE_EXECUTION: programs}
    return [by_name[entry.name] for entry in scope.tools if entry.name in by_name]


def with_notes(described: str | list[dict[str, Any]], scope: Scope) -> str | list[dict[str, Any]]:
    """Returns a prompt with the notes of active groups at its end.

    A native request has no place for them but the description of `activate_tool_groups`.
    """
    if not isinstance(described, str) or not isinstance(scope.tools, Selection):
        return described
    notes = encodable_text(scope.tools.group_notes())
    return f"{described.rstrip()}\n\n{notes}\n" if notes else described


def read_reply(reply: Any, scope: Scope, protocol: CallingProtocol) -> Reply:
    """Returns the reply as read by the protocol. In the calls of a given `Reply`, JSON texts are decoded.

    Raises:
        ConfigurationError: It is not a reply of this protocol.
    """
    if isinstance(reply, Reply):
        return decode_reply(reply, scope.tools)
    return protocol.parse(reply, callable_tools(scope, protocol))


def callable_tools(scope: Scope, protocol: CallingProtocol) -> KnownTools:
    """Returns the tools that may be called. With tool search they are more than the model sees.

    Disabled tools are included, so that a call of one is refused with its reason.
    """
    return _known_tools(scope, _CallableTools(scope, protocol))


def nameable_tools(scope: Scope, protocol: CallingProtocol) -> KnownTools:
    """Returns the tools that may be called and are not disabled, which a text for the model may name."""
    return _known_tools(scope, _CallableTools(scope, protocol, has_disabled=False))


def _known_tools(scope: Scope, tools: Mapping[str, Tool]) -> KnownTools:
    return KnownTools(tools, names=lambda: [entry.name for entry in scope.catalogue])


class _CallableTools(Mapping[str, Tool]):
    """The callable tools by name, each looked up when a reader of a reply asks for it.

    A reply calls a few tools of many. All are listed only for a text that may name any of them.
    """

    def __init__(self, scope: Scope, protocol: CallingProtocol, *, has_disabled: bool = True) -> None:
        self._scope = scope
        self._has_disabled = has_disabled
        self._protocol = protocol
        self._found: dict[str, Tool | None] = {}
        """The answers so far. They stay, because a reader relies on a name that it has found."""
        self._all: list[str] | None = None

    def __getitem__(self, name: str) -> Tool:
        if name not in self._found:
            self._found[name] = self._find(name)
        found = self._found[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        if self._all is None:
            self._all = [tool.name for tool in self._list() if self._found.setdefault(tool.name, tool) is not None]
        return iter(self._all)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _is_callable(self, entry: Entry) -> bool:
        return self._has_disabled or may_name(entry, self._scope)

    def _find(self, name: str) -> Tool | None:
        entry = self._scope.tools.find(name)
        if entry is not None and is_allowed(entry, self._scope) and self._is_callable(entry):
            return entry.tool_view
        return _programs(self._scope, self._protocol) if name == CODE_EXECUTION else None

    def _list(self) -> Iterator[Tool]:
        yield from (entry.tool_view for entry in list_allowed(self._scope) if self._is_callable(entry))
        programs = _programs(self._scope, self._protocol)
        if programs is not None:
            yield programs


def _programs(scope: Scope, protocol: CallingProtocol) -> Tool | None:
    """Returns the tool that runs programs. None if it may not be called, or the prompt explains programs itself."""
    entry = scope.tools.find(CODE_EXECUTION)
    is_told = entry is not None and entry.disabled is None and not is_denied(entry, scope.policy)
    return entry.tool if entry is not None and is_told and not protocol.writes_programs else None
