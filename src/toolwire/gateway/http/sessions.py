"""Bounds the HTTP sessions that one client may have open. The SDK bounds them for all clients together."""

from __future__ import annotations

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolwire.gateway.clients import owner_of
from toolwire.gateway.slots import SlotRefused, Slots


class SessionShares:
    """ASGI application in front of the SDK's: a request that opens a session needs a slot of its client."""

    def __init__(self, app: ASGIApp, manager: StreamableHTTPSessionManager, slots: Slots) -> None:
        self._app, self._manager, self._slots = app, manager, slots
        self._owners: dict[str, str | None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        is_modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        if is_modern or MCP_SESSION_ID_HEADER in request.headers:
            await self._app(scope, receive, send)
            return
        self._give_back_ended()
        owner = owner_of(request)
        try:
            self._slots.take(owner)
        except SlotRefused as refused:
            await PlainTextResponse(str(refused), 503)(scope, receive, send)
            return
        await self._open(owner, scope, receive, send)

    async def _open(self, owner: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        session = ""

        async def watch(message: Message) -> None:
            nonlocal session
            if message["type"] == "http.response.start":
                session = MutableHeaders(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            # A request that is refused may have the header too. Its session is discarded by then.
            self._owners[session] = owner
            self._give_back_ended()

    def _give_back_ended(self) -> None:
        there = self._manager._server_instances  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        for session in [one for one in self._owners if one not in there]:
            self._slots.give_back(self._owners.pop(session))
