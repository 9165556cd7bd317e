"""One page of the web, fetched past the guard: redirects by hand, limits on size and time."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass

import httpcore2
import httpx2

from toolwire.builtin.web.charsets import codec_of
from toolwire.builtin.web.network import BODY_LIMIT_BYTES
from toolwire.builtin.web.refusals import Blocked, FetchFailed

REDIRECT_LIMIT = 5
"""Maximum redirects of one page: browsers allow 20, and honest sites need three."""
URL_LIMIT = 2_048
"""Maximum characters of a URL; browsers and servers agree up to here."""
RATIO_LIMIT = 200
"""Maximum bytes that one packed byte may become. Texts reach 20, and a bomb 1,000."""
RATIO_FREE_BYTES = 64 * 1024
"""Unpacked bytes above which the ratio counts: short pages of one character exceed it too."""
PORTS = (80, 443)
"""The ports of the public web."""
CONTENT_TYPES = ("text/", "application/json", "application/xhtml+xml", "application/xml", "application/pdf")
"""The content types that are fetched, and those that end with `+json` or `+xml`."""
HTML = ("text/html", "application/xhtml+xml", "")
"""The content types of HTML, and that of a page whose server names none."""
_HEADERS = {
    "User-Agent": "toolwire",
    "Accept": "text/html,application/xhtml+xml,application/pdf,application/json,text/*;q=0.9",
    "Accept-Encoding": "gzip, identity",
}
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer of the web."""

    url: str
    """The URL after all redirects."""
    status: int
    """The HTTP status."""
    content_type: str
    """The content type in lower case, without parameters; empty if the server names none."""
    charset: str
    """The codec of the charset that the server names; empty if it names none, or one that the web does not know."""
    body: bytes
    """The unpacked body; empty unless the status is 200 to 299."""


async def fetch(
    url: str, *, transport: httpx2.AsyncBaseTransport, deadline_s: float, ports: Collection[int] = PORTS
) -> Fetched:
    """Fetches a page with GET. Each redirect is checked as the URL itself. No cookie and no password is sent.

    `deadline_s` bounds all work in seconds, redirects and a slow body included.

    Raises:
        Blocked: The guard refuses the URL, its address or the answer.
        FetchFailed: The server cannot be reached, or did not answer in time.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return await _follow(url, transport, ports)
    except TimeoutError:
        raise FetchFailed(f"no whole answer within {deadline_s:g} seconds", may_repeat=True) from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in error.args):
            raise FetchFailed(f"the server of {url[:200]!r} has no valid certificate") from error
        reached = not isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout)
        what = "did not answer as HTTP wants it" if reached else "cannot be reached"
        raise FetchFailed(f"the server of {url[:200]!r} {what}", may_repeat=True) from error


async def _follow(url: str, transport: httpx2.AsyncBaseTransport, ports: Collection[int]) -> Fetched:
    at = require_fetchable(url, ports)
    for _ in range(REDIRECT_LIMIT + 1):
        response = await transport.handle_async_request(httpx2.Request("GET", at, headers=_HEADERS))
        try:
            location = response.headers.get("location") if response.status_code in _REDIRECTS else None
            if location is None:
                return await _read_page(at, response)
        finally:
            await response.aclose()
        before, at = at, require_fetchable(_redirect_target(at, location), ports)
        if before.scheme == "https" and at.scheme == "http":
            raise Blocked("the page redirects from https to http")
    raise Blocked(f"the page redirects more than {REDIRECT_LIMIT} times")


def require_fetchable(url: str | httpx2.URL, ports: Collection[int]) -> httpx2.URL:
    """Returns the URL if its form may be fetched. Its address is checked when it is resolved."""
    shown = f"{str(url)[:200]!r}"
    if len(str(url)) > URL_LIMIT:
        raise Blocked(f"the URL has more than {URL_LIMIT:,} characters")
    try:
        found = httpx2.URL(url)
        host = found.host
        if len(str(found)) > URL_LIMIT:
            raise Blocked(f"the URL has more than {URL_LIMIT:,} characters when it is encoded")
    except (httpx2.InvalidURL, UnicodeError):
        raise Blocked(f"{shown} is not a URL: write it as https://example.org/page") from None
    if found.scheme not in ("http", "https") or not host:
        raise Blocked(f"{shown} is not a page of the web: write a URL that begins with https:// or http://")
    if found.userinfo:
        raise Blocked("the URL has a user name or a password before '@': leave it out")
    port = found.port or (443 if found.scheme == "https" else 80)
    if port not in ports:
        raise Blocked(f"port {port} is not fetched: use {' or '.join(map(str, ports))}")
    return found


def _redirect_target(at: httpx2.URL, location: str) -> httpx2.URL:
    try:
        return at.join(location)
    except (httpx2.InvalidURL, UnicodeError):
        raise Blocked("the page redirects to a text that is not a URL") from None


async def _read_page(url: httpx2.URL, response: httpx2.Response) -> Fetched:
    kind, charset = content_type_of(response.headers.get("content-type", ""))
    body = b""
    if response.is_success:
        readable = kind.startswith(CONTENT_TYPES) or kind.endswith(("+json", "+xml"))
        if kind and not readable:
            raise Blocked(f"the page is {kind}: only HTML, PDF, JSON and text are read")
        body = await _body(response)
    return Fetched(url=str(url), status=response.status_code, content_type=kind, charset=charset, body=body)


def content_type_of(header: str) -> tuple[str, str]:
    """Returns the content type in lower case, and the codec of its charset."""
    kind, *parameters = header.split(";")
    named = [part.strip().lower().partition("=") for part in parameters]
    charset = next((value for name, _, value in named if name.strip() == "charset"), "")
    return kind.strip().lower(), codec_of(charset.strip("\"' "))


async def _body(response: httpx2.Response) -> bytes:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", ""):
        raise Blocked(f"the body is packed as {encoding[:40]!r}, and gzip was asked for")
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        raise TypeError("the transport's answer cannot be read in an event loop")
    parts = response.stream.__aiter__()
    body = bytearray()
    async for part in _unpack(parts) if encoding == "gzip" else parts:
        body += part
        if len(body) > BODY_LIMIT_BYTES:
            raise Blocked(f"the page has more than {BODY_LIMIT_BYTES:,} bytes")
    return bytes(body)


async def _unpack(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Unpacks gzip in pieces, so that a bomb is stopped before it takes memory."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    packed_size = size = 0
    async for part in parts:
        packed_size += len(part)
        left = part
        while left and not unpacker.eof:
            try:
                piece = unpacker.decompress(left, RATIO_FREE_BYTES)
            except zlib.error:
                raise FetchFailed("the body is not gzip, as the server says") from None
            left = unpacker.unconsumed_tail
            size += len(piece)
            if size > RATIO_FREE_BYTES + RATIO_LIMIT * (packed_size - len(left)):
                raise Blocked(f"one packed byte of the page becomes more than {RATIO_LIMIT}")
            yield piece
    if not unpacker.eof:
        raise FetchFailed("the page ends in its middle", may_repeat=True)
