"""`ToolServer`: serves tools to clients of the Model Context Protocol. The SDK is imported with the first use."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast, get_args
from urllib.parse import urlsplit

from toolwire.facade.finding import finder_in, search_entry
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.store_opening import resolve_store
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.gateway.code_mode import code_mode
from toolwire.gateway.profiles.client_profiles import ClientProfiles
from toolwire.gateway.profiles.file_limits import FileLimits, ResultLimits
from toolwire.gateway.served_names import client_safe_name
from toolwire.gateway.server_limits import ServerLimitOptions, ServerLimits
from toolwire.invocation.judge import may_ask
from toolwire.invocation.scope import RESULT_LIMIT_BYTES
from toolwire.protocols.native.openai import OpenAi
from toolwire.runtime.extras import packages_of
from toolwire.session.session import Session
from toolwire.vocabulary.calls import NOBODY, READ_RESULT, Caller
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.machine.system import user_id
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from mcp.server import Server
    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.auth.settings import AuthSettings
    from starlette.types import ASGIApp

    from toolwire.gateway.http.app import Access
    from toolwire.gateway.profiles.issuer_table import Issuer
    from toolwire.gateway.sdk_server import SdkServer, ServedParts
    from toolwire.gateway.served_metrics import ServedMetrics
    from toolwire.journal.store import Store

Mode: TypeAlias = Literal["tools", "search", "code"]
"""The tools that a server lists: all, those that a search found, or those by which programs find and call others."""


class _Served(OpenAi):
    """The protocol of the sessions. A client reads results, so no messages are written."""

    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:  # noqa: ARG002  # the protocol gives them
        return []


_PROTOCOL = _Served()


class ToolServer:
    """Serves tools to MCP clients, by protocol 2026-07-28 and by the handshake protocols before it.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> server = ToolServer([add], "adder")  # then server.run_stdio(), or server.run_http("127.0.0.1", 8000)

    Each call takes the path of a model's call: it is validated, judged by the rules, run and recorded. A call that
    needs a person waits for one if the server has a store.
    """

    _observers: tuple[ServedMetrics, ...] = ()
    """Those of its calls, if the registry is traced."""

    def __init__(
        self,
        tools: ToolRegistry | Toolkit | Iterable[object],
        name: str,
        *,
        mode: Mode = "tools",
        store: str | Store | None = None,
        version: str = "",
        instructions: str | None = None,
        caller: Caller = NOBODY,
        token: str | None = None,
        token_verifier: TokenVerifier | None = None,
        auth: AuthSettings | None = None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        stateless: bool = False,
        **limits: Unpack[ServerLimitOptions],
    ) -> None:
        """Combines tools with the settings of a server. Serves nothing yet.

        Args:
            tools: A registry or toolkit with its rules and approver, or anything that can be registered.
            name: The name that clients show.
            mode: `tools` serves each tool. `search` lists `search_tools`, `read_result` if it is there, and the latest
                50 tools that the client has found; it hears of each change, and may call every tool. `code` serves
                `search_tools`, `describe_tools`, `run_program` and `read_result` in place of the tools: the client's
                model finds tools, and calls them in programs. It needs a registry or a list of tools.
            store: A `Store` or its URL. With one, calls are recorded, and a call that needs a person is suspended until
                the client's person has filled in a form, or someone has decided with `toolwire approvals`.
            version: The version that clients show; empty for that of toolwire.
            instructions: A text about the tools for the client's model.
            caller: The caller of clients without a token. Over stdio it is the user, as `local:1000`, if none is named.
            token: The bearer token that each HTTP request must carry. Callers with it are the principal `token`.
            token_verifier: Verifies bearer tokens in place of `token`. The principal is a token's subject or client.
            auth: The authorization server, the scopes and the resource of `token_verifier`, for metadata and checks.
            hosts: Values of the Host header that are served, such as `tools.example.com` or `10.0.0.5:8000`. A value
                without a port allows any. This machine's loopback names are always served.
            origins: Values of the Origin header that are served besides the server's own, such as
                `https://app.example.com`.
            stateless: No request over HTTP belongs to a session: each may go to another process with the same tools
                and store. Clients of the handshake protocols then see no forms, and hear of no changes. With a store
                and a tool that can ask a person it needs tokens.
            **limits: See `ServerLimits` of `toolwire.types`.

        Raises:
            ConfigurationError: The name is empty, or a setting or a limit cannot be used.
            RegistrationError: Two tools have one name.
        """
        self.name, self._mode = _require_name(name), _require_mode(mode)
        self._tools = tools if isinstance(tools, ToolRegistry | Toolkit) else _registry_of(tools)
        self._behind = self._tools
        self._tools = _code_front(self._tools) if mode == "code" else self._tools
        self._apply_file_limits(token_verifier)
        self._store: Any = None if store is None else resolve_store(store)
        self._version, self._instructions, self._caller = version or _own_version(), instructions, caller
        self._token, self._verifier, self._auth = token, token_verifier, auth
        self._hosts, self._origins = _require_texts("hosts", hosts), _require_texts("origins", origins)
        self._limits, self._is_stateless = ServerLimits(**limits), stateless
        self._check_tokens()

    def __repr__(self) -> str:
        return f"<ToolServer {self.name!r}>"

    def in_memory(self) -> Server[Any]:
        """Returns a server of the SDK for clients in this process, such as `MCPClient.in_memory(name, server)`.

        It belongs to the event loop that uses it first.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        with packages_of("mcp", "ToolServer"):
            return self._sdk_server(self._parts)

    def asgi(self) -> ASGIApp:
        """Returns an ASGI application that serves streamable HTTP at `/mcp`. Each call makes one.

        It needs the lifespan of the ASGI server that runs it.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        with packages_of("mcp", "ToolServer"):
            from toolwire.gateway.http.app import http_app

            return http_app(self._sdk_server(self._parts), self._access, self._limits)

    def run_http(
        self,
        host: str = "127.0.0.1",
        port: int | socket.socket = 8000,
        *,
        on_start: Callable[[str], Any] | None = None,
    ) -> None:
        """Serves streamable HTTP at `/mcp` until SIGTERM or SIGINT. Calls under way then have 10 seconds to end.

        `port=0` takes a free port. A socket that listens already is used as it is, and closed. `on_start` is
        called with the URL once connections are accepted. Blocks.

        Raises:
            ConfigurationError: The address cannot be used, or the extra `toolwire[mcp]` is not installed.
        """
        with packages_of("mcp", "ToolServer"):
            from toolwire.gateway.http.process import run_http

            server, access = self._sdk_server(self._parts), self._access
        run_http(server, self._parts.slots, access, self._limits, host, port, on_start)

    def run_stdio(self) -> None:
        """Serves the client at stdin and stdout until it closes stdin. What tools print goes to stderr. Blocks.

        After SIGTERM or SIGINT, calls under way have 10 seconds to end, and then the process ends.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        with packages_of("mcp", "ToolServer"):
            from toolwire.gateway.stdio_process import run_stdio

            parts = self._make_parts(self._local_caller)
            server = self._sdk_server(parts)
        run_stdio(server, parts.slots, self._limits)

    def _apply_file_limits(self, profiles: object) -> None:
        """Adds the layers that apply the limits of a file to each call, if there may be such limits."""
        of_client = profiles.limits_of if isinstance(profiles, ClientProfiles) else _no_limits
        if isinstance(profiles, ClientProfiles) or self._behind.mcp.states:
            of_server = self._behind.mcp.limits_of
            self._behind.configure(middleware=[ResultLimits(of_client, of_server), FileLimits(of_client, of_server)])
            if self._tools is not self._behind:
                self._tools.configure(middleware=[ResultLimits(of_client, of_server)])

    def _check_tokens(self) -> None:
        if self._token is not None and (self._verifier is not None or self._auth is not None):
            raise ConfigurationError("give token, or token_verifier with auth, not both")
        if self._token is not None and not self._token.strip():
            raise ConfigurationError("token='': write the token that clients send, or leave it out")
        if self._auth is not None and self._verifier is None:
            raise ConfigurationError("auth needs a token_verifier: give one that checks the tokens of auth.issuer_url")
        if self._auth is not None and self._issuer is not None:
            raise ConfigurationError("the profiles have an issuer of their own: leave auth out")
        if self._is_stateless and self._store is not None and self._token is None and self._verifier is None:
            self._refuse_tools_that_ask()

    def _refuse_tools_that_ask(self) -> None:
        """Refuses tools whose calls may wait for a person: nothing would tell the clients apart that ask for them."""
        scope = self._behind._call_scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        servers = [f"the MCP server {state.server!r}" for state in self._behind.mcp.states]
        asking = servers or [f"the tool {one.name!r}" for one in scope.catalogue if may_ask(one, scope.policy)]
        if asking:
            raise ConfigurationError(
                f"stateless=True without a token: {asking[0]} can ask a person, and without sessions nothing tells the "
                "clients apart that wait for an answer. Give token= or token_verifier= (--token-env, or profiles in "
                "the file), or serve without a store"
            )

    def _sdk_server(self, parts: ServedParts) -> SdkServer:
        from toolwire.gateway.sdk_server import SdkServer

        return SdkServer(self.name, self._version, self._instructions, parts)

    @property
    def _local_caller(self) -> Caller:
        """The caller over stdio: the given one, or else the user of this process."""
        if self._caller.principal:
            return self._caller
        # Users of Windows have no number.
        return replace(self._caller, principal=f"local:{user_id() or getpass.getuser()}")

    @cached_property
    def _parts(self) -> ServedParts:
        return self._make_parts(self._caller)

    def _make_parts(self, caller: Caller) -> ServedParts:
        from toolwire.gateway.clients import Clients
        from toolwire.gateway.sdk_server import ServedParts
        from toolwire.gateway.served_metrics import ServedMetrics
        from toolwire.gateway.slots import Slots
        from toolwire.gateway.upstream.upstreams import Upstreams
        from toolwire.observability.tracing import SpanTracer

        # In every mode: the tools that a program calls have the servers and the rules.
        scope = self._behind._call_scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        # Under the present rules of the tools, whenever they change.
        requests = Toolkit(scope=lambda: self._behind._call_scope)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        upstreams = Upstreams(scope.catalogue.server_requests, requests, self._awaits_servers)
        clients = Clients(
            self._session,
            lambda caller: self._session(caller, requests),
            upstreams.follow,
            caller,
            self._limits.sessions,
            is_stateless=self._is_stateless,
        )
        slots, verifier = Slots(self._limits.calls), self._verifier
        profiles = verifier if isinstance(verifier, ClientProfiles) else None
        parts = ServedParts(
            self.name,
            self._session(caller),
            clients,
            slots,
            self._limits,
            self._store,
            upstreams,
            lambda: 0 if profiles is None else profiles.revision,
        )
        if isinstance(scope.tracer, SpanTracer):
            self._observers = (ServedMetrics(scope.tracer.meter, slots, parts.forms, self._store),)
        return parts

    def _awaits_servers(self) -> bool:
        return any(state.state != "on" for state in self._tools.mcp.states)

    @property
    def _issuer(self) -> Issuer | None:
        """The authorization server of the profiles; None without one."""
        return self._verifier.issuer if isinstance(self._verifier, ClientProfiles) else None

    @property
    def _access(self) -> Access:
        from toolwire.gateway.http.app import Access
        from toolwire.gateway.http.probe_pages import health_routes

        servers = self._behind.mcp
        health = health_routes(lambda: (*servers.states, *servers.left_out), self._store)
        issuer, auth, hosts = self._issuer, self._auth, self._hosts
        if issuer is not None:
            from toolwire.gateway.http.app import issuer_settings

            auth, hosts = issuer_settings(issuer), (*hosts, urlsplit(issuer.audience).netloc)
        scopes = () if issuer is None else tuple(issuer.scopes)
        return Access(self._token, self._verifier, auth, hosts, self._origins, health, self._is_stateless, scopes)

    def _session(self, caller: Caller, tools: Toolkit | None = None) -> Session:
        session = Session(self._tools if tools is None else tools, protocol=_PROTOCOL, store=self._store, caller=caller)
        scope = session._scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if scope.result_limit_bytes == RESULT_LIMIT_BYTES:
            # The default is for a model. A client has limits of its own for that.
            scope = replace(scope, result_limit_bytes=self._limits.result_bytes)
        if self._store is None and scope.approver is None:
            from toolwire.gateway.client_line import ask_client

            scope = replace(scope, approver=ask_client)
        scope = replace(scope, observers=(*scope.observers, *self._observers)) if self._observers else scope
        session._scope = scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if tools is None:
            _offer_search(session, is_wanted=self._mode == "search")
        return session


