"""Two calls with one id: each gets its own result, in every history. And calls in an alternative that is not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.providers import RULES
from toolwire import Session, tool
from toolwire.protocols import get

CALLS = [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"}), ("weather", {"city": "Bonn"})]
IDS = ["a", "a", "b"]


def weather(city: str) -> str:
    """Looks up the weather."""
    return f"clear in {city}"


def chat(ids: list[str]) -> dict[str, Any]:
    calls = [
        {"id": given, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for given, (name, arguments) in zip(ids, CALLS, strict=True)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def responses(ids: list[str]) -> dict[str, Any]:
    items = [
        {"type": "function_call", "id": f"fc_{at}", "call_id": given, "name": name, "arguments": json.dumps(arguments)}
        for at, (given, (name, arguments)) in enumerate(zip(ids, CALLS, strict=True))
    ]
    return {"object": "response", "status": "completed", "output": items}


def anthropic(ids: list[str]) -> dict[str, Any]:
    blocks = [
        {"type": "tool_use", "id": given, "name": name, "input": arguments}
        for given, (name, arguments) in zip(ids, CALLS, strict=True)
    ]
    return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use"}


def gemini(ids: list[str]) -> dict[str, Any]:
    parts = [
        {"functionCall": {"id": given, "name": name, "args": arguments}}
        for given, (name, arguments) in zip(ids, CALLS, strict=True)
    ]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


REPLIES = {"openai": chat, "openai-responses": responses, "anthropic": anthropic, "gemini": gemini}


def checked(name: str, message: Any, answers: list[Any]) -> None:
    """Passes the history to the rules of a strict server, which raise where the provider refuses it."""
    if name == "gemini":
        renamed = json.loads(
            json.dumps([message, *answers])
            .replace("function_call", "functionCall")
            .replace("function_response", "functionResponse")
        )
        RULES["enerateContent"]({"contents": renamed})
    elif name == "openai-responses":
        RULES["/responses"]({"input": [*message, *answers]})
    else:
        path = "/messages" if name == "anthropic" else "/chat/completions"
        RULES[path]({"messages": [message, *answers]})


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("ids", [IDS, ["a", "a", "a"], ["a", "b", "a"], ["", "", ""]], ids="".join)
async def test_each_call_has_its_own_id_and_result(name: str, ids: list[str]) -> None:
    session = Session([weather], protocol=name)
    turn = await session.turn(REPLIES[name](ids))
    assert [str(result.data) for result in turn.results] == ["clear in Oslo", "clear in Rome", "clear in Bonn"]
    found = [call.id for call in turn.reply.calls]
    assert len(set(found)) == 3
    assert found[0] == ids[0] or not ids[0]
    checked(name, turn.reply.message, turn.messages)


@pytest.mark.parametrize("name", REPLIES)
async def test_a_suspended_turn_keeps_the_ids_apart(name: str, tmp_path: Path) -> None:
    session = Session([tool(permission="confirm")(weather)], protocol=name, store=f"sqlite:///{tmp_path}/runs.db")
    turn = await session.turn(REPLIES[name](IDS))
    assert turn.suspended is not None
    decisions = [{"request_id": request.id, "verdict": "approve"} for request in turn.suspended.pending]
    done = await session.resume(turn.suspended.run_id, decisions)
    assert [str(result.data) for result in done.results] == ["clear in Oslo", "clear in Rome", "clear in Bonn"]
    checked(name, done.reply.message, done.messages)


def test_a_stream_gives_the_same_ids() -> None:
    deltas = [
        {"index": at, "id": given, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (given, (name, arguments)) in enumerate(zip(IDS, CALLS, strict=True))
    ]
    stream = get("openai").stream([weather])
    ended = []
    for delta in deltas:
        ended += stream.feed({"choices": [{"index": 0, "delta": {"tool_calls": [delta]}, "finish_reason": None}]})
    ended += stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    whole = get("openai").parse(chat(IDS), [weather])
    assert stream.reply().calls == whole.calls
    assert stream.reply().message == whole.message
    assert [event.call for event in ended if hasattr(event, "call")] == list(whole.calls)


ELSEWHERE = "The call stands in a further alternative of the reply, and only the first one is read. Ask for one alone."


def said(text: str) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def test_a_call_in_another_choice_is_not_lost_without_a_word() -> None:
    (calling,) = chat(IDS)["choices"]
    protocol = get("openai")
    reply = protocol.parse({"choices": [said("I look."), {**calling, "index": 1}]}, [weather])
    assert (reply.calls, [problem.message for problem in reply.problems]) == ((), [ELSEWHERE])
    assert not protocol.parse({"choices": [calling, said("Or so.")]}, [weather]).is_refused
    assert not protocol.parse({"choices": [said("One."), said("Two.")]}, [weather]).is_refused

    stream = protocol.stream([weather])
    stream.feed({"choices": [{"index": 0, "delta": {"content": "I look."}, "finish_reason": "stop"}]})
    stream.feed({"choices": [{"index": 1, "delta": {"tool_calls": calling["message"]["tool_calls"]}}]})
    assert [problem.message for problem in stream.reply().problems] == [ELSEWHERE]


def test_a_call_in_another_candidate_is_not_lost_without_a_word() -> None:
    (calling,) = gemini(IDS)["candidates"]
    answer = {"content": {"role": "model", "parts": [{"text": "I look."}]}, "finishReason": "STOP"}
    protocol = get("gemini")
    both = {"candidates": [answer, {**calling, "index": 1}]}
    stream = protocol.stream([weather])
    stream.feed(both)
    for reply in (protocol.parse(both, [weather]), stream.reply()):
        assert (reply.calls, [problem.message for problem in reply.problems]) == ((), [ELSEWHERE])
    assert not protocol.parse({"candidates": [calling, answer]}, [weather]).is_refused
