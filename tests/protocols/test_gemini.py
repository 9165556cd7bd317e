"""Gemini's contents."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types

from toolwire import ToolCall, ToolResult, ToolSpec
from toolwire.protocols import get
from toolwire.protocols.native.gemini import Gemini
from toolwire.protocols.streaming import CallEnded, CallStarted, TextDelta
from toolwire.types import Problem

GEMINI = get("gemini")


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


def now() -> str:
    """Tells the time."""
    return "noon"


def response(*parts: dict[str, Any], reason: str | None = "STOP") -> dict[str, Any]:
    end = {"finishReason": reason} if reason else {}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **end}]}


def test_tools_are_as_the_sdk_has_them() -> None:
    told: Any = GEMINI.describe([add, now])
    types.Tool.model_validate(told[0])
    assert told == [
        {
            "function_declarations": [
                {
                    "name": "add",
                    "description": "Adds.",
                    "parameters_json_schema": {
                        "type": "object",
                        "properties": {"a": {"type": "integer"}, "b": {"default": 1, "type": "integer"}},
                        "required": ["a"],
                        "additionalProperties": False,
                    },
                },
                {
                    "name": "now",
                    "description": "Tells the time.",
                    "parameters_json_schema": {"type": "object", "properties": {}, "additionalProperties": False},
                },
            ]
        }
    ]
    assert GEMINI.describe([]) == []


def test_the_older_field_can_be_asked_for() -> None:
    older = Gemini(schema_field="parameters")
    told: Any = older.describe([add, now])
    types.Tool.model_validate(told[0])
    assert told[0]["function_declarations"] == [
        {
            "name": "add",
            "description": "Adds.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"default": 1, "type": "integer"}},
                "required": ["a"],
            },
        },
        {"name": "now", "description": "Tells the time."},
    ]
    assert older.schema_problems(add) == ()


def test_the_sdks_object_its_mapping_and_its_json_read_the_same() -> None:
    whole = types.GenerateContentResponse.model_validate(
        response(
            {"text": "Hm.", "thought": True},
            {"text": "Now."},
            {"functionCall": {"id": "f1", "name": "add", "args": {"a": 2}}, "thoughtSignature": "c2ln"},
        )
    )
    found = GEMINI.parse(whole, [add])
    assert found.calls == (ToolCall("add", {"a": 2}, id="f1"),)
    assert (found.text, found.thought, found.problems) == ("Now.", "Hm.", ())
    assert whole.candidates is not None
    for form in (whole.model_dump(), whole.model_dump_json(by_alias=True), whole.candidates[0].content):
        assert GEMINI.parse(form, [add]) == found


def test_a_call_without_an_id_gets_the_same_one_each_time_and_it_is_not_sent_back() -> None:
    body = response(
        {"functionCall": {"name": "add", "args": {"a": 2}}}, {"functionCall": {"name": "add", "args": {"a": 2}}}
    )
    found = GEMINI.parse(body, [add])
    ids = [call.id for call in found.calls]
    assert len(set(ids)) == 2
    assert [call.id for call in GEMINI.parse(body, [add]).calls] == ids
    results = [ToolResult(True, 3, call=call) for call in found.calls]
    messages: Any = GEMINI.format(results)
    answer = {"function_response": {"name": "add", "response": {"output": 3}}}
    assert messages == [{"role": "user", "parts": [answer, answer]}]


def test_a_content_that_makes_calls_is_one_of_the_sdks() -> None:
    made = GEMINI.render([ToolCall("add", {"a": 1}, id="x"), ToolCall("a.b", {"ä": "ü"})])
    content = types.Content.model_validate(made)
    assert content.parts is not None
    calls = [part.function_call for part in content.parts]
    assert [(call.name, call.args, call.id) for call in calls if call] == [
        ("add", {"a": 1}, "x"),
        ("a_dot_b", {"ä": "ü"}, None),
    ]


def test_results_are_one_content_of_the_sdks() -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    seen = ToolResult(True, None, content=[{"type": "text", "text": "t"}, image], call=ToolCall("fs.see", id="a"))
    failed = ToolResult(False, error="no", call=ToolCall("add", id="b"))
    (message,) = GEMINI.format([seen, failed])
    content = types.Content.model_validate(message)
    assert content.parts is not None
    first, second = (part.function_response for part in content.parts)
    assert first is not None
    assert second is not None
    assert (first.name, first.response, first.id) == ("fs_dot_see", {"output": "t\n[image]"}, "a")
    assert first.parts is not None
    assert first.parts[0].inline_data is not None
    assert first.parts[0].inline_data.data == b"\x89PNG\r\n\x1a\n"
    assert (second.response, second.parts) == ({"error": failed.text}, None)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_the_provider_could_not_read_is_refused(reason: str) -> None:
    whole = types.GenerateContentResponse.model_validate(
        {"candidates": [{"finishReason": reason, "finishMessage": "print(add(1"}]}
    )
    found = GEMINI.parse(whole, [add])
    message = f"The provider could not read the reply ({reason}). print(add(1"
    assert found.problems == (Problem(message=message, repaired=False),)
    assert GEMINI.refuse(found) == [{"role": "user", "parts": [{"text": f"Your reply was not run.\n- {message}"}]}]


def test_a_call_that_comes_in_parts_is_not_run() -> None:
    part = {
        "functionCall": {"name": "add", "willContinue": True, "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]}
    }
    whole = types.GenerateContentResponse.model_validate(response(part, reason=None))
    stream = GEMINI.stream([add])
    stream.feed(whole)
    for found in (GEMINI.parse(whole, [add]), stream.reply()):
        assert (found.calls, len(found.refused_calls)) == ((), 1)
        assert found.problems[0].message.startswith("A call came in parts.")


def test_a_blocked_reply_is_a_failure() -> None:
    assert GEMINI.parse(response(reason="SAFETY")).failure == "The provider stopped the reply: SAFETY."
    blocked = types.GenerateContentResponse.model_validate({"promptFeedback": {"blockReason": "OTHER"}})
    assert GEMINI.parse(blocked).failure == "The provider blocked the request: OTHER."


def test_a_stream_gives_each_call_whole() -> None:
    stream = GEMINI.stream([add])
    pieces = [
        response({"text": "S"}, reason=None),
        response({"text": "o"}, {"functionCall": {"id": "f1", "name": "add", "args": {"a": 1}}}, reason=None),
        response({"functionCall": {"name": "now"}}),
    ]
    events = [event for piece in pieces for event in stream.feed(types.GenerateContentResponse.model_validate(piece))]
    second = stream.reply().calls[1]
    assert events == [
        TextDelta(text="S"),
        TextDelta(text="o"),
        CallStarted(index=0, name="add", id="f1"),
        CallEnded(index=0, call=ToolCall("add", {"a": 1}, id="f1")),
        CallStarted(index=1, name="now"),
        CallEnded(index=1, call=second),
    ]
    whole = response(
        {"text": "So"}, *pieces[1]["candidates"][0]["content"]["parts"][1:], {"functionCall": {"name": "now"}}
    )
    assert stream.reply() == GEMINI.parse(whole, [add])


@pytest.mark.parametrize(
    ("given", "newer", "older"),
    [
        (
            {"enum": ["a", None], "description": "Which"},
            {"description": "Which", "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
            {"description": "Which", "type": "string", "enum": ["a"], "nullable": True},
        ),
        (
            {"type": "string", "enum": ["", "a"]},
            {"type": "string", "description": 'Must be one of "", "a".'},
            {"type": "string", "description": 'Must be one of "", "a".'},
        ),
        (
            {"const": True},
            {"type": "boolean", "description": "Must be true."},
            {"type": "boolean", "description": "Must be true."},
        ),
        (
            {"type": "integer", "enum": [1, 2]},
            {"type": "integer", "enum": [1, 2]},
            {"type": "integer", "description": "Must be one of 1, 2."},
        ),
    ],
)
def test_allowed_values_that_the_api_refuses_are_told_in_words(given: Any, newer: Any, older: Any) -> None:
    tool = ToolSpec.from_jsonschema(
        name="t", description="", input_schema={"type": "object", "properties": {"a": given}}
    )
    found = [
        GEMINI.describe([tool])[0]["function_declarations"][0]["parameters_json_schema"]["properties"]["a"],
        Gemini(schema_field="parameters").describe([tool])[0]["function_declarations"][0]["parameters"]["properties"][
            "a"
        ],
    ]
    assert found == [newer, older]
