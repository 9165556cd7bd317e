"""Clients of a server, byte by byte: halves of requests, and answers that are not read."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from tests.gateway.serving import call_body, call_headers
from tests.patience import PATIENCE_S

HEAD = b"POST /mcp HTTP/1.1\r\nHost: "
LARGE = 6_000_000
"""Characters of a response that no buffer of a kernel takes whole."""


class Work:
    """Tools of a server in this process."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), 0

    def add(self, a: int, b: int) -> int:
        """Adds."""
        return a + b

    def nap(self) -> str:
        """Waits until the test lets it go."""
        self.begun += 1
        assert self.go.wait(PATIENCE_S)
        return "rested"

    def rows(self, size: int) -> dict[str, str]:
        """Gives many characters."""
        return {"text": "x" * size}


def request(body: bytes, *headers: tuple[str, str], name: str = "add") -> bytes:
    """Returns a call, whole."""
    lines = [("Host", "localhost"), *call_headers(name), ("Content-Length", str(len(body))), *headers]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def connect(port: int, sent: bytes = b"", *, source: str = "127.0.0.1", buffer: int = 0) -> socket.socket:
    """Returns a connection on which so much was sent. Linux has all of 127.0.0.0/8 as addresses of its own."""
    made = socket.socket()
    if buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.settimeout(PATIENCE_S)
    made.bind((source, 0))
    made.connect(("127.0.0.1", port))
    # A server that has no place may have closed it.
    with suppress(ConnectionError):
        made.sendall(sent)
    return made


def half(port: int, sent: bytes = HEAD, *, source: str = "127.0.0.1") -> socket.socket:
    """Returns a connection whose half of a request the server has read."""
    made = connect(port, sent, source=source)
    # Its answer comes later than the server reads what was sent before.
    assert status(port, source="127.0.0.9") in (200, 401)
    return made


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Reads to the end, and returns the status and the text of the answer; 0 without one."""
    received = b""
    with connection, suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            received += part
    head, _, text = received.partition(b"\r\n\r\n")
    return (int(head.split(b" ")[1]) if head else 0), text


def next_status(connection: socket.socket) -> int:
    """Reads one answer, and returns its status. The connection stays open."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1)
    head = received.decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r")[0])
    while length:
        length -= len(connection.recv(length))
    return int(head.split(" ")[1])


def status(port: int, *, source: str = "127.0.0.1", headers: tuple[tuple[str, str], ...] = ()) -> int:
    """Returns the status of a whole call on a connection of its own."""
    return answer(connect(port, request(call_body(), ("Connection", "close"), *headers), source=source))[0]


def is_open(connection: socket.socket) -> bool:
    """True if the server has neither answered nor closed."""
    connection.setblocking(False)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    finally:
        connection.settimeout(PATIENCE_S)
    return False


def reader(port: int, *, size: int = LARGE, source: str = "127.0.0.1", token: str = "") -> socket.socket:
    """Returns a connection of a client that has asked for a large response."""
    headers = [("Authorization", f"Bearer {token}")] if token else []
    asked = request(call_body("rows", {"size": size}), *headers, name="rows")
    return connect(port, asked, source=source, buffer=65_536)


def read_slowly(connection: socket.socket, size: int) -> int:
    """Reads up to so many bytes, and returns how many came."""
    count = 0
    with suppress(ConnectionResetError):
        while count < size and (part := connection.recv(min(65_536, size - count))):
            count += len(part)
    return count
