"""Tools that come with toolwire, which the owner of a registry switches on and off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import ASK_USER, CANCEL_CALL, POLL_CALL, READ_RESULT, SEARCH_TOOLS, START_CALL
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.facade.built_in.background import BackgroundCalls
    from toolwire.vocabulary.kept_text import Spill

_ASKS_USER: Final = object()
"""The handle of our own `ask_user`. A tool of the host with that name has another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Tools that are switched together.

    Attributes:
        names: Their names.
        entries: The tools to add; empty if they are to be removed.
        is_ours: True for an entry that such a switch added; a tool of the host may have the same name.
    """

    names: Sequence[str]
    entries: Sequence[Entry]
    is_ours: Callable[[Entry], bool]


def switch_tools(catalogue: Catalogue, switches: Iterable[Switch]) -> None:
    """Adds and removes the tools of all switches, or changes nothing after an error. Added tools are enabled.

    Raises:
        RegistrationError: A tool of the host has the name of one that is to be added.
    """
    again: list[Entry] = []
    new: list[Entry] = []
    gone: list[str] = []
    for switch in switches:
        ours = {name for name in switch.names if (entry := catalogue.find(name)) and switch.is_ours(entry)}
        for entry in switch.entries:
            (again if entry.name in ours else new).append(entry)
        if not switch.entries:
            gone += ours
    catalogue.add_all(new)
    catalogue.add_all(again, replace=True)
    for entry in (*new, *again):
        catalogue.enable(entry.name)
    for name in gone:
        catalogue.remove(name)


def search_switch(scope: Callable[[], Scope], tool_search: bool | Iterable[str]) -> Switch:
    """Returns the switch of `search_tools`; `tool_search` is True, False, or the tools that are always listed.

    Raises:
        ConfigurationError: `tool_search` is one string.
    """
    from toolwire.facade.built_in.finding import ToolFinder, search_entry

    if isinstance(tool_search, str):
        raise ConfigurationError(f"tool_search={tool_search!r} is one string: write tool_search=[{tool_search!r}]")
    always = () if isinstance(tool_search, bool) else tool_search
    return Switch(
        names=[SEARCH_TOOLS],
        entries=[] if tool_search is False else [search_entry(scope, always=always)],
        is_ours=lambda entry: isinstance(entry.handle, ToolFinder),
    )


def pages_switch(result_pages: bool | Spill) -> Switch:
    """Returns the switch of `read_result`; `result_pages` is True, False, or the owner's memory of long results."""
    from toolwire.facade.built_in.pages import pages_entry

    spill = None if isinstance(result_pages, bool) else result_pages
    return Switch(
        names=[READ_RESULT],
        entries=[] if result_pages is False else [pages_entry(spill)],
        is_ours=lambda entry: entry.spill is not None,
    )


def questions_switch(user_questions: bool) -> Switch:
    """Returns the switch of `ask_user`."""
    from toolwire.builtin.ask_user import ask_user_tool

    return Switch(
        names=[ASK_USER],
        entries=[Entry(name=ASK_USER, tool=ask_user_tool(), handle=_ASKS_USER)] if user_questions else [],
        is_ours=lambda entry: entry.handle is _ASKS_USER,
    )


def background_switch(calls: BackgroundCalls, background_calls: bool) -> Switch:
    """Returns the switch of `start_call`, `poll_call` and `cancel_call`."""
    from toolwire.builtin.background_calls import background_tools

    tools = background_tools(calls) if background_calls else []
    return Switch(
        names=[START_CALL, POLL_CALL, CANCEL_CALL],
        entries=[Entry(name=tool.name, tool=tool, handle=calls) for tool in tools],
        is_ours=lambda entry: entry.handle is calls,
    )
