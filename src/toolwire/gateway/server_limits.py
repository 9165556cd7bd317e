"""The limits of a server for MCP clients."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TypedDict

from toolwire.vocabulary.errors import ConfigurationError

CALLS = 256
"""Calls under way at a time. More are refused as `overloaded`, so that clients cannot take all threads and memory."""

WAITING = 1_000
"""Calls that wait for the answer to a form. Each holds a connection and its arguments. More fail without a form."""

SHARE = 0.25
"""The part of a limit that one client may have, so that three clients together still leave room for others. A
smaller part would hold up one client with many calls, or an office behind one address.
"""

STREAMS = 1_024
"""Open streams of changes, as in the SDK."""

URI_CHARACTERS = 8_192
"""Characters of a URI that a client gives, as HTTP servers take them."""

GIVEN_NAME_CHARACTERS = 1_024
"""Characters of the name of a tool or prompt that a client gives. A server behind this one may have long names."""

BODY_BYTES = 4 * 1024 * 1024
"""Bytes of one message of a client, as in the SDKs of MCP: a picture of 3 MB in Base64."""

RESULT_BYTES = 1_000_000
"""Bytes of a result's text for a client: a file or a page of the web as a whole. A client cuts it for its model."""

CONNECTIONS = 512
"""Open connections of a port: half of the 1,024 files that Linux lets a process open. Tools and stores need files too.
"""

HEAD_S = 10.0
"""Seconds for the head of a request. A head has a few hundred bytes, which slow networks too carry in one second."""

BODY_S = 30.0
"""Seconds for the body of a request after its head: 4 MiB at 140 kB/s."""

RESPONSE_S = 30.0
"""Seconds in which a client must read the next 64 KiB of a response: 2 kB/s."""

BUFFERED_BYTES = 64 * 1024 * 1024
"""Bytes of unfinished bodies, and as many of unread responses. One client has room for four messages of 4 MiB."""

SESSIONS = 1_000
"""Open HTTP sessions of the handshake protocols. Each holds some 100 KB."""

IDLE_S = 30 * 60.0
"""Seconds without a request after which an HTTP session ends. A person may leave an editor for a while."""

DRAIN_S = 10.0
"""Seconds that calls under way may still take after SIGTERM. Container runtimes send SIGKILL after 10 to 30."""

TASK_S = 5.0
"""Seconds after which a call becomes a task, for a client that takes tasks. A shorter call costs it no second request.
"""

LIST_POLL_S = 0.5
"""Seconds between two looks at the list of tools while clients are connected. A look costs microseconds a tool."""

STATE_BUSY_S = 60.0
"""Seconds that a call waits for another process that works on its run or on its client's conversation.

A client waits for a call as long.
"""

NAME_CHARACTERS = 48
"""Maximum characters of a served name. Providers take 64, and clients put a prefix of their own before it."""


class ServerLimitOptions(TypedDict, total=False):
    """The limits that `ToolServer` takes as keywords; see `ServerLimits`."""

    calls: int
    waiting: int
    share: float
    body_bytes: int
    result_bytes: int
    connections: int
    head_s: float
    body_s: float
    response_s: float
    buffered_bytes: int
    sessions: int
    idle_s: float
    drain_s: float
    task_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of one server.

    Attributes:
        calls: Calls under way at a time. One that waits for a person is not under way.
        waiting: Calls of the handshake protocols that wait for the answer to a form.
        share: The part of `connections`, `buffered_bytes`, `sessions`, `waiting`, streams of changes and subscriptions
            that one principal may have, or one address for clients that no token tells apart; above 0, and at most 1.
            At least one of each.
        body_bytes: Bytes of one message: of the body of an HTTP request, or of a line of stdin.
        result_bytes: Bytes of a result's text. Beyond it a client gets a page, and reads on with `read_result`.
            A registry with a `result_limit_bytes` of its own keeps it.
        connections: Open connections of a port, and requests under way. A port takes at most half of the files that
            the system lets this process open.
        head_s: Seconds for the head of a request, and for a body that is left over after its response.
        body_s: Seconds for the body of a request.
        response_s: Seconds in which a client must read the next 64 KiB of a response.
        buffered_bytes: Bytes of unfinished bodies, and as many of responses that clients have not read yet.
        sessions: Open HTTP sessions of the handshake protocols, and callers whose conversation is remembered.
        idle_s: Seconds without a request after which an HTTP session ends.
        drain_s: Seconds that calls under way may take after SIGTERM.
        task_s: Seconds after which a call becomes a task, for a client that takes tasks. It needs a store.

    Raises:
        ConfigurationError: A limit is not a finite number above 0, or the share is above 1.
    """

    calls: int = CALLS
    waiting: int = WAITING
    share: float = SHARE
    body_bytes: int = BODY_BYTES
    result_bytes: int = RESULT_BYTES
    connections: int = CONNECTIONS
    head_s: float = HEAD_S
    body_s: float = BODY_S
    response_s: float = RESPONSE_S
    buffered_bytes: int = BUFFERED_BYTES
    sessions: int = SESSIONS
    idle_s: float = IDLE_S
    drain_s: float = DRAIN_S
    task_s: float = TASK_S

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value < math.inf:
                raise ConfigurationError(f"{field.name}={value!r:.80}: give a number above 0")
        if self.share > 1:
            raise ConfigurationError(f"share={self.share!r:.80}: give a part, such as 0.25; 1 gives a client all")

    def each(self, total: int) -> int:
        """Returns the places that one client may have of so many."""
        return max(1, math.floor(total * self.share))
