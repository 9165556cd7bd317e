"""Answers of a server that the SDK refuses: what can be read of them is read, and no call waits for its time limit."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import httpx2
import pytest

from tests.architecture.source import ROOT
from tests.gateway.serving import serving
from tests.mcp.client.careless_url import app
from toolwire import MCPClient, ToolRegistry, ToolResult
from toolwire.mcp.transports.http import HttpTransport, MessageClient

SOON_S = 20
"""Much less than the 60 seconds after which a call is given up, and more than a start of the server takes."""
PIXEL = "iVBORw0KGgo="
TEXT = {"type": "text", "text": "here"}

Ask = Callable[[str], ToolResult]


def asking(client: MCPClient) -> Generator[Ask]:
    """Yields a function that calls a server whose answer is the given text."""
    registry = ToolRegistry()
    registry.register_mcp_client(client, permission="auto")

    def ask(text: str) -> ToolResult:
        started = time.monotonic()
        result = registry.invoke("raw/say", {"text": text})
        assert time.monotonic() - started < SOON_S
        return result

    yield ask
    client.close()


def raw_server(fault: str) -> MCPClient:
    return MCPClient.stdio("raw", sys.executable, ["-m", "tests.mcp.client.raw_server", fault], cwd=ROOT)


@pytest.fixture(scope="module")
def gives_result() -> Generator[Ask]:
    yield from asking(raw_server("result"))


@pytest.fixture(scope="module", params=["stdio", "json", "stream"])
def gives_answer(request: pytest.FixtureRequest) -> Generator[Ask]:
    if request.param == "stdio":
        yield from asking(raw_server("answer"))
        return
    with serving(app) as port:
        yield from asking(MCPClient.http("raw", f"http://127.0.0.1:{port}/{request.param}"))


READ: dict[str, tuple[Any, Any]] = {
    "an unknown block": ({"content": [{"type": "hologram", "data": "?"}, TEXT]}, "[hologram]\nhere"),
    "an unknown block alone": ({"content": [{"type": "hologram", "data": "?"}]}, "[hologram]"),
    "a block without a type": ({"content": [{"data": "?"}, TEXT]}, "[unknown]\nhere"),
    "a number in the place of a block": ({"content": [7, TEXT]}, "[unknown]\nhere"),
    "a text in the place of a block": ({"content": ["there", TEXT]}, "there\nhere"),
    "a text that is null": ({"content": [{"type": "text", "text": None}, TEXT]}, "\nhere"),
    "a text that is a number": ({"content": [{"type": "text", "text": 0}]}, "0"),
    "a text without text": ({"content": [{"type": "text"}, TEXT]}, "\nhere"),
    "content that is null": ({"content": None}, ""),
    "content that is null, with a result": ({"content": None, "structuredContent": {"rows": 2}}, {"rows": 2}),
    "no content but a result": ({"structuredContent": {"rows": 2}}, {"rows": 2}),
    "one block in the place of a list": ({"content": TEXT}, "here"),
    "a text in the place of a list": ({"content": "here"}, "here"),
    "isError that is null": ({"content": [TEXT], "isError": None}, "here"),
    "a result that is null": ({"content": [TEXT], "structuredContent": None}, "here"),
    "a result that is no object": ({"content": [], "structuredContent": [1, 2]}, {"result": [1, 2]}),
    "_meta as PHP writes it": ({"content": [TEXT], "_meta": []}, "here"),
    "annotations that are wrong": ({"content": [{**TEXT, "annotations": {"priority": 7}}]}, "here"),
    "a link without a name": (
        {"content": [{"type": "resource_link", "uri": "file:///a"}, TEXT]},
        "[resource_link]\nhere",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_of_a_result_is_read(gives_result: Ask, name: str) -> None:
    given, data = READ[name]
    result = gives_result(json.dumps(given))
    assert (result.error, result.data) == (None, data)


def image(**fields: Any) -> dict[str, Any]:
    return {"type": "image", "data": PIXEL, **fields}


@pytest.mark.parametrize("block", [image(), image(mimeType=None)])
def test_an_image_without_a_media_type_is_an_image(gives_result: Ask, block: dict[str, Any]) -> None:
    result = gives_result(json.dumps({"content": [TEXT, block]}))
    assert [one["type"] for one in result.content] == ["text", "image"]
    assert result.content[1]["source"]["data"] == PIXEL  # type: ignore[typeddict-item]


def test_an_error_with_an_unknown_block_is_a_failure_with_its_text(gives_result: Ask) -> None:
    result = gives_result(json.dumps({"content": [{"type": "hologram"}, TEXT], "isError": True}))
    assert (result.success, result.error) == (False, "[hologram]\nhere")


@pytest.mark.parametrize("given", ["null", "[]", "{}", '{"toolResult": 7}'])
def test_a_result_that_holds_nothing_is_refused_at_once(gives_result: Ask, given: str) -> None:
    result = gives_result(given)
    assert result.failure is not None
    assert (result.failure.kind, result.error) == (
        "invalid_result",
        "The server's answer is not a result of MCP: content: Field required.",
    )


ANSWERS: dict[str, tuple[str, str | None, str]] = {
    "a surrogate": (r'"result": {"content": [{"type": "text", "text": "a\ud83d"}]}', None, "a\ufffd"),
    "a surrogate in an unknown place": (r'"x": "\ude00", "result": {"content": "a"}', None, "a"),
    "a surrogate in structured content": (
        r'"result": {"structuredContent": {"a": ["\udce9"]}}',
        None,
        '{"a": ["\ufffd"]}',
    ),
    "an error without a message": (
        '"error": {"code": -7}',
        "tool_error",
        "the server refused the call: it gave no message (-7)",
    ),
    "an error without a code": ('"error": {"message": "shut"}', "tool_error", "the server refused the call: shut (0)"),
    "an error as text": ('"error": "shut"', "tool_error", "the server refused the call: shut (0)"),
    "an error beside a result": (
        '"error": {"code": 1}, "result": null',
        "tool_error",
        "the server refused the call: it gave no message (1)",
    ),
    "no error beside a result": ('"error": null, "result": {"content": "a"}', None, "a"),
    "a result that is a text": (
        '"result": "a"',
        "invalid_result",
        "The server's answer cannot be read: It is not a message of JSON-RPC 2.0: result: Input should be an object.",
    ),
    "deep": (
        '"result": {"content": [], "structuredContent": {"a": ' + "[" * 2000 + "]" * 2000 + "}}",
        "invalid_result",
        "",
    ),
    "deeper than any value": (
        '"result": {"content": [], "structuredContent": {"a": ' + "[" * 300 + "]" * 300 + "}}",
        "invalid_result",
        "",
    ),
    "a long number": (
        '"result": {"content": [], "structuredContent": {"a": ' + "9" * 5000 + "}}",
        "invalid_result",
        "",
    ),
    "no JSON": ('"result": {"content": []', "invalid_result", ""),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_cannot_be_read_does_not_wait(gives_answer: Ask, name: str) -> None:
    given, kind, text = ANSWERS[name]
    result = gives_answer(given)
    assert (result.failure and result.failure.kind) == kind
    if kind is None:
        assert result.text == text
    elif kind == "tool_error":
        assert result.error == text
    elif name != "deeper than any value":
        assert (result.error or "").startswith("The server's answer cannot be read: ")


EVENTS = (
    b': hello\r\n\r\nid: 1\r\nevent: message\r\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\r\n\r\n'
    b'data: {"jsonrpc": "2.0", "id": 2,\ndata: "result": {"a": 1}}\n\n'
    b'data: {"jsonrpc": "2.0", "id": 3, "result": null}\n\ndata: rest'
)
MENDED = EVENTS.replace(b'{"jsonrpc": "2.0", "id": 3, "result": null}', b'{"jsonrpc":"2.0","id":3,"result":{}}')


@pytest.mark.parametrize("size", [1, 2, 7, 40, 1_000])
async def test_a_stream_of_events_is_mended_line_by_line_however_it_arrives(size: int) -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for at in range(0, len(EVENTS), size):
            yield EVENTS[at : at + size]

    headers = {"content-type": "text/event-stream"}
    sent = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=pieces()))
    async with MessageClient(HttpTransport("http://server.test/mcp", 10_000, sent)) as client:
        received = (await client.post("http://server.test/mcp", json={})).content
    assert received.replace(b"\r\n", b"\n").rstrip(b"\n") == MENDED.replace(b"\r\n", b"\n")
