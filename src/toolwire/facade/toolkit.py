"""`Toolkit`: what one agent may see and call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.facade.setup import Setup
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


class Toolkit:
    """Tools of one agent. Made by `registry.create_agent_toolkit`, then under the registry's rules, or on its own."""

    def __init__(self, agent_name: str = "", *, setup: Callable[[], Setup] | None = None) -> None:
        """`setup` is how calls are run; without one: no rules, nobody to ask, no log."""
        self.agent_name = agent_name
        self._catalogue = Catalogue()
        own = Setup()
        self._setup = setup or (lambda: own)

    def __repr__(self) -> str:
        return f"<Toolkit {self.agent_name!r}: {len(self._catalogue)} tools>"

    @property
    def tools(self) -> Mapping[str, Any]:
        """The tools' objects by name, as they were added."""
        return MappingProxyType({entry.name: entry.handle for entry in self._catalogue})

    def add_tool(self, tool: object) -> None:
        """Adds whatever `ToolRegistry.register` takes.

        Raises:
            DefinitionError: it cannot be a tool.
            RegistrationError: another tool has the name.
        """
        from toolwire.facade.intake import entries_of

        for entry in entries_of(tool):
            self._catalogue.add(entry)

    def add_tools(self, tools: Iterable[object]) -> None:
        """Adds several."""
        for tool in tools:
            self.add_tool(tool)

    def add_entry(self, entry: Entry) -> None:
        """Adds a registry's entry, with all that is set for it there."""
        from toolwire.facade.finding import at_home

        self._catalogue.add(at_home(entry, self._catalogue, lambda: self._setup().policy))

    def get_tool(self, name: str) -> Any:
        """The very object that was added under that name; None when there is none."""
        entry = self._catalogue.find(name)
        return None if entry is None else entry.handle

    def list_tools(self) -> list[Any]:
        """The tools' objects, in the order they were added."""
        return [entry.handle for entry in self._catalogue]

    def __entries__(self) -> tuple[list[Entry], Setup]:
        """The entries and the setup, for a session that is made of this toolkit."""
        return list(self._catalogue), self._setup()

    async def execute_tool(self, name: str, params: Mapping[str, Any] | None = None) -> ToolResult:
        """Runs a tool for the agent, down the whole path. Never raises for a call that fails."""
        from toolwire.invocation.invoker import invoke
        from toolwire.invocation.scope import ended

        if name not in self._catalogue:
            return self._not_here(name, params)
        call = ToolCall(name, params, id=new_id("r"))
        return ended(await invoke(call, self._setup().loop_scope(self._catalogue)))

    def _not_here(self, name: str, params: Mapping[str, Any] | None) -> ToolResult:
        near = self._catalogue.nearest(name)
        return ToolResult.failed(
            "unknown_tool",
            f"Tool '{name}' not available in {self.agent_name}'s toolkit",
            hint=f"Did you mean {near!r}?" if near else "",
            data={"nearest": near},
            call=ToolCall(name, params),
        )
