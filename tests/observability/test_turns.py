"""A session's turn is one span, with its calls inside: also one that waits for a person, and when it is resumed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.observability.test_calls import CANARY
from tests.observability.world import Node, Telescope, called
from toolwire import Caller, DecisionRefused, Session, Store, ToolCall, ToolRegistry
from toolwire.testing import MemoryStore


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def reply(*calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """The reply of an OpenAI model."""
    return {
        "role": "assistant",
        "tool_calls": [
            {"id": known, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for known, name, arguments in calls
        ],
    }


def turned(calls: int, outcome: str = "answered", protocol: str = "openai", **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "run_turn",
        "toolwire.run.id": "run1",
        "toolwire.protocol": protocol,
        "toolwire.turn.calls": calls,
        "toolwire.turn.outcome": outcome,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def inside(name: str, ordinal: int, description: str, given: str, **more: Any) -> Node:
    attributes = called(name, f"run1/{ordinal}", "run1", gen_ai__tool__description=description, **more)
    attributes["gen_ai.tool.call.id"] = given
    return Node(f"execute_tool {name}", attributes)


def traced(telescope: Telescope, *tools: Any, **options: Any) -> Session:
    session = Session(tools, **options)
    session.enable_tracing(**telescope.providers)
    return session


def test_a_turn_is_one_span_with_its_calls_inside() -> None:
    telescope = Telescope()
    session = traced(telescope, add, protocol="openai")
    calls = [("call_x", "add", {"a": 1, "b": 2}), ("call_y", "add", {"a": 3, "b": 4})]
    asyncio.run(session.turn(reply(*calls)))
    calls_seen = [inside("add", 1, "Adds.", "call_x"), inside("add", 2, "Adds.", "call_y")]
    assert telescope.tree() == [Node("run_turn", turned(2), inside=calls_seen)]


def test_a_turn_names_its_agent() -> None:
    telescope = Telescope()
    session = traced(telescope, add, protocol="openai", caller=Caller(agent="ada"))
    asyncio.run(session.turn(reply(("call_x", "add", {"a": 1, "b": 2}))))
    expected = inside("add", 1, "Adds.", "call_x", gen_ai__agent__name="ada")
    assert telescope.tree() == [Node("run_turn ada", turned(1, gen_ai__agent__name="ada"), inside=[expected])]


def test_a_program_of_a_turn_is_inside_of_it() -> None:
    telescope = Telescope()
    session = traced(telescope, add, protocol="attp")
    asyncio.run(session.turn(session.protocol.render([ToolCall("add", {"a": 1, "b": 2})])))
    (turn,) = telescope.tree()
    (program,) = turn.inside
    assert (turn.name, program.name) == ("run_turn", "execute_tool code_execution")
    assert [node.name for node in program.inside] == ["execute_tool add"]
    assert program.attributes["gen_ai.tool.call.id"] == "run1/1"


@pytest.mark.parametrize(("text", "outcome"), [("{", "refused"), ("All is done.", "answered")])
def test_a_reply_without_calls_is_a_turn_too(text: str, outcome: str) -> None:
    telescope = Telescope()
    session = traced(telescope, add, protocol="xml")
    told = "<tool_call><name>add</name>" if outcome == "refused" else text
    asyncio.run(session.turn(told))
    assert telescope.tree() == [Node("run_turn", turned(0, outcome, "xml"))]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_turn_that_waits_says_so_and_is_followed_when_it_goes_on(kind: str, tmp_path: Path) -> None:
    telescope = Telescope()
    store: Any = MemoryStore() if kind == "memory" else Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    session = traced(telescope, add, pay, protocol="openai", permissions={"pay": "confirm"}, store=store)
    said = reply(("call_x", "add", {"a": 1, "b": 2}), ("call_y", "pay", {"amount": 5}))

    async def both() -> None:
        turn = await session.turn(said)
        assert turn.suspended is not None
        waiting = inside("pay", 2, "Pays.", "call_y")
        waiting.attributes["toolwire.approval.request_ids"] = ["request1"]
        waiting.attributes["toolwire.call.outcome"] = "pending"
        first = inside("add", 1, "Adds.", "call_x")
        assert telescope.tree() == [Node("run_turn", turned(2, "suspended"), inside=[first, waiting])]
        telescope.exporter.clear()
        decision = {"request_id": turn.suspended.pending[0].id, "verdict": "approve"}
        assert (await session.resume(turn.suspended, [decision])).suspended is None

    asyncio.run(both())
    known = inside("add", 1, "Adds.", "run1/1")
    known.attributes["toolwire.call.from_record"] = True
    ran = inside("pay", 2, "Pays.", "run1/2")
    assert telescope.tree() == [Node("run_turn", turned(2), inside=[known, ran])]
    # The waiting call was not run, and the recorded call was not run again.
    assert sorted((said["gen_ai.tool.name"], count) for said, count in telescope.durations()) == [
        ("add", 1),
        ("pay", 1),
    ]


def test_a_turn_that_cannot_go_on_is_an_error() -> None:
    telescope, store = Telescope(), MemoryStore()
    session = traced(telescope, pay, protocol="openai", permissions={"pay": "confirm"}, store=store)

    async def resumed() -> None:
        turn = await session.turn(reply(("call_x", "pay", {"amount": 5})))
        assert turn.suspended is not None
        telescope.exporter.clear()
        # Another worker has it.
        store.kept[turn.suspended.run_id].is_leased = True
        with pytest.raises(DecisionRefused):
            await session.resume(turn.suspended.run_id)

    asyncio.run(resumed())
    expected = {**turned(0), "error.type": "DecisionRefused"}
    del expected["toolwire.turn.calls"], expected["toolwire.turn.outcome"]
    assert telescope.tree() == [Node("run_turn", expected, is_error=True)]


def test_a_session_of_a_traced_registry_is_followed() -> None:
    telescope = Telescope()
    registry = ToolRegistry()
    registry.register(add)
    registry.enable_tracing(**telescope.providers)
    asyncio.run(Session(registry, protocol="openai").turn(reply(("call_x", "add", {"a": 1, "b": 2}))))
    assert telescope.tree() == [Node("run_turn", turned(1), inside=[inside("add", 1, "Adds.", "call_x")])]


def test_nothing_of_a_reply_is_told_unasked() -> None:
    telescope = Telescope()

    def echo(text: str) -> str:
        """Gives it back."""
        return text

    session = traced(telescope, echo, protocol="openai")
    turn = asyncio.run(session.turn({**reply(("call_x", "echo", {"text": CANARY})), "content": CANARY}))
    assert CANARY in turn.text
    assert CANARY not in telescope.text()
