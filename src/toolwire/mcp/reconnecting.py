"""The attempts to connect to one server: how many failed, why, and how long the next one waits."""

from __future__ import annotations

import random
from typing import cast

import anyio
from mcp.shared.exceptions import MCPError

from toolwire.mcp.client_limits import BACKOFF_GROWTH, BACKOFF_MAX_S, BACKOFF_S, STABLE_S
from toolwire.mcp.open_connection import OpenConnection
from toolwire.mcp.transports.http import Refused, fate_of

LAST_LINE_CHARACTERS = 300
"""Maximum characters of the last line of stderr that an error has. The log has the whole line."""

# A generator of its own: one that is shared would change the numbers of a program that gave it a seed.
_CHANCE = random.Random()  # noqa: S311 - no secret


class Attempts:
    """The attempts so far. It is used on the loop of the connection alone."""

    def __init__(self) -> None:
        self.ended = 0
        """The number of attempts and connections that have ended."""
        self.failures = 0
        """The number of attempts that failed one after the other."""
        self.error = ""
        """The reason of the last end."""
        self.last_words = ""
        """The end of a sentence for the operator: what the process wrote last. No model may read it."""
        self.is_refused = False
        """True if the server refused this client at the last attempt. Waiting does not help, but a login may."""
        self._hurry = anyio.Event()

    def note_end(self, connection: OpenConnection) -> None:
        """Notes the end of an attempt, or of the connection that it made."""
        is_stable = connection.client is not None and anyio.current_time() - connection.since >= STABLE_S
        self.failures = 1 if is_stable else self.failures + 1
        self.error = connection.error or "it closed the connection"
        last_line = connection.last_line[:LAST_LINE_CHARACTERS]
        self.last_words = f". Its stderr ends with: {last_line}" if last_line else ""
        self.is_refused = connection.is_refused
        self.ended += 1

    async def pause(self, connection: OpenConnection) -> None:
        """Waits until the next attempt is due. There is no wait after a connection that was good."""
        self._hurry = anyio.Event()
        if self.failures <= 1 and connection.client is not None:
            return
        longest = min(BACKOFF_S * BACKOFF_GROWTH ** (self.failures - 1), BACKOFF_MAX_S)
        # Other processes that lost the same server must not all come back at the same moment.
        with anyio.move_on_after(longest * _CHANCE.uniform(0.8, 1.0)):
            await self._hurry.wait()

    def hurry(self) -> None:
        """Ends the wait for the next attempt."""
        self._hurry.set()


def note_error(connection: OpenConnection, error: BaseException) -> None:
    """Notes the reason of a connection's end: the first error that is not a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    connection.is_refused = isinstance(error, Refused) or (isinstance(error, MCPError) and fate_of(error) == "refused")
    if connection.error:
        # The end of the process is the reason of what follows it.
        return
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        connection.error = f"{error.strerror}: {str(error.filename)!r}. Give a command and a folder that exist"
    else:
        connection.error = str(error) or type(error).__name__
