"""Passes a request on once its body is whole, and bounds the requests that one client has under way."""

from __future__ import annotations

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolwire.gateway.clients import owner_of
from toolwire.gateway.http.connections import port_connection_of
from toolwire.gateway.http.unfinished import Unfinished
from toolwire.gateway.server_limits import ServerLimits
from toolwire.gateway.slots import SlotRefused, Slots

_CLOSE = {"Connection": "close"}


class _RequestRefused(Exception):
    """The body is not read. `response` says why."""

    def __init__(self, response: PlainTextResponse) -> None:
        super().__init__(response.status_code)
        self.response = response


class _Gone(Exception):
    """The client has closed the connection."""


class WholeRequests:
    """ASGI application in front of another one, behind the check of the token.

    It reads each body itself: nothing behind it has a session, a slot or a task for a request that may never be whole.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app, self._limits = app, limits
        self._slots = Slots(limits.connections, "request", "under way", each=limits.each(limits.connections))
        most = limits.buffered_bytes
        self._bodies = Unfinished[anyio.CancelScope](most, limits.each(most), lambda scope: scope.cancel())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        owner = owner_of(Request(scope))
        if (connection := port_connection_of(scope)) is not None:
            connection.belong_to(owner)
        try:
            body = await self._read(owner, Headers(scope=scope), receive)
            self._slots.take(owner)
        except _Gone:
            return
        except _RequestRefused as refused:
            await refused.response(scope, receive, send)
            return
        except SlotRefused as refused:
            await PlainTextResponse(str(refused), 503)(scope, receive, send)
            return
        try:
            response = _Response(send)
            await self._app(scope, _replay(body, receive), response.send)
            await response.complete()
        finally:
            self._slots.give_back(owner)

    async def _read(self, owner: str | None, headers: Headers, receive: Receive) -> bytes:
        """Returns the body.

        Raises:
            _Refused: It is too long or too late, or the server holds too many bytes of unfinished bodies.
            _Gone: The client has left.
        """
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limits.body_bytes:
            raise _too_long(self._limits)
        body = bytearray()
        with anyio.move_on_after(self._limits.body_s) as reading:
            try:
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise _Gone
                    body += message.get("body", b"")
                    if len(body) > self._limits.body_bytes:
                        raise _too_long(self._limits)
                    if not message.get("more_body", False):
                        return bytes(body)
                    self._bodies.hold(reading, owner, len(body))
            finally:
                self._bodies.release(reading)
        if anyio.current_time() >= reading.deadline:
            said = f"The body of the request was not whole within {self._limits.body_s:g} s."
            raise _RequestRefused(PlainTextResponse(said, 408, _CLOSE))
        said = "The server holds too many bytes of unfinished requests. This one gave way to a newer one."
        raise _RequestRefused(PlainTextResponse(said, 503, _CLOSE))


class _Response:
    """A response on its way."""

    def __init__(self, send: Send) -> None:
        self._send, self._is_begun, self._is_whole = send, False, False

    async def send(self, message: Message) -> None:
        """Sends a part of it."""
        await self._send(message)
        self._is_begun = True
        self._is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def complete(self) -> None:
        """Ends it. A stream for a client that is open when the server ends stops in its middle."""
        if self._is_begun and not self._is_whole:
            await self._send({"type": "http.response.body", "body": b""})


def _too_long(limits: ServerLimits) -> _RequestRefused:
    # Without `Connection: close`: the connection stays for the rest of the body, because closing it at once could
    # take this answer from the client.
    said = f"The body of the request has more than {limits.body_bytes:,} bytes."
    return _RequestRefused(PlainTextResponse(said, 413))


def _replay(body: bytes, receive: Receive) -> Receive:
    """Returns a function that gives the body first, and then the messages of `receive`."""
    is_read = False

    async def next_message() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message
