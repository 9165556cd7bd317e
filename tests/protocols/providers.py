"""A local server that speaks the providers' APIs: it answers from a script, and refuses the same requests as the real
ones.

Each request is checked by the rules of its API before the next answer of the script goes out. An error comes back as
status 400 with the reason, which the SDKs raise.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import PATIENCE_S
from tests.protocols.schema_rules import check_anthropic, check_gemini, check_openai

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
MAGIC = {"image/png": b"\x89PNG\r\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
IMAGE_TYPES = set(MAGIC)
IMAGE_LIMIT_BYTES = 5 << 20


class Provider:
    """The server: its scripted answers, and the requests that it received."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Any] = []
        """The next answers: each a body, a list of events that are streamed, or a `Fault`."""
        self.requests: list[dict[str, Any]] = []
        """The bodies that came in, in order."""
        self.rule: Callable[[dict[str, Any]], None] | None = None
        """A further check of each body."""
        self.silences = 0
        """Number of answers that fell silent."""
        self.closes = 0
        """Number of silent answers whose client closed the connection."""


@contextmanager
def provider() -> Iterator[Provider]:
    """A running server; ended with the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.state = Provider(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.state  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


def check_body(sent: str, check: Callable[[dict[str, Any]], None]) -> Any:
    """Returns the body of a request. Each check that fails is an AssertionError."""
    body = json.loads(sent, parse_constant=_refuse_constant)
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise AssertionError("a lone surrogate is no Unicode") from None
    _check_images(body)
    check(body)
    return body


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An answer that is an error, or a stream that is cut."""

    status: int = 200
    words: str = "a fault of the server"
    events: tuple[Any, ...] = ()
    share: float = 1.0
    """The part of the stream's bytes that is sent."""
    breaks: bool = False
    """True if the connection breaks at the cut; else the stream ends there as if it were whole."""
    is_silent: bool = False
    """True if nothing follows the cut until the client closes the connection. With share 0 not even a status comes."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers of an error, such as `retry-after`."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        state: Provider = self.server.state  # type: ignore[attr-defined]
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        check = next(rule for part, rule in RULES.items() if part in self.path)
        try:
            state.requests.append(check_body(sent, check))
            if state.rule is not None:
                state.rule(state.requests[-1])
        except AssertionError as error:
            return self._send(400, "application/json", json.dumps({"error": {"message": str(error)}}))
        answer = state.script.pop(0)
        if isinstance(answer, Fault):
            return self._fail(answer)
        if not isinstance(answer, list):
            return self._send(200, "application/json", json.dumps(answer))
        return self._send(200, "text/event-stream", "".join(map(_event, answer)))

    def _send(self, status: int, kind: str, text: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        content = text.encode()
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _fail(self, fault: Fault) -> None:
        if fault.status != 200:
            error = {"error": {"message": fault.words, "code": fault.status, "type": "fault"}}
            return self._send(fault.status, "application/json", json.dumps(error), fault.headers)
        content = "".join(map(_event, fault.events)).encode()
        sent = content[: int(len(content) * fault.share)]
        if sent or not fault.is_silent:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(content) if fault.breaks or fault.is_silent else len(sent)))
            # Without it a client would take the connection for its next request.
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(sent)
        if fault.is_silent:
            self._wait_for_close()
        self.close_connection = True
        return None

    def _wait_for_close(self) -> None:
        state: Provider = self.server.state  # type: ignore[attr-defined]
        state.silences += 1
        self.connection.settimeout(PATIENCE_S)
        with suppress(ConnectionError):
            assert self.connection.recv(1) == b"", "the client sent more"
        state.closes += 1

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is printed."""


