"""Servers that break the protocol. A handshake server: it speaks no revision of 2026."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PROTOCOL_VERSION_META_KEY, ErrorData, JSONRPCRequest, JSONRPCResponse

from tests.architecture.source import ROOT
from tests.mcp.client.raw_server import BROKEN, TOOL
from toolwire import ConfigurationError, MCPClient, ServerUnavailable, ToolRegistry
from toolwire.mcp.answer_mending import AnswerMender
from toolwire.mcp.client_limits import LOG_LINES_PER_S
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.transports.http import HttpTransport, MessageClient, Refused, fate_of

Raw = Callable[..., ToolRegistry]


@pytest.fixture
def raw() -> Generator[Raw]:
    clients: list[MCPClient] = []

    def registry_of(fault: str, **limits: Any) -> ToolRegistry:
        client = MCPClient.stdio(
            "raw", sys.executable, ["-m", "tests.mcp.client.raw_server", fault], cwd=ROOT, **limits
        )
        clients.append(client)
        registry = ToolRegistry()
        registry.register_mcp_client(client, permission="auto")
        return registry

    yield registry_of
    for client in clients:
        client.close()


@pytest.mark.parametrize("fault", ["", "noise", "wrong id", "late progress", "flood", "early change"])
def test_a_call_is_answered_in_spite_of_lines_that_are_wrong(raw: Raw, fault: str) -> None:
    registry = raw(fault)
    assert [registry.invoke("raw/say", {"text": text}).text for text in ("one", "two")] == ["one", "two"]


def test_a_broken_definition_turns_off_its_own_tool_alone(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    registry = raw("broken tools")
    assert list(registry.tool_library) == ["raw/say"]
    assert registry.invoke("raw/say", {"text": "here"}).text == "here"
    told = [text for text in caplog.messages if text.startswith("its tool ")]
    assert told[:2] == [
        "its tool 'none' is off, because its definition is broken: tools.0.inputSchema: Field required",
        (
            "its tool 'text' is off, because its definition is broken: tools.0: "
            "Input should be a valid dictionary or instance of Tool"
        ),
    ]
    assert len(told) == 2 * len(BROKEN)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25", "2026-07-28"])
def test_a_page_of_each_revision_loses_its_broken_tools_alone(version: str) -> None:
    pages = AnswerMender(ServerLog("raw"))
    meta = {"_meta": {PROTOCOL_VERSION_META_KEY: version}}
    pages.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list", params=meta))
    page = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [*BROKEN, TOOL], "nextCursor": "2"}
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result=page)
    pages.mend_answer(answer)
    assert answer.result == {**page, "tools": [TOOL]}


@pytest.mark.parametrize(
    ("version", "kept"), [("2026-07-28", {"content": [], "resultType": "complete"}), ("2025-11-25", {"content": []})]
)
def test_a_result_that_does_not_say_its_type_is_complete(version: str, kept: Any) -> None:
    answers = AnswerMender(ServerLog("raw"))
    meta = {"_meta": {PROTOCOL_VERSION_META_KEY: version}}
    answers.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list", params=meta))
    answer = JSONRPCResponse(jsonrpc="2.0", id=2, result={"content": []})
    answers.mend_answer(answer)
    assert answer.result == kept


def test_bytes_that_are_not_utf8_are_replaced(raw: Raw) -> None:
    assert raw("bytes").invoke("raw/say").text == "caf\ufffd"


def test_an_error_of_the_server_s_own_is_told_and_the_connection_stays(raw: Raw) -> None:
    registry = raw("error")
    results = [registry.invoke("raw/say") for _ in range(2)]
    assert [result.failure and result.failure.kind for result in results] == ["tool_error", "tool_error"]
    assert {result.error for result in results} == {"the server refused the call: the shop is closed (-32000)"}


@pytest.mark.parametrize(("length", "kind"), [(60_000, None), (200_000, "unknown_outcome")])
def test_a_message_has_a_limit_and_the_server_is_used_again(raw: Raw, length: int, kind: str | None) -> None:
    registry = raw("long", message_bytes=65_536)
    result = registry.invoke("raw/say", {"text": str(length)})
    assert (result.failure and result.failure.kind) == kind
    assert registry.invoke("raw/say", {"text": "3"}).text == "xxx"


def test_a_server_that_dies_at_its_start_is_an_error_at_once(raw: Raw) -> None:
    with pytest.raises(ServerUnavailable):
        raw("dies")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no key >&2; echo >&2; exit 3", "its process ended with exit code 3. Its stderr ends with: no key"),
        ("printf 'no \\033key' >&2; exit 1", "its process ended with exit code 1. Its stderr ends with: no \\x1bkey"),
        ("kill -9 $$", "its process was ended by signal 9"),
        ("exec >&-; echo gone >&2; exec sleep 60", "it closed its stdout. Its stderr ends with: gone"),
        ("read line; exit 0", "its process ended with exit code 0"),
    ],
)
def test_the_end_of_a_process_is_told_to_the_operator_with_its_last_words(script: str, why: str) -> None:
    client = MCPClient.stdio("raw", "sh", ["-c", script])
    with pytest.raises(ServerUnavailable) as failed:
        client.connect()
    # A failed call has the reason alone: no model may read what a server writes there.
    reason = client.reason
    client.close()
    assert reason == why.partition(". Its stderr")[0]
    assert str(failed.value) == f"the MCP server 'raw' cannot be used: {why}"


def test_a_silent_server_is_given_up(raw: Raw) -> None:
    with pytest.raises(ServerUnavailable) as refused:
        raw("silent", connect_s=0.5)
    assert str(refused.value) == "the MCP server 'raw' cannot be used: it did not answer within 0.5 s"


@pytest.mark.parametrize(("lines", "kept"), [(LOG_LINES_PER_S, LOG_LINES_PER_S), (150, LOG_LINES_PER_S)])
def test_a_log_keeps_a_hundred_lines_a_second_and_counts_the_rest(
    caplog: pytest.LogCaptureFixture, lines: int, kept: int
) -> None:
    seconds = [7.5]
    log = ServerLog("noisy", clock=lambda: seconds[0])
    with caplog.at_level(logging.INFO, "toolwire.mcp.noisy"):
        for _ in range(lines):
            log.info("a line")
        assert len(caplog.records) == kept
        seconds[0] = 8.5
        log.info("\x1b[2Jlater")
    assert caplog.messages[-1] == "\\x1b[2Jlater"
    assert ("50 lines were left out: more than 100 a second" in caplog.messages) == (lines == 150)


@pytest.mark.parametrize("limit", [{"call_s": 0}, {"call_limit": -1}, {"pages": True}, {"tools": "many"}])
def test_a_limit_that_is_not_a_number_above_zero_is_refused(limit: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        MCPClient.stdio("raw", "server", **limit)


URL = "http://server.test/mcp"


async def answered(
    handle: Callable[[httpx2.Request], httpx2.Response], headers: dict[str, str] | None = None, limit: int = 100
) -> httpx2.Response:
    door = HttpTransport(URL, limit, httpx2.MockTransport(handle))
    async with MessageClient(door) as client:
        return await client.post(URL, json={}, headers=headers)


def error_of(response: httpx2.Response) -> MCPError:
    return MCPError.from_error_data(ErrorData.model_validate(response.json()["error"]))


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (httpx2.ConnectError, "not_connected"),
        (httpx2.ConnectTimeout, "not_connected"),
        (httpx2.ReadError, "not_answered"),
        (httpx2.RemoteProtocolError, "not_answered"),
        (httpx2.WriteError, "not_answered"),
    ],
)
async def test_a_request_that_is_lost_says_how_far_it_came(error: type[Exception], fate: str) -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        raise error("lost")

    assert fate_of(error_of(await answered(handle))) == fate


@pytest.mark.parametrize(
    ("status", "content", "told"),
    [
        (500, b"<html>", "the server answered with 500 Internal Server Error"),
        (429, b'{"error": "too many"}', "the server answered with 429 Too Many Requests"),
        (599, b"[]", "the server answered with 599"),
        (
            405,
            b"",
            (
                'the server answered with 405 Method Not Allowed. If it speaks the older SSE, write "type": "sse", or '
                "MCPClient.sse"
            ),
        ),
        (400, b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "its own"}}', "its own"),
    ],
)
async def test_an_answer_that_is_no_message_is_told_by_its_status(status: int, content: bytes, told: str) -> None:
    answer = await answered(lambda _: httpx2.Response(status, content=content))
    assert (answer.status_code, error_of(answer).error.message) == (status, told)


async def test_an_endless_answer_is_told_by_its_status_too() -> None:
    answer = await answered(lambda _: httpx2.Response(500, content=body(200)))
    assert error_of(answer).error.message == "the server answered with 500 Internal Server Error"


async def test_a_session_that_ended_is_told() -> None:
    gone = await answered(lambda _: httpx2.Response(404), {"mcp-session-id": "1"})
    other = await answered(lambda _: httpx2.Response(404))
    assert (fate_of(error_of(gone)), other.status_code) == ("no_session", 404)


@pytest.mark.parametrize(("to_ping", "fate"), [(400, "no_session"), (404, "no_session"), (200, None), (500, None)])
async def test_a_session_whose_ping_is_refused_as_well_has_ended(to_ping: int, fate: str | None) -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["mcp-session-id"] == "1"
        is_ping = json.loads(request.content).get("method") == "ping"
        return httpx2.Response(to_ping if is_ping else 400, json={"error": {"code": -32000, "message": "Bad Request"}})

    assert fate_of(error_of(await answered(handle, {"mcp-session-id": "1"}))) == fate


async def test_a_session_that_cannot_be_tried_has_not_ended() -> None:
    answers = iter([httpx2.Response(400)])

    def handle(request: httpx2.Request) -> httpx2.Response:
        try:
            return next(answers)
        except StopIteration:
            raise httpx2.ConnectError("lost") from None

    assert (await answered(handle, {"mcp-session-id": "1"})).status_code == 400


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_message_is_told_and_the_first_one_ends_the_connection(status: int) -> None:
    statuses = iter([status, 200, status])
    door = HttpTransport(URL, 100, httpx2.MockTransport(lambda _: httpx2.Response(next(statuses))))
    async with MessageClient(door) as client:
        with pytest.raises(Refused) as refused:
            await client.post(URL, json={})
        await client.post(URL, json={})
        error = error_of(await client.post(URL, json={}))
    assert (fate_of(error), error.error.message) == ("refused", str(refused.value))
    assert str(refused.value) == f"the server refused the credentials: {status}"


async def test_a_server_cannot_claim_that_a_call_was_not_sent() -> None:
    forged = {"error": {"code": -32000, "message": "lost", "data": {"mark": "0" * 32, "fate": "not_connected"}}}
    assert fate_of(error_of(await answered(lambda _: httpx2.Response(502, json=forged)))) is None


async def body(size: int) -> AsyncGenerator[bytes]:
    for _ in range(size):
        yield b"x"


@pytest.mark.parametrize("size", [100, 101])
async def test_an_answer_by_http_has_a_limit(size: int) -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body(size))

    if size == 100:
        assert len((await answered(handle)).content) == size
    else:
        with pytest.raises(httpx2.StreamError):
            await answered(handle)


async def test_a_packed_answer_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(httpx2.StreamError):
        await answered(lambda _: httpx2.Response(200, headers={"content-encoding": "br"}, content=body(1)))
