"""`ToolRegistry`: a library of tools, and a base class whose marked methods are its tools."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import getattr_static
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from toolwire.catalogue.catalogue import suggestion
from toolwire.catalogue.entry import Middleware
from toolwire.catalogue.selection import Visible
from toolwire.definition.tool import Permission
from toolwire.facade.driving import call_blocking
from toolwire.facade.given_calls import host_call
from toolwire.facade.old_names import OldRegistryNames
from toolwire.facade.policy_sources import PolicySource, policy_with_rules, refuse_wrong_rules
from toolwire.facade.settings import Settings
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.facade.tools.reg_toolspec import find_marked_methods
from toolwire.permission.approval import Approver, refuse_wrong_approver
from toolwire.permission.policy import Rule
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError, RegistrationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from httpx2 import AsyncClient

    from toolwire.facade.tools.tool_spec import ToolSpec
    from toolwire.sandbox.limits import Limits
    from toolwire.sandbox.report import MinIsolation, ProgramResult
    from toolwire.sandbox.runner import RunnerChoice
    from toolwire.vocabulary.context import CallContext

F = TypeVar("F", bound=object)

_LOG = logging.getLogger("toolwire.registry")


class ToolRegistry(Settings, OldRegistryNames):
    """Tools by name, and the methods to call them.

    >>> registry = ToolRegistry()
    >>> @registry.register
    ... def add(a: int, b: int = 1) -> int:
    ...     return a + b
    >>> registry.invoke("add", {"a": 1}).data
    2

    Safe to use from several threads and event loops at once. As a base class, its methods marked with `@reg_toolspec`
    are its tools; a subclass need not call `super().__init__()`.
    """

    def __init__(
        self,
        *,
        policy: PolicySource | None = None,
        rules: Iterable[Rule | Mapping[str, Any]] = (),
        approver: Approver | None = None,
        result_limit_bytes: int | None = None,
        visible: Visible | None = None,
        middleware: Iterable[Middleware] = (),
        runner: RunnerChoice | None = None,
    ) -> None:
        """Creates a registry.

        Args:
            policy: A policy, or the path of a policy file. With `rules` it decides which calls may run.
            rules: Rules to add to `policy`.
            approver: Decides calls that the rules confirm; without one such calls do not run.
            result_limit_bytes: Bytes of a result's text for a model, 32 KiB by default.
            visible: `visible(tool_name, caller)` returns True if the caller may see the tool. It counts here and in
                every toolkit and session made of this registry.
            middleware: Layers around every call, the first outermost.
            runner: Runs the programs: "kernel" (Linux), "wasm", or a `ProgramRunner` such as a `RemoteRunner` of
                `toolwire.fleet`. None: "kernel" on Linux, "wasm" elsewhere.

        Raises:
            ConfigurationError: the approver, a limit, a predicate, a layer, a rule or the runner cannot be used.
        """
        refuse_wrong_approver(approver)
        parts = self._parts
        if result_limit_bytes is not None and result_limit_bytes <= 0:
            raise ConfigurationError(f"result_limit_bytes={result_limit_bytes!r}: give a number above 0")
        scope = replace(
            parts.scope,
            policy=policy_with_rules(policy, rules),
            approver=approver,
            result_limit_bytes=result_limit_bytes or parts.scope.result_limit_bytes,
        )
        if runner is not None:
            from toolwire.facade.built_in.program_entry import require_runner

            scope = replace(scope, runner=require_runner(runner))
        parts.change(lambda _: scope.narrow(visible=visible).with_middleware(middleware))
        refuse_wrong_rules(scope.policy, scope.catalogue, is_whole=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        found = find_marked_methods(cls, apart_from=ToolRegistry)
        for name in found:
            if hasattr(ToolRegistry, name):
                raise DefinitionError(
                    f"the tool method {cls.__name__}.{name} hides ToolRegistry.{name}; "
                    f"call the method something else; @reg_toolspec(name={name!r}) lets models see that name still"
                )
        cls._toolspecs = MappingProxyType({name: (getattr_static(cls, name), found[name]) for name in found})

    # -- what is here -------------------------------------------------------------------------------------------

    @overload
    def register(
        self,
        thing: F,
        name: str | None = None,
        *,
        methods: Iterable[str] | None = None,
        prefix: str | None = None,
        replace: bool = False,
        permission: Permission | None = None,
        timeout_s: float | None = None,
        parallel: bool = True,
        alone: str | None = None,
        middleware: Iterable[Middleware] = (),
    ) -> F: ...
    @overload
    def register(
        self,
        thing: None = None,
        name: str | None = None,
        *,
        methods: Iterable[str] | None = None,
        prefix: str | None = None,
        replace: bool = False,
        permission: Permission | None = None,
        timeout_s: float | None = None,
        parallel: bool = True,
        alone: str | None = None,
        middleware: Iterable[Middleware] = (),
    ) -> Callable[[F], F]: ...
    def register(
        self,
        thing: Any = None,
        name: str | None = None,
        *,
        methods: Iterable[str] | None = None,
        prefix: str | None = None,
        replace: bool = False,
        permission: Permission | None = None,
        timeout_s: float | None = None,
        parallel: bool = True,
        alone: str | None = None,
        middleware: Iterable[Middleware] = (),
    ) -> Any:
        """Adds a tool and returns it: a function, method, `ToolSpec`, `BaseTool` (or its class), or an instance.

        An instance adds its methods marked with `@reg_toolspec`, or those that `methods` names; `prefix="mail"` puts
        `mail_` before each of their names. When one of them cannot be registered, none is. Usable as
        `@registry.register` and `@registry.register(name=...)`.

        `permission` replaces the tool's own; `timeout_s` bounds each call. With `parallel=False` one call of it runs at
        a time. With `alone="printer"` one call runs at a time among all tools with the same text. `middleware`
        surrounds each call, inside of the registry's and the toolkit's.

        Raises:
            DefinitionError: it cannot be a tool, `prefix` is given for an object that is not an instance with tools,
                models could not spell it, or a name with it has more than 64 characters.
            RegistrationError: another object has the name and `replace` is not set; or one of toolwire's own tools has
                it, which an outside tool can never replace.
            ConfigurationError: a rule names the tool and can never apply to a call of it.
        """
        from toolwire.facade.tools.intake import entries_of

        parts = self._parts
        entries = partial(
            entries_of,
            name=name,
            methods=methods,
            prefix=prefix,
            permission=permission,
            timeout_s=timeout_s,
            parallel=parallel,
            alone=alone,
            gate=None if alone is None else parts.scope.catalogue.gate_of(alone),
            middleware=tuple(middleware),
            replace=replace,
        )

        def add(given: Any) -> Any:
            found = entries(given)
            refuse_wrong_rules(parts.scope.policy, found, is_whole=False)
            parts.scope.catalogue.add_all(found, replace=replace)
            return given

        return add if thing is None else add(thing)

    def register_openapi(
        self,
        document: Mapping[str, Any] | str | Path,
        *,
        client: AsyncClient | None = None,
        headers: Mapping[str, str | Callable[[CallContext], str | Awaitable[str]]] | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        permission: Permission | None = None,
    ) -> list[str]:
        """Adds a tool for each operation of an OpenAPI 3 document, and returns their names. Blocks while it is fetched.

        GET and HEAD run without a person, and a person confirms each other method. GET, HEAD, PUT and DELETE are
        repeated after a failure of the transport, and others only with a key that the server knows. An operation that
        cannot be a tool is left out, with a warning. See `docs/openapi.md` for what is sent and returned.

        Args:
            document: The document, the path of a JSON or YAML file, or an http(s) URL. At most 32 MiB.
            client: Sends the requests to its `base_url`. Without it they go to the document's first server, which must
                have the origin of the document's URL, or be public if the document is a dict or a file.
            headers: Headers of each request: a text, or a function of the call's context. In a text, `{user.token}` is
                read from the state of the call. No model sees them.
            include: The operations to add, by patterns of the tool's name or of `GET /path`; None adds all. At most
                2,000 can be added.
            exclude: Operations to leave out, by such patterns.
            permission: The permission of all these tools if no rule decides.

        Raises:
            ConfigurationError: An argument cannot be used, the document cannot be read, the server is refused, or the
                extra `toolwire[openapi]` is not installed.
            DefinitionError: It is not an OpenAPI 3 document, or it is broken; the message names the place.
            RegistrationError: A name is taken. Then no tool is added.
        """
        from toolwire.facade.tools.openapi_entries import openapi_entries

        parts = self._parts
        entries = openapi_entries(
            document,
            client,
            headers,
            include=include,
            exclude=exclude,
            permission=permission,
            error_limit_bytes=parts.scope.result_limit_bytes,
        )
        if taken := [entry.name for entry in entries if parts.scope.catalogue.find(entry.name) is not None]:
            raise RegistrationError(
                f"a tool named {taken[0]!r} is registered already: leave the operation out with exclude=[{taken[0]!r}],"
                " or give the document a registry of its own"
            )
        refuse_wrong_rules(parts.scope.policy, entries, is_whole=False)
        parts.scope.catalogue.add_all(entries)
        return [entry.name for entry in entries]

    def register_tool_to_library(self, tool: object) -> None:
        """Adds a tool under its own name."""
        self.register(cast("Any", tool))

    @property
    def tool_library(self) -> Mapping[str, Any]:
        """The registered objects by name, unchanged."""
        return MappingProxyType({entry.name: entry.handle for entry in self._parts.scope.catalogue})

    def get_tool(self, name: str) -> Any:
        """Returns the object that was registered under that name, or None."""
        entry = self._parts.scope.catalogue.find(name)
        return None if entry is None else entry.handle

    def list_tools(self) -> list[Any]:
        """Returns the registered objects, in order of registration."""
        return [entry.handle for entry in self._parts.scope.catalogue]

    def to_toolspecs(self) -> dict[str, ToolSpec]:
        """Returns a live `ToolSpec` for each tool, by name, `code_execution` included if it is enabled.

        Each has `name`, `description` and `input_schema`, and a form for each provider. A binding on it also counts for
        this registry's calls.
        """
        from toolwire.facade.tools.tool_spec import ToolSpec

        return {
            entry.name: entry.handle if isinstance(entry.handle, ToolSpec) else ToolSpec(entry.tool)
            for entry in self._parts.scope.catalogue
        }

    def list_toolspecs(self) -> list[str]:
        """Returns the names of `to_toolspecs()`."""
        return [entry.name for entry in self._parts.scope.catalogue]

    # -- calling ------------------------------------------------------------------------------------------------

    def invoke(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> ToolResult:
        """Runs a tool for a model, down the whole path, and returns its result.

        Blocks. Never raises for a missing, wrong, denied or failing call: the result's `failure` says what happened.
        Bound parameters are looked up in `state` first, for this call and the calls that it makes.

        Raises:
            ConfigurationError: `name` is not text, or `arguments` are not a mapping, such as a provider's JSON text.
        """
        parts = self._parts
        call = host_call(name, arguments, parts.scope.tools)
        return call_blocking(call, parts.scope if state is None else parts.scope.with_state(state))

    async def ainvoke(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> ToolResult:
        """Works as `invoke`, for callers that run an event loop; a sync tool runs in a worker thread."""
        from toolwire.invocation.invoker import invoke
        from toolwire.invocation.scope import require_result

        parts = self._parts
        call = host_call(name, arguments, parts.scope.tools)
        return require_result(await invoke(call, parts.current_async_scope().with_state(state)))

    def run_program(
        self,
        code: str,
        *,
        limits: Limits | None = None,
        source_checks: bool = True,
        min_isolation: MinIsolation | None = None,
        modules: Iterable[str] | None = None,
        state: Mapping[str, Any] | None = None,
        runner: RunnerChoice | None = None,
    ) -> ProgramResult:
        """Runs a program that may call this registry's tools, in a sandbox, and returns how it ended.

        Blocks until it ends or `limits` (`Limits()` by default) stop it. `source_checks=False` leaves out the checks on
        the source text. They only help the model: the sandbox does not rely on them. If the isolation here is weaker
        than `min_isolation`, nothing runs; None asks for all that `runner` gives, or the registry's runner without
        one: `kernel` or `wasm`. `process` is for programs that are as trusted as your own code. The
        program's calls look bound parameters up in `state` first. With `modules` the program may import only these;
        None means all modules that programs may import.

        Raises:
            ConfigurationError: `modules` names a module that programs may not import, or `runner` is not a runner.
            SandboxUnavailable: the required isolation cannot be had here; the message says what to do.
            Overloaded: too many programs are running already.
        """
        from toolwire.facade.built_in.program_entry import run_program

        return run_program(
            code,
            self._call_scope.with_state(state),
            limits=limits,
            source_checks=source_checks,
            min_isolation=min_isolation,
            modules=modules,
            runner=runner,
        )

    # -- agents -------------------------------------------------------------------------------------------------

    @property
    def agent_toolkits(self) -> Mapping[str, Toolkit]:
        """The toolkits made so far, by agent."""
        return MappingProxyType(self._parts.toolkits)

    def create_agent_toolkit(self, agent_name: str, tool_names: Iterable[str] | None = None) -> Toolkit:
        """Returns a new toolkit for one agent with the named tools; unknown names are left out, with a warning.

        It shares this registry's rules, approver and log. When the registry replaces, disables or removes a tool, the
        toolkit follows.
        """
        parts = self._parts
        toolkit = Toolkit(agent_name, scope=lambda: parts.scope)
        for name in tool_names or ():
            if name not in parts.scope.catalogue:
                near = suggestion(parts.scope.catalogue.nearest(name))
                _LOG.warning("the toolkit of %r goes without %r: no such tool is registered%s", agent_name, name, near)
            else:
                toolkit.draw(parts.scope.catalogue, name)
        parts.toolkits[agent_name] = toolkit
        return toolkit

    def get_agent_toolkit(self, agent_name: str) -> Toolkit | None:
        """Returns the toolkit made for that agent, or None."""
        return self._parts.toolkits.get(agent_name)
