"""Runs that are interrupted at each point: they end in time, tell what may have happened, and go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest

from tests.agent.provider_agents import stand_in as stand_in
from tests.agent.provider_replies import Voice
from tests.patience import PATIENCE_S, until
from tests.protocols.providers import Fault, Provider
from toolwire import Agent, ToolSpec
from toolwire.models import OpenAIModel
from toolwire.sandbox.limits import Limits

CLEANUP_S = 0.4
MAY_HAVE = "It may have taken effect"
GOES_ON = "could not be stopped and goes on"
NOT_RUN = "was not run"


@dataclass
class Place:
    """Tools that wait, and what has begun."""

    provider: Provider
    model: OpenAIModel
    voice: Voice = field(default_factory=lambda: Voice("openai", "openai"))
    begun: list[str] = field(default_factory=list[str])
    ended: list[str] = field(default_factory=list[str])
    release: threading.Event = field(default_factory=threading.Event)

    def pay(self) -> str:
        """Pays."""
        self.begun.append("pay")
        return "paid"

    async def wait(self) -> None:
        """Waits, and can be stopped."""
        self.begun.append("wait")
        await asyncio.Event().wait()

    def block(self) -> None:
        """Waits in a thread, which nothing can stop."""
        self.begun.append("block")
        self.release.wait(PATIENCE_S)

    def confirm(self) -> None:
        """Needs a person."""
        self.begun.append("confirm")

    async def approve(self, request: Any) -> None:
        self.begun.append("asked")
        await asyncio.Event().wait()

    def agent(self, store: Any) -> Agent[Any]:
        """An agent with these tools and a sub-agent."""
        child = Agent("child", None, [self.wait])
        confirm = ToolSpec.from_function(self.confirm, permission="confirm")
        tools = [self.pay, self.wait, self.block, confirm, child.as_tool("Waits.")]
        options: dict[str, Any] = {"approver": self.approve, "limits": Limits(cleanup_s=CLEANUP_S), "programs": True}
        lead = Agent("lead", self.model, tools, store=store, **options)
        lead.toolkit.observe(lambda event: self.ended.append(event.tool) if event.type == "TOOL_COMPLETE" else None)
        return lead


@pytest.fixture
async def place(stand_in: Provider) -> AsyncIterator[Place]:
    client = openai.AsyncOpenAI(base_url=stand_in.url, api_key="k", max_retries=0)
    found = Place(provider=stand_in, model=OpenAIModel("m", client=client))
    stand_in.script[:], stand_in.requests[:], stand_in.rule = [], [], found.voice.rule
    stand_in.silences = stand_in.closes = 0
    yield found
    found.release.set()
    await client.close()


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point at which a run is interrupted."""

    script: Callable[[Voice], list[Any]]
    is_reached: Callable[[Place], bool]
    says: str = ""
    """What the model reads of the call that was stopped. Empty: the model was being asked."""
    limit_s: float = 1.0
    closes: int = 0
    """Number of connections that the provider sees closed."""


def _silent(at: int, share: float, *, is_text: bool = False) -> Point:
    def script(voice: Voice) -> list[Any]:
        reply = voice.reply("A long answer." if is_text else "", *([] if is_text else [("pay", {})]))
        head = [voice.reply("", ("child", {"task": "Wait."}))] if at == 2 else []
        return [*head, Fault(events=tuple(reply), share=share, is_silent=True)]

    says = MAY_HAVE if at == 2 else ""
    return Point(script=script, is_reached=lambda place: place.provider.silences == 1, says=says, closes=1)


def _running(name: str, says: str, *, begun: str = "", limit_s: float = 1.0, **arguments: Any) -> Point:
    return Point(
        script=lambda voice: [voice.reply("", ("pay", {}), (name, arguments))],
        is_reached=lambda place: {"pay", begun or name} <= set(place.begun),
        says=says,
        limit_s=limit_s,
    )


def _in_child() -> Point:
    return Point(
        script=lambda voice: [
            voice.reply("", ("pay", {}), ("child", {"task": "Wait."})),
            voice.reply("", ("wait", {})),
        ],
        is_reached=lambda place: {"pay", "wait"} <= set(place.begun),
        says=MAY_HAVE,
    )