def _refuse_constant(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def _check_images(value: Any) -> None:
    """Refuses an image whose bytes are not of the type that it names, or too many."""
    if isinstance(value, list):
        for inner in value:
            _check_images(inner)
        return
    if not isinstance(value, dict):
        if isinstance(value, str) and value.startswith("data:image/"):
            head, _, data = value.partition(";base64,")
            _check_image(head.removeprefix("data:"), data)
        return
    if value.get("type") == "base64":
        _check_image(value["media_type"], value["data"])
    inline = value.get("inlineData") or value.get("inline_data")
    if isinstance(inline, dict):
        kind = inline.get("mimeType") or inline.get("mime_type")
        if isinstance(kind, str) and kind.startswith("image/"):
            # The SDK writes bytes in the alphabet for URLs.
            _check_image(kind, inline["data"].replace("-", "+").replace("_", "/"))
    for inner in value.values():
        _check_images(inner)


def _check_image(kind: str, data: str) -> None:
    content = base64.b64decode(data, validate=True)
    assert kind in IMAGE_TYPES, f"{kind} is not supported"
    assert content.startswith(MAGIC[kind]), f"the image does not appear to be {kind}"
    assert len(content) <= IMAGE_LIMIT_BYTES, "image exceeds 5 MB maximum"


def _event(event: Any) -> str:
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n"


def _strict(node: Any, place: str = "parameters") -> None:
    if not isinstance(node, dict):
        return
    assert "$ref" not in node or set(node) == {"$ref"}, f"{place}: $ref cannot have keywords"
    assert "default" not in node, f"{place}: 'default' is not permitted"
    if node.get("type") == "object":
        assert node.get("additionalProperties") is False, f"{place}: 'additionalProperties' must be false"
        missing = set(node.get("properties", {})) - set(node.get("required", []))
        assert not missing, f"{place}: 'required' must include every key in properties; missing {sorted(missing)}"
    for key in ("properties", "$defs"):
        for name, inner in node.get(key, {}).items():
            _strict(inner, f"{place}.{name}")
    for inner in [node.get("items"), *node.get("anyOf", [])]:
        _strict(inner, place)


def _function(function: dict[str, Any]) -> None:
    assert NAME.fullmatch(function["name"]), f"name {function['name']!r} does not match"
    if function.get("strict"):
        _strict(function["parameters"])
    check_openai(function["parameters"])


def _chat(body: dict[str, Any]) -> None:
    for tool in body.get("tools", []):
        assert tool["type"] == "function"
        _function(tool["function"])
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a tool message must answer a preceding 'tool_calls'"
            waiting.remove(message["tool_call_id"])
            parts = message["content"]
            assert isinstance(parts, str) or {part["type"] for part in parts} == {"text"}, "tool messages hold text"
            continue
        assert not waiting, f"'tool_calls' must be followed by tool messages; these are missing: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        assert len(set(waiting)) == len(waiting), f"duplicate tool call ids: {waiting}"
        for call in message.get("tool_calls") or []:
            assert NAME.fullmatch(call["function"]["name"])
            json.loads(call["function"]["arguments"])
    assert not waiting, f"'tool_calls' must be followed by tool messages; these are missing: {waiting}"


def _responses(body: dict[str, Any]) -> None:
    for tool in body.get("tools", []):
        assert tool["type"] == "function"
        assert "strict" in tool
        _function(tool)
    calls = [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"]
    ids: set[str] = set()
    for item in body["input"]:
        # The scripts of tests give the ids of one reply to the next one too.
        ids = ids if item.get("type") == "function_call" else set()
        for key in ("id", "call_id") if item.get("type") == "function_call" else ():
            assert item.get(key) not in ids, f"duplicate item found: {item[key]}"
            ids |= {item[key]} if key in item else set()
    assert sorted(calls) == sorted(outputs), f"no tool output found for function call {set(calls) ^ set(outputs)}"
    for item in body["input"]:
        if item.get("type") == "function_call_output" and not isinstance(item["output"], str):
            assert {part["type"] for part in item["output"]} <= {"input_text", "input_image", "input_file"}


def _messages(body: dict[str, Any]) -> None:
    for tool in body.get("tools", []):
        assert NAME.fullmatch(tool["name"]), f"name {tool['name']!r} does not match"
        check_anthropic(tool["input_schema"])
        for key in tool["input_schema"].get("properties", {}):
            assert ANTHROPIC_KEY.fullmatch(key), f"property keys should match pattern; {key!r} does not"
    waiting: list[str] = []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert sorted(block["tool_use_id"] for block in results) == sorted(waiting), "a tool_use has no tool_result"
        assert blocks[: len(results)] == results, "tool_result blocks come first"
        for result in results:
            _tool_result(result)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(set(waiting)) == len(waiting), f"`tool_use` ids must be unique: {waiting}"


def _tool_result(result: dict[str, Any]) -> None:
    content = result.get("content", "")
    for block in content if isinstance(content, list) else []:
        assert block["type"] in ("text", "image")
        assert block["type"] != "text" or block["text"], "text content blocks must be non-empty"
        assert not result.get("is_error") or block["type"] == "text", "an error holds text alone"
        source = block.get("source", {})
        if source.get("type") == "base64":
            assert source["media_type"] in IMAGE_TYPES
            base64.b64decode(source["data"], validate=True)


def _contents(body: dict[str, Any]) -> None:
    for tool in body.get("tools", []):
        for declaration in tool["functionDeclarations"]:
            assert GEMINI_NAME.fullmatch(declaration["name"])
            assert not ("parameters" in declaration and "parametersJsonSchema" in declaration)
            if "parametersJsonSchema" in declaration:
                check_gemini(declaration["parametersJsonSchema"])
            if "parameters" in declaration:
                assert "$ref" not in json.dumps(declaration["parameters"])
    waiting: list[tuple[str, str | None]] = []
    for content in body["contents"]:
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        found = [(answer["name"], answer.get("id")) for answer in answers]
        assert found == waiting, f"function response parts must equal function call parts: {found} and {waiting}"
        assert all(isinstance(answer["response"], dict) for answer in answers)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        waiting = [(call["name"], call.get("id")) for call in calls]
    assert not waiting, "a function call has no response"


RULES: dict[str, Callable[[dict[str, Any]], None]] = {
    "/chat/completions": _chat,
    "/responses": _responses,
    "/messages": _messages,
    "enerateContent": _contents,
}
