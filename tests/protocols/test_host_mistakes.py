"""A host's mistake is raised at the developer: it is never told to a model, and never looks like an answer."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, TextBlock
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion_message import FunctionCall

from toolwire import ConfigurationError, Session
from toolwire.protocols import get, names

TEXT_FORMATS = ["attp", "xml", "json"]
NATIVE = ["openai", "openai-responses", "anthropic", "gemini"]
COMPLETION = ChatCompletion(id="a", choices=[], created=0, model="m", object="chat.completion")
OPENAI = ChatCompletionMessage(role="assistant", content="It is 3.")
ANTHROPIC = Message.model_construct(
    id="a", type="message", role="assistant", content=[TextBlock.model_construct(type="text", text="It is 3.")]
)


def search(query: str) -> str:
    """Finds pages."""
    return query


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("reply", [OPENAI, ANTHROPIC, {"role": "assistant", "content": "x"}, ["x"], 5])
def test_an_object_for_a_text_format_is_raised_in_parse_and_in_a_stream(name: str, reply: Any) -> None:
    kind = type(reply).__name__
    for read in (get(name).parse, get(name).stream().feed):
        with pytest.raises(ConfigurationError) as caught:
            read(reply)
        assert str(caught.value) == (
            f"the protocol '{name}' reads the text that the model wrote, and was given a {kind}: give its text, "
            "such as response.choices[0].message.content, or take the protocol of its provider"
        )


GIVEN_INSTEAD: list[tuple[str, Any, str]] = [
    (
        "openai",
        {"id": "a", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}]},
        "reads a chat completion or assistant message, and was given a dict with the keys id, type, role, content",
    ),
    (
        "openai",
        {"id": "a", "choices": []},
        "reads a chat completion or assistant message, and was given a dict with the keys id, choices (choices empty)",
    ),
    (
        "gemini",
        {"role": "user"},
        "reads a response with candidates or content with parts, and was given a dict with the keys role",
    ),
]


@pytest.mark.parametrize(("name", "reply", "message"), GIVEN_INSTEAD)
def test_another_providers_object_is_raised_with_its_keys(name: str, reply: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        get(name).parse(reply)
    advice = "give what its provider answered, or take the protocol of the provider that did"
    assert str(caught.value) == f"the protocol '{name}' {message}: {advice}"


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("reply", [5, {"a": 1}, [1], object()])
def test_a_value_that_is_not_a_reply_raises(name: str, reply: Any) -> None:
    with pytest.raises(ConfigurationError):
        get(name).parse(reply)


async def test_a_session_raises_the_hosts_mistake_and_runs_nothing() -> None:
    for name, reply in (("openai", COMPLETION), ("openai", ANTHROPIC), ("json", OPENAI), ("attp", OPENAI)):
        with pytest.raises(ConfigurationError):
            await Session([search], protocol=name).turn(reply)
    turn = await Session([search], protocol="openai").turn(OPENAI)
    assert (turn.is_final, turn.answer, turn.messages) == (True, "It is 3.", [])


@pytest.mark.parametrize("name", names())
async def test_a_message_without_content_is_an_empty_reply(name: str) -> None:
    turn, empty = [await Session([search], protocol=name).turn(reply) for reply in (None, "")]
    assert (turn.reply, turn.messages) == (empty.reply, empty.messages)
    assert turn.is_final is (name in NATIVE)
    assert turn.answer == ("" if name in NATIVE else None)
    stream = get(name).stream()
    assert stream.feed(None) == []
    if name not in NATIVE:
        assert stream.reply() == turn.reply
        return
    with pytest.raises(ConfigurationError) as caught:
        stream.reply()
    assert str(caught.value) == (
        f"the stream of the protocol '{name}' was fed with nothing: give it each chunk or event of its provider's SDK, "
        "or take the protocol of the provider that sent them"
    )


async def test_openais_older_message_is_a_call_and_is_answered_in_its_form() -> None:
    call = FunctionCall(name="search", arguments='{"query": "x"}')
    message = ChatCompletionMessage(role="assistant", content=None, function_call=call)
    turn = await Session([search], protocol="openai").turn(message)
    assert [result.data for result in turn.results] == ["x"]
    assert turn.messages == [{"role": "function", "name": "search", "content": "x"}]
    assert (turn.is_final, turn.answer) == (False, None)
    stream = get("openai").stream([search])
    for piece in ({"name": "search", "arguments": ""}, {"arguments": '{"query":'}, {"arguments": ' "x"}'}):
        stream.feed({"choices": [{"index": 0, "delta": {"function_call": piece}}]})
    stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]})
    assert stream.reply() == get("openai").parse(message, [search])
