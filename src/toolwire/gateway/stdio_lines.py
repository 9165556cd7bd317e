"""The lines of a client, each bounded."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import BinaryIO

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

_START_BYTES = 1_024
_SKIPPED_BYTES = 65_536
_ID = re.compile(rb'"id"\s*:\s*(?:(\d{1,15})|"([\w-]{1,64})")\s*[,}]')


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is longer than the limit, and was not kept."""

    start: bytes
    """Its first 1,024 bytes."""


async def lines_of(stdin: BinaryIO, limit_bytes: int) -> AsyncGenerator[str | LongLine]:
    """Gives each line, read in a thread. Wrong bytes are replaced, because the client would wait for its answer."""
    while line := await anyio.to_thread.run_sync(stdin.readline, limit_bytes + 1, abandon_on_cancel=True):
        if len(line) <= limit_bytes or line.endswith(b"\n"):
            yield line.decode("utf-8", "replace")
            continue
        start, rest = line[:_START_BYTES], line
        while rest and not rest.endswith(b"\n"):
            rest = await anyio.to_thread.run_sync(stdin.readline, _SKIPPED_BYTES, abandon_on_cancel=True)
        yield LongLine(start)


def too_long(start: bytes, limit_bytes: int) -> SessionMessage:
    """Returns the error for a line that is too long, with the id of the request if it stands before the parameters."""
    found = _ID.search(start.partition(b'"params"')[0])
    error = ErrorData(code=INVALID_REQUEST, message=f"The message has more than {limit_bytes:,} bytes.")
    given = None if found is None else int(found[1]) if found[1] else found[2].decode()
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=given, error=error))
