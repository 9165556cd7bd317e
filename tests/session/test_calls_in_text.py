"""A native reply whose text is a call: it never passes for an answer, and runs only if the host asks for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ConfigurationError, Session

RAN: list[str] = []


def weather(city: str, days: int = 1) -> str:
    """Looks up the weather."""
    RAN.append(city)
    return f"clear in {city}"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SAYING: dict[str, Callable[[str], Any]] = {
    "openai": lambda text: {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]},
    "openai-responses": lambda text: {
        "object": "response",
        "output": [
            REASONING,
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
        ],
    },
    "anthropic": lambda text: {
        "type": "message",
        "role": "assistant",
        "stop_reason": "end_turn",
        "content": [THINKING, {"type": "text", "text": text}],
    },
    "gemini": lambda text: {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": text}]}},
        ]
    },
}
FORMS = [
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    'to=functions.weather {"city": "Oslo"}',
    '{"name": "weather", "parameters": {"city": "Oslo"}}',
    '```json\n{"name": "weather", "parameters": {"city": "Oslo"}}\n```',
    '<think>Hm.</think>\n{"name": "weather", "arguments": {"city": "Oslo"}}',
    "<tool_call><name>weather</name><params><city>Oslo</city></params></tool_call>",
    '<|tool_call_start|>[weather(city="Oslo")]<|tool_call_end|>',
]
CALL_FORMS = {
    "openai": "an entry of `tool_calls`",
    "openai-responses": "an output item of the type `function_call`",
    "anthropic": "a content block of the type `tool_use`",
    "gemini": "a part with a `functionCall`",
}


@pytest.mark.parametrize("name", SAYING)
@pytest.mark.parametrize("text", FORMS)
async def test_a_text_that_is_nothing_but_a_call_is_refused_with_the_right_form(name: str, text: str) -> None:
    session = Session([weather], protocol=name)
    for reply in (SAYING[name](text), text):
        turn = await session.turn(reply)
        said = f"The text is a call of 'weather', and a text is never run. Make the call as {CALL_FORMS[name]}, "
        assert [problem.message for problem in turn.reply.problems] == [f"{said}not in the text."]
        assert (turn.is_final, turn.answer, RAN) == (False, None, [])
        assert said in str(turn.messages)


@pytest.mark.parametrize("name", SAYING)
@pytest.mark.parametrize("text", FORMS)
async def test_with_read_text_calls_it_runs_and_is_a_native_call_of_the_message(name: str, text: str) -> None:
    session = Session([weather], protocol=name, read_text_calls=True)
    turn = await session.turn(SAYING[name](text))
    assert (RAN, turn.is_final, turn.reply.text, turn.reply.ended) == (["Oslo"], False, "", "calls")
    assert turn.reply.problems[0].message == "The call stands in the text of the reply; it was read."
    assert turn.reply.calls[0].id.startswith("made_0_")
    # The provider's history has the call, and none of the text. Thinking stays.
    again = session.protocol.parse(turn.reply.message, [weather])
    assert [(call.name, call.arguments) for call in again.calls] == [("weather", {"city": "Oslo"})]
    assert "Hm." in str(turn.reply.message) or name.startswith("openai")
    assert "tool_call>" not in str(turn.reply.message)
    assert "clear in Oslo" in str(turn.messages)


async def test_a_call_in_a_text_is_judged_like_any_other() -> None:
    session = Session([weather], protocol="openai", read_text_calls=True, permissions={"weather": "confirm"})
    turn = await session.turn(SAYING["openai"](FORMS[0]))
    assert (RAN, turn.results[0].failure and turn.results[0].failure.kind) == ([], "approval_required")


async def test_a_streamed_text_is_read_as_the_whole_one() -> None:
    session = Session([weather], protocol="openai", read_text_calls=True)
    stream = session.stream()
    for piece in FORMS[0]:
        stream.feed({"choices": [{"index": 0, "delta": {"content": piece}}]})
    stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert stream.reply() == session.protocol.parse(SAYING["openai"](FORMS[0]), [weather])
    await session.turn(stream.reply())
    assert RAN == ["Oslo"]


@pytest.mark.parametrize("reads", [False, True])
async def test_with_prose_around_it_the_turn_is_final_and_says_so(reads: bool) -> None:
    text = f"I look it up:\n{FORMS[0]}"
    turn = await Session([weather], protocol="openai", read_text_calls=reads).turn(SAYING["openai"](text))
    assert (turn.is_final, turn.answer, RAN) == (True, text, [])
    assert [(problem.message, problem.repaired) for problem in turn.reply.problems] == [
        ("The text holds what looks like a call of a tool, with other text around it. It was not run.", True)
    ]


DAMAGED = [
    FORMS[0].removesuffix(">"),
    '{"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}',
    '<function=weather>{"city": "Oslo"}</function',
]


@pytest.mark.parametrize("text", DAMAGED)
async def test_a_text_that_is_a_damaged_call_is_refused(text: str) -> None:
    turn = await Session([weather], protocol="openai").turn(SAYING["openai"](text))
    assert (turn.is_final, turn.reply.is_refused, RAN) == (False, True, [])


ANSWERS = [
    "It is clear.",
    'I would call weather(city="Oslo") for that.',
    'Write `{"name": "weather", "arguments": {"city": "Oslo"}}` for it.',
    '{"name": "Oslo", "arguments": {"count": 1}}',
    '{"name": "weather", "answer": "clear"}',
    '{"name": "weather", "arguments": {"city": "Oslo"}, "why": "an example"}',
]


@pytest.mark.parametrize("name", SAYING)
@pytest.mark.parametrize("text", ANSWERS)
async def test_an_answer_that_speaks_of_a_call_or_resembles_one_is_an_answer(name: str, text: str) -> None:
    turn = await Session([weather], protocol=name, read_text_calls=True).turn(SAYING[name](text))
    assert (turn.is_final, turn.answer, turn.reply.problems, RAN) == (True, text, (), [])


async def test_native_calls_beside_the_text_leave_it_a_text() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    reply = {"choices": [{"message": {"role": "assistant", "content": FORMS[0], "tool_calls": [call]}}]}
    turn = await Session([weather], protocol="openai", read_text_calls=True).turn(reply)
    assert (RAN, turn.reply.text) == (["Rome"], FORMS[0])


@pytest.mark.parametrize("name", ["attp", "xml", "json"])
def test_a_text_protocol_refuses_the_option(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Session([weather], protocol=name, read_text_calls=True)
    assert str(caught.value) == (
        f"read_text_calls=True: the protocol '{name}' reads calls in texts anyway: leave it out"
    )
