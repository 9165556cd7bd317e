"""Servers at a URL: streamable HTTP, and the older SSE.

The SDK's client ends as a whole when one of its requests fails to connect. `HttpTransport` answers such a request with
an error of its own, so that only this call fails and is known not to have been sent.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Literal, cast

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

from toolwire.mcp.client_limits import BACKOFF_S
from toolwire.mcp.oauth.authorization import Endpoint
from toolwire.mcp.oauth.authorization_network import AuthorizationNetwork
from toolwire.mcp.oauth.granting import AuthorizationFailed
from toolwire.mcp.oauth.token_auth import origin_of, token_auth
from toolwire.mcp.values.unread_messages import mend_text
from toolwire.vocabulary.errors import ConfigurationError

Fate = Literal["not_connected", "no_session", "refused", "not_answered"]
"""The fate of a request that has no answer of the server."""

_MARK = secrets.token_hex(16)
"""Marks the errors of `HttpTransport`. No server can know it, so none can claim that a call was not sent."""

AUTHORIZATION_BYTES = 1024 * 1024
"""Bytes of one answer of an authorization server. Its documents have a few kilobytes."""

_PING = json.dumps({"jsonrpc": "2.0", "id": "toolwire-ping", "method": "ping"})

_KNOWN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""Statuses whose answers pass: they ask for a login, or say that there is no such session or method."""

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class HttpTransport(httpx2.AsyncBaseTransport):
    """The HTTP transport of one connection.

    It bounds answers, turns lost requests into errors, and takes the user's headers off requests to other origins.
    """

    def __init__(
        self,
        url: str,
        message_bytes: int,
        inner: httpx2.AsyncBaseTransport | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        has_messages: bool = True,
    ) -> None:
        """`headers` are those of the user, for the origin of `url` alone.

        Without `has_messages` a lost request raises an error of httpx2, because no caller waits for a message.
        """
        self._url = httpx2.URL(url)
        self._message_bytes = message_bytes
        self._headers = dict(headers or {})
        self._has_messages = has_messages
        self._inner = inner or httpx2.AsyncHTTPTransport()
        self._may_reopen_at = -math.inf
        """When a stream of events may be opened again, as a value of `anyio.current_time()`."""

    def is_message(self, request: httpx2.Request) -> bool:
        """Returns True if the request carries a message whose answer is the response's body."""
        return self._has_messages and request.method == "POST" and request.url == self._url

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request. A message that cannot be sent, or is not answered, gets an error as its answer."""
        if origin_of(request.url) != origin_of(self._url):
            for name, value in self._headers.items():
                if request.headers.get(name) == value:
                    del request.headers[name]
        is_message = self.is_message(request)
        is_stream = self._has_messages and request.method == "GET"
        if is_stream:
            # The SDK waits as the server says, and without a limit on the number of times.
            await anyio.sleep(max(self._may_reopen_at - anyio.current_time(), 0.0))
        try:
            response = await self._inner.handle_async_request(request)
        except _NEVER_SENT as error:
            if not is_message:
                raise
            return _error_response("not_connected", str(error) or type(error).__name__)
        except httpx2.TransportError as error:
            if not is_message:
                raise
            return _error_response("not_answered", str(error) or type(error).__name__)
        if is_message and MCP_SESSION_ID in request.headers and await self._has_ended(request, response):
            await response.aclose()
            return _error_response("no_session", "the server has ended the session")
        if is_message and response.status_code >= HTTPStatus.BAD_REQUEST and response.status_code not in _KNOWN:
            return await self._status_error(response)
        ended = self._note_end if is_stream else None
        bounded = _BoundedStream(cast("httpx2.AsyncByteStream", response.stream), response, self._message_bytes, ended)
        response.stream = _MendingStream(bounded) if is_message else bounded
        return response

    async def _status_error(self, response: httpx2.Response) -> httpx2.Response:
        """Returns an answer with the error of the server, or if it has none, with an error that names the status."""
        response.stream = _BoundedStream(
            cast("httpx2.AsyncByteStream", response.stream), response, self._message_bytes, None
        )
        try:
            content = b"".join([chunk async for chunk in response.stream])
        except (httpx2.TransportError, httpx2.StreamError):
            content = b""
        finally:
            await response.aclose()
        headers = {"content-type": "application/json"}
        if _is_error(content):
            return httpx2.Response(response.status_code, headers=headers, content=mend_text(content))
        reason = httpx2.codes.get_reason_phrase(response.status_code)
        text = f"the server answered with {response.status_code} {reason}".rstrip()
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            text += '. If it speaks the older SSE, write "type": "sse", or MCPClient.sse'
        error = {"code": INTERNAL_ERROR, "message": text}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
        return httpx2.Response(response.status_code, headers=headers, content=body)

    def _note_end(self) -> None:
        self._may_reopen_at = anyio.current_time() + BACKOFF_S

    async def _has_ended(self, request: httpx2.Request, response: httpx2.Response) -> bool:
        """Returns True if the server does not know the session of a request.

        The protocol demands 404 for it. Servers made after the examples of the TypeScript SDK answer 400, as to any
        wrong request. So the session is tried with a ping, which changes nothing.
        """
        if response.status_code != 400:
            return response.status_code == 404
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        ping = httpx2.Request("POST", request.url, headers=headers, content=_PING, extensions=request.extensions)
        try:
            answer = await self._inner.handle_async_request(ping)
        except httpx2.TransportError:
            return False
        await answer.aclose()
        return answer.status_code in (400, 404)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """The body of a response, up to the limit. The events of a stream are bounded one by one, by the SDK."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        response: httpx2.Response,
        limit: int,
        ended: Callable[[], None] | None,
    ) -> None:
        """`ended` is called when the body is closed."""
        self._inner = inner
        self._ended = ended
        self.is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        self.limit = limit
        self._is_packed = response.headers.get("content-encoding", "identity").lower() != "identity"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_packed:
            # A few kilobytes may unpack to gigabytes, and the request asked for none.
            raise httpx2.StreamError("the server sent a compressed answer that was not asked for")
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self.limit and not self.is_stream:
                raise httpx2.StreamError(f"the server sent a message of more than {self.limit:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        if self._ended is not None:
            self._ended()
        await self._inner.aclose()


class _MendingStream(httpx2.AsyncByteStream):
    """The body of an answer, in which each message is one that the SDK reads, as far as it can be mended."""

    def __init__(self, inner: _BoundedStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        size = 0
        async for chunk in self._inner:
            parts.append(chunk)
            size += len(chunk)
            # A stream is passed on line by line. CR alone ends a line too.
            if self._inner.is_stream and (b"\n" in chunk or b"\r" in chunk or size > self._inner.limit):
                *lines, rest = b"".join(parts).split(b"\n")
                yield b"".join(_mend_line(line) + b"\n" for line in lines)
                parts, size = [rest], len(rest)
                if b"\r" in rest or size > self._inner.limit:
                    yield rest
                    parts, size = [], 0
        whole = b"".join(parts)
        yield _mend_line(whole) if self._inner.is_stream else mend_text(whole)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_error(content: bytes) -> bool:
    """Returns True if it is the error of a JSON-RPC message."""
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        return False
    error: Any = cast("dict[str, Any]", found).get("error") if isinstance(found, dict) else None
    return isinstance(error, dict) and "code" in error


def _mend_line(line: bytes) -> bytes:
    """Returns a line of a stream of events. One with a whole message is mended."""
    head, data = line[:5], line[5:].strip()
    return b"data: " + mend_text(data) if head == b"data:" and data.startswith(b"{") else line


def _error_response(fate: Fate, text: str) -> httpx2.Response:
    error = {"code": -32000, "message": text, "data": {"mark": _MARK, "fate": fate}}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    return httpx2.Response(502, headers={"content-type": "application/json"}, content=body)


def fate_of(error: MCPError) -> Fate | None:
    """Returns the fate of a request if `HttpTransport` made this error, else None."""
    data = cast("object", error.error.data)
    if isinstance(data, dict) and cast("dict[str, Any]", data).get("mark") == _MARK:
        return cast("dict[str, Any]", data)["fate"]
    return None


class Refused(Exception):
    """The server, or its authorization server, refuses this client. Nothing was sent, or nothing was done."""


class MessageClient(httpx2.AsyncClient):
    """The SDK's HTTP client, whose messages get an error as their answer if they are refused.

    This is done above the authentication, which has to see each 401 and 403 first.
    """

    def __init__(self, transport: HttpTransport, **options: Any) -> None:
        super().__init__(transport=transport, **options)
        self._http_transport = transport
        self._is_open = False

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends a request with its authentication.

        Raises:
            Refused: The request was refused, and it is not a message or the first of the connection. The SDK would take
                the error for a server of another revision, and go on with its handshake.
        """
        try:
            response = await super().send(request, **options)
            if response.status_code not in (401, 403):
                self._is_open = True
                return response
            await response.aclose()
            reason = f"the server refused the credentials: {response.status_code}"
        except (AuthorizationFailed, OAuthFlowError, ConfigurationError) as error:
            reason = str(error)
        except httpx2.TransportError as error:
            if not self._http_transport.is_message(request):
                raise
            # The HTTP transport has answered for the message itself.
            reason = f"the authorization server does not answer: {str(error) or type(error).__name__}"
        if not self._is_open or not self._http_transport.is_message(request):
            raise Refused(reason)
        answer = _error_response("refused", reason)
        answer.request = request
        return answer


@asynccontextmanager
async def at_endpoint(endpoint: Endpoint, login_command: str) -> AsyncGenerator[tuple[Any, Any]]:
    """Opens a connection to a server at a URL, with its authentication."""
    transport = HttpTransport(endpoint.url, AUTHORIZATION_BYTES, AuthorizationNetwork(endpoint.url), has_messages=False)
    plain = httpx2.AsyncClient(transport=transport, trust_env=False)
    async with token_auth(endpoint, login_command, plain) as auth:
        if endpoint.transport == "sse":
            async with _sse(endpoint, auth) as streams:
                yield streams
            return
        limit = endpoint.limits.message_bytes
        async with (
            _client(endpoint, endpoint.headers, auth) as client,
            streamable_http_client(endpoint.url, http_client=client, max_sse_event_size=limit) as streams,
        ):
            yield streams


@asynccontextmanager
async def _sse(endpoint: Endpoint, auth: httpx2.Auth | None) -> AsyncGenerator[tuple[Any, Any]]:
    sending, receiving = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    def client(
        headers: dict[str, Any] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001 - the SDK gives its own
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return _client(endpoint, headers or {}, auth, partial(_SseClient, sending))

    async def relay(reading: Any) -> None:
        async with sending:
            async for item in reading:
                await sending.send(item)

    async with (
        sending,
        receiving,
        sse_client(endpoint.url, dict(endpoint.headers), httpx_client_factory=client, auth=auth) as (reading, writing),
        anyio.create_task_group() as relaying,
    ):
        relaying.start_soon(relay, reading)
        yield receiving, writing
        relaying.cancel_scope.cancel()


class _SseClient(MessageClient):
    """The client of the older transport, whose answers come by a stream. A refused message gets its answer there.

    The SDK would send no further message, and the caller would wait for as long as its limit allows.
    """

    def __init__(self, answers: Any, transport: HttpTransport, **options: Any) -> None:
        super().__init__(transport, **options)
        self._answers = answers

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends a request. A message that is refused counts as accepted, and its caller gets an error."""
        fate: Fate
        try:
            response = await super().send(request, **options)
            if request.method != "POST" or response.status_code < 400:
                return response
            await response.aclose()
            fate = "refused" if response.status_code < 500 else "not_answered"
            reason = f"the server refused the message: {response.status_code}"
        except Refused as refused:
            if request.method != "POST":
                raise
            fate, reason = "refused", str(refused)
        except httpx2.TransportError as error:
            if request.method != "POST":
                raise
            fate = "not_connected" if isinstance(error, _NEVER_SENT) else "not_answered"
            reason = str(error) or type(error).__name__
        await self._answer(request, fate, reason)
        return httpx2.Response(202, request=request)

    async def _answer(self, request: httpx2.Request, fate: Fate, reason: str) -> None:
        message = json.loads(request.content)
        if "id" in message and "method" in message:
            error = ErrorData(code=-32000, message=reason, data={"mark": _MARK, "fate": fate})
            # The stream may have ended, and the caller knows that already.
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self._answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=message["id"], error=error)))


def _client(
    endpoint: Endpoint,
    headers: Mapping[str, str],
    auth: httpx2.Auth | None,
    make: Callable[..., httpx2.AsyncClient] = MessageClient,
) -> httpx2.AsyncClient:
    limits = endpoint.limits
    return make(
        HttpTransport(endpoint.url, limits.message_bytes, headers=endpoint.headers),
        headers={**headers, "accept-encoding": "identity"},
        auth=auth,
        timeout=httpx2.Timeout(limits.connect_s, read=limits.call_max_s),
        # Credentials of the machine's .netrc file must not go to a server that the host has only given a URL.
        trust_env=False,
    )
