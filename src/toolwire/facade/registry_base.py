"""A registry apart from its tools: its rules, middleware, log, observers, tracer and lifetime."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from toolwire.catalogue.catalogue import Catalogue, suggestion
from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Permission
from toolwire.facade.driving import async_scope, new_scope
from toolwire.facade.mcp_servers import McpTools
from toolwire.facade.named_tools import NamedTools
from toolwire.facade.observing.observation import Observable, Watchers
from toolwire.facade.observing.traced import Traceable
from toolwire.facade.switching import Switching
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.invocation.judge import judge_by_name
from toolwire.invocation.scope import Scope
from toolwire.permission.policy import Policy
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.tracer import Tracer
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError
from toolwire.vocabulary.texts.counting import count_of

if TYPE_CHECKING:
    from toolwire.facade.built_in.background import BackgroundCalls
    from toolwire.journal.log.memory_log import ExecutionLog
    from toolwire.journal.store import Store
    from toolwire.permission.explain import Explanation


class RegistryParts:
    """All that a registry holds; made on first use, so that subclasses need not call `__init__`."""

    def __init__(self) -> None:
        self.toolkits: dict[str, Toolkit] = {}
        self.log: ExecutionLog | None = None
        self.background: BackgroundCalls | None = None
        self.switched: dict[str, list[Entry]] = {}
        """The tools that each switch of `configure` has added last."""
        self.is_held = False
        self._lock = threading.Lock()
        self.watchers = Watchers(on_change=self._look_again)
        self.scope = replace(new_scope(Catalogue()), watchers=(self.watchers,))
        """The one scope of all plain calls."""
        self._async_scope: tuple[Scope, Scope] | None = None

    def change(self, edit: Callable[[Scope], Scope]) -> None:
        """Replaces the scope by an edited one. Simultaneous changes follow one another, so that none is lost."""
        with self._lock:
            self.scope = edit(self.scope)

    def current_async_scope(self) -> Scope:
        """Returns the scope of awaited calls. It is rebuilt when the scope has changed."""
        scope, made = self.scope, self._async_scope
        if made is None or made[0] is not scope:
            made = self._async_scope = (scope, async_scope(scope))
        return made[1]

    def _look_again(self) -> None:
        """Makes the scope anew, for other observers."""
        self.change(replace)


class RegistryBase(NamedTools, Traceable, Observable, Switching, McpTools):
    """How a registry's calls are run. `ToolRegistry` adds the tools and the calls."""

    _toolspecs: ClassVar[Mapping[str, tuple[Any, Mapping[str, Any]]]] = MappingProxyType({})
    """The marked methods of the class and all of its bases: method and options by method name."""

    @property
    def _parts(self) -> RegistryParts:
        parts = self.__dict__.get("_toolwire_parts")
        if parts is None:
            parts = self.__dict__.setdefault("_toolwire_parts", RegistryParts())
            for method, (_, options) in self._toolspecs.items():
                self._add_method(parts, method, options)
        return parts

    def _add_method(self, parts: RegistryParts, method: str, options: Mapping[str, Any]) -> None:
        from toolwire.facade.tools.intake import check_reserved
        from toolwire.facade.tools.tool_spec import ToolSpec

        spec = ToolSpec.from_function(getattr(self, method), **options)
        spec.__tool__().verify()
        check_reserved(spec.name, spec.__tool__())
        parts.scope.catalogue.add(Entry(name=spec.name, tool=spec.__tool__(), handle=spec))

    @property
    def _call_scope(self) -> Scope:
        """The present context of this registry's calls, with the live catalogue."""
        return self._parts.scope

    # -- the rules ----------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The rules in force."""
        return self._call_scope.policy

    def permission_of(self, name: str) -> Permission:
        """Returns the effect on calls of that tool: `auto`, `confirm` or `deny`, by rules, registration and its own
        default.

        Rules that depend on the call are left out; `explain_call` includes them.

        Raises:
            RegistrationError: no tool has that name.
        """
        return judge_by_name(self._entry(name), self._call_scope.policy).effect

    def explain_call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> Explanation:
        """Returns the effect of the rules on a call, and the rules that lead to it. Runs nothing. `state` is as in
        `invoke`.

        Raises:
            RegistrationError: no tool has that name.
            ConfigurationError: the arguments are wrong, or `state` is not a mapping.
        """
        from toolwire.facade.given_calls import explain_in

        return explain_in(self._call_scope.with_state(state), self._entry(name), arguments)

    def _entry(self, name: str) -> Entry:
        catalogue = self._call_scope.catalogue
        entry = catalogue.find(name)
        if entry is None:
            raise RegistrationError(f"no tool is named {name!r}{suggestion(catalogue.nearest(name))}")
        return entry

    # -- the log ------------------------------------------------------------------------------------------------

    def enable_logging(
        self, *, store: str | Store | None = None, keep_days: float | None = None, keep_entries: int | None = None
    ) -> ExecutionLog:
        """Starts the log of calls and returns it; a second call returns the same one.

        Without `store` the log is in memory: the last 10,000 calls, or as many of them as fit into 64 MB. With one (a
        `Store`, or its URL) the log outlives the process and is redacted. A store bounds its log by its `Retention`.

        Raises:
            ConfigurationError: another log is enabled already; or the URL is not valid; or `keep_days` or
                `keep_entries` is given, which a `Retention` has replaced.
            StoreUnavailable: the store cannot be used.
        """
        from toolwire.journal.log.memory_log import ExecutionLog

        if keep_days is not None or keep_entries is not None:
            raise ConfigurationError(
                "keep_days and keep_entries are not taken any more: bound the log by its store, such as "
                "enable_logging(store=Store.open(url, retention=Retention(log_days=30)))"
            )
        parts = self._parts
        log = parts.log
        if log is not None:
            if store is not None and type(log) is ExecutionLog:
                raise ConfigurationError("the log is in memory already: give the store when you first enable it")
            return log
        if store is None:
            log = ExecutionLog()
        else:
            from toolwire.journal.durable_log import durable_log

            log = durable_log(store)
        parts.log = log
        parts.change(lambda scope: replace(scope, observers=(*scope.observers, log)))
        return log

    def get_execution_log(self) -> ExecutionLog | None:
        """Returns the log; None before `enable_logging()`."""
        return self._parts.log

    def _watchers_and_runtime(self) -> tuple[Watchers, Runtime]:
        return self._parts.watchers, self._parts.scope.runtime

    def _trace_with(self, tracer: Tracer) -> None:
        """Traces calls from now on, those of this registry's toolkits too. An existing session keeps its own tracer."""
        self._parts.change(lambda scope: replace(scope, tracer=tracer))

    # -- its lifetime -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancels calls in the background, disconnects MCP servers, and releases the hold on threads and the sandbox.

        The runtime ends these when no other registry holds them. A closed registry can be used again: it starts and
        connects anew.
        """
        parts = self._parts
        self._mcp.disconnect()
        if parts.background is not None:
            parts.background.close()
        if parts.is_held:
            parts.is_held = False
            parts.scope.runtime.release()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {count_of(len(self), 'tool')}>"

    def __enter__(self) -> Self:
        parts = self._parts
        if not parts.is_held:
            parts.is_held = True
            parts.scope.runtime.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
