"""The health port of a worker: `/healthz`, `/readyz` and `/metrics` over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from toolwire.fleet.figures import CONTENT_TYPE
from toolwire.vocabulary.errors import ConfigurationError

REQUEST_LIMIT_BYTES = 8192
"""Size of the largest request that is read. Those of probes have some hundred bytes."""
REQUEST_LIMIT_S = 5.0
"""Seconds for a request to arrive, so that a silent client holds no connection."""

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 503: "Service Unavailable"}

Page = Callable[[], tuple[int, str]]
"""Returns the status and text of a page."""


async def serve_health(address: str, pages: dict[str, Page]) -> asyncio.Server:
    """Answers `GET` requests for these paths at `HOST:PORT`.

    Raises:
        ConfigurationError: The address is none, or is taken.
    """
    host, mark, port = address.rpartition(":")
    if not mark or not port.isdigit():
        raise ConfigurationError(f"--health {address!r} is no address: write HOST:PORT, such as 127.0.0.1:8080")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_LIMIT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(request, pages))
                await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, host.strip("[]"), int(port), limit=REQUEST_LIMIT_BYTES)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(f"--health {address}: {error}: name an address that is free") from error


def _response(request: bytes, pages: dict[str, Page]) -> bytes:
    words = request.partition(b"\r\n")[0].decode("latin-1").split(" ")
    status, text = 400, "write GET /healthz, /readyz or /metrics\n"
    if len(words) == 3 and words[0] == "GET":
        page = pages.get(words[1].partition("?")[0])
        status, text = page() if page is not None else (404, "there are /healthz, /readyz and /metrics\n")
    body = text.encode()
    kind = CONTENT_TYPE if words[1:2] == ["/metrics"] else "text/plain; charset=utf-8"
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
