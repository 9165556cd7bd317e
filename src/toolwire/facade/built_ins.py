"""The tools that come with toolwire; a registry's owner switches them on and off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from toolwire.catalogue.entry import Entry
from toolwire.facade.driving import call_blocking
from toolwire.facade.registry_base import RegistryBase
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import (
    ASK_USER,
    CANCEL_CALL,
    CLEANUP_S,
    CODE_EXECUTION,
    POLL_CALL,
    PROGRAM_TIME_S,
    READ_RESULT,
    SEARCH_TOOLS,
    START_CALL,
    ToolCall,
)
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.facade.built_in.background import BackgroundCalls
    from toolwire.facade.built_in.code_execution_tool import CodeExecutionTool
    from toolwire.sandbox.limits import Limits
    from toolwire.sandbox.report import MinIsolation
    from toolwire.vocabulary.kept_text import Spill


class BuiltInTools(RegistryBase):
    """A registry's switches for the tools that come with toolwire."""

    def _invoke_own(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        # Not `self.invoke`: a subclass may override that name.
        return call_blocking(ToolCall(name, arguments, id=new_id("r")), self._parts.scope)

    def enable_code_execution(
        self,
        timeout: float | None = PROGRAM_TIME_S,
        *,
        limits: Limits | None = None,
        min_isolation: MinIsolation = "kernel",
        modules: Iterable[str] | None = None,
    ) -> None:
        """Lets models run programs: adds the tool `code_execution`.

        `timeout` is the seconds for a whole program, tools included; None means the default of 30. `limits` replace it
        and bound more. `min_isolation` is as in `run_program`; calls fail as `unavailable` if this machine offers less.
        With `modules` programs may import only these; None means all modules that programs may import.

        Raises:
            ConfigurationError: `timeout` is not a finite number above 0, or `modules` names a module that programs may
                not import.
        """
        from toolwire.facade.built_in.program_entry import programs_entry
        from toolwire.sandbox.limits import Limits

        parts = self._parts
        bounds = limits or Limits.within(_seconds(timeout))
        entry = programs_entry(
            lambda: parts.scope,
            bounds,
            self._invoke_own,
            min_isolation=min_isolation,
            modules=modules,
        )
        parts.scope.catalogue.add(entry, replace=True)
        parts.scope.catalogue.enable(CODE_EXECUTION)
        parts.change(lambda scope: replace(scope, cleanup_s=bounds.cleanup_s))

    def disable_code_execution(self) -> None:
        """Removes `code_execution` again; does nothing when it is not registered."""
        if self._code_execution is not None:
            self._parts.scope.catalogue.remove(CODE_EXECUTION)
            self._parts.change(lambda scope: replace(scope, cleanup_s=CLEANUP_S))

    def enable_tool_search(self, *, always: Iterable[str] = ()) -> None:
        """Lets models search for tools, so that prompts need not list all of them: adds the tool `search_tools`.

        Sessions then list `search_tools`, the tools named in `always` (`*` stands for any text), and the tools found so
        far. All tools can still be called.

        Raises:
            RegistrationError: a tool of yours has that name.
        """
        from toolwire.facade.built_in.finding import finder_in, search_entry

        parts = self._parts
        entry = search_entry(lambda: parts.scope, always=always)
        parts.scope.catalogue.add(entry, replace=finder_in(parts.scope.catalogue) is not None)
        parts.scope.catalogue.enable(SEARCH_TOOLS)

    def disable_tool_search(self) -> None:
        """Removes `search_tools` again; sessions then list all tools. Does nothing when it is not registered."""
        from toolwire.facade.built_in.finding import finder_in

        if finder_in(self._parts.scope.catalogue) is not None:
            self._parts.scope.catalogue.remove(SEARCH_TOOLS)

    def enable_result_pages(self, spill: Spill | None = None) -> None:
        """Lets models read on in results that are too long for them: adds the tool `read_result`.

        A model gets the first page of such a result, and an id. `spill` keeps the whole text. By default a session
        with a store keeps it there. Other texts are in memory, with 16 MiB here and as much in each toolkit and
        session. The least recently read texts are dropped first.

        Raises:
            RegistrationError: a tool of yours has that name.
        """
        from toolwire.facade.built_in.pages import pages_entry

        there = self._parts.scope.catalogue.find(READ_RESULT)
        self._parts.scope.catalogue.add(pages_entry(spill), replace=there is not None and there.spill is not None)
        self._parts.scope.catalogue.enable(READ_RESULT)

    def disable_result_pages(self) -> None:
        """Removes `read_result` again; long results are then cut. Does nothing when it is not registered."""
        there = self._parts.scope.catalogue.find(READ_RESULT)
        if there is not None and there.spill is not None:
            self._parts.scope.catalogue.remove(READ_RESULT)

    def enable_user_questions(self) -> None:
        """Lets models ask the person: adds the tool `ask_user(question, options=None, schema=None)`.

        A question is decided as an approval is: by the session's approver, or later in its store.

        Raises:
            RegistrationError: A tool of yours has that name.
        """
        from toolwire.builtin.ask_user import ask_user_tool

        catalogue, there = self._parts.scope.catalogue, self._asking_entry
        if there is None:
            tool = ask_user_tool()
            catalogue.add(Entry(name=ASK_USER, tool=tool, handle=_ASKS_USER))
        catalogue.enable(ASK_USER)

    def disable_user_questions(self) -> None:
        """Removes `ask_user` again; does nothing when it is not registered."""
        if self._asking_entry is not None:
            self._parts.scope.catalogue.remove(ASK_USER)

    @property
    def _asking_entry(self) -> Entry | None:
        there = self._parts.scope.catalogue.find(ASK_USER)
        return there if there is not None and there.handle is _ASKS_USER else None

    @property
    def background(self) -> BackgroundCalls:
        """Calls that run in the background: `start`, `poll`, `wait`, `cancel`."""
        from toolwire.facade.built_in.background import BackgroundCalls

        parts = self._parts
        if parts.background is None:
            parts.background = BackgroundCalls(lambda: parts.scope)
        return parts.background

    def enable_background_calls(self) -> None:
        """Lets models start long calls in the background: adds the tools `start_call`, `poll_call` and `cancel_call`.

        Raises:
            RegistrationError: a tool of yours has one of these names.
        """
        from toolwire.builtin.background_calls import background_tools

        background, catalogue = self.background, self._parts.scope.catalogue
        for tool in background_tools(background):
            there = catalogue.find(tool.name)
            is_ours = there is not None and there.handle is background
            catalogue.add(Entry(name=tool.name, tool=tool, handle=background), replace=is_ours)
            catalogue.enable(tool.name)

    def disable_background_calls(self) -> None:
        """Removes these tools again; started calls run on. Does nothing when they are not registered."""
        catalogue, background = self._parts.scope.catalogue, self._parts.background
        for name in (START_CALL, POLL_CALL, CANCEL_CALL):
            there = catalogue.find(name)
            if there is not None and there.handle is background:
                catalogue.remove(name)

    @property
    def _code_execution(self) -> CodeExecutionTool | None:
        entry = self._parts.scope.catalogue.find(CODE_EXECUTION)
        return cast("CodeExecutionTool", entry.handle) if entry is not None else None


_ASKS_USER: Final = object()
"""The handle of our own `ask_user`, by which a tool of the host with that name is told from it."""


def _seconds(timeout: object) -> float:
    if timeout is None:
        return PROGRAM_TIME_S
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise ConfigurationError(
            f"timeout={timeout!r:.80}: give seconds above 0, or None for the default of {PROGRAM_TIME_S:g}"
        )
    return timeout
