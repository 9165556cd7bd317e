"""The request of one call: to the server of the document alone, with the owner's headers, and with limits."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from inspect import isawaitable
from typing import Any, cast

import httpcore2
import httpx2

from toolwire.builtin.web.addresses import NOT_AN_ADDRESS, why_not
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.refusals import Blocked, FetchFailed
from toolwire.openapi.api_document import ApiDocument
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import CallNotAnswered, CallNotSent, ConfigurationError, ToolwireError

REQUEST_TIMEOUT_S = 30.0
"""Maximum seconds of one request, from the connection to the last byte. Gateways wait no longer either."""
ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
"""Maximum bytes of an answer: 8 MiB, far more than a model can read."""
CLIENT_HINT = "client=httpx2.AsyncClient(base_url='https://...')"
"""The argument by which the owner says where calls go."""

HeaderValue = str | Callable[[CallContext], str | Awaitable[str]]
"""A text, or a function of the call's context. In a text, `{user.token}` is read from the state of each call."""

_LOG = logging.getLogger("toolwire.openapi")
_STATE_KEY = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\}")
_NOT_SENT = (
    *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol),
    *(httpx2.LocalProtocolError, httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout),
    *(httpcore2.UnsupportedProtocol, httpcore2.LocalProtocolError, FetchFailed),
)
"""Errors that come before the first byte of a request."""
_LOST = (
    *(httpx2.TransportError, httpx2.DecodingError, httpcore2.NetworkError, httpcore2.TimeoutException),
    *(httpcore2.ProtocolError, ssl.SSLError, TimeoutError),
)
"""Errors after which a request may have taken effect."""


class AnswerTooLong(Exception):
    """An answer has more than `ANSWER_LIMIT_BYTES`."""


class WrongHeader(ToolwireError):
    """A value of the owner's cannot be sent as a header. The text does not have it: it may be a token."""


