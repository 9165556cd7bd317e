"""Tool search for a catalogue: the entry `search_tools`, and the tools that a model is told of without searching."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from toolwire.builtin.search_tools import search_tools_tool
from toolwire.catalogue.catalogue import Catalogue, suggestion
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.selection import Selection
from toolwire.definition.naming import is_named
from toolwire.definition.tool import Tool
from toolwire.invocation.judge import is_denied
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import SEARCH_TOOLS, Caller
from toolwire.vocabulary.errors import ConfigurationError

REMEMBERED_LIMIT = 50
"""Found tools that a session keeps in its prompt, the latest: ten searches. More would be a long list again."""


class ToolFinder:
    """Finds tools for models. `registry.configure(tool_search=True)` makes it."""

    name = SEARCH_TOOLS

    def __init__(
        self,
        entries: Callable[[Caller | None], Iterable[Entry]],
        *,
        always: Iterable[str],
        remembers: bool,
        name_of: Callable[[str], str] | None = None,
    ) -> None:
        """`entries` returns the tools that a caller can find; `always` holds names or patterns of tools that are always
        listed. `name_of` returns the name by which the model calls a tool, if that is not its local one.

        With `remembers`, found tools are listed from then on; such a finder belongs to one conversation.
        """
        # Import here: callers that never search do not need it.
        from toolwire.catalogue.search import ToolSearch

        if isinstance(always, str):
            raise ConfigurationError(f"always={always!r} is one string: write always=[{always!r}]")
        self.always = tuple(always)
        self._entries = entries
        self._search = ToolSearch(lambda: entries(None))
        self._is_remembering = remembers
        self._lock = threading.Lock()
        self._found: dict[str, None] = {}
        self._name_of = name_of
        self._tool = search_tools_tool(self._find_to_call)

    def __tool__(self) -> Tool:
        """Returns the tool as models see it."""
        return self._tool

    @property
    def found_names(self) -> tuple[str, ...]:
        """The names that it remembers, the latest last."""
        return tuple(self._found)

    def find(self, query: str, limit: int, caller: Caller | None = None) -> list[Tool]:
        """Returns the tools that answer the query best, best first, under their local names.

        They are tools of this caller; None: of the caller of the registry, toolkit or session.
        """
        tools = [entry.tool_view for entry in self._search.find(query, limit, self._entries(caller))]
        if self._is_remembering:
            self._remember([tool.name for tool in tools])
        return tools

    def _find_to_call(self, query: str, limit: int, caller: Caller | None) -> list[Tool]:
        """Works as `find`. The tools have the names by which the model calls them."""
        found = self.find(query, limit, caller)
        return found if self._name_of is None else [_renamed(tool, self._name_of(tool.name)) for tool in found]

    def is_offered(self, name: str) -> bool:
        """Returns True if the model sees the tool without a search."""
        return name == SEARCH_TOOLS or name in self._found or is_named(name, self.always)

    def _remember(self, names: list[str]) -> None:
        with self._lock:
            kept = [name for name in self._found if name not in names]
            # Replaced as a whole, since another thread may be reading it.
            self._found = dict.fromkeys([*kept, *reversed(names)][-REMEMBERED_LIMIT:])


def _renamed(tool: Tool, name: str) -> Tool:
    view = copy.copy(tool)
    view.name = name
    return view


def search_entry(
    scope: Callable[[], Scope],
    *,
    always: Iterable[str],
    remembers: bool = False,
    name_of: Callable[[str], str] | None = None,
) -> Entry:
    """Returns the tool `search_tools`. It finds the tools that the caller sees at that time and the policy does not
    deny. The other arguments are those of `ToolFinder`.
    """

    def entries(caller: Caller | None) -> list[Entry]:
        return _findable(scope().narrow(caller=caller))

    finder = ToolFinder(entries, always=always, remembers=remembers, name_of=name_of)
    return Entry(name=SEARCH_TOOLS, tool=finder.__tool__(), handle=finder, rebind=_rebind_search)


def _always(entry: Entry) -> tuple[str, ...]:
    return entry.handle.always if isinstance(entry.handle, ToolFinder) else ()


def _rebind_search(entry: Entry, scope: Callable[[], Scope], is_conversation: bool) -> Entry:
    """Each conversation gets a search of its own, so that conversations do not share found tools."""
    made = search_entry(scope, always=_always(entry), remembers=is_conversation)
    return replace(entry, tool=made.tool, handle=made.handle, disabled=None)


def offer_search(scope: Callable[[], Scope], always: Iterable[str]) -> None:
    """Puts a search that lists `always` into a session's catalogue.

    Raises:
        ConfigurationError: `always` names a tool that is not there.
    """
    catalogue, entry = scope().catalogue, search_entry(scope, always=always, remembers=True)
    for name in _always(entry):
        if not any(is_named(known.name, [name]) for known in catalogue):
            raise ConfigurationError(
                f"always names {name!r}, and there is no such tool{suggestion(catalogue.nearest(name))}"
            )
    catalogue.add(entry, replace=finder_in(catalogue) is not None)


def list_allowed(scope: Scope) -> list[Entry]:
    """Returns the tools that the policy does not deny, except those that run programs; disabled tools included."""
    return [entry for entry in scope.tools if is_allowed(entry, scope)]


def is_allowed(entry: Entry, scope: Scope) -> bool:
    """Returns True unless the policy denies the tool or the tool runs programs."""
    return entry.composite is None and not is_denied(entry, scope.policy)


def tools_to_offer(scope: Scope) -> list[tuple[str, Tool]]:
    """Returns the tools that a model is told of, by name. Disabled, denied and program-running tools are left out.

    With tool search on: `search_tools`, the `always` tools, and the tools found so far.
    """
    finder = usable_finder(scope.tools)
    return [
        (entry.name, entry.tool_view)
        for entry in list_allowed(scope)
        if entry.disabled is None and (finder is None or entry.tool.ends_turn or finder.is_offered(entry.name))
    ]


def _findable(scope: Scope) -> list[Entry]:
    entries = [entry for entry in list_allowed(scope) if entry.name != SEARCH_TOOLS and entry.disabled is None]
    return [entry for entry in entries if not entry.tool.ends_turn]


def finder_in(catalogue: Catalogue | Selection) -> ToolFinder | None:
    """Returns the finder of a catalogue; None if it has no tool search."""
    entry = catalogue.find(SEARCH_TOOLS)
    return entry.handle if entry is not None and isinstance(entry.handle, ToolFinder) else None


def usable_finder(catalogue: Catalogue | Selection) -> ToolFinder | None:
    """Returns the finder; None also while the search is disabled, when models are told of all tools."""
    entry = catalogue.find(SEARCH_TOOLS)
    return None if entry is None or entry.disabled is not None else finder_in(catalogue)
