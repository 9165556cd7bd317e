"""What becomes of an answer: data, text, images, failures, and which calls are repeated."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from tests.openapi.echo import Echo, Reply, client_of, document, parameter
from tests.openapi.servers import serving
from toolwire import ToolRegistry, ToolResult
from toolwire.invocation.middleware import retry

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry._random, "random", lambda: 0.001)


def answered(reply: Reply, method: str = "get", **options: Any) -> tuple[ToolResult, int]:
    """The result of one call, and how many requests it took."""
    app = Echo(lambda _: reply)
    with serving(app) as url:
        registry = ToolRegistry(**options)
        key = [parameter("Idempotency-Key", "header")] if method == "keyed" else []
        operation = {"path": "/x", "method": "post" if key else method, "operationId": "x", "parameters": key}
        registry.register_openapi(document(operation), client=client_of(url), permission="auto")
        result = registry.invoke("x")
    return result, len(app.requests)


ANSWERS: list[tuple[Mapping[str, str], bytes, Any]] = [
    ({"content-type": "application/json"}, b'{"a": [1, null]}', {"a": [1, None]}),
    ({"content-type": "application/hal+json; charset=utf-8"}, b"3", 3),
    ({}, b"[1]", [1]),
    ({"content-type": "application/json"}, b"{broken", "{broken"),
    ({"content-type": "application/json"}, b"NaN", "NaN"),
    ({"content-type": "application/json"}, b"[" * 100_000, "[" * 100_000),
    ({"content-type": "text/csv; charset=latin-1"}, "ü;1".encode("latin-1"), "ü;1"),
    ({"content-type": "text/plain; charset=nonsense"}, "ü".encode(), "ü"),
    ({"content-type": "application/xml"}, b"<a/>", "<a/>"),
    ({"content-type": "application/x-ndjson"}, b'{"a": 1}\n{"a": 2}\n', '{"a": 1}\n{"a": 2}\n'),
    ({"content-type": "application/pdf"}, b"%PDF" + bytes(1_000), "[application/pdf, 1,004 bytes]"),
    ({}, b"\xff\x00", "[bytes, 2 bytes]"),
    ({"content-type": "application/json"}, b"", "200 OK"),
    ({"content-type": "application/json", "content-encoding": "gzip"}, gzip.compress(b"[1]", mtime=0), [1]),
]


@pytest.mark.parametrize(("headers", "content", "data"), ANSWERS)
def test_an_answer_becomes_data(headers: Mapping[str, str], content: bytes, data: Any) -> None:
    result, _ = answered((200, headers, content))
    assert (result.success, result.data) == (True, data)


def test_an_image_is_a_block() -> None:
    result, _ = answered((200, {"content-type": "image/png"}, PNG))
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert result.content == [{"type": "image", "source": source}]


def test_head_tells_of_the_headers() -> None:
    result, _ = answered((200, {"x-total": "3", "set-cookie": "a=b"}, b""), "head")
    assert result.data == {"status": 200, "headers": {"x-total": "3"} | dates(result)}


def dates(result: ToolResult) -> dict[str, str]:
    return {name: text for name, text in result.data["headers"].items() if name in ("date", "server")}


FAILURES = [
    (404, "get", "tool_error", 1),
    (422, "post", "tool_error", 1),
    (500, "get", "tool_error", 1),
    (429, "get", "overloaded", 3),
    (429, "post", "overloaded", 1),
    (503, "get", "unavailable", 3),
    (503, "delete", "unavailable", 3),
    (503, "patch", "unavailable", 1),
    (502, "post", "unknown_outcome", 1),
    (504, "put", "unknown_outcome", 3),
    (504, "keyed", "unknown_outcome", 3),
]


@pytest.mark.parametrize(("status", "method", "kind", "requests"), FAILURES)
def test_a_failure_has_its_status_and_only_what_does_no_harm_is_repeated(
    status: int, method: str, kind: str, requests: int
) -> None:
    result, sent = answered((status, {"content-type": "application/json"}, b'{"detail": "why"}'), method)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.data["status"], sent) == (kind, status, requests)
    assert result.error.endswith(': {"detail": "why"}')


def test_all_attempts_of_a_call_have_one_key() -> None:
    app = Echo(lambda _: (503, {}, b""))
    with serving(app) as url:
        registry = ToolRegistry()
        operation = {"path": "/x", "method": "post", "parameters": [parameter("Idempotency-Key", "header")]}
        [name] = registry.register_openapi(document(operation), client=client_of(url), permission="auto")
        registry.invoke(name)
        registry.invoke(name)
    keys = [request["headers"]["idempotency-key"] for request in app.requests]
    assert (len(keys), len({*keys[:3]}), len({*keys[3:]}), len({*keys})) == (6, 1, 1, 2)


def test_the_body_of_an_error_is_cut_at_the_limit_of_results() -> None:
    result, _ = answered((400, {"content-type": "text/plain"}, b"x" * 5_000), result_limit_bytes=100)
    assert (
        result.error == f"GET /x answered 400 Bad Request: {'x' * 100}\n[cut: the first 100 of 5,000 bytes are shown]"
    )


@pytest.mark.parametrize(("after", "requests"), [("0", 3), ("11", 1), ("Wed, 21 Oct 2015 07:28:00 GMT", 3), ("x", 3)])
def test_a_call_is_repeated_when_the_server_wants_it_within_ten_seconds(after: str, requests: int) -> None:
    assert answered((503, {"retry-after": after}, b""))[1] == requests


def test_an_answer_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.openapi.api_server.ANSWER_LIMIT_BYTES", 1_000)
    plain, _ = answered((200, {"content-type": "text/plain"}, b"x" * 1_001))
    packed, _ = answered((200, {"content-encoding": "gzip"}, gzip.compress(b"x" * 10_000_000)), "post")
    odd, _ = answered((200, {"content-encoding": "br"}, b"x"))
    fits, _ = answered((200, {"content-type": "text/plain"}, b"x" * 1_000))
    assert plain.error == "GET /x: the answer has more than 1,000 bytes."
    assert packed.error == (
        "POST /x: the answer has more than 1,000 bytes. The request itself was sent, and may have taken effect."
    )
    assert [each.failure.kind for each in (plain, packed, odd) if each.failure] == ["limit", "limit", "unavailable"]
    assert fits.success


def test_a_server_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    registry = ToolRegistry()
    registry.register_openapi(
        document({"path": "/x", "method": "post", "operationId": "x"}), client=client_of(url), permission="auto"
    )
    result = registry.invoke("x")
    assert result.failure is not None
    # It was not sent, so a POST may be repeated as well.
    assert (result.failure.kind, result.metadata["attempts"]) == ("unavailable", 3)


@pytest.mark.parametrize(("method", "kind"), [("get", "unavailable"), ("post", "unknown_outcome")])
def test_a_server_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch, method: str, kind: str) -> None:
    monkeypatch.setattr("toolwire.openapi.api_server.REQUEST_TIMEOUT_S", 0.2)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(1)

    with serving(slow) as url:
        registry = ToolRegistry()
        given = document({"path": "/x", "method": method, "operationId": "x"})
        registry.register_openapi(given, client=client_of(url), permission="auto")
        result = registry.invoke("x")
    assert result.failure is not None
    assert (result.failure.kind, "no whole answer came within 0.2 seconds" in result.text) == (kind, True)


def test_a_client_serves_several_event_loops_one_after_the_other(echo: tuple[Echo, str]) -> None:
    given = document({"path": "/x", "operationId": "x"})
    with serving(Echo(lambda _: (200, {"content-type": "application/json"}, json.dumps(given).encode()))) as url:
        registry = ToolRegistry()
        given["servers"] = [{"url": "/"}]
        registry.register_openapi(f"{url}/openapi.json")
        assert [asyncio.run(registry.ainvoke("x")).success for _ in range(2)] == [True, True]
        assert registry.invoke("x").success
