"""The lines of a client, each bounded, and the errors for lines that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import BinaryIO

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

from toolwire.mcp.values.unread_messages import fault_of, id_of, is_answer, members_of

_LOG = logging.getLogger("toolwire.gateway")
_START_BYTES = 1_024
_SKIPPED_BYTES = 65_536


async def lines_of(stdin: BinaryIO, limit_bytes: int) -> AsyncGenerator[str | bytes]:
    """Gives each line, read in a thread. Wrong bytes are replaced, because the client would wait for its answer.

    Of a line that is longer than the limit it gives the first 1,024 bytes, as bytes.
    """
    while line := await anyio.to_thread.run_sync(stdin.readline, limit_bytes + 1, abandon_on_cancel=True):
        if len(line) <= limit_bytes or line.endswith(b"\n"):
            yield line.decode("utf-8", "replace")
            continue
        start, rest = line[:_START_BYTES], line
        while rest and not rest.endswith(b"\n"):
            rest = await anyio.to_thread.run_sync(stdin.readline, _SKIPPED_BYTES, abandon_on_cancel=True)
        yield start


def too_long(start: bytes, limit_bytes: int) -> SessionMessage:
    """Returns the error for a line that is too long, with the id of the request if its start has it."""
    error = ErrorData(code=INVALID_REQUEST, message=f"The message has more than {limit_bytes:,} bytes.")
    found = id_of(members_of(start.decode("utf-8", "replace")))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=found, error=error))


def answer_for(line: str) -> SessionMessage | str | None:
    """Returns the answer that is due for a line.

    The SDK drops a line that it cannot read. A request gets an error as its answer then, and the answer to a question
    of this server becomes an error as a line. Any other such line is None, and in the log. A line that can be read is
    returned as it is.
    """
    error = fault_of(line)
    if error is None:
        return line
    members = members_of(line)
    found = id_of(members)
    if found is None:
        _LOG.warning("a line of the client is not a message: %s: %.200r", error.message, line.strip())
        return None
    told = JSONRPCError(jsonrpc="2.0", id=found, error=error)
    return told.model_dump_json(by_alias=True, exclude_unset=True) if is_answer(members) else SessionMessage(told)
