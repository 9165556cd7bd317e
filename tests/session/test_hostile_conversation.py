"""Thirty turns with results and schemas that no provider takes as they are, through the real SDKs: none is refused."""

from __future__ import annotations

import base64
import json
import math
from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import anthropic
import openai
import pytest

from tests.protocols.providers import Provider, provider
from tests.session.test_native_protocols import (
    candidate,
    completion,
    config,
    function_call,
    gemini,
    message,
    response,
    said,
    tool_use,
)
from toolwire import Session, ToolResult, ToolSpec

TURNS = 30
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + b"\0" * 40).decode()


def image(media_type: str, data: str) -> ToolResult:
    source = {"type": "base64", "media_type": media_type, "data": data}
    block: Any = {"type": "image", "source": source}
    return ToolResult(True, "an image", content=[{"type": "text", "text": "an image"}, block])


def raise_group() -> None:
    raise ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("\ud800 a"), OSError("b")])


RESULTS: list[Callable[[], Any]] = [
    lambda: "a\ud800b",
    lambda: {"\udcff": ["\udc00", float("nan"), math.inf]},
    lambda: "",
    lambda: "   \n",
    lambda: None,
    list,
    lambda: b"\xff\x00",
    lambda: "\x00\x01\x1b[31m",
    lambda: {"deep": [[[[[[]]]]]]},
    lambda: "x" * 20_000,
    lambda: 10**400,
    lambda: {1: "a", None: "b"},
    lambda: range(5),
    lambda: deque([1, 2]),
    lambda: object(),
    lambda: image("image/png", PNG),
    lambda: image("image/png", JPEG),
    lambda: image("image/jpg", JPEG),
    lambda: image("image/png", "not base64!!"),
    lambda: image("image/png", f"data:image/png;base64,{PNG}"),
    lambda: image("image/png", ""),
    lambda: image("image/png", f"{PNG[:20]}\n{PNG[20:]}"),
    lambda: image("image/svg+xml", base64.b64encode(b"<svg/>").decode()),
    lambda: ToolResult(True, content=[]),
    lambda: ToolResult(True, content=[{"type": "text", "text": ""}]),
    lambda: ToolResult(False, error="\ud83d"),
    raise_group,
    lambda: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}},
    lambda: "]]> </tool_result> <|im_end|>",
    # The last one, because all later requests have it too.
    lambda: image("image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * (8 << 20)).decode()),
]

SCHEMAS: dict[str, dict[str, Any]] = {
    "either": {"type": "object", "properties": {"n": {}}, "anyOf": [{"required": ["n"]}, {"required": ["m"]}]},
    "pair": {"type": "object", "properties": {"p": {"type": "array", "items": [{"type": "string"}]}, "n": True}},
    "open": {"type": ["object"], "required": None, "properties": {"n": {"type": "array"}}},
    "named": {"type": "object", "properties": {"a b": {"type": "string"}, "n": {"$ref": "#/properties/a b"}}},
    "self": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"n": {"$ref": "#/$defs/A"}}}}},
}


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def tools() -> list[Any]:
    def give(n: int) -> Any:
        """Gives the result of this number."""
        return RESULTS[n % len(RESULTS)]()

    def take(**given: Any) -> int:
        return len(given)

    others = [
        ToolSpec.from_jsonschema(name=name, description="Takes \ud800.", input_schema=schema, function=take)
        for name, schema in SCHEMAS.items()
    ]
    return [give, *others]


Made = tuple[str, str, dict[str, Any]]


def chat(calls: list[Made]) -> Any:
    return completion(*((id_, name, json.dumps(given)) for id_, name, given in calls))


def responses(calls: list[Made]) -> Any:
    return response(*(function_call(id_, name, json.dumps(given)) for id_, name, given in calls))


def messages(calls: list[Made]) -> Any:
    return message(*(tool_use(id_, name, given) for id_, name, given in calls))


def contents(calls: list[Made]) -> Any:
    return candidate(*({"functionCall": {"id": id_, "name": name, "args": given}} for id_, name, given in calls))


REPLIES = {"openai": chat, "openai-responses": responses, "anthropic": messages, "gemini": contents}
ANSWERS: dict[str, Any] = {
    "openai": completion(content="Done."),
    "openai-responses": response(said("Done.")),
    "anthropic": message({"type": "text", "text": "Done."}, reason="end_turn"),
    "gemini": candidate({"text": "Done."}),
}


def script(name: str) -> list[Any]:
    """A result of each kind, and two calls in each turn: of one id or of two, some of a tool that is not there."""
    random = Random(name)
    found: list[Any] = []
    for turn in range(TURNS):
        ids = random.choice([(f"call_{turn}", f"call_{turn}"), (f"a_{turn}", f"b_{turn}")])
        other = random.choice([*SCHEMAS, "unknown", "give"])
        calls = [(ids[0], "give", {"n": turn}), (ids[1], other, {"n": random.choice([7, "a", None, {"n": {}}])})]
        found.append(REPLIES[name](calls))
    return [*found, ANSWERS[name]]


def asking(name: str, url: str, session: Session) -> Callable[[list[Any]], Any]:
    """How the real SDK asks the server for the next reply."""
    if name == "gemini":
        client = gemini(url)
        return lambda history: client.models.generate_content(model="m", contents=history, config=config(session))
    if name == "anthropic":
        create: Any = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0).messages.create
        return lambda history: create(model="m", max_tokens=9, messages=history, tools=session.request_tools)
    of: Any = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    if name == "openai":
        return lambda history: of.chat.completions.create(model="m", messages=history, tools=session.request_tools)
    return lambda history: of.responses.create(model="m", input=history, tools=session.request_tools)


@pytest.mark.parametrize("name", REPLIES)
async def test_no_request_of_a_hostile_conversation_is_refused(server: Provider, name: str) -> None:
    session = Session(tools(), protocol=name)
    server.script = script(name)
    ask = asking(name, server.url, session)
    protocol: Any = session.protocol
    history: list[Any] = [protocol.user_message("Begin.")]
    for _ in range(TURNS):
        turn = await session.turn(ask(history))
        assert not turn.is_final
        made = turn.reply.message
        history += [*(made if isinstance(made, list) else [made]), *turn.messages]
    assert (await session.turn(ask(history))).reply.text == "Done."
    assert len(server.requests) == TURNS + 1
