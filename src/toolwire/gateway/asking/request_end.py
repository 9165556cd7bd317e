"""Tells the handler of a message that its HTTP request has ended, because the client has closed the connection."""

from __future__ import annotations

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_KEY = "toolwire.request_end"


class RequestEnds:
    """ASGI middleware that sets the event of each request at its end.

    The handler of a message runs in the task of its session, so the end of the request does not cancel it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[_KEY] = end = anyio.Event()
        try:
            await self._app(scope, receive, send)
        finally:
            end.set()


def request_end(request: object) -> anyio.Event | None:
    """Returns the event that is set at the end of a request; None for a message that came without HTTP."""
    return request.scope.get(_KEY) if isinstance(request, Request) else None
