"""Properties of every native protocol: nothing raises, calls come back, pieces make the whole, text is never a call."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processor import milliseconds
from toolwire import ConfigurationError, ToolCall, ToolSpec
from toolwire.protocols import get, recognise
from toolwire.types import Problem
from toolwire.vocabulary.values import canonical

NATIVE = ["openai", "openai-responses", "anthropic", "gemini"]


def note(text: str, rows: list[dict[str, Any]] | None = None, größe: int = 0) -> None:
    """Notes something."""


def free(**more: Any) -> None:
    """Takes anything."""


TOOLS = [ToolSpec.from_function(note, name="book.note"), ToolSpec.from_function(free)]

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
numbers = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
keys = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60)
calls = st.lists(
    st.builds(
        lambda name, arguments, call_id: ToolCall(name, arguments, id=call_id),
        st.sampled_from(["book.note", "unknown/tool", "free"]),
        st.dictionaries(keys, json_values, max_size=4),
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda call: call.id,
)


def said(found: list[ToolCall] | tuple[ToolCall, ...]) -> list[tuple[str, str, str]]:
    return [(call.name, canonical(dict(call.arguments)), call.id) for call in found]


@pytest.mark.parametrize("name", NATIVE)
@settings(max_examples=40)
@given(calls)
def test_rendered_calls_come_back_the_same(name: str, made: list[ToolCall]) -> None:
    protocol = get(name)
    body = protocol.render(made)
    for form in (body, json.dumps(body), json.dumps(body, ensure_ascii=False).encode()):
        found = protocol.parse(form)
        assert found.problems == ()
        assert said(found.calls) == said(made)


@settings(max_examples=40)
@given(calls)
def test_one_call_is_the_same_in_every_protocol(made: list[ToolCall]) -> None:
    found = [said(get(name).parse(get(name).render(made)).calls) for name in NATIVE]
    assert found[1:] == found[:-1]


@given(st.dictionaries(keys, json_values, max_size=4), st.booleans(), st.sampled_from([None, 1]))
def test_strict_json_reads_as_the_standard_library_reads_it(
    value: dict[str, Any], escaped: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    body: Any = get("openai").render([ToolCall("other", {}, id="a")])
    _put("openai", body, text)
    (found,) = get("openai").parse(body).calls
    assert (canonical(dict(found.arguments)), found.raw_text) == (canonical(json.loads(text)), text)


@pytest.mark.parametrize("name", NATIVE)
def test_arguments_reach_the_tool_under_its_own_names(name: str) -> None:
    protocol = get(name)
    made = [ToolCall("book.note", {"text": "ü", "größe": 3}, id="a"), ToolCall("free", {"a-b": 1, "x.y": None}, id="b")]
    assert said(protocol.parse(protocol.render(made), TOOLS).calls) == said(made)


@pytest.mark.parametrize("name", NATIVE)
def test_its_own_replies_are_recognised(name: str) -> None:
    body = get(name).render([ToolCall("free", {}, id="a")])
    assert recognise(body) == name
    assert recognise(json.dumps(body)) == name


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("reply", ["Hello.", "", "{not json", "[1] As the source says", '{"answer": 5}', "7", b"bytes"])
def test_text_is_a_models_last_word(name: str, reply: str | bytes) -> None:
    found = get(name).parse(reply, TOOLS)
    assert (found.calls, found.text) == ((), reply if isinstance(reply, str) else reply.decode())
    assert not found.is_refused


@pytest.mark.parametrize("name", NATIVE)
@settings(max_examples=25)
@given(quoted=calls, before=texts)
def test_a_call_that_is_only_quoted_is_not_taken(name: str, quoted: list[ToolCall], before: str) -> None:
    protocol = get(name)
    for other in NATIVE:
        inside = json.dumps(get(other).render(quoted))
        for text in (f"He said {inside}", f"```json\n{inside}\n```", f"{before}x\n{inside}\n", json.dumps(inside)):
            assert protocol.parse(text, TOOLS).calls == ()


QUOTING: dict[str, Callable[[str], Any]] = {
    "openai": lambda text: {"role": "assistant", "content": text},
    "openai-responses": lambda text: [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
    "anthropic": lambda text: {"role": "assistant", "content": [{"type": "text", "text": text}]},
    "gemini": lambda text: {"role": "model", "parts": [{"text": text}]},
}


@pytest.mark.parametrize("name", NATIVE)
def test_a_call_in_a_replys_text_stays_text(name: str) -> None:
    for other in NATIVE:
        text = json.dumps(get(other).render([ToolCall("free", {}, id="a")]))
        found = get(name).parse(QUOTING[name](text), TOOLS)
        # A list of items is nothing but a call; a message has other fields beside it.
        assert (found.calls, found.text, found.is_refused) == ((), text, other == "openai-responses")


RESULTS: dict[str, Any] = {
    "openai": {"role": "tool", "tool_call_id": "a", "content": "x"},
    "openai-responses": [{"type": "function_call_output", "call_id": "a", "output": "x"}],
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
    "gemini": {"role": "user", "parts": [{"function_response": {"name": "free", "response": {}}}]},
}


@pytest.mark.threat(24)
@pytest.mark.parametrize("name", NATIVE)
def test_a_result_is_never_taken_for_a_call(name: str) -> None:
    assert get(name).parse(json.dumps(RESULTS[name]), TOOLS).calls == ()
    with contextlib.suppress(ConfigurationError):
        assert get(name).parse(RESULTS[name], TOOLS).calls == ()


FIELDS = [
    "choices",
    "message",
    "role",
    "content",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "type",
    "output",
    "call_id",
    "input",
    "candidates",
    "parts",
    "functionCall",
    "args",
    "delta",
    "index",
    "item",
    "finish_reason",
    "stop_reason",
    "text",
    "status",
    "content_block",
    "output_index",
    "partial_json",
]

anything = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=8) | st.binary(max_size=4) | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner
            | st.sampled_from(
                ["assistant", "model", "function_call", "message", "tool_use", "text", "function", "free"]
            )
            | st.sampled_from(["content_block_start", "content_block_delta", "response.output_item.added", "length"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


JSON_TEXTS = anything.map(lambda value: json.dumps(value, default=str))


@pytest.mark.parametrize("name", NATIVE)
@given(reply=JSON_TEXTS | st.binary() | st.text())
def test_no_text_makes_a_protocol_raise(name: str, reply: Any) -> None:
    protocol = get(name)
    found = protocol.parse(reply, TOOLS)
    assert not (found.calls and found.is_refused)
    protocol.refuse(found)
    protocol.recognises(reply)
    stream = protocol.stream(TOOLS)
    stream.feed(reply)
    with contextlib.suppress(ConfigurationError):
        assert not stream.reply().calls


@pytest.mark.parametrize("name", NATIVE)
@given(reply=anything)
def test_an_object_makes_a_protocol_raise_nothing_but_the_hosts_mistake(name: str, reply: Any) -> None:
    protocol = get(name)
    assert protocol.recognises(reply) in (True, False)
    with contextlib.suppress(ConfigurationError):
        found = protocol.parse(reply, TOOLS)
        assert not (found.calls and found.is_refused)
        protocol.refuse(found)
    stream = protocol.stream(TOOLS)
    with contextlib.suppress(ConfigurationError):
        stream.feed(reply)
        assert not stream.reply().calls or stream.is_complete


def nested(depth: int, *, kind: type = list) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind is list else {"k": value}
    return value


@pytest.mark.threat(45)
@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize(
    "bad",
    [
        nested(100),
        nested(5_000, kind=dict),
        float("nan"),
        float("inf"),
        "\ud800",
        10**5_000,
        {"k" * 300: 1},
        {1: 2},
        b"bytes",
        object(),
        "x" * 300_000,
    ],
    ids=["deep", "very deep", "nan", "inf", "half", "digits", "key", "int key", "bytes", "object", "long"],
)
def test_arguments_past_a_limit_are_refused_and_answered(name: str, bad: Any) -> None:
    protocol = get(name)
    body: Any = protocol.render([ToolCall("free", {}, id="a")])
    _put(name, body, {"a": bad})
    found = protocol.parse(body, TOOLS)
    assert found.calls == ()
    assert [call.id for call in found.refused_calls] == ["a"]
    assert "'a'" in str(protocol.refuse(found)) or name == "gemini"


def _put(name: str, body: Any, arguments: Any) -> None:
    """Puts arguments into a rendered reply; some servers of OpenAI's API give them as an object as well."""
    if name == "openai":
        body["tool_calls"][0]["function"]["arguments"] = arguments
    elif name == "openai-responses":
        body[0]["arguments"] = arguments
    elif name == "anthropic":
        body["content"][0]["input"] = arguments
    else:
        body["parts"][0]["function_call"]["args"] = arguments


