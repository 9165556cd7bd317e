"""A native reply loses nothing without a word: what no reader takes is refused, reported, or the host's mistake."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols.test_stream_forms import TOOLS, block, called, chunk, purge, read, reasons, use
from toolwire import ConfigurationError, Reply, Session
from toolwire.protocols import get

THINKING = "The reply is all thinking. Write the answer, or make a call."


def completion(**message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def message(*blocks: Any, reason: str = "end_turn") -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "stop_reason": reason, "content": list(blocks)}


def response(*items: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(items)}


def said(*parts: Any) -> dict[str, Any]:
    return response({"type": "message", "role": "assistant", "status": "completed", "content": list(parts)})


def content(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", **more}]}


def parse(name: str, reply: Any) -> Reply:
    return get(name).parse(reply, TOOLS)


THOUGHT_ALONE: dict[str, tuple[str, Any]] = {
    "reasoning_content": ("openai", completion(content=None, reasoning_content="Hm.")),
    "reasoning": ("openai", completion(content="\n", reasoning="Hm.")),
    "reasoning_details": ("openai", completion(reasoning_details=[{"type": "reasoning.text", "text": "Hm."}])),
    "parts": ("openai", completion(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}])),
    "tags that the server left": ("openai", completion(content="<think>\nHm.\n</think>\n\n")),
    "tags that do not end": ("openai", completion(content="<think>\nHm.")),
    "thinking": ("anthropic", message({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})),
    "redacted thinking": ("anthropic", message({"type": "redacted_thinking", "data": "c2ln"})),
    "a summary": (
        "openai-responses",
        response({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]}),
    ),
    "encrypted": ("openai-responses", response({"type": "reasoning", "id": "r", "summary": []})),
    "a thought": ("gemini", content({"text": "Hm.", "thought": True})),
}


@pytest.mark.parametrize("form", THOUGHT_ALONE)
async def test_thinking_alone_is_no_answer(form: str) -> None:
    name, reply = THOUGHT_ALONE[form]
    turn = await Session(TOOLS, protocol=name).turn(reply)
    assert (turn.is_final, turn.answer) == (False, None)
    assert THINKING in str(turn.messages)


def test_a_message_of_thinking_alone_goes_back_in_a_form_that_its_provider_takes() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    assert parse("anthropic", message(thinking)).message["content"] == [
        thinking,
        {"type": "text", "text": "[no content]"},
    ]
    assert parse("openai-responses", response({"type": "reasoning", "id": "r", "summary": []})).message == []


UNREAD: dict[str, tuple[str, Any]] = {
    "openai": ("openai", completion(content=[{"type": "sketch", "data": "x"}])),
    "anthropic": ("anthropic", message({"type": "sketch", "data": "x"})),
    "an item": ("openai-responses", response({"type": "sketch", "data": "x"})),
    "a part": ("openai-responses", said({"type": "sketch", "data": "x"})),
}


@pytest.mark.parametrize("form", UNREAD)
def test_a_part_of_an_unknown_type_is_reported_and_alone_it_is_no_answer(form: str) -> None:
    name, reply = UNREAD[form]
    assert reasons(parse(name, reply)) == [
        "The reply is nothing but a part of the type 'sketch', which was not read. Write the answer, or make a call."
    ]
    text = {"type": "output_text" if name == "openai-responses" else "text", "text": "It is 5."}
    part = said(text)["output"][0] if form == "an item" else text
    held = next(one for one in _lists(reply) if any("sketch" in str(item) and "data" in item for item in one))
    held.append(part)
    found = parse(name, reply)
    assert (found.text, [(problem.message, problem.repaired) for problem in found.problems]) == (
        "It is 5.",
        [("The reply also has a part of the type 'sketch', which was not read.", True)],
    )
    assert "sketch" in str(found.message)


def _lists(value: Any) -> list[list[Any]]:
    below = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    found = [one for item in below for one in _lists(item)]
    return [*found, value] if isinstance(value, list) else found


UNREADABLE: dict[str, tuple[str, Any, str]] = {
    "a content": ("openai", completion(content={"text": "x"}), "`content` holds a dict"),
    "a part": ("openai", completion(content=["x", 5]), "`content` holds a int"),
    "a text": ("openai", completion(content=[{"type": "text", "text": ["x"]}]), "`content.text` holds a list"),
    "an older call": ("openai", completion(content="x", function_call="now"), "`function_call` holds a str"),
    "a block": ("anthropic", message({"type": "text", "text": "x"}, None), "`content` holds a NoneType"),
    "a block's text": ("anthropic", message({"type": "text", "text": ["x"]}), "`content.text` holds a list"),
    "all blocks": ("anthropic", {**message(), "content": {"type": "text"}}, "`content` holds a dict"),
    "an item": ("openai-responses", response("x"), "`output` holds a str"),
    "an item's part": ("openai-responses", said("x"), "`content` holds a str"),
    "a part's text": ("openai-responses", said({"type": "output_text", "text": 5}), "`content.text` holds a int"),
    "parts": ("gemini", {"candidates": [{"content": {"parts": "x"}}]}, "`parts` holds a str"),
    "a content of Gemini": ("gemini", {"candidates": [{"content": "x"}]}, "`content` holds a str"),
    "a candidate": ("gemini", {"candidates": ["x"]}, "`candidates` holds a str"),
    "a text of Gemini": ("gemini", content({"text": ["x"]}), "`parts.text` holds a list"),
}


@pytest.mark.parametrize("form", UNREADABLE)
def test_a_value_that_its_api_does_not_have_there_refuses_the_reply(form: str) -> None:
    name, reply, begins = UNREADABLE[form]
    found = reasons(parse(name, reply))
    assert found == [f"{begins}, and its API has something else there."]


CALL_LIKE: dict[str, tuple[str, Any, str]] = {
    "another api's": ("openai", completion(content=[{"type": "tool_use", "name": "now", "input": {}}]), "tool_use"),
    "another spelling": ("anthropic", message({"type": "text", "text": "x"}, {"type": "Tool_Use"}), "Tool_Use"),
    "a type of no api": ("openai-responses", response({"type": "tool_call", "name": "now", "input": 5}), "tool_call"),
}


@pytest.mark.parametrize("form", CALL_LIKE)
def test_a_part_that_looks_like_a_call_refuses_the_reply(form: str) -> None:
    name, reply, kind = CALL_LIKE[form]
    assert reasons(parse(name, reply)) == [f"A part of the type {kind!r} looks like a call, and is not one."]


def test_calls_under_a_field_of_another_api_refuse_the_reply() -> None:
    reply = completion(content="x", tool_call={"function": {"name": "now", "arguments": "{}"}})
    assert reasons(parse("openai", reply)) == ["The message has calls in `tool_call`. Make each call in `tool_calls`."]
    calls = content({"text": "x"}, {"functionCalls": [{"name": "now"}]})
    assert reasons(parse("gemini", calls)) == ["A part with the keys functionCalls looks like a call, and is not one."]
    assert reasons(parse("gemini", content({"functionCall": {}}))) == [
        "The call has no name. Write the name of a tool."
    ]


def test_a_text_beside_a_call_in_one_part_is_kept() -> None:
    found = parse("gemini", content({"text": "Hello.", "functionCall": {"name": "now"}}))
    assert (called(found), found.text) == ([("now", {})], "Hello.")


ELSEWHERE: list[tuple[str, Any]] = [
    ("openai", {"choices": [{"index": 0, "text": "Hello.", "finish_reason": "stop"}]}),
    ("openai", {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}),
    ("openai", {"choices": [{"index": 0, "message": "Hello.", "finish_reason": "stop"}]}),
    ("openai", {"choices": ["Hello."]}),
    ("anthropic", {"type": "completion", "completion": "Hello."}),
    ("openai-responses", {"object": "response", "status": "completed", "output_text": "Hello."}),
    ("openai-responses", {"object": "response", "status": "completed", "output": "Hello."}),
    ("gemini", {"candidates": {"content": {"parts": [{"text": "Hello."}]}}}),
]


@pytest.mark.parametrize(("name", "reply"), ELSEWHERE)
def test_a_reply_of_another_api_or_a_chunk_of_one_is_the_hosts_mistake(name: str, reply: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^the protocol '{name}' reads"):
        parse(name, reply)


# Calls


BESIDE: dict[str, tuple[str, Any]] = {
    "in the function": (
        "openai",
        completion(tool_calls=[{"id": "a", "function": {"name": "purge", "arguments": "{}", "table": "t1"}}]),
    ),
    "in the call": (
        "openai",
        completion(tool_calls=[{"id": "a", "table": "t1", "function": {"name": "purge", "arguments": "{}"}}]),
    ),
    "in the block": ("anthropic", message({**use("a", "purge"), "table": "t1"}, reason="tool_use")),
    "in the item": (
        "openai-responses",
        response({"type": "function_call", "call_id": "a", "name": "purge", "arguments": "{}", "table": "t1"}),
    ),
    "in the call of Gemini": ("gemini", content({"functionCall": {"name": "purge", "table": "t1"}})),
    "in the part": ("gemini", content({"functionCall": {"name": "purge"}, "table": "t1"})),
}


@pytest.mark.parametrize("form", BESIDE)
def test_a_parameter_beside_the_arguments_refuses_the_call(form: str) -> None:
    name, reply = BESIDE[form]
    assert reasons(parse(name, reply)) == ["The call of 'purge' has arguments under 'table', where its API has none."]


@pytest.mark.parametrize("key", ["kwargs", "argument", "tool_input"])
def test_a_word_like_arguments_beside_them_refuses_the_call(key: str) -> None:
    reply = message({**use("a", "purge"), key: {"table": "t1"}}, reason="tool_use")
    assert reasons(parse("anthropic", reply)) == [
        f"The call of 'purge' has arguments under {key!r}, where its API has none."
    ]


def test_a_field_beside_the_arguments_that_is_no_parameter_is_left_alone() -> None:
    reply = message(
        {**use("a", "purge", {"table": "t1"}), "caller": {"type": "direct"}, "note": "x"}, reason="tool_use"
    )
    assert called(parse("anthropic", reply)) == [("purge", {"table": "t1"})]


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": ""}])
def test_a_block_without_arguments_runs_nothing_with_defaults(given: Any) -> None:
    reply = message({"type": "tool_use", "id": "a", "name": "purge", **given}, reason="tool_use")
    assert reasons(parse("anthropic", reply)) == [
        "There are no arguments. Write one JSON object with the parameters' names as keys."
    ]
    assert called(parse("anthropic", message({"type": "tool_use", "id": "a", "name": "now", **given}))) == [("now", {})]


# Alternatives


def test_a_further_alternative_never_joins_the_first_one() -> None:
    def piece(index: int, **part: Any) -> dict[str, Any]:
        return {"candidates": [{"index": index, "content": {"parts": [part]}}]}

    end = {"candidates": [{"index": 0, "finishReason": "STOP"}]}
    call = {"name": "purge", "args": {"table": "t1"}}
    assert read("gemini", [piece(0, text="a"), piece(1, text="b"), end]).text == "a"
    assert reasons(read("gemini", [piece(0, text="a"), piece(1, functionCall=call), end])) == [
        "The call stands in a further alternative of the reply, and only the first one is read. Ask for one alone."
    ]
    mixed = [piece(1, functionCall={"name": "purge"}), piece(0, functionCall=call), end]
    assert called(read("gemini", mixed)) == [("purge", {"table": "t1"})]


def test_the_alternative_with_the_index_0_is_the_first_one_wherever_it_stands() -> None:
    choices = [{"index": index, "message": {"role": "assistant", "content": f"{index}"}} for index in (1, 0)]
    assert parse("openai", {"choices": choices}).text == "0"
    candidates = [{"index": index, "content": {"parts": [{"text": f"{index}"}]}} for index in (1, 0)]
    found = parse("gemini", {"candidates": candidates})
    assert (found.text, found.message["parts"]) == ("0", [{"text": "0"}])


# Streams

STOP: dict[str, list[Any]] = {
    "openai": [chunk("stop")],
    "anthropic": [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}],
    "openai-responses": [{"type": "response.completed", "response": response()}],
    "gemini": [content()],
}
HELLO: dict[str, list[Any]] = {
    "openai": [chunk(content="Hello.")],
    "anthropic": block(0, {"type": "text", "text": "Hello."}),
    "openai-responses": [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hello."}
    ],
    "gemini": [{"candidates": [{"content": {"parts": [{"text": "Hello."}]}}]}],
}
OTHERS: dict[str, Any] = {
    "openai": content({"text": "x"}),
    "anthropic": chunk(content="x"),
    "openai-responses": chunk(content="x"),
    "gemini": chunk(content="x"),
}


@pytest.mark.parametrize("name", HELLO)
def test_a_piece_of_another_api_among_the_others_refuses_the_reply(name: str) -> None:
    keys = ", ".join(OTHERS[name])
    pieces = [*HELLO[name], OTHERS[name], *STOP[name]]
    assert reasons(read(name, pieces)) == [f"The stream has a piece that was not read: a dict with the keys {keys}."]
    news = {"note": "the queue is short"}
    found = read(name, [*HELLO[name], news, *STOP[name]])
    assert (found.text, found.problems) == ("Hello.", ())


def test_a_whole_completion_or_an_older_chunk_in_a_stream_refuses_the_reply() -> None:
    for piece in (completion(content="x"), {"choices": [{"index": 0, "text": "x"}]}):
        assert reasons(read("openai", [*HELLO["openai"], piece, *STOP["openai"]])) == [
            "The stream has a piece that was not read: a dict with the keys choices."
        ]
    both = {"choices": [{"index": 0, "text": "Hello.", "delta": {"content": "Hello."}}]}
    assert read("openai", [both, chunk("stop")]).text == "Hello."


def delta(index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
BLOCK_END = {"type": "content_block_stop", "index": 0}
WRONG_PIECES: dict[str, tuple[str, list[Any], str]] = {
    "a delta": ("openai", [{"choices": [{"index": 0, "delta": "x"}]}], "`delta` holds a str"),
    "a content": ("openai", [chunk(content=5)], "`content` holds a int"),
    "an older call": ("openai", [chunk(function_call="now")], "`function_call` holds a str"),
    "a block": ("anthropic", [{"type": "content_block_start", "index": 0}], "`content_block` holds a NoneType"),
    "a block's delta": ("anthropic", [TEXT, {**delta(), "delta": "x"}, BLOCK_END], "`delta` holds a str"),
    "a block's text": ("anthropic", [TEXT, delta(type="text_delta", text=5), BLOCK_END], "`text` holds a int"),
    "no text of a block": ("anthropic", [TEXT, delta(type="text_delta"), BLOCK_END], "`text` holds a NoneType"),
    "an item": (
        "openai-responses",
        [*HELLO["openai-responses"], {"type": "response.output_item.added", "output_index": 1, "item": "x"}],
        "`item` holds a str",
    ),
    "an item's text": ("openai-responses", [{**HELLO["openai-responses"][0], "delta": 5}], "`delta` holds a int"),
    "parts": ("gemini", [{"candidates": [{"content": {"parts": "x"}}]}], "`parts` holds a str"),
    "a candidate": ("gemini", [{"candidates": ["x"]}], "`candidates` holds a str"),
}


@pytest.mark.parametrize("form", WRONG_PIECES)
def test_a_piece_whose_value_is_something_else_refuses_the_reply(form: str) -> None:
    name, pieces, begins = WRONG_PIECES[form]
    found = reasons(read(name, [*pieces, *STOP[name]]))
    assert found == [f"{begins}, and its API has something else there."]


def test_a_call_whose_block_never_ends_does_not_run() -> None:
    begun = block(0, use("a", "purge"), '{"table": "t1"}')[:2]
    assert reasons(read("anthropic", [*begun, *STOP["anthropic"]])) == [
        "The block 0 of the stream has not ended before its message."
    ]
    found = read("anthropic", [TEXT, delta(type="text_delta", text="Hello."), *STOP["anthropic"]])
    assert (found.text, [problem.repaired for problem in found.problems]) == ("Hello.", [True])


def test_a_delta_of_a_new_kind_is_reported() -> None:
    pieces = [TEXT, delta(type="text_delta", text="Hello."), delta(type="tone_delta", tone="warm"), BLOCK_END]
    found = read("anthropic", [*pieces, *STOP["anthropic"]])
    assert (found.text, [problem.message for problem in found.problems]) == (
        "Hello.",
        ["The stream adds 'tone_delta' to the block 0, which was not read."],
    )


def test_what_a_message_holds_when_it_begins_is_read() -> None:
    begun = {"type": "message_start", "message": {"content": "Hello.", "stop_reason": "max_tokens"}}
    found = read("anthropic", [begun, {"type": "message_stop"}])
    assert (found.text, found.ended, found.is_refused) == ("Hello.", "length", True)


@pytest.mark.parametrize("error", [{"error": {"message": "Overloaded"}}, {"message": "Overloaded"}])
def test_an_error_event_ends_the_reply(error: Any) -> None:
    found = read("anthropic", [*block(0, use("a", "now")), {"type": "error", **error}])
    assert (found.ended, reasons(found)) == ("failed", ["The provider stopped the reply with an error: Overloaded."])


@pytest.mark.parametrize("kind", ["function_call", "reasoning"])
def test_a_text_for_an_item_of_another_type_refuses_the_reply(kind: str) -> None:
    item = {"type": kind, "id": "i", "name": "now", "arguments": "{}", "call_id": "c", "summary": []}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    found = reasons(read("openai-responses", [added, *HELLO["openai-responses"], *STOP["openai-responses"]]))
    assert found == [f"The stream adds a part of the type 'output_text' to an output item of the type {kind!r}."]


def test_a_text_that_comes_at_the_end_of_its_part_alone_is_read() -> None:
    part = {"type": "output_text", "text": "Hello."}
    piece = {"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part}
    found = read("openai-responses", [piece, *STOP["openai-responses"]])
    assert (found.text, found.problems) == ("Hello.", ())
    other = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hi."}
    found = read("openai-responses", [*HELLO["openai-responses"], other, *STOP["openai-responses"]])
    assert (found.text, [problem.message for problem in found.problems]) == (
        "Hello.",
        ["The stream gives a text twice, and not the same. The pieces were read."],
    )


def test_a_response_in_a_state_that_is_not_known_has_failed() -> None:
    found = parse("openai-responses", {**said({"type": "output_text", "text": "x"}), "status": "expired"})
    assert (found.ended, reasons(found)) == ("failed", ["The provider stopped the reply with the status 'expired'."])


def test_the_tool_of_these_tests_would_run_with_its_defaults() -> None:
    assert called(parse("gemini", content({"functionCall": {"name": purge.__name__}}))) == [("purge", {})]
