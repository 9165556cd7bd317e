"""Clients that never send or read the rest keep no honest client from a port. `tests/soak/slow_clients.py` has more."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from tests.gateway.slow_clients import server_process
from tests.patience import until

FILES = 256
"""Files of the servers: those of a process on macOS, so that 300 connections are too many."""
HEADS = 300


def test_an_honest_client_is_answered_beside_many_that_send_and_read_no_further() -> None:
    with server_process("port", FILES) as server, ExitStack() as stack:
        for number in range(HEADS):
            stack.enter_context(server.half_head())
            if number % 50 == 49:
                server.call_s()
        for _ in range(8):
            stack.enter_context(server.half_body())
            stack.enter_context(server.slow_reader())
            server.call_s()
        # Half of the files are for connections, and one address has a quarter of them unfinished.
        assert server.files < FILES // 4


def test_at_a_port_without_limits_half_heads_shut_the_honest_client_out() -> None:
    with server_process("plain", FILES) as server, ExitStack() as stack:
        flood: list[socket.socket] = [stack.enter_context(server.half_head()) for _ in range(HEADS)]
        until(lambda: server.files == FILES)
        with pytest.raises(TimeoutError):
            server.call_s(timeout_s=0.5)
        for one in flood:
            one.close()
        server.call_s()