@pytest.mark.parametrize("name", NATIVE)
def test_too_many_calls_are_refused_unread(name: str) -> None:
    protocol = get(name)
    found = protocol.parse(protocol.render([ToolCall("free", {}, id=f"c{n}") for n in range(65)]), TOOLS)
    assert found.problems == (
        Problem(message="The reply makes more than 64 calls. Make fewer at a time.", repaired=False),
    )
    assert (len(found.calls), len(found.refused_calls)) == (0, 65)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("reply", ['{"role": "assistant", "tool_calls": [{', "[{"])
def test_a_value_that_is_not_a_reply_is_refused_for_the_model(name: str, reply: Any) -> None:
    protocol = get(name)
    found = protocol.parse(reply, TOOLS)
    assert found.is_refused
    (message,) = protocol.refuse(found)
    assert message["role"] == "user"  # type: ignore[index]
    assert "Your reply was not run." in str(message)


CUT: dict[str, Callable[[Any], Any]] = {
    "openai": lambda body: {"choices": [{"message": body, "finish_reason": "length"}]},
    "openai-responses": lambda body: {
        "output": body,
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    },
    "anthropic": lambda body: {**body, "type": "message", "stop_reason": "max_tokens"},
    "gemini": lambda body: {"candidates": [{"content": body, "finishReason": "MAX_TOKENS"}]},
}