POINTS = {
    "silent model": _silent(1, 0.0),
    "text": _silent(1, 0.6, is_text=True),
    "arguments": _silent(1, 0.7),
    "coroutine": _running("wait", MAY_HAVE),
    "thread": _running("block", GOES_ON, limit_s=CLEANUP_S + 1.0),
    "program": _running("code_execution", MAY_HAVE, begun="wait", code="wait()"),
    "approver": _running("confirm", NOT_RUN, begun="asked"),
    "model of the child": _silent(2, 0.0),
    "tool of the child": _in_child(),
}


async def _read(agent: Agent[Any]) -> None:
    async with aclosing(agent.stream("Go.", conversation="c")) as events:
        async for _ in events:
            pass


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("point", POINTS)
async def test_a_cancelled_run_ends_in_time_and_goes_on(place: Place, agent_store: Any, point: str, way: str) -> None:
    where, agent = POINTS[point], place.agent(agent_store)
    place.provider.script[:] = where.script(place.voice)
    running = asyncio.create_task(agent.run("Go.", conversation="c") if way == "run" else _read(agent))  # type: ignore[arg-type]
    await asyncio.to_thread(until, lambda: where.is_reached(place) or running.done())
    assert not running.done(), running
    await asyncio.to_thread(until, lambda: "pay" in place.ended or "pay" not in place.begun)
    begun = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - begun < where.limit_s
    await asyncio.to_thread(until, lambda: place.provider.closes >= where.closes)
    await _goes_on(place, agent, where)


async def _goes_on(place: Place, agent: Agent[Any], where: Point) -> None:
    """The next prompt is answered by one request that the provider takes, and nothing runs for it."""
    asked, begun = len(place.provider.requests), list(place.begun)
    place.provider.script[:] = [place.voice.reply("Welcome.")]
    result = await agent.run("Next.", conversation="c")
    assert (result.stop, result.text) == ("answered", "Welcome."), result.error
    assert (len(place.provider.requests), place.begun) == (asked + 1, begun)
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert len(told) == (0 if not where.says else 1 + ("pay" in begun))
    if told:
        assert where.says in told[-1]
        assert where.says == NOT_RUN or NOT_RUN not in told[-1]
        assert told[:-1] == ["paid"] * ("pay" in begun)
    assert [message["content"] for message in result.messages if message["role"] == "user"] == ["Go.", "Next."]


LEAVES = {
    "text": ("text", "text", ""),
    "coroutine": ("coroutine", "TOOL_COMPLETE", "pay"),
    "unread": ("coroutine", "TOOL_START", "wait"),
}
"""The point, and the event at which a reader leaves. With `unread` the result of `pay` is in, and its event unread."""


@pytest.mark.parametrize("leave", LEAVES)
async def test_leaving_the_events_ends_in_time_and_goes_on(place: Place, agent_store: Any, leave: str) -> None:
    point, *last = LEAVES[leave]
    where, agent = POINTS[point], place.agent(agent_store)
    place.provider.script[:] = where.script(place.voice)
    begun = 0.0
    async with aclosing(agent.stream("Go.", conversation="c")) as events:
        async for event in events:
            if last == ([event.tool.type, event.tool.tool] if event.tool else [event.type, ""]):
                await asyncio.to_thread(until, lambda: where.is_reached(place))
                await asyncio.to_thread(until, lambda: "pay" in place.ended or "pay" not in place.begun)
                begun = time.monotonic()
                break
    assert time.monotonic() - begun < where.limit_s
    await asyncio.to_thread(until, lambda: place.provider.closes >= where.closes)
    await _goes_on(place, agent, where)


@pytest.mark.parametrize("at", [1, 2], ids=["prompt", "answer"])
async def test_a_save_ends_before_the_cancellation(place: Place, agent_store: Any, at: int) -> None:
    agent = place.agent(agent_store)
    save, saves, go = agent._memory.save, list[int](), asyncio.Event()

    async def slow_save(*given: Any) -> None:
        saves.append(len(saves) + 1)
        if saves[-1] == at:
            await go.wait()
        await save(*given)

    agent._memory.save = slow_save  # type: ignore[method-assign]
    place.provider.script[:] = [place.voice.reply("Hello.")]
    running = asyncio.create_task(agent.run("Go.", conversation="c"))
    await asyncio.to_thread(until, lambda: at in saves)
    running.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(place.provider.requests) == at - 1
    if at == 1:
        await _goes_on(place, agent, POINTS["silent model"])
        return
    again = await agent.run(conversation="c")
    assert (again.stop, again.text, len(place.provider.requests)) == ("answered", "Hello.", 1)
