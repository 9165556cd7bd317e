"""`Reply.ended`: why a reply ended, and what a turn makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import Session

RAN: list[str] = []


def now() -> str:
    """Tells the time."""
    RAN.append("now")
    return "noon"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def chat(reason: str, *, text: str | None = None, calls: bool = False, **more: Any) -> dict[str, Any]:
    call = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    message = {"role": "assistant", "content": text, **({"tool_calls": [call]} if calls else {})}
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}], **more}


def message(reason: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": reason}


def response(status: str, *output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": status, "output": list(output), **more}


def candidate(reason: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}]}


TEXT = {"type": "text", "text": "Hello."}
USE = {"type": "tool_use", "id": "a", "name": "now", "input": {}}
SERVER = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
ITEM = {"type": "function_call", "id": "fc", "call_id": "a", "name": "now", "arguments": "{}"}
FULL = {"incomplete_details": {"reason": "max_output_tokens"}}

READ: list[tuple[str, Any, str]] = [
    ("openai", chat("stop", text="Hello."), "stop"),
    ("openai", chat("tool_calls", calls=True), "calls"),
    ("openai", chat("stop", calls=True), "calls"),
    ("anthropic", message("end_turn", TEXT), "stop"),
    ("anthropic", message("tool_use", USE), "calls"),
    ("anthropic", message("stop_sequence", TEXT), "stop"),
    ("openai-responses", response("completed", ITEM), "calls"),
    ("gemini", candidate("STOP", {"text": "Hello."}), "stop"),
    ("xml", "Hello.", "stop"),
    ("json", '<tool_call>[{"name": "now", "arguments": {}}]</tool_call>', "calls"),
]


@pytest.mark.parametrize(("name", "reply", "ended"), READ)
async def test_a_reply_that_the_model_ended_is_read(name: str, reply: Any, ended: str) -> None:
    turn = await Session([now], protocol=name).turn(reply)
    assert (turn.reply.ended, turn.is_final, RAN) == (ended, ended == "stop", ["now"] if ended == "calls" else [])


LENGTH: list[tuple[str, Any]] = [
    ("openai", chat("length", text="Hel")),
    ("openai", chat("length", calls=True)),
    ("openai", chat("model_length", text="Hel")),
    ("anthropic", message("max_tokens", THINKING)),
    ("anthropic", message("model_context_window_exceeded", TEXT)),
    ("openai-responses", response("incomplete", {"type": "reasoning", "id": "r", "summary": []}, **FULL)),
    ("openai-responses", response("incomplete", ITEM, **FULL)),
    ("gemini", candidate("MAX_TOKENS", {"text": "Hel"})),
]


@pytest.mark.parametrize(("name", "reply"), LENGTH)
async def test_a_reply_cut_at_a_limit_runs_nothing_and_the_model_is_told(name: str, reply: Any) -> None:
    turn = await Session([now], protocol=name).turn(reply)
    assert (turn.reply.ended, turn.is_final, turn.answer, RAN) == ("length", False, None, [])
    assert "The reply broke off at the " in str(turn.messages)
    assert "Make it shorter." in str(turn.messages)


async def test_a_reply_that_announces_calls_and_has_none_is_refused() -> None:
    for name, reply in (("openai", chat("tool_calls", text="I look.")), ("anthropic", message("tool_use", TEXT))):
        turn = await Session([now], protocol=name).turn(reply)
        assert (turn.is_final, RAN) == (False, [])
        assert "The provider says that the reply makes calls, and it has none." in str(turn.messages)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
async def test_a_response_that_is_still_made_is_no_reply(status: str) -> None:
    turn = await Session([now], protocol="openai-responses").turn(response(status, ITEM))
    assert (turn.is_final, RAN) == (False, [])
    assert [problem.message for problem in turn.reply.problems] == [
        f"The response has not ended: it is {status!r}. Retrieve it when it is completed."
    ]


PAUSED: list[tuple[str, Any]] = [
    ("anthropic", message("pause_turn", TEXT)),
    ("anthropic", message("end_turn", SERVER)),
    ("openai-responses", response("completed", {"type": "web_search_call", "id": "w"})),
    ("openai-responses", [{"type": "mcp_call", "id": "w"}]),
    ("openai-responses", [{"type": "custom_tool_call", "id": "w"}, {"type": "reasoning", "id": "r", "summary": []}]),
    ("gemini", candidate("STOP", {"executableCode": {"code": "1"}})),
    ("gemini", candidate("STOP", {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}})),
]


@pytest.mark.parametrize(("name", "reply"), PAUSED)
async def test_a_reply_of_the_providers_own_tools_goes_on_without_a_message(name: str, reply: Any) -> None:
    turn = await Session([now], protocol=name).turn(reply)
    assert (turn.reply.ended, turn.is_final, turn.messages, turn.answer) == ("paused", False, [], None)
    assert turn.reply.message
    assert repr(turn) == "<Turn paused: append reply.message and ask again>"


def test_a_result_of_the_hosts_tool_is_no_reply() -> None:
    session = Session([now], protocol="openai-responses")
    assert not session.protocol.recognises([{"type": "function_call_output", "call_id": "a", "output": "x"}])


STOPPED: list[tuple[str, Any, str, str]] = [
    ("openai", chat("content_filter", text=""), "filter", "at a content filter."),
    ("openai", chat("content_filter", calls=True), "filter", "at a content filter."),
    ("openai", chat("error", error={"message": "no room"}), "failed", "with an error: no room."),
    ("openai", chat("network_error", calls=True), "failed", "with the reason 'network_error'."),
    ("openai", {"choices": None, "error": {"message": "no room"}}, "failed", "with an error: no room."),
    ("openai", {"choices": [{"message": None, "finish_reason": "SAFETY"}]}, "filter", "at a content filter."),
    ("anthropic", message("guardrail_intervened", USE), "filter", "at a content filter."),
    ("anthropic", {"type": "error", "error": {"message": "busy"}}, "failed", "with an error: busy."),
    ("gemini", {"error": {"code": 503, "message": "busy"}}, "failed", "with an error: busy."),
    ("anthropic", message("refusal", TEXT), "filter", "at a content filter."),
    ("openai-responses", response("failed", error={"message": "boom"}), "failed", "with the status 'failed': boom."),
    ("openai-responses", response("cancelled", ITEM), "failed", "with the status 'cancelled'."),
    (
        "openai-responses",
        response("incomplete", ITEM, incomplete_details={"reason": "content_filter"}),
        "filter",
        "at a content filter.",
    ),
    ("gemini", candidate("SAFETY", {"functionCall": {"name": "now"}}), "filter", "at a content filter (SAFETY)."),
    ("gemini", candidate("OTHER"), "failed", "with the reason OTHER."),
    ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "filter", "before it began (SAFETY)."),
]


@pytest.mark.parametrize(("name", "reply", "ended", "said"), STOPPED)
async def test_a_reply_that_the_provider_stopped_is_final_without_an_answer(
    name: str, reply: Any, ended: str, said: str
) -> None:
    turn = await Session([now], protocol=name).turn(reply)
    assert (turn.reply.ended, turn.is_final, turn.answer, turn.messages, RAN) == (ended, True, None, [], [])
    assert [problem.message for problem in turn.reply.problems] == [f"The provider stopped the reply {said}"]
    # No result would answer its calls, so the message has none.
    assert "now" not in str(turn.reply.message)


ERRORS: list[tuple[str, list[Any]]] = [
    ("openai", [{"error": {"message": "boom"}}]),
    ("anthropic", [{"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}]),
    ("openai-responses", [{"type": "error", "code": "server_error", "message": "boom"}]),
    ("gemini", [{"error": {"code": 500, "message": "boom"}}]),
]


@pytest.mark.parametrize(("name", "pieces"), ERRORS)
async def test_an_error_in_a_stream_ends_it(name: str, pieces: list[Any]) -> None:
    session = Session([now], protocol=name)
    stream = session.stream()
    for piece in pieces:
        stream.feed(piece)
    turn = await session.turn(stream.reply())
    assert (turn.reply.ended, turn.is_final, turn.answer) == ("failed", True, None)
    assert "boom" in turn.reply.problems[0].message


async def test_an_ending_is_kept_with_a_suspended_turn(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    session = Session([now], protocol="openai", permissions={"now": "confirm"}, store=store)
    waiting = await session.turn(chat("tool_calls", calls=True))
    assert waiting.suspended is not None
    decided = [{"request_id": waiting.suspended.pending[0].id, "verdict": "approve"}]
    done = await Session([now], protocol="openai", permissions={"now": "confirm"}, store=store).resume(
        waiting.suspended.run_id, decided
    )
    assert (done.reply.ended, done.reply.is_complete, RAN) == ("calls", True, ["now"])
