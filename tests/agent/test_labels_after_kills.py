"""Labels that a sub-agent or a program has read are in force when its run goes on after a crash."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from tests.agent.worlds import calls
from toolwire import Agent, Session, Store, ToolRegistry, ToolSpec
from toolwire.testing import ScriptedModel


class Report(BaseModel):
    """Ends the work."""

    text: str


async def go_on_after_a_crash(store: Store, tool: ToolSpec, first: str, arguments: dict[str, Any]) -> list[str]:
    """Returns the texts that were sent after a crash of a run in which the call of `first` had ended."""
    sent, begun = list[str](), asyncio.Event()

    async def send(text: str) -> str:
        """Sends."""
        sent.append(text)
        return "sent"

    async def wait() -> str:
        """Waits for ever at its first call."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "waited"

    tools = [ToolSpec.from_function(send, effects=["send"])]
    waiting = ToolSpec.from_function(wait, idempotent="natural", effects=["read"])
    replies = [calls("wait"), calls("send", text="secret"), "Done."]
    sender = Agent("sender", ScriptedModel(replies), [*tools, waiting])
    registry = ToolRegistry()
    for one in (tool, sender.as_tool("Sends.")):
        registry.register(one)
    both = [{"name": first, "arguments": arguments}, {"name": "sender", "arguments": {"task": "Send."}}]
    session = Session(registry, protocol="json", store=store, conversation="c", programs=True)
    turning = asyncio.create_task(session.turn(f"<tool_call>\n{json.dumps(both)}\n</tool_call>"))
    await begun.wait()
    (run,) = store.runs(conversation="c")
    async with asyncio.timeout(10):
        while not any(one.tool == first and one.result is not None for one in store.calls(run.run_id)):  # noqa: ASYNC110 - another thread writes
            await asyncio.sleep(0.01)
    turning.cancel()
    await asyncio.wait((turning,))
    other = Session(registry, protocol="json", store=store, conversation="c", programs=True)
    turn = await other.resume(run.run_id)
    assert (turn.suspended is None) is bool(sent)
    return sent


def reading(labels: Any) -> ToolSpec:
    def read() -> str:
        """Reads."""
        return "secret"

    return ToolSpec.from_function(read, labels=labels, effects=["read"], idempotent="natural")


def reader(labels: Any, output: Any) -> ToolSpec:
    last: Any = "Read." if output is None else calls("report", text="Read.")
    return Agent("reader", ScriptedModel([calls("read"), last]), [reading(labels)], output=output).as_tool("Reads.")


@pytest.mark.parametrize(
    ("labels", "sent"), [(["private", "untrusted"], []), ([], ["secret"])], ids=["held", "control"]
)
@pytest.mark.parametrize("output", [None, Report])
async def test_what_a_sub_agent_had_read_counts(store: Store, output: Any, labels: Any, sent: list[str]) -> None:
    assert await go_on_after_a_crash(store, reader(labels, output), "reader", {"task": "Read."}) == sent


@pytest.mark.parametrize(
    ("labels", "sent"), [(["private", "untrusted"], []), ([], ["secret"])], ids=["held", "control"]
)
async def test_what_a_program_had_read_counts(store: Store, labels: Any, sent: list[str]) -> None:
    assert await go_on_after_a_crash(store, reading(labels), "code_execution", {"code": "print(len(read()))"}) == sent
