"""The connections of a port, byte by byte: each limit on both sides, with a control without it."""

from __future__ import annotations

import resource
import select
import socket
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from typing import Any

import pytest
from mcp.server.auth.provider import AccessToken

from tests.architecture.source import ROOT
from tests.gateway.byte_clients import (
    HEAD,
    LARGE,
    Work,
    answer,
    connect,
    half,
    is_open,
    next_status,
    read_slowly,
    reader,
    request,
    status,
)
from tests.gateway.serving import call_body, serving
from tests.patience import until
from toolwire import ConfigurationError, ToolServer
from toolwire.gateway.http.connections import PART_BYTES, PARTS, most_connections
from toolwire.gateway.server_limits import (
    BODY_S,
    BUFFERED_BYTES,
    CONNECTIONS,
    HEAD_S,
    RESPONSE_S,
    SHARE,
    ServerLimits,
)

NEVER = 10_000.0
"""Seconds of a limit that a test does not reach."""


class Names:
    """Takes each token for the name of its principal, but refuses an empty one."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id=token, scopes=[])


@contextmanager
def port_of(work: Work | None = None, *, verifier: Any = None, **limits: Any) -> Generator[int]:
    """Serves tools at a port with these limits. Those that are not given are out of reach."""
    work = work or Work()
    given = {"head_s": NEVER, "body_s": NEVER, "response_s": NEVER, **limits}
    server = ToolServer([work.add, work.nap, work.rows], "tests", token_verifier=verifier, **given)
    with serving(server.asgi(), ServerLimits(**given)) as port:
        yield port


def test_the_defaults_are_the_documented_ones() -> None:
    assert (CONNECTIONS, HEAD_S, BODY_S, RESPONSE_S, BUFFERED_BYTES, SHARE) == (512, 10, 30, 30, 67_108_864, 0.25)
    limits = ServerLimits()
    found = (limits.connections, limits.head_s, limits.body_s, limits.response_s, limits.buffered_bytes)
    assert found == (CONNECTIONS, HEAD_S, BODY_S, RESPONSE_S, BUFFERED_BYTES)
    text = (ROOT / "docs/limitations/gateway.md").read_text("utf-8")
    assert [field.name for field in fields(ServerLimits) if f"| `{field.name}`: " not in text] == []
    with pytest.raises(ConfigurationError, match="head_s=0"):
        ToolServer([], "tests", head_s=0)


# -- times ------------------------------------------------------------------------------------------------------------


def test_a_head_that_is_late_ends_its_connection_however_often_a_byte_comes() -> None:
    with port_of(head_s=1) as port, port_of() as patient:
        late, kept = connect(port, HEAD), connect(patient, HEAD)
        silent = connect(port)
        with suppress(ConnectionError):
            while not select.select([late], [], [], 0.02)[0]:
                late.sendall(b"x")
                kept.sendall(b"x")
        assert answer(late) == (408, b"The request was not whole within 1 s.")
        # Without a byte of a request, nothing may be answered.
        assert answer(silent) == (0, b"")
        # The control: the same head is still waited for where the limit is far.
        assert is_open(kept)
        kept.close()


def test_each_head_of_a_connection_has_its_time() -> None:
    with port_of(head_s=1) as port, connect(port, request(call_body())) as connection:
        assert next_status(connection) == 200
        connection.sendall(HEAD)
        assert answer(connection)[0] == 408


def test_a_body_that_is_late_is_answered_and_its_connection_ends() -> None:
    whole = request(call_body())
    with port_of(body_s=0.3) as port, port_of() as patient:
        late, kept = connect(port, whole[:-1]), connect(patient, whole[:-1])
        assert answer(late) == (408, b"The body of the request was not whole within 0.3 s.")
        kept.sendall(whole[-1:])
        assert next_status(kept) == 200
        kept.close()


def test_the_rest_of_a_body_whose_request_was_refused_is_not_waited_for() -> None:
    head = request(b"", ("Transfer-Encoding", "chunked")).replace(b"Content-Length: 0\r\n", b"")
    with port_of(verifier=Names(), head_s=1) as port, port_of(verifier=Names()) as patient:
        late, kept = connect(port, head), connect(patient, head)
        assert (next_status(late), next_status(kept)) == (401, 401)
        with suppress(ConnectionError):
            while not select.select([late], [], [], 0.02)[0]:
                late.sendall(b"1\r\nx\r\n")
        assert is_open(kept)
        late.close()
        kept.close()


def test_a_body_of_tiny_parts_ends_its_connection() -> None:
    body = call_body()
    head = request(b"", ("Transfer-Encoding", "chunked")).replace(b"Content-Length: 0\r\n", b"")
    spaces = b"\r\n".join([b"%x" % PART_BYTES, b" " * PART_BYTES, b""]) * (2 * PARTS)
    end = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    few, many = b"1\r\n \r\n" * (PARTS - 1), b"1\r\n \r\n" * (PARTS + PARTS // 32)
    with port_of() as port, port_of(verifier=Names()) as closed:
        for parts in (few, spaces):
            honest = connect(port, head + parts + end)
            assert next_status(honest) == 200
            honest.close()
        assert answer(connect(port, head + many)) == (
            400,
            b"The body comes in too many parts: send at least 64 bytes in each.",
        )
        refused = connect(closed, head)
        assert next_status(refused) == 401
        with suppress(ConnectionError):
            refused.sendall(many)
        until(lambda: not is_open(refused))
        refused.close()


def test_a_client_that_does_not_read_loses_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    with port_of(response_s=0.3) as port, port_of() as patient, reader(port) as late, reader(patient) as kept:
        until(lambda: caplog.messages != [])
        said = "a connection of address 127.0.0.1 was closed: its client did not read"
        assert caplog.messages == [f"{said}; for a minute, no other is logged"]
        # What the kernels hold comes, and the rest does not.
        assert 0 < read_slowly(late, LARGE) < LARGE
        assert read_slowly(kept, LARGE) == LARGE


def test_a_client_that_reads_on_keeps_its_connection() -> None:
    with port_of(response_s=2) as port, reader(port) as slow:
        for _ in range(6):
            found, begun = read_slowly(slow, LARGE // 6), time.monotonic()
            assert found == LARGE // 6
            # All of it takes longer than the limit, and there is progress each time.
            until(lambda begun=begun: time.monotonic() - begun > 0.4)
        assert read_slowly(slow, 1) == 1


# -- shares -----------------------------------------------------------------------------------------------------------


def test_one_address_has_a_share_of_half_read_requests_and_its_oldest_gives_way() -> None:
    said = b"The server has too many unfinished requests. This one gave way to a newer one."
    with port_of(connections=8) as port, port_of(connections=8, share=1) as free, ExitStack() as stack:
        other = stack.enter_context(half(port, source="127.0.0.2"))
        first, second, third = half(port), half(port), stack.enter_context(half(port))
        assert answer(first) == (503, said)
        # A half body counts as a half head does.
        body = stack.enter_context(half(port, request(call_body())[:-1]))
        assert answer(second) == (503, said)
        assert (is_open(other), is_open(third), is_open(body)) == (True, True, True)
        body.sendall(request(call_body())[-1:])
        assert next_status(body) == 200
        # The control: with all of the port as its share, none gives way.
        kept = [stack.enter_context(half(free)) for _ in range(7)]
        assert status(free) == 200
        assert all(map(is_open, kept))


def test_the_ports_last_places_are_those_of_the_address_that_has_most() -> None:
    with port_of(connections=4, share=1) as port, ExitStack() as stack:
        other = stack.enter_context(half(port, source="127.0.0.2"))
        flood = [stack.enter_context(half(port)) for _ in range(2)]
        flood.append(stack.enter_context(connect(port, HEAD)))
        assert status(port, source="127.0.0.3") == 200
        assert (answer(flood[0])[0], is_open(flood[1]), is_open(other)) == (503, True, True)


def test_an_idle_connection_gives_way_and_one_with_a_request_under_way_does_not() -> None:
    work = Work()
    with port_of(work, connections=2, share=1) as port, ExitStack() as stack:
        idle = stack.enter_context(connect(port, request(call_body())))
        assert next_status(idle) == 200
        napping = [connect(port, request(call_body("nap", {}), ("Connection", "close"), name="nap"))]
        until(lambda: work.begun == 1)
        napping.append(connect(port, request(call_body("nap", {}), ("Connection", "close"), name="nap")))
        until(lambda: work.begun == 2)
        # An idle client waits for no answer, and a new one does.
        assert answer(idle) == (0, b"")
        assert answer(connect(port, HEAD)) == (
            503,
            b"The server has too many requests under way.",
        )
        work.go.set()
        assert [answer(one)[0] for one in napping] == [200, 200]
        assert status(port) == 200


def test_one_principal_has_a_share_of_the_requests_under_way() -> None:
    work = Work()
    ann, mallory = (("Authorization", "Bearer ann"),), (("Authorization", "Bearer mallory"),)
    with port_of(work, verifier=Names(), connections=8) as port:
        nap = request(call_body("nap", {}), ("Connection", "close"), *mallory, name="nap")
        napping = [connect(port, nap) for _ in range(2)]
        until(lambda: work.begun == 2)
        refused = answer(connect(port, nap))
        assert refused == (503, b"2 requests of this client are under way on this server already.")
        assert status(port, headers=ann) == 200
        work.go.set()
        assert [answer(one)[0] for one in napping] == [200, 200]
        assert status(port, headers=mallory) == 200


def test_half_bodies_of_one_principal_do_not_take_the_places_of_another_at_the_same_address() -> None:
    def body_of(token: str) -> socket.socket:
        return half(port, request(call_body(), ("Authorization", f"Bearer {token}"))[:-1])

    with port_of(verifier=Names(), connections=8) as port, body_of("ann") as hers:
        mallorys = [body_of("mallory") for _ in range(3)]
        assert answer(mallorys[0])[0] == 503
        assert is_open(hers)
        for one in mallorys[1:]:
            one.close()


# -- memory -----------------------------------------------------------------------------------------------------------


def test_unfinished_bodies_hold_a_share_of_bytes_and_the_oldest_gives_way() -> None:
    body = call_body("add", {"a": 1, "b": 2, "c": "x" * 60_000})
    said = b"The server holds too many bytes of unfinished requests. This one gave way to a newer one."

    def body_at(port: int, source: str = "127.0.0.1") -> socket.socket:
        return half(port, request(body)[:-1], source=source)

    with port_of(buffered_bytes=500_000) as port, port_of() as free, ExitStack() as stack:
        other = stack.enter_context(body_at(port, "127.0.0.2"))
        first = body_at(port)
        second, third = (stack.enter_context(body_at(port)) for _ in range(2))
        assert answer(first) == (503, said)
        third.sendall(request(body)[-1:])
        assert next_status(third) == 200
        assert (is_open(other), is_open(second)) == (True, True)
        kept = [stack.enter_context(body_at(free)) for _ in range(4)]
        assert status(free) == 200
        assert all(map(is_open, kept))


def test_unread_responses_hold_a_share_of_bytes_and_the_oldest_gives_way(caplog: pytest.LogCaptureFixture) -> None:
    with port_of(buffered_bytes=4_000_000) as port, port_of(share=1) as free, ExitStack() as stack:
        other = stack.enter_context(reader(port, source="127.0.0.2"))
        first = stack.enter_context(reader(port))
        until(lambda: bool(select.select([first], [], [], 0)[0]))
        second = stack.enter_context(reader(port))
        until(lambda: caplog.messages != [])
        assert 0 < read_slowly(first, LARGE) < LARGE
        # One response alone may be larger than the share.
        assert (read_slowly(second, LARGE), read_slowly(other, LARGE)) == (LARGE, LARGE)
        kept = [stack.enter_context(reader(free)) for _ in range(2)]
        assert [read_slowly(one, LARGE) for one in kept] == [LARGE, LARGE]


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_a_request_with_two_lengths_is_refused_and_its_connection_ends() -> None:
    chunked = ("Transfer-Encoding", "chunked")
    with port_of() as port:
        refused = connect(port, request(b"0\r\n\r\n", chunked) + request(call_body()))
        assert answer(refused) == (400, b"Content-Length and Transfer-Encoding exclude each other.")
        # The control: each alone is served.
        body = call_body()
        alone = request(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n", chunked, ("Connection", "close"))
        cut = b"\r\n".join(line for line in alone.split(b"\r\n") if not line.startswith(b"Content-Length"))
        assert answer(connect(port, cut))[0] == 200
        assert status(port) == 200


def test_a_port_takes_at_most_half_of_the_files_that_the_process_may_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = [1_024]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files[0], files[0]))
    assert (most_connections(512), caplog.messages) == (512, [])
    files[0] = 1_022
    assert most_connections(512) == 511
    assert caplog.messages == ["connections=512: this process may open 1022 files, so 511 are taken: `ulimit -n`"]
    files[0] = resource.RLIM_INFINITY
    assert most_connections(512) == 512