def _offer_search(session: Session, *, is_wanted: bool) -> None:
    """Offers a search that names tools as they are served. Without `is_wanted`, only if the registry has one."""
    scope = session._scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    catalogue, finder = scope.catalogue, finder_in(scope.catalogue)
    if finder is None and not is_wanted:
        return
    always = set(() if finder is None else finder.always)
    if is_wanted and catalogue.find(READ_RESULT) is not None:
        always.add(READ_RESULT)
    entry = search_entry(
        lambda: session._scope,  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        always=sorted(always),
        remembers=True,
        name_of=client_safe_name,
    )
    catalogue.add(entry, replace=finder is not None)


def _no_limits(_: Caller) -> None:
    """Returns no limits, for clients without profiles."""


def _require_name(name: str) -> str:
    if not isinstance(cast("object", name), str):
        kind = type(name).__name__
        raise ConfigurationError(f"ToolServer: name is a {kind} and not a text: write ToolServer(tools, 'name')")
    if not name.strip():
        raise ConfigurationError("ToolServer(name=''): write the name that clients show")
    return name


def _own_version() -> str:
    return metadata.version("toolwire")


def _require_mode(mode: Mode) -> Mode:
    if mode not in get_args(Mode):
        raise ConfigurationError(f"ToolServer(mode={mode!r:.80}): write 'tools', 'search' or 'code'")
    return mode


def _code_front(tools: ToolRegistry | Toolkit) -> ToolRegistry:
    if isinstance(tools, Toolkit):
        raise ConfigurationError("ToolServer(mode='code') needs a ToolRegistry or a list of tools")
    return code_mode(tools)


def _registry_of(tools: Iterable[object]) -> ToolRegistry:
    if isinstance(tools, str) or not isinstance(cast("object", tools), Iterable):
        raise ConfigurationError(f"ToolServer(tools={tools!r:.80}): give a list of tools, a ToolRegistry or a Toolkit")
    registry = ToolRegistry()
    for tool in tools:
        registry.register(tool)
    return registry


def _require_texts(what: str, texts: Iterable[str]) -> tuple[str, ...]:
    if isinstance(texts, str) or not all(isinstance(cast("object", text), str) for text in texts):
        raise ConfigurationError(f"{what}={texts!r:.80}: give a list of texts")
    return tuple(texts)
