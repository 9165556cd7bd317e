"""Programs and background calls, which a registry runs by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from toolwire.facade.driving import call_blocking
from toolwire.facade.registry_base import RegistryBase
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import (
    CLEANUP_S,
    CODE_EXECUTION,
    PROGRAM_TIME_S,
    ToolCall,
)
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.facade.built_in.background import BackgroundCalls
    from toolwire.facade.tools.code_execution_tool import CodeExecutionTool
    from toolwire.sandbox.limits import Limits
    from toolwire.sandbox.report import MinIsolation
    from toolwire.sandbox.runner import RunnerChoice


class BuiltInTools(RegistryBase):
    """Lets models run programs, and the host run calls in the background."""

    def _invoke_own(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        # Not `self.invoke`: a subclass may override that name.
        return call_blocking(ToolCall(name, arguments, id=new_id("r")), self._parts.scope)

    def enable_code_execution(
        self,
        timeout: float | None = PROGRAM_TIME_S,
        *,
        limits: Limits | None = None,
        min_isolation: MinIsolation | None = None,
        modules: Iterable[str] | None = None,
        runner: RunnerChoice | None = None,
    ) -> None:
        """Lets models run programs: adds the tool `code_execution`.

        `timeout` is the seconds for a whole program, tools included; None means the default of 30. `limits` replace it
        and bound more. `min_isolation` is as in `run_program`; calls fail as `unavailable` if this machine offers less.
        With `modules` programs may import only these; None means all modules that programs may import. `runner` becomes
        the registry's; None: it stays.

        Raises:
            ConfigurationError: `timeout` is not a finite number above 0, `modules` names a module that programs may not
                import, or `runner` is not a runner.
        """
        from toolwire.facade.built_in.program_entry import programs_entry, require_runner
        from toolwire.sandbox.limits import Limits

        parts = self._parts
        if runner is not None:
            own = require_runner(runner)
            parts.change(lambda scope: replace(scope, runner=own))
        bounds = Limits.within(_seconds(timeout)) if limits is None else limits
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

    @property
    def background(self) -> BackgroundCalls:
        """Calls that run in the background: `start`, `poll`, `wait`, `cancel`."""
        from toolwire.facade.built_in.background import BackgroundCalls

        parts = self._parts
        if parts.background is None:
            parts.background = BackgroundCalls(lambda: parts.scope)
        return parts.background

    @property
    def _code_execution(self) -> CodeExecutionTool | None:
        entry = self._parts.scope.catalogue.find(CODE_EXECUTION)
        return cast("CodeExecutionTool", entry.handle) if entry is not None else None


def _seconds(timeout: object) -> float:
    if timeout is None:
        return PROGRAM_TIME_S
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise ConfigurationError(
            f"timeout={timeout!r:.80}: give seconds above 0, or None for the default of {PROGRAM_TIME_S:g}"
        )
    return timeout
