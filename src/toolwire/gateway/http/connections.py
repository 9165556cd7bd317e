"""The connections of a port: their number, the time that a client may take, and the bytes that are held for it.

uvicorn and hypercorn have no time for a body and no share for an address, and uvicorn none for a head.
"""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus
from typing import Any, Literal

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolwire.gateway.clients import owner_at
from toolwire.gateway.http.unfinished import Unfinished
from toolwire.gateway.server_limits import ServerLimits
from toolwire.vocabulary.machine import system

_LOG = logging.getLogger("toolwire.gateway")
_KEY = "toolwire.connection"
_WARN_S = 60.0
"""Seconds between two warnings about closed connections: a flood must not fill the log."""

PROGRESS_BYTES = 64 * 1024
"""Bytes of a response that a client must read within `response_s`. asyncio pauses a writer beyond as many."""

HEAD_BYTES = 16 * 1024
"""Bytes of an unfinished head, as uvicorn has by default."""

PARTS = 1_000
"""Parts in which the body of a request may come, however small they are."""

PART_BYTES = 64
"""Bytes that the parts of a body beyond `PARTS` have on average. Each chunk takes some 30 µs, whatever its size, so
a megabyte of chunks of one byte would take as long as 400 MB of large ones.
"""

_SLICE_BYTES = 4 * 1024
"""Bytes that are read before the parts are counted."""

Phase = Literal["head", "body", "rest", "answer", "idle", "closing"]
"""The next event of a connection: the head of a request, its body, the rest of a body after the answer, the answer, the
next request, or the end.
"""


class Port:
    """The connections of one server. It belongs to one event loop."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self._most = most_connections(limits.connections)
        self._open = set[PortConnection]()
        self._idle = dict[PortConnection, None]()
        self._warned_at = float("-inf")
        bytes_each = limits.each(limits.buffered_bytes)
        self._unfinished = Unfinished[PortConnection](self._most, limits.each(self._most), self._drop)
        self._unread = Unfinished[PortConnection](limits.buffered_bytes, bytes_each, self._drop)

    def admit(self, connection: PortConnection) -> bool:
        """Takes in a new connection, and drops an unfinished or idle one for it. Returns False if all are at work."""
        while len(self._open) >= self._most:
            if self._unfinished.drop_one():
                continue
            if not self._idle:
                return False
            self._drop(next(iter(self._idle)))
        self._open.add(connection)
        return True

    def track(self, connection: PortConnection, phase: Phase, owner: str | None, unread_bytes: int) -> None:
        """Tracks the phase of a connection. `unread_bytes` is above 0 while its client does not read."""
        if connection not in self._open:
            return
        if phase == "idle" and not unread_bytes:
            self._idle[connection] = None
        else:
            self._idle.pop(connection, None)
        if unread_bytes:
            self._unread.hold(connection, owner, unread_bytes)
        else:
            self._unread.release(connection)
        if unread_bytes or phase in ("head", "body", "rest"):
            self._unfinished.hold(connection, owner)
        else:
            self._unfinished.release(connection)

    def forget(self, connection: PortConnection) -> None:
        """Gives the place of a connection back."""
        self._open.discard(connection)
        self._idle.pop(connection, None)
        self._unfinished.release(connection)
        self._unread.release(connection)

    def warn(self, text: str, *values: object) -> None:
        """Writes a warning, at most one a minute."""
        if time.monotonic() - self._warned_at >= _WARN_S:
            self._warned_at = time.monotonic()
            _LOG.warning(f"{text}; for a minute, no other is logged", *values)

    def _drop(self, connection: PortConnection) -> None:
        self.warn("a connection of %s was closed to make room for others", connection.owner)
        connection.end(503, "The server has too many unfinished requests. This one gave way to a newer one.")


class _Parser(h11.Connection):
    """The parser of a connection. It counts the parts of a body."""

    def __init__(self, head_bytes: int) -> None:
        super().__init__(h11.SERVER, head_bytes)
        self._parts = self._body_bytes = 0

    @property
    def has_tiny_parts(self) -> bool:
        """True if the body of the request comes in more parts than its size explains."""
        return self._parts > PARTS + self._body_bytes // PART_BYTES

    def next_event(self) -> Any:
        """Returns the next event, as h11 does."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._parts = self._body_bytes = 0
        elif isinstance(event, h11.Data):
            self._parts += 1
            self._body_bytes += len(event.data)
        return event


