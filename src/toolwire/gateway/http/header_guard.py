"""Refuses requests that a web page of another origin made the browser send, and requests with two readings.

Without this check, a page could point its own name at this machine and call the tools (DNS rebinding).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine, which no other machine can have."""

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?)(:(?P<port>[0-9]{1,5}))?")
_SINGLE = (b"host", b"origin", b"authorization", b"content-length", b"mcp-session-id", b"mcp-protocol-version")
"""Headers that may stand once. A proxy could read the first of two, and this server the second."""


class HttpGuard:
    """ASGI middleware that checks the headers of each request."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK, *hosts))
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = self._refusal_for(scope["headers"])
            if refused is not None:
                await refused(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1002})
            return
        await self._app(scope, receive, send)

    def _refusal_for(self, headers: Sequence[tuple[bytes, bytes]]) -> PlainTextResponse | None:
        found: dict[bytes, list[str]] = {name: [] for name in _SINGLE}
        for name, value in headers:
            if name.lower() in found:
                found[name.lower()].append(value.decode("latin-1"))
        twice = [name.decode() for name, values in found.items() if len(values) > 1]
        if twice:
            return PlainTextResponse(f"The header {twice[0]} stands more than once.", 400)
        if found[b"content-length"] and any(name.lower() == b"transfer-encoding" for name, _ in headers):
            # RFC 9112, 6.1: the connection is closed, because a proxy may see two requests in the body.
            said = "Content-Length and Transfer-Encoding exclude each other."
            return PlainTextResponse(said, 400, {"Connection": "close"})
        host = (found[b"host"] or [""])[0].lower()
        if not self._is_own(host):
            return PlainTextResponse("This Host is not served here.", 421)
        origin = found[b"origin"]
        # A page of the server's own origin has the same host.
        if origin and origin[0] not in self._origins and origin[0].lower() not in (f"http://{host}", f"https://{host}"):
            return PlainTextResponse("This Origin may not call.", 403)
        return None

    def _is_own(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        if parts is None or int(parts["port"] or 0) > 65_535:
            return False
        return host in self._hosts or parts["name"] in self._hosts
