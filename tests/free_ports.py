"""Ports for servers that start later."""

from __future__ import annotations

import random
import socket
from contextlib import suppress


def free_port() -> int:
    """Returns a port of this machine that is free, and that the kernel gives to no one who asks for any port."""
    while True:
        # The kernel's own begin at 32,768.
        port = random.randrange(10_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