class PortConnection(H11Protocol):
    """A connection of uvicorn with the limits of its port."""

    def __init__(self, port: Port, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._port = port
        self.conn = self._parser = _Parser(HEAD_BYTES)
        self.app_state = {**self.app_state, _KEY: self}
        self._address: str | None = None
        self.owner: str | None = None
        """Whose share the connection takes: of its address, or of the principal of its request."""
        self._phase: Phase | None = None
        self._is_new = True
        self._has_begun = False
        """True if a part of the next request is here."""
        self._late: asyncio.TimerHandle | None = None
        self._unread_check: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admits the connection, or answers 503."""
        super().connection_made(transport)
        self.owner = self._address = None if self.client is None else owner_at(self.client[0])
        if self._port.admit(self):
            self._follow()
        else:
            self._port.warn("a connection of %s was refused: all others have a request under way", self.owner)
            self.end(503, "The server has too many requests under way.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives its place back."""
        super().connection_lost(exc)
        self._stop()

    def data_received(self, data: bytes) -> None:
        """Reads on."""
        self._has_begun = True
        for start in range(0, len(data), _SLICE_BYTES):
            super().data_received(data[start : start + _SLICE_BYTES])
            if self._parser.has_tiny_parts:
                self._port.warn("a connection of %s was closed: a body came in tiny parts", self.owner)
                self.end(400, f"The body comes in too many parts: send at least {PART_BYTES} bytes in each.")
                return
        self._follow()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        super().on_response_complete()
        self._is_new = False
        # The next request may have come with this one.
        self._has_begun = bool(self.conn.trailing_data[0])
        self._follow()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        # An earlier response may have begun one.
        self._end_unread_check()
        self._follow()

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._end_unread_check()
        self._follow()

    def belong_to(self, owner: str | None) -> None:
        """Sets whose share the connection takes until its next request."""
        self.owner = owner
        self._follow()

    def end(self, status: int, said: str) -> None:
        """Closes the connection. A client that waits for an answer is told why, unless the text is empty."""
        self._stop()
        if self.transport.is_closing():
            self.transport.abort()
            return
        if said and self._phase != "idle" and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = said.encode()
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\n"
            head += f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    @property
    def _present_phase(self) -> Phase:
        if self.transport.is_closing():
            return "closing"
        theirs = self.conn.their_state
        if theirs is h11.IDLE:
            return "head" if self._has_begun or self._is_new else "idle"
        if theirs is h11.SEND_BODY:
            return "rest" if self.cycle.response_complete else "body"
        return "answer"

    def _follow(self) -> None:
        """Starts and ends the times of the connection, and reports its phase to the port."""
        phase, before = self._present_phase, self._phase
        if phase != before:
            self._phase = phase
            if self._late is not None:
                self._late.cancel()
                self._late = None
            if phase in ("head", "rest"):
                self._late = self.loop.call_later(self._port.limits.head_s, self._end_late)
            if phase in ("head", "idle"):
                self.owner = self._address
        unread = self.transport.get_write_buffer_size()
        if not unread:
            self._end_unread_check()
        elif self._unread_check is None and (self.flow.write_paused or phase != "answer"):
            self._check_unread_later(unread)
        is_unread = self.flow.write_paused or phase == "closing"
        self._port.track(self, phase, self.owner, unread if is_unread else 0)

    def _end_late(self) -> None:
        self._port.warn("a connection of %s was closed: its request was late", self.owner)
        # A client may connect before it has a request.
        late = f"The request was not whole within {self._port.limits.head_s:g} s."
        self.end(408, late if self._has_begun else "")

    def _check_unread_later(self, unread: int) -> None:
        self._unread_bytes = unread
        self._unread_check = self.loop.call_later(self._port.limits.response_s, self._check_unread)

    def _end_unread_check(self) -> None:
        if self._unread_check is not None:
            self._unread_check.cancel()
            self._unread_check = None

    def _check_unread(self) -> None:
        self._unread_check = None
        unread = self.transport.get_write_buffer_size()
        if not unread:
            return
        if self._unread_bytes - unread >= PROGRESS_BYTES:
            self._check_unread_later(unread)
            self._follow()
            return
        self._port.warn("a connection of %s was closed: its client did not read", self.owner)
        self._stop()
        self.transport.abort()

    def _stop(self) -> None:
        self._port.forget(self)
        for timer in (self._late, self._unread_check):
            if timer is not None:
                timer.cancel()
        self._late = self._unread_check = None


def port_connection_of(scope: Scope) -> PortConnection | None:
    """Returns the connection of a request; None if another server than that of `run_http` serves it."""
    return scope.get("state", {}).get(_KEY)


def most_connections(wanted: int) -> int:
    """Returns the connections that a port takes: at most half of the files that this process may open."""
    files = system.open_files_limit()
    if files is None or wanted <= files // 2:
        return wanted
    most = max(1, files // 2)
    _LOG.warning("connections=%d: this process may open %d files, so %d are taken: `ulimit -n`", wanted, files, most)
    return most
