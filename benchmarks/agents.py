"""The overhead of a turn of an agent, model apart, against `Session.turn` on the same replies, and of two SDKs.

Run: make bench-agents. No network: each loop asks a model of its SDK that plays a script. The time in that model is
left out, and the same conversation is held by all in turns.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from benchmarks.timing import Figure, show
from toolwire import Agent, Budget, Session, Store
from toolwire.journal.database.tables import DOCUMENTS, METADATA
from toolwire.models import Request
from toolwire.testing import ScriptedModel

Loop = Callable[[int], Awaitable[float]]
"""Holds a conversation of so many calls, one a reply, and returns the seconds that were spent outside of the model."""

CALLS = 20
"""Calls of a conversation. Then comes the answer."""
ROUNDS, ROUNDS_STORED = 31, 11
IDLE = 100
"""Conversations that one agent holds one after another, and whose memory is measured."""
WARM_UP = 3
"""Rounds before the first that counts."""
SESSION_LIMIT = 2.5
"""The most that a turn of an agent may cost, times `Session.turn`."""
PEER_LEAST = {"pydantic-ai": 2.0}
"""The least that a turn of a peer costs, times that of an agent."""


async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def script(calls: int) -> list[Any]:
    """The replies of a conversation."""
    return [*([("add", {"a": number, "b": 1})] for number in range(calls)), "done"]


class _TimedModel(ScriptedModel):
    """A scripted model that adds up the seconds for which it is waited for."""

    seconds = 0.0

    async def stream(self, request: Request, /) -> AsyncGenerator[Any]:
        pieces = super().stream(request)
        while True:
            began = time.perf_counter()
            piece = await anext(pieces, None)
            self.seconds += time.perf_counter() - began
            if piece is None:
                return
            yield piece


def agent_loop(store: Store | None) -> Loop:
    """`Agent.run`."""

    async def converse(calls: int) -> float:
        model = _TimedModel(script(calls))
        agent = Agent("adder", model, [add], instructions="Add.", budget=Budget(turns=None), store=store)
        began = time.perf_counter()
        result = await agent.run("Go on.")
        took = time.perf_counter() - began
        assert (result.text, len(model.requests)) == ("done", calls + 1)
        return took - model.seconds

    return converse


def session_loop(store: Store | None) -> Loop:
    """The loop by hand: `Session.turn` on the same replies."""

    async def converse(calls: int) -> float:
        replies = [_whole(said, number) for number, said in enumerate(script(calls))]
        began = time.perf_counter()
        session = Session([add], protocol="openai", store=store)
        for reply in replies:
            turn = await session.turn(reply)
        took = time.perf_counter() - began
        assert (turn.reply.text, turn.messages) == ("done", [])
        return took

    return converse


def _whole(said: Any, number: int) -> dict[str, Any]:
    if isinstance(said, str):
        return {"role": "assistant", "content": said}
    calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for name, arguments in said
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _pydantic_ai() -> Loop:
    """`Agent.run` with a `FunctionModel`."""
    from pydantic_ai import Agent as Peer
    from pydantic_ai import UsageLimits
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    class Timed(FunctionModel):
        seconds = 0.0

        async def request(self, *arguments: Any, **more: Any) -> ModelResponse:
            began = time.perf_counter()
            try:
                return await super().request(*arguments, **more)
            finally:
                self.seconds += time.perf_counter() - began

    async def converse(calls: int) -> float:
        replies = iter(script(calls))

        def reply(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
            said = next(replies)
            if isinstance(said, str):
                return ModelResponse(parts=[TextPart(said)])
            return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in said])

        model = Timed(reply)
        agent = Peer(model, tools=[add], instructions="Add.")
        began = time.perf_counter()
        result = await agent.run("Go on.", usage_limits=UsageLimits(request_limit=None))
        took = time.perf_counter() - began
        assert result.output == "done"
        return took - model.seconds

    return converse


def _openai_agents() -> Loop:
    """`Runner.run` with a model of a few lines, and without traces."""
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    from agents import Agent as Peer
    from agents import Model, ModelResponse, Runner, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Timed(Model):
        def __init__(self, calls: int) -> None:
            self.seconds, self._replies = 0.0, enumerate(script(calls))

        async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
            began = time.perf_counter()
            number, said = next(self._replies)
            output: list[Any] = []
            if isinstance(said, str):
                text = ResponseOutputText(type="output_text", text=said, annotations=[])
                output.append(ResponseOutputMessage(
                    id="m1", type="message", role="assistant", status="completed", content=[text]
                ))  # fmt: skip
            else:
                output.extend(
                    ResponseFunctionToolCall(
                        type="function_call", call_id=f"call_{number}", name=name, arguments=json.dumps(arguments)
                    )
                    for name, arguments in said
                )
            response = ModelResponse(output=output, usage=Usage(), response_id=None)
            self.seconds += time.perf_counter() - began
            return response

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    tool = function_tool(add)

    async def converse(calls: int) -> float:
        model = Timed(calls)
        agent = Peer(name="adder", instructions="Add.", model=model, tools=[tool])
        began = time.perf_counter()
        result = await Runner.run(agent, "Go on.", max_turns=calls + 1)
        took = time.perf_counter() - began
        assert result.final_output == "done"
        return took - model.seconds

    return converse


PEERS = {"pydantic-ai": ("pydantic-ai-slim", _pydantic_ai), "openai-agents": ("openai-agents", _openai_agents)}


def figures() -> list[Figure]:
    """Ratios to `Session.turn` and to an agent, the records of a turn, and the memory of an idle conversation."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        return asyncio.run(_figures(store))


