"""What a host and a runner say to each other, and how the bytes of a program pass between them. Both sides use it.

A message is a letter, a length in four bytes, and the bytes. A runner passes the bytes of the sandbox's own channel and
nothing else, so the host's drive, limits, record and parser stay the only ones that judge them.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from io import FileIO
from typing import NamedTuple

MESSAGE_LIMIT_BYTES = 1_048_576
"""Size of the largest message. A longer one is refused when its length is read, so a lie takes no memory."""
BUFFER_BYTES = 1_048_576
"""Bytes that each side keeps for a reader that is slow. Beyond it the other side has to wait."""
READ_BYTES = 65_536
REASON_LIMIT = 300
"""Maximum characters of a text of the other side that a log or an error shows."""

START, DATA, SIGNAL = b"R", b"D", b"S"
"""To the runner: a process, please; bytes for it; a signal's number. DATA is also what comes from it."""
ISOLATION, THERE, REFUSED, EXIT = b"I", b"G", b"N", b"X"
"""From the runner: what it is, once; the process is there; why it is not; how it ended."""
ENDED, WOKEN = b"ended", b"woken"
"""Not sent: the pipe that is read was closed; the waker was woken. They are longer than the letter of a message."""

_HEADER = struct.Struct(">cI")
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_GONE = select.POLLERR | select.POLLHUP | select.POLLRDHUP


class RelayLost(Exception):
    """The connection is of no more use. The text is the reason, in one line."""


class RelayClosed(RelayLost):
    """The other side closed the connection."""

    def __init__(self) -> None:
        super().__init__("the connection was closed")


class Message(NamedTuple):
    """One message."""

    kind: bytes
    data: bytes


class MessageStream:
    """One connection, with or without TLS. Only one thread at a time may use it: OpenSSL needs that."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._received = bytearray()
        self._unsent = bytearray()

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
        while self._unsent:
            try:
                sent = self._socket.send(bytes(self._unsent[:READ_BYTES]))
            except _LATER:
                return
            except OSError as error:
                raise RelayLost(reason_of(error)) from error
            del self._unsent[:sent]

    def next(self) -> Message | None:
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
                    return Message(kind, data)
            try:
                more = self._socket.recv(READ_BYTES)
            except _LATER:
                return None
            except OSError as error:
                raise RelayLost(reason_of(error)) from error
            if not more:
                raise RelayClosed
            self._received += more

    def wait(self, limit_s: float) -> Message:
        """Returns the next message, which must come whole in `limit_s`. Raises RelayLost."""
        until = time.monotonic() + limit_s
        while (message := self.next()) is None:
            wait_for(self, until, select.POLLIN | (select.POLLOUT if self._unsent else 0), limit_s)
            self.flush()
        return message

    def close(self, *, at_once: bool = False) -> None:
        """Closes the connection. With `at_once` the other side hears of it also if it does not read."""
        if at_once and self._socket.family != socket.AF_UNIX:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()


class Relay:
    """Passes bytes between a connection and the two pipes of one program after the other."""

    deadline: float | None = None
    """Monotonic time at which the connection counts as lost; None for never."""

    def __init__(self, stream: MessageStream, waker: int | None = None) -> None:
        """`waker` is a descriptor; when it can be read, `messages` gives WOKEN."""
        self._stream = stream
        self._waker = waker
        self._reader: FileIO | None = None
        self._writer: FileIO | None = None
        self._rest = bytearray()

    def attach(self, reader: FileIO, writer: FileIO) -> None:
        """Takes the pipes of a program. Writing to `writer` must not block."""
        self._reader, self._writer = reader, writer

    def detach(self) -> None:
        """Lets go of the pipes. Later bytes for the program are dropped."""
        self._reader = self._writer = None
        self._rest.clear()

    def messages(self) -> Iterator[Message]:
        """Yields all messages but DATA, and passes bytes both ways meanwhile. Never ends by itself.

        Raises:
            RelayLost: the connection broke, the other side broke the rules, or `deadline` is over.
        """
        while True:
            while len(self._rest) < BUFFER_BYTES and (message := self._stream.next()) is not None:
                if message.kind != DATA:
                    yield message
                elif self._writer is not None:
                    self._rest += message.data
                    self._write_rest()
            yield from self._wait()

    def drain(self) -> None:
        """Waits until the program's reader has taken all bytes that came, or is closed."""
        while self._rest and self._writer is not None:
            poll = select.poll()
            poll.register(self._writer, select.POLLOUT)
            poll.poll()
            self._write_rest()

    def _wait(self) -> Iterator[Message]:
        """Waits for the next event, and handles it."""
        stream, reader, ready = self._stream, self._reader, self._poll()
        if (self.deadline is not None and time.monotonic() >= self.deadline) or (
            ready.get(stream.fileno(), 0) & _GONE and len(self._rest) >= BUFFER_BYTES
        ):
            raise RelayLost("the program's process does not end" if self.deadline else "the connection was closed")
        if self._rest:
            self._write_rest()
        if reader is not None and reader.fileno() in ready:
            data = reader.read(READ_BYTES)
            if data:
                stream.send(DATA, data)
            else:
                self._reader = None
                yield Message(ENDED, b"")
        stream.flush()
        if self._waker in ready:
            yield Message(WOKEN, b"")

    def _poll(self) -> dict[int, int]:
        poll, stream = select.poll(), self._stream
        reading = select.POLLIN if len(self._rest) < BUFFER_BYTES else select.POLLRDHUP
        poll.register(stream, reading | (select.POLLOUT if stream.unsent else 0))
        if self._reader is not None and stream.unsent < BUFFER_BYTES:
            poll.register(self._reader, select.POLLIN)
        if self._writer is not None and self._rest:
            poll.register(self._writer, select.POLLOUT)
        if self._waker is not None:
            poll.register(self._waker, select.POLLIN)
        left = None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0) * 1000
        return dict(poll.poll(left))

    def _write_rest(self) -> None:
        while self._rest and self._writer is not None:
            try:
                written = self._writer.write(self._rest)
            except OSError:
                # The program has ended, or its drive. The bytes that it sent before are still to be read.
                self._writer = None
                self._rest.clear()
                return
            if not written:
                return
            del self._rest[:written]


def wait_for(end: socket.socket | MessageStream, until: float, events: int, limit_s: float) -> None:
    """Waits for events of a connection until that monotonic time. Raises RelayLost when it is over."""
    poll = select.poll()
    poll.register(end, events)
    left = until - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise RelayLost(f"no answer came within {limit_s:g} s")


def reason_of(error: OSError) -> str:
    """Returns the reason of a failed connection in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS failed: {error.reason.lower().replace('_', ' ')}"
    return error.strerror or str(error)


def one_line(data: bytes) -> str:
    """Returns a text of the other side as one short line that can be printed."""
    text = data[: 4 * REASON_LIMIT].decode("utf-8", "replace")[:REASON_LIMIT]
    return "".join(letter if letter.isprintable() else " " for letter in text)