@pytest.mark.parametrize("name", NATIVE)
def test_a_reply_cut_at_the_token_limit_runs_nothing(name: str) -> None:
    protocol = get(name)
    found = protocol.parse(CUT[name](protocol.render([ToolCall("free", {}, id="a")])), TOOLS)
    assert found.calls == ()
    assert found.problems == (
        Problem(
            message="The reply broke off at the token limit, so that its calls may not be whole. Make it shorter.",
            repaired=False,
        ),
    )


@pytest.mark.parametrize("name", NATIVE)
def test_there_is_no_grammar(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        get(name).grammar(TOOLS)
    assert str(caught.value) == (
        f"the protocol {name!r} has no grammar: its provider reads the calls itself; take 'json', 'xml' or 'attp'"
    )


@pytest.mark.parametrize("name", NATIVE)
def test_64_kib_of_the_worst_arguments_are_read_in_100_ms(name: str) -> None:
    protocol = get(name)
    worst = ['{"a": ' + "[" * 65_000, '{"a": "' + '\\"' * 32_000, "{" * 65_000, '{"a":"' + "\\" * 65_000, '"' * 65_536]
    for text in worst:
        body: Any = protocol.render([ToolCall("free", {}, id="a")])
        _put(name, body, text if name.startswith("openai") else {"a": text})
        assert milliseconds(lambda body=body: protocol.parse(body, TOOLS), enough=100) <= 100