class NotPublic(ToolwireError):
    """The server is not on the public internet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """The answer to one request."""

    status: int
    """The HTTP status."""
    reason: str
    """The words of the status, such as `Not Found`; empty if there are none."""
    headers: httpx2.Headers
    """The headers."""
    body: bytes
    """The whole body."""

    @property
    def retry_after_s(self) -> float | None:
        """The seconds after which the server wants to be asked again; None if it does not say."""
        given = self.headers.get("retry-after", "").strip()
        if given.isdecimal():
            return float(given[:9])
        try:
            return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return None


class Headers:
    """The headers that the owner gives to each request."""

    def __init__(self, headers: Mapping[str, HeaderValue] | None) -> None:
        """Checks the headers.

        Raises:
            ConfigurationError: A name or a value cannot be one.
        """
        if not isinstance(cast("object", headers), Mapping | None):
            raise ConfigurationError(
                f"headers={headers!r:.80}: give a dict, such as headers={{'X-Token': '{{token}}'}}"
            )
        self._values = dict(headers or {})
        for name, value in self._values.items():
            if not isinstance(cast("object", name), str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
                raise ConfigurationError(f"headers={{{name!r:.80}: ...}}: this cannot be the name of a header")
            if not isinstance(cast("object", value), str) and not callable(value):
                raise ConfigurationError(
                    f"headers={{{name!r}: ...}}: give a text, or a function of the call's context that returns one"
                )
            if isinstance(value, str):
                _check_text(name, value)
        self.names = frozenset(name.lower() for name in self._values)
        """The names in lower case."""
        texts = [value for value in self._values.values() if isinstance(value, str)]
        self.state_keys = frozenset(key for text in texts for key in _STATE_KEY.findall(text))
        """The keys of the state that the texts name."""

    async def values_for(self, context: CallContext, state: Mapping[str, object]) -> dict[str, str]:
        """Returns the headers of one call. `state` has the values of `state_keys`.

        Raises:
            WrongHeader: A value is not one line of ASCII text.
        """
        for key, part in state.items():
            if not isinstance(part, str):
                raise WrongHeader(f"{key!r} in the state is {type(part).__name__}, and a header needs a text")
        found: dict[str, str] = {}
        for name, value in self._values.items():
            given = (
                _STATE_KEY.sub(lambda match: str(state[match[1]]), value) if isinstance(value, str) else value(context)
            )
            text = cast("object", await given if isawaitable(given) else given)
            if not isinstance(text, str) or not _is_line(text):
                raise WrongHeader(f"the owner's header {name!r} must be one line of ASCII text")
            found[name] = text
        return found


def _check_text(name: str, value: str) -> None:
    """Refuses the text of a header that no state can make right.

    Raises:
        ConfigurationError: It has a line break or a letter that is not ASCII, or a brace that names no key.
    """
    fixed = _STATE_KEY.sub("", value)
    if not _is_line(fixed):
        raise ConfigurationError(f"headers={{{name!r}: ...}}: write one line of ASCII text")
    if "{" in fixed:
        raise ConfigurationError(
            f"headers={{{name!r}: ...}}: its '{{' names no key of the state: write {{user.token}}, or give a function "
            "that returns the text"
        )


def _is_line(text: str) -> bool:
    return text.isascii() and text.isprintable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server that gets all requests of a document."""

    base_url: str
    """The URL before each path."""
    open_client: Callable[[], AbstractAsyncContextManager[httpx2.AsyncClient]] = field(repr=False)
    """Returns the client of one request."""

    async def send(self, request: httpx2.Request, headers: Mapping[str, str]) -> HttpAnswer:
        """Sends a request and reads the answer. Redirects are not followed: a token must not leave.

        Raises:
            CallNotSent: The server was not reached.
            CallNotAnswered: The request was sent, and no whole answer came.
            NotPublic: The server is not on the public internet, and the owner has not allowed it.
            AnswerTooLong: The answer has more than `ANSWER_LIMIT_BYTES`.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S), self.open_client() as client:
                built = _with_defaults(client, request, headers)
                answer = await client.send(built, stream=True, follow_redirects=False)
                try:
                    body = await _read(answer)
                finally:
                    await answer.aclose()
        except Blocked as error:
            raise AnswerTooLong(str(error)) from error
        except _NOT_SENT as error:
            raise CallNotSent(f"the server cannot be reached: {error or type(error).__name__}") from error
        except TimeoutError as error:
            raise CallNotAnswered(f"no whole answer came within {REQUEST_TIMEOUT_S:g} seconds") from error
        except _LOST as error:
            raise CallNotAnswered(f"the connection was lost: {error or type(error).__name__}") from error
        return HttpAnswer(status=answer.status_code, reason=answer.reason_phrase, headers=answer.headers, body=body)


def _with_defaults(client: httpx2.AsyncClient, request: httpx2.Request, headers: Mapping[str, str]) -> httpx2.Request:
    """Returns the request with the headers of the client, which count less, and those of the owner, which win."""
    built = client.build_request(
        method=request.method,
        url=str(request.url.copy_with(query=None)),
        params=list(request.url.params.multi_items()) or None,
        headers=list(request.headers.raw),
        content=request.read() or None,
    )
    # What is packed could become far longer than it may be, before anybody counts it.
    built.headers["Accept-Encoding"] = "identity"
    if built.headers.get("Accept", "*/*") == "*/*":
        built.headers["Accept"] = "application/json, */*;q=0.8"
    for name, value in headers.items():
        built.headers[name] = value
    return built


async def _read(answer: httpx2.Response) -> bytes:
    packing = answer.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "gzip", "deflate", ""):
        raise httpx2.DecodingError(f"the answer is packed as {packing[:40]!r}, and plain was asked for")
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > ANSWER_LIMIT_BYTES:
            raise AnswerTooLong(f"the answer has more than {ANSWER_LIMIT_BYTES:,} bytes")
    return bytes(body)


def find_server(document: ApiDocument, client: object) -> Server:
    """Returns the server of a document: that of the client, else the first one that the document names.

    Raises:
        ConfigurationError: There is none, or the document names one that it may not choose.
    """
    if client is not None:
        if not isinstance(client, httpx2.AsyncClient) or not client.base_url.host:
            raise ConfigurationError(f"client={client!r:.80}: give {CLIENT_HINT}")
        if client.base_url.query or client.base_url.fragment:
            raise ConfigurationError(
                f"the base_url of client= is {str(client.base_url)!r:.200}: end it at the path, and give its query as "
                "httpx2.AsyncClient(params={...})"
            )
        return Server(base_url=str(client.base_url), open_client=lambda: nullcontext(client))
    url = _first_server(document)
    if document.url is not None:
        if _origin(url) != _origin(document.url):
            raise ConfigurationError(
                f"{document.label} sends calls to another server, {str(url)!r:.200}: if you trust it, give "
                f"{CLIENT_HINT}"
            )
        return Server(base_url=str(url), open_client=_OwnersClient())
    _refuse_private(document, url.host)
    transport = _PublicTransport()
    return Server(
        base_url=str(url),
        open_client=lambda: httpx2.AsyncClient(transport=transport, trust_env=False, timeout=REQUEST_TIMEOUT_S),
    )


def _first_server(document: ApiDocument) -> httpx2.URL:
    servers = document.content.get("servers")
    first = cast("list[Any]", servers)[0] if isinstance(servers, list) and servers else {"url": "/"}
    server = cast("dict[str, Any]", first) if isinstance(first, dict) else {}
    text = str(server.get("url") or "/")
    variables = server.get("variables")
    for name, variable in cast("dict[str, Any]", variables if isinstance(variables, dict) else {}).items():
        if isinstance(variable, dict) and "default" in variable:
            text = text.replace(f"{{{name}}}", str(cast("dict[str, Any]", variable)["default"]))
    wrong = f"{document.label} sends calls to {text!r:.200}, which is not the URL of a server: give {CLIENT_HINT}"
    try:
        url = httpx2.URL(text) if document.url is None else document.url.join(text)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise ConfigurationError(wrong) from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or "{" in text:
        raise ConfigurationError(wrong)
    return url.copy_with(query=None, fragment=None)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def _refuse_private(document: ApiDocument, host: str) -> None:
    """Refuses a host that is private by its name. Others are checked when they are resolved, at each connection."""
    name = host.lower().rstrip(".")
    why = "loopback" if name == "localhost" or name.endswith(".localhost") else why_not(host.strip("[]"))
    if why not in (None, NOT_AN_ADDRESS):
        raise ConfigurationError(
            f"{document.label} sends calls to {host!r}, which is not on the public internet ({why}): if you trust it, "
            f"give {CLIENT_HINT}"
        )


class _PublicTransport(GuardedTransport):
    """Connects to public addresses alone, and says how the owner allows another one."""

    async def addresses(self, host: str, port: int) -> list[str]:
        try:
            return await super().addresses(host, port)
        except Blocked as error:
            _LOG.warning("The server %r of an OpenAPI document is not public: to allow it, give %s", host, CLIENT_HINT)
            raise NotPublic(
                f"the server {host!r} of the document is not on the public internet; its owner can allow it with "
                f"{CLIENT_HINT}"
            ) from error


class _OwnersClient:
    """Makes clients for a URL that the owner wrote. Each request has its own, so that no cookie is kept for another."""

    def __init__(self) -> None:
        self._tls: ssl.SSLContext | None = None

    def __call__(self) -> httpx2.AsyncClient:
        if self._tls is None:
            self._tls = httpx2.create_ssl_context()
        return httpx2.AsyncClient(verify=self._tls, timeout=REQUEST_TIMEOUT_S)


def warn_of_other_servers(document: ApiDocument, places: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Warns of servers of single paths or operations, which are not followed."""
    for place, holder in places:
        servers = holder.get("servers")
        for server in cast("list[Any]", servers) if isinstance(servers, list) else []:
            url = cast("dict[str, Any]", server).get("url") if isinstance(server, dict) else server
            _LOG.warning("%s: %s names the server %r, which gets no calls", document.label, place, str(url)[:200])
