"""The tools that come with toolwire, as a registry's owner switches them on and off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.vocabulary.calls import CANCEL_CALL, CODE_EXECUTION, POLL_CALL, READ_RESULT, SEARCH_TOOLS, START_CALL
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.facade.background import BackgroundCalls
    from toolwire.facade.code_execution import CodeExecutionTool
    from toolwire.facade.parts import Parts
    from toolwire.sandbox.limits import Limits
    from toolwire.sandbox.report import MinIsolation
    from toolwire.vocabulary.spill import Spill

CODE_EXECUTION_TIMEOUT_S = 30.0
"""Seconds from a program's start to its end, tools included: longer than a few slow look-ups, short of a stuck turn."""


class BuiltIns:
    """Built-in tools of a registry."""

    @property
    def _parts(self) -> Parts:
        raise NotImplementedError

    def _invoke_own(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        raise NotImplementedError

    def enable_code_execution(
        self,
        timeout: float | None = CODE_EXECUTION_TIMEOUT_S,
        *,
        limits: Limits | None = None,
        min_isolation: MinIsolation = "kernel",
        modules: Iterable[str] | None = None,
    ) -> None:
        """Lets models run programs: adds the tool `code_execution`.

        `timeout` is seconds for a whole program, tools included; None is the default of 30. `limits` say more, and
        then stand in its place. `min_isolation` as in `run_program`: where this machine has less, calls fail as
        `unavailable`. With `modules` programs may import only these; None means all that programs may import.

        Raises:
            ConfigurationError: `timeout` is not a finite number above 0, or `modules` names a module that no program
                may import.
        """
        from toolwire.facade.programs import programs_entry
        from toolwire.sandbox.limits import Limits

        parts = self._parts
        limits = limits or Limits.within(_seconds(timeout))
        entry = programs_entry(
            parts.catalogue,
            lambda: parts.setup,
            limits,
            self._invoke_own,
            min_isolation=min_isolation,
            modules=modules,
        )
        parts.catalogue.add(entry, replace=True)
        parts.catalogue.enable(CODE_EXECUTION)

    def disable_code_execution(self) -> None:
        """Takes `code_execution` away again; does nothing when it is not there."""
        if self._code_execution is not None:
            self._parts.catalogue.remove(CODE_EXECUTION)

    def enable_tool_search(self, *, always: Iterable[str] = ()) -> None:
        """Lets models search for tools instead of being told of all of them: adds the tool `search_tools`.

        Sessions then tell of it, of the tools that `always` names (`*` stands for any text), and of what was found.
        All tools can be called as before.

        Raises:
            RegistrationError: a tool of yours has that name.
        """
        from toolwire.facade.finding import finder_in, search_entry

        parts = self._parts
        entry = search_entry(parts.catalogue, lambda: parts.setup, always=always)
        parts.catalogue.add(entry, replace=finder_in(parts.catalogue) is not None)
        parts.catalogue.enable(SEARCH_TOOLS)

    def disable_tool_search(self) -> None:
        """Takes `search_tools` away again: sessions tell of all tools. Does nothing when it is not there."""
        from toolwire.facade.finding import finder_in

        if finder_in(self._parts.catalogue) is not None:
            self._parts.catalogue.remove(SEARCH_TOOLS)

    def enable_result_pages(self, spill: Spill | None = None) -> None:
        """Lets models read on in results that are too long for them: adds the tool `read_result`.

        A model gets the first page of such a result, and an id. `spill` is where the whole is kept: by default in
        memory, 16 MiB here and as much in each toolkit and session; what nobody read for the longest time goes first.

        Raises:
            RegistrationError: a tool of yours has that name.
        """
        from toolwire.facade.pages import pages_entry

        there = self._parts.catalogue.find(READ_RESULT)
        self._parts.catalogue.add(pages_entry(spill), replace=there is not None and there.spill is not None)
        self._parts.catalogue.enable(READ_RESULT)

    def disable_result_pages(self) -> None:
        """Takes `read_result` away again: long results are cut. Does nothing when it is not there."""
        there = self._parts.catalogue.find(READ_RESULT)
        if there is not None and there.spill is not None:
            self._parts.catalogue.remove(READ_RESULT)

    @property
    def background(self) -> BackgroundCalls:
        """Calls that nobody waits for: `start`, `poll`, `wait`, `cancel`."""
        from toolwire.facade.background import BackgroundCalls

        parts = self._parts
        if parts.background is None:
            parts.background = BackgroundCalls(parts.setup.runtime, lambda: (parts.catalogue, parts.setup))
        return parts.background

    def enable_background_calls(self) -> None:
        """Lets models start calls that take long: adds the tools `start_call`, `poll_call` and `cancel_call`.

        Raises:
            RegistrationError: a tool of yours has one of these names.
        """
        from toolwire.builtin.background_calls import background_tools

        background, catalogue = self.background, self._parts.catalogue
        for tool in background_tools(background):
            there = catalogue.find(tool.name)
            is_ours = there is not None and there.handle is background
            catalogue.add(Entry(name=tool.name, tool=tool, handle=background), replace=is_ours)
            catalogue.enable(tool.name)

    def disable_background_calls(self) -> None:
        """Takes these tools away again; what was started runs on. Does nothing when they are not there."""
        catalogue, background = self._parts.catalogue, self._parts.background
        for name in (START_CALL, POLL_CALL, CANCEL_CALL):
            there = catalogue.find(name)
            if there is not None and there.handle is background:
                catalogue.remove(name)

    @property
    def _code_execution(self) -> CodeExecutionTool | None:
        entry = self._parts.catalogue.find(CODE_EXECUTION)
        return cast("CodeExecutionTool", entry.handle) if entry is not None else None


def _seconds(timeout: object) -> float:
    if timeout is None:
        return CODE_EXECUTION_TIMEOUT_S
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise ConfigurationError(
            f"timeout={timeout!r:.80}: give seconds above 0, or None for the default of {CODE_EXECUTION_TIMEOUT_S:g}"
        )
    return timeout