async def _figures(store: Store) -> list[Figure]:
    loops = {"session": session_loop(None), "agent": agent_loop(None), **_peers()}
    times = await _medians(loops, ROUNDS)
    found = [_beside_session("a turn of an agent, times Session.turn", times)]
    for name in PEERS:
        if name in times:
            title = f"a turn of {name} {version(PEERS[name][0])}, times an agent's"
            ratio, least = times[name] / times["agent"], PEER_LEAST.get(name)
            found.append(Figure(name=title, ratio=ratio, limit=least, is_least=True))
    found.append(Figure(name="a turn of an agent", ratio=times["agent"] * 1e6, limit=None, unit="µs"))
    stored = {"session": session_loop(store), "agent": agent_loop(store)}
    times = await _medians(stored, ROUNDS_STORED)
    found.append(_beside_session("the same with a store", times))
    records = {name: await _records_of_a_turn(store, loop) for name, loop in stored.items()}
    title = "records of a turn of an agent, times those of Session.turn"
    found.append(Figure(name=title, ratio=records["agent"] / records["session"], limit=1))
    found.append(Figure(name="an idle conversation with a store", ratio=await _idle_kb(store), limit=10, unit="kB"))
    return found


async def _idle_kb(store: Store) -> float:
    """The memory that an agent keeps for each of its conversations that has ended."""
    model = ScriptedModel(lambda request: script(1)[len(request.messages) > 1])
    agent = Agent("adder", model, [add], store=store)

    async def converse(conversations: int) -> int:
        for _ in range(conversations):
            await agent.run("Go on.")
        # The script's own list of what it was asked.
        model.requests.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = await converse(IDLE)
        return (await converse(IDLE) - before) / IDLE / 1000
    finally:
        tracemalloc.stop()


def _beside_session(name: str, times: Mapping[str, float]) -> Figure:
    return Figure(name=name, ratio=times["agent"] / times["session"], limit=SESSION_LIMIT)


def _peers() -> dict[str, Loop]:
    found: dict[str, Loop] = {}
    for name, (_, make) in PEERS.items():
        try:
            found[name] = make()
        except ImportError:
            print(f"  ({name} is not installed: `make bench-agents` brings it)")
    return found


async def _medians(loops: Mapping[str, Loop], rounds: int) -> dict[str, float]:
    """Seconds of one turn in each loop. The loops take turns."""
    times: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(WARM_UP + rounds):
        for name, loop in loops.items():
            took = await loop(CALLS) / (CALLS + 1)
            if number >= WARM_UP:
                times[name].append(took)
    return {name: statistics.median(values) for name, values in times.items()}


async def _records_of_a_turn(store: Store, loop: Loop) -> float:
    """The records that each call adds to a store, without those that a conversation adds once."""
    added: list[int] = []
    for calls in (CALLS, 2 * CALLS):
        before = _records(store)
        await loop(calls)
        added.append(_records(store) - before)
    return (added[1] - added[0]) / CALLS


def _records(store: Store) -> int:
    """The rows of a store, and how often its documents were saved."""
    store.log_length()
    counts = [select(func.count()).select_from(table) for table in METADATA.sorted_tables]
    counts.append(select(func.coalesce(func.sum(DOCUMENTS.c.version), 0)))
    return store._database.read(lambda connection: sum(connection.execute(count).scalar_one() for count in counts))


def main() -> int:
    """Prints the figures; 1 if one is not met."""
    found = figures()
    show(f"Agents: a conversation of {CALLS} calls, the time in the model left out", found)
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
