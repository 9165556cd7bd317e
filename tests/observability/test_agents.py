"""A run of an agent and its requests are spans by the conventions: tokens, nesting, failures, and nothing said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.observability.test_calls import CANARY, Broken, BrokenProcessor
from tests.observability.test_turns import add, inside, reply, turned
from tests.observability.world import Node, Telescope
from toolwire import Session
from toolwire.observability.tracing import SpanTracer
from toolwire.runtime.tracer import Tracer

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "lead", "gen_ai.conversation.id": "c-17"}
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.provider.name": "openai",
    "gen_ai.conversation.id": "c-17",
}


def tokens(read: int, written: int) -> dict[str, Any]:
    return {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": written}


def tracer_of(telescope: Telescope) -> Tracer:
    return SpanTracer(**telescope.providers)


def test_the_requests_and_turns_of_an_agent_are_inside_its_span() -> None:
    telescope = Telescope()
    tracer, session = tracer_of(telescope), Session([add], protocol="openai")
    session.enable_tracing(**telescope.providers)

    async def run() -> None:
        agent = tracer.agent("lead", conversation="c-17")
        tracer.chat("m", provider="openai", conversation="c-17").end(100, 10)
        await session.turn(reply(("call_x", "add", {"a": 1, "b": 2})))
        child = tracer.agent("payer", conversation="")
        tracer.chat("", provider="", conversation="").end(7, 3)
        child.end("turns", 7, 3)
        agent.end("answered", 107, 13)

    asyncio.run(run())
    own = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "payer", "toolwire.agent.stop": "turns"}
    unnamed = Node("chat", {"gen_ai.operation.name": "chat", **tokens(7, 3)})
    expected = [
        Node("chat m", {**CHAT, **tokens(100, 10)}),
        Node("run_turn", turned(1), inside=[inside("add", 1, "Adds.", "call_x")]),
        Node("invoke_agent payer", {**own, **tokens(7, 3)}, inside=[unnamed]),
    ]
    ended = {**AGENT, "toolwire.agent.stop": "answered", **tokens(107, 13)}
    assert telescope.tree() == [Node("invoke_agent lead", ended, inside=expected)]


def test_what_failed_says_its_error_and_none_of_its_words() -> None:
    telescope = Telescope()
    tracer = tracer_of(telescope)
    agent = tracer.agent("lead", conversation="c-17")
    tracer.chat("m", provider="openai", conversation="c-17").fail(OSError(CANARY))
    agent.fail(ValueError(CANARY))
    request = Node("chat m", {**CHAT, "error.type": "OSError"}, is_error=True)
    assert telescope.tree() == [
        Node("invoke_agent lead", {**AGENT, "error.type": "ValueError"}, is_error=True, inside=[request])
    ]
    assert CANARY not in telescope.text()


def test_every_name_can_be_encoded() -> None:
    telescope = Telescope()
    tracer = tracer_of(telescope)
    tracer.agent("\ud83d", conversation="\udc9b").end("answered", 0, 0)
    tracer.chat("\ud83d", provider="\ud83d", conversation="\ud83d").end(0, 0)
    assert [span.name for span in telescope.spans()] == ["invoke_agent \ufffd", "chat \ufffd"]
    telescope.text().encode("utf-8")
    assert "\\ud83d" not in telescope.text()


def test_a_broken_processor_fails_no_run(caplog: pytest.LogCaptureFixture) -> None:
    telescope = Telescope()
    telescope.tracer_provider.add_span_processor(BrokenProcessor(Broken()))
    tracer = tracer_of(telescope)
    tracer.chat("m", provider="openai", conversation="").end(1, 1)
    tracer.agent("lead", conversation="").fail(ValueError())
    assert {record.name for record in caplog.records} == {"toolwire.tracing"}
