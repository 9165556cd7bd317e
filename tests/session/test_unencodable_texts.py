"""Texts that no encoding has, or that databases refuse: every format, the log and the store take them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from toolwire import (
    CallFailed,
    Decision,
    Reply,
    Session,
    Store,
    ToolCall,
    ToolRegistry,
    ToolResult,
    ToolSpec,
    protocols,
)
from toolwire.approvals import decisions_to_json, read_decisions, read_suspended, render_request
from toolwire.log import LogFilter
from toolwire.testing import Recorder, Replayer
from toolwire.vocabulary.texts.lone_surrogates import encodable

pytestmark = pytest.mark.threat(75)

PROTOCOLS = protocols.names()
HALF = "\ud83d"
MENDED = "\ufffd"
ODD = [
    "\ud83d",
    "\ude00",
    "\udc9b",
    "\udfff",
    "\x00",
    "\u2028",
    "\u2029",
    "\ufffe",
    "\uffff",
    "\U0001fffe",
    "\x1b",
    "\x9b",
]

odd_texts = st.text(st.sampled_from([*ODD, "a", "é", "😀", "<", "/", '"', "'", "\\", "\n"]), max_size=6)
odd_values = st.recursive(
    odd_texts | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(odd_texts, inner, max_size=2),
    max_leaves=4,
)


def sent(answer: Any) -> str:
    """The text that a provider receives. Raises for a text that UTF-8 cannot encode."""
    return json.dumps(answer, ensure_ascii=False).encode("utf-8").decode("utf-8")


def say_session(protocol: str, act: Any, **more: Any) -> Session:
    def say(text: str = "") -> Any:
        """Says it."""
        return act()

    return Session([say], protocol=protocol, **more)


def reply_of(protocol: str, **arguments: Any) -> Any:
    return protocols.get(protocol).render([ToolCall("say", arguments, id="c1")])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_result_with_a_lone_surrogate_is_told_with_a_replacement_character(protocol: str) -> None:
    turn = asyncio.run(say_session(protocol, lambda: f"a{HALF}b").turn(reply_of(protocol)))
    assert f"a{MENDED}b" in sent(turn.messages)
    assert turn.text.count(MENDED) == 1
    assert (turn.results[0].success, turn.results[0].data) == (True, f"a{HALF}b")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_control_of_whole_characters_is_told_as_it_is(protocol: str) -> None:
    turn = asyncio.run(say_session(protocol, lambda: "a😀b").turn(reply_of(protocol)))
    assert "a😀b" in sent(turn.messages)
    assert MENDED not in sent(turn.messages)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_are_rendered_and_tools_described_with_replacement_characters(protocol: str) -> None:
    written = protocols.get(protocol)
    reply = sent(written.render([ToolCall("say", {"text": HALF, "more": {HALF: [HALF]}}, id="c1")]))
    assert MENDED in reply
    tool = ToolSpec.from_jsonschema(
        name="say",
        description=f"Says {HALF}.",
        input_schema={"type": "object", "properties": {"text": {"type": "string", "description": f"The {HALF}."}}},
    )
    described = sent(written.describe([tool]))
    assert f"Says {MENDED}." in described
    assert f"The {MENDED}." in described
    if not written.is_native:
        sent(written.grammar([tool]))


@pytest.mark.parametrize("protocol", ["attp", "xml", "json"])
def test_a_program_with_a_lone_surrogate_is_rendered(protocol: str) -> None:
    reply = protocols.get(protocol).render([ToolCall("code_execution", {"code": f"print('{HALF}')\n"})])
    assert f"print('{MENDED}')" in sent(reply)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=60, deadline=None)
@given(value=odd_values, error=odd_texts, name=odd_texts, kind=st.sampled_from(["data", "raises", "failed", "blocks"]))
def test_no_text_of_a_result_makes_a_format_raise(protocol: str, value: Any, error: str, name: str, kind: str) -> None:
    written = protocols.get(protocol)
    result = odd_result(kind, value, error, name)
    for results in ([result], [result, result]):
        assert len(sent(written.format(results))) > 1
    assert "say" in sent(written.render([ToolCall("say", {"text": value}, id="c1")]))
    refused = written.parse(f"{error}{name}\n[tool_call]\nstatus = {json.dumps(error)}\n<tool_call>{error}</tool_call>")
    assert refused.calls == ()
    sent(written.refuse(refused))


def odd_result(kind: str, value: Any, error: str, name: str) -> ToolResult:
    call = ToolCall(name, {name: value}, id=name)
    block: Any = {"type": "image", "source": {"type": "url", "url": error}}
    return {
        "data": ToolResult(True, value, metadata={name: value}, call=call),
        "raises": ToolResult.failed("tool_error", error, hint=name, path=name, data={name: value}, call=call),
        "failed": ToolResult(False, value, error, call=call),
        "blocks": ToolResult(True, content=[{"type": "text", "text": error}, block], call=call),
    }[kind]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=40, deadline=None)
@given(description=odd_texts, detail=odd_texts, default=odd_texts)
def test_no_text_of_a_tool_makes_a_format_raise(protocol: str, description: str, detail: str, default: str) -> None:
    tool = ToolSpec.from_jsonschema(
        name="say",
        description=description,
        input_schema={
            "type": "object",
            "title": detail,
            "properties": {"text": {"type": "string", "description": detail, "default": default, "examples": [detail]}},
        },
    )
    written = protocols.get(protocol)
    assert "say" in sent(written.describe([tool]))
    if not written.is_native:
        assert "say" in sent(written.grammar([tool]))
    for shown in (tool.to_jsonschema(), tool.to_prompt(), tool.input_schema):
        assert "text" in sent(shown)
    for shown in (tool.docstring, tool.description):
        assert sent(shown) == sent(encodable(shown))


ACTS = st.sampled_from(["value", "raises", "fails", "blocks"])


def act_of(kind: str, value: Any, text: str) -> Any:
    def act() -> Any:
        if kind == "raises":
            raise ValueError(text)
        if kind == "fails":
            raise CallFailed(ToolResult.failed("tool_error", text, hint=text, path=text, data={text: value}))
        if kind == "blocks":
            return [{"type": "text", "text": text}]
        return value

    return act


def test_no_text_makes_a_turn_its_record_or_its_log_raise(url: str) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(protocol=st.sampled_from(PROTOCOLS), kind=ACTS, value=odd_values, text=odd_texts, asked=odd_texts)
    def check(protocol: str, kind: str, value: Any, text: str, asked: str) -> None:
        session = say_session(protocol, act_of(kind, value, text), store=store)
        turn = asyncio.run(session.turn(reply_of(protocol, text=asked)))
        sent(turn.messages)
        run_id = store.runs(limit=1)[0].run_id
        again = asyncio.run(session.resume(run_id))
        assert (again.messages, again.text) == (turn.messages, turn.text)
        assert store.log(LogFilter(run_id=run_id)) != []

    with Store.open(url) as store:
        check()
        assert store.verify().is_whole


def test_a_waiting_call_is_shown_carried_and_resumed(url: str) -> None:
    odd = "".join(ODD)
    with Store.open(url) as store:
        session = say_session("xml", lambda: odd, permissions={"say": "confirm"}, store=store)
        turn = asyncio.run(session.turn(Reply(calls=(ToolCall("say", {"text": odd}, id="c1"),), thought=odd)))
        assert turn.suspended is not None
        (request,) = turn.suspended.pending
        assert request.arguments == {"text": odd}
        sent(render_request(request))
        carried = read_suspended(turn.suspended.to_json().encode("utf-8"), turn.suspended.key)
        assert carried.pending[0].arguments == request.arguments
        decision = Decision(verdict="approve", request_id=request.id, reason=odd)
        decisions = decisions_to_json(turn.suspended, [decision]).encode("utf-8")
        done = asyncio.run(session.resume(turn.suspended.run_id, read_decisions(decisions).items))
        assert done.results[0].data == odd
        sent(done.messages)
        assert store.verify().is_whole


def test_a_recorded_call_is_replayed_with_its_own_text(tmp_path: Path) -> None:
    odd = "".join(ODD)

    def say(text: str) -> str:
        """Says it."""
        return text + odd

    with Recorder(tmp_path / "calls.json") as recorder:
        first = ToolRegistry(middleware=[recorder])
        first.register(say)
        given = first.invoke("say", {"text": odd})
    second = ToolRegistry(middleware=[Replayer(tmp_path / "calls.json")])
    second.register(say)
    assert second.invoke("say", {"text": odd}).data == given.data == odd + odd


def test_the_text_of_a_result_can_be_encoded_and_its_data_is_the_tools_own() -> None:
    result = ToolResult(True, f"a{HALF}")
    assert (result.text, result.data) == (f"a{MENDED}", f"a{HALF}")


def test_two_keys_that_become_equal_stay_apart() -> None:
    keys = ["\ud800", "\ud801", MENDED]
    assert encodable({key: place for place, key in enumerate(keys)}) == {MENDED * 2: 0, MENDED * 3: 1, MENDED: 2}
    whole = {"a": ["é", {"b": 1}]}
    assert encodable(whole) is whole
