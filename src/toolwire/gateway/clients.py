"""The clients of one server: each has a session of its own, under its own caller."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from toolwire.definition.tool import Tool
from toolwire.facade.finding import finder_in
from toolwire.gateway.call_claims import Owner
from toolwire.gateway.served_names import by_served_name
from toolwire.permission.seen_urls import with_urls
from toolwire.session.session import Session
from toolwire.vocabulary.calls import Caller

TOKEN_PRINCIPAL = "token"  # noqa: S105 - a name
"""The principal of callers with the one token of a server."""

_STATE = "toolwire"
SESSION_HEADER = "mcp-session-id"


@dataclass(eq=False)
class Client:
    """One client, from its first request on."""

    session: Session
    caller: Caller
    is_authenticated: bool
    requests: Session | None = None
    """The session of its requests for resources, prompts and completions; None before the first."""
    _names: Mapping[str, str] = field(default_factory=dict[str, str])
    _told_finds: tuple[str, ...] = ()

    def has_found(self) -> bool:
        """True if the client has found tools since the last time, so that its list is another."""
        finder = finder_in(self.session._scope.catalogue)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        told, self._told_finds = self._told_finds, () if finder is None else finder.found_names
        return set(told) != set(self._told_finds)

    @property
    def visible_tools(self) -> Mapping[str, Tool]:
        """The tools that the client sees now, by the names under which they are served."""
        return by_served_name(self.session.tools)

    def own_name(self, served: str) -> str | None:
        """Returns the name in the registry of a served tool; None if the tool is served under another name.

        An unknown name is returned as it is, so that the call of it is on record.
        """
        own = self._names.get(served)
        if own is not None and self.find(own) is not None:
            return own
        entries = self.session._scope.tools  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._names = {name: tool.name for name, tool in by_served_name(one.tool_view for one in entries).items()}
        return self._names.get(served, served if self.find(served) is None else None)

    def find(self, name: str) -> Tool | None:
        """Returns the tool with that name in the registry, if the client may see it."""
        # Unlike `session.tools`, this takes no longer with many tools.
        entry = self.session._scope.tools.find(name)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return None if entry is None else entry.tool_view

    def share_labels(self) -> None:
        """Gives both sessions the labels and URLs of both, because one model reads all results of the client."""
        one, other = self.session, self.requests
        if other is None:
            return
        one._taints = other._taints = one._taints | other._taints  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        one._urls = other._urls = tuple(with_urls(one._urls, other._urls))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def owner_in(self, context: ServerRequestContext[Any, Any]) -> Owner | None:
        """Returns what an equal call has in common with a request of this client, so that it finds its decision.

        Without a token, it is the session of a client over HTTP. None for one that has no session either: nothing tells
        it from other clients.
        """
        request, caller = context.request, self.caller
        if self.is_authenticated or (caller.principal and not isinstance(request, Request)):
            return ("client" if self.is_authenticated else "process", caller.principal, caller.tenant)
        is_handshake = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
        if isinstance(request, Request) and not (is_handshake and SESSION_HEADER in request.headers):
            return None
        return ("session", self.session.conversation)


class Clients:
    """A handshake connection is one client. Requests of the later protocol are one client for each caller."""

    def __init__(
        self,
        new_session: Callable[[Caller], Session],
        new_requests: Callable[[Caller], Session],
        follow_servers: Callable[[], None],
        caller: Caller,
        limit: int,
        *,
        is_stateless: bool = False,
    ) -> None:
        """`caller` is that of clients without a token. `limit` bounds the clients that have no connection.

        `follow_servers` gives the sessions for requests those of the servers that are there now.

        With `is_stateless`, each request of the handshake protocols has a connection of its own.
        """
        self.is_stateless = is_stateless
        self._new_session, self._new_requests, self._follow_servers = new_session, new_requests, follow_servers
        self._caller, self._limit = caller, limit
        self._callers: OrderedDict[Caller, Client] = OrderedDict()

    async def of(self, context: ServerRequestContext[Any, Any]) -> Client:
        """Returns the client of a request."""
        # A client that no token tells from others shares nothing with them.
        is_one_caller = self.is_stateless and get_access_token() is not None
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS and not is_one_caller:
            state = connection_of(context).state
            if _STATE not in state:
                new = await self._new()
                # Another request of the connection may have been first.
                state.setdefault(_STATE, new)
            return cast("Client", state[_STATE])
        caller = self.caller()
        found = self._callers.get(caller)
        if found is None:
            new = await self._new()
            found = self._callers.setdefault(caller, new)
        self._callers.move_to_end(caller)
        while len(self._callers) > self._limit:
            self._callers.popitem(last=False)
        return found

    async def requests_of(self, client: Client) -> Session:
        """Returns the session of a client's requests for resources, prompts and completions, and of those to it."""
        # A tool that is listed may be called before its server is noticed by other ways.
        self._follow_servers()
        if client.requests is None:
            new = await anyio.to_thread.run_sync(self._new_requests, client.caller)
            client.requests = client.requests or new
        return client.requests

    def caller(self) -> Caller:
        """Returns the caller of the request that is being answered.

        The name that a client gives itself proves nothing, and is not used.
        """
        token = get_access_token()
        if token is None:
            return self._caller
        issuer = str((token.claims or {}).get("iss") or "")
        agent = token.client_id if token.subject else ""
        return Caller(principal=token.subject or token.client_id, agent=agent, tenant=issuer)

    async def _new(self) -> Client:
        caller = self.caller()
        # A session with a store reads it, and the disk would block the event loop.
        session = await anyio.to_thread.run_sync(self._new_session, caller)
        return Client(session, caller, get_access_token() is not None)


def connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """Returns the connection of a request, whose `state` and `exit_stack` are meant for handlers."""
    # The SDK's context does not offer it yet.
    return context.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def owner_of(request: object) -> str | None:
    """Returns whose share of a server a request takes: that of its principal, or of its address without one.

    The one token of a server tells no clients apart. None for a client without HTTP, and for one without an address,
    as behind a Unix socket.
    """
    token = get_access_token()
    if token is not None and (token.subject or token.client_id) != TOKEN_PRINCIPAL:
        return f"principal {(token.claims or {}).get('iss') or ''} {token.subject or token.client_id}"
    if not isinstance(request, Request) or request.client is None:
        return None
    return owner_at(request.client.host)


def owner_at(host: str) -> str:
    """Returns whose share the clients at an address take. An IPv6 address stands for its network of 64 bits.

    One machine may have all addresses of such a network.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return f"address {host}"
    return f"address {ipaddress.ip_network((address, 64), strict=False) if address.version == 6 else address}"
