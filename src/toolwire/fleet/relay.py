"""The messages between a host and a runner. Both sides use it.

A message is a letter, a length in four bytes, and the bytes. A runner passes the bytes of the sandbox's own channel and
nothing else, so the host's drive, limits, record and parser judge them as ever.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from typing import NamedTuple

MESSAGE_LIMIT_BYTES = 1_048_576
"""Size of the largest message. A longer one is refused when its length is read, so a lie takes no memory."""
BUFFER_BYTES = 1_048_576
"""Bytes that each side keeps for a reader that is slow. Beyond it the other side has to wait."""
READ_BYTES = 65_536
RECORD_BYTES = 16_384
"""Size of the largest record of TLS: a read gives at most one."""
REASON_LIMIT = 300
"""Maximum characters of a text of the other side in a log or an error."""

START, DATA, SIGNAL = b"R", b"D", b"S"
"""To the runner: a process, please; bytes for it; a signal for it. Its own bytes are DATA too."""
ISOLATION, THERE, REFUSED, EXIT = b"I", b"G", b"N", b"X"
"""From the runner: what it is, at connect; the process is there; why it is not; how it ended."""
CLOSED = "the connection was closed"

_HEADER = struct.Struct(">cI")
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class RelayLost(Exception):
    """The connection is of no more use. The text is the reason, in one line."""


class RelayMessage(NamedTuple):
    """One message."""

    kind: bytes
    data: bytes


class MessageStream:
    """One connection, with or without TLS, which never blocks. For one thread at a time: OpenSSL needs that."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._received = bytearray()
        self._unsent = bytearray()
        self._is_sending = False
        self.is_readable = True
        """False if the next read would find nothing. Set it when the descriptor can be read: a vain read is slow."""

    @property
    def unsent(self) -> int:
        """Number of bytes for which the connection had no room yet."""
        return len(self._unsent)

    def fileno(self) -> int:
        """Returns the descriptor to poll."""
        return self._socket.fileno()

    def send(self, kind: bytes, data: bytes = b"") -> None:
        """Sends a message, or keeps what has no room. Raises RelayLost."""
        self._unsent += _HEADER.pack(kind, len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Sends as much as there is room for. Raises RelayLost."""
        if self._is_sending:
            # Called by a garbage collection in here: the outer call sends this too.
            return
        self._is_sending = True
        try:
            while self._unsent:
                sent = self._socket.send(bytes(self._unsent[:READ_BYTES]))
                del self._unsent[:sent]
        except _LATER:
            return
        except OSError as error:
            raise RelayLost(reason_of(error)) from error
        finally:
            self._is_sending = False

    def next(self) -> RelayMessage | None:
        """Returns the next message; None if it has not come whole yet. Raises RelayLost."""
        while True:
            if len(self._received) >= _HEADER.size:
                kind, size = _HEADER.unpack_from(self._received)
                if size > MESSAGE_LIMIT_BYTES:
                    raise RelayLost(f"a message of {size:,} bytes was announced, above {MESSAGE_LIMIT_BYTES:,}")
                end = _HEADER.size + size
                if len(self._received) >= end:
                    data = bytes(self._received[_HEADER.size : end])
                    del self._received[:end]
                    return RelayMessage(kind, data)
            if not self.is_readable:
                return None
            try:
                more = self._socket.recv(READ_BYTES)
            except _LATER:
                self.is_readable = False
                return None
            except OSError as error:
                raise RelayLost(reason_of(error)) from error
            if not more:
                raise RelayLost(CLOSED)
            self._received += more
            self.is_readable = len(more) >= RECORD_BYTES

    def wait(self, limit_s: float) -> RelayMessage:
        """Returns the next message, which must come whole in `limit_s`. Raises RelayLost."""
        until = time.monotonic() + limit_s
        while (message := self.next()) is None:
            wait_for(self, select.POLLIN | (select.POLLOUT if self._unsent else 0), until)
            self.is_readable = True
            self.flush()
        return message

    def close(self) -> None:
        """Closes the connection. The other side hears of it even while it does not read."""
        if self._socket.family != socket.AF_UNIX:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()


def wait_for(connection: socket.socket | MessageStream, events: int, until: float) -> None:
    """Waits for events, at most until that monotonic time. Raises RelayLost when it is over."""
    poll = select.poll()
    poll.register(connection, events)
    left_s = until - time.monotonic()
    if left_s <= 0 or not poll.poll(left_s * 1000):
        raise RelayLost("it was silent for too long")


def reason_of(error: Exception) -> str:
    """Returns the reason of a failed connection in a few words."""
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return CLOSED
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS failed: {error.reason.lower().replace('_', ' ')}"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def one_line(text: object) -> str:
    """Returns a text of the other side as one short line that can be printed."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:REASON_LIMIT])
