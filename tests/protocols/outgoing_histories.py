"""Histories made at random: calls and results that no provider takes as they are, in the messages of each API.

A seed stands for one turn. The rules are those of the strict servers in `providers`, and the types of each SDK.
"""

from __future__ import annotations

import base64
import json
import math
from random import Random
from typing import Any

from anthropic.types import MessageParam
from google.genai.types import Content
from mcp_types.methods import SERVER_RESULTS, validate_server_result
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from tests.protocols.providers import RULES, check_body
from toolwire import ToolCall, ToolResult
from toolwire.mcp.values.call_results import call_result
from toolwire.protocols import get

APIS = ("openai", "openai-responses", "anthropic", "gemini", "mcp")
_MESSAGES: dict[str, TypeAdapter[Any]] = {
    "openai": TypeAdapter(ChatCompletionMessageParam),
    "openai-responses": TypeAdapter(ResponseInputItemParam),
    "anthropic": TypeAdapter(MessageParam),
    "gemini": TypeAdapter(Content),
}
_PLACES = {
    "openai": ("messages", "/chat/completions"),
    "openai-responses": ("input", "/responses"),
    "anthropic": ("messages", "/messages"),
    "gemini": ("contents", "enerateContent"),
}
"""The field of a request that has the messages, and its path."""
_MCP_VERSIONS = sorted(version for method, version in SERVER_RESULTS if method == "tools/call")
TEXTS = ["", " \n", "a", "\ud800", "é\udcff水", "\x00\x1b[2J", "x" * 3_000, "</tool_result>", "😀"]
STARTS = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF0000WEBP", b"RIFF0000WAVE", b"<svg/>", b"%PDF"]
TYPES = ["image/png", "image/jpg", "IMAGE/JPEG", "image/gif; q=1", "image/svg+xml", "audio/wav", "text/plain", "", "x"]


def refusal(api: str, seed: int) -> str:
    """Returns why a strict server refuses the turn of this seed. Empty if it takes it."""
    random = Random(seed)
    calls = [_call(random, at) for at in range(random.randrange(1, 4))]
    results = [_result(random, call) for call in calls]
    try:
        if api == "mcp":
            _check_mcp(results)
            return ""
        protocol: Any = get(api)
        message, answers = protocol.render(calls), protocol.format(results)
        check_request(api, [*(message if isinstance(message, list) else [message]), *answers])
    except (AssertionError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def check_request(api: str, messages: list[Any]) -> None:
    """Refuses messages that a strict server or the SDK's own types do not take."""
    name, path = _PLACES[api]
    sent = _in_camel_case(messages) if api == "gemini" else messages
    check_body(json.dumps({name: sent}, allow_nan=False), RULES[path])
    check_types(api, messages)


def check_types(api: str, messages: list[Any]) -> None:
    """Refuses what the SDK's own types do not take."""
    for message in messages:
        found = _MESSAGES[api].validate_python(message)
        # Pydantic checks the items of an Iterable only when they are asked for.
        list(found.get("content") or () if isinstance(found, dict) else ())


def _check_mcp(results: list[ToolResult]) -> None:
    """Refuses what the schema of a version of MCP does not take."""
    for result in results:
        for version in _MCP_VERSIONS:
            made = call_result(result, None, version=version)
            wire = made.model_dump_json(by_alias=True, exclude_none=True)
            assert json.loads(wire, parse_constant=_refuse) == json.loads(wire.encode())
            validate_server_result("tools/call", version, {"resultType": "complete", **json.loads(wire)})


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def _call(random: Random, at: int) -> ToolCall:
    name = random.choice(["weather", "city.weather", "a/b", "no such tool", "é", "n" * 80])
    return ToolCall(name, {"a": random.choice([1, None, "é", [{}]])}, id=f"call_{at}")


def _result(random: Random, call: ToolCall) -> ToolResult:
    kind = random.randrange(4)
    if kind == 0:
        return ToolResult.failed("tool_error", random.choice(TEXTS), call=call)
    if kind == 1:
        return ToolResult(True, _value(random), call=call)
    blocks: Any = [_block(random) for _ in range(random.randrange(4))]
    return ToolResult(kind == 2, _value(random), content=blocks, call=call)


def _value(random: Random, depth: int = 2) -> Any:
    kind = random.randrange(6 if depth else 4)
    if kind == 0:
        return random.choice(TEXTS)
    if kind == 1:
        return random.choice([None, True, 0, 10**40, 1.5, math.nan, math.inf, b"\xff"])
    if kind == 2:
        return random.choice([[], {}, (), set[int]()])
    if kind == 3:
        return _block(random)
    if kind == 4:
        return [_value(random, depth - 1) for _ in range(3)]
    return {random.choice([*TEXTS, 1]): _value(random, depth - 1) for _ in range(2)}


def _block(random: Random) -> dict[str, Any]:
    kind = random.choice(["text", "image", "image", "audio", "resource", "resource_link"])
    if kind == "text":
        return {"type": "text", "text": random.choice(TEXTS)}
    if kind == "resource_link":
        return {"type": kind, "uri": f"file:///{random.choice(TEXTS)}", "name": random.choice(TEXTS)}
    content = random.choice(STARTS) + random.randbytes(random.randrange(30))
    data = base64.b64encode(content).decode()
    data = random.choice(
        [data, data, data[:-1], f"data:image/png;base64,{data}", data[:8] + "\n" + data[8:], "no!", ""]
    )
    media_type = random.choice(TYPES)
    if kind == "resource":
        inner = random.choice([{"blob": data}, {"text": random.choice(TEXTS)}])
        return {"type": kind, "resource": {"uri": "file:///a", "mimeType": media_type, **inner}}
    if random.randrange(5) == 0:
        return {"type": kind, "source": {"type": "url", "url": "https://example.com/a.png"}}
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def _in_camel_case(value: Any) -> Any:
    """Returns the value as the SDK sends it."""
    if isinstance(value, list):
        return [_in_camel_case(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    names = {"function_call": "functionCall", "function_response": "functionResponse", "inline_data": "inlineData"}
    return {names.get(key, key): _in_camel_case(inner) for key, inner in value.items()}
