"""The costs of tools that a reply does not call, and of describing known tools to a new session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tests.protocols.many_tools import tools

from benchmarks.timing import Figure, medians
from toolwire import Session, ToolRegistry
from toolwire.protocols import get, names
from toolwire.vocabulary.calls import ToolCall

PROTOCOLS = names()
ROUNDS = 15


def figures() -> list[Figure]:
    """One call among 200 tools against the only tool, and 100 known tools in a new session, for each protocol."""
    one, many = tools(1), tools(200)
    found: list[Figure] = []
    for name in PROTOCOLS:
        protocol = get(name)
        reply = protocol.render([ToolCall("tool_0", {"a": 1, "b": "x"}, id="c1")])
        variants: dict[str, Callable[[], object]] = {
            "one": lambda protocol=protocol, reply=reply: protocol.parse(reply, one),
            "many": lambda protocol=protocol, reply=reply: protocol.parse(reply, many),
        }
        times = medians(variants, number=20, rounds=ROUNDS)
        found.append(Figure(name=f"{name}: reading a call, 200 tools", ratio=times["many"] / times["one"], limit=2))
        if name != "attp":
            found.append(Figure(name=f"{name}: a turn, 200 tools", ratio=_turns(name, reply), limit=1.2))
        found.append(Figure(name=f"{name}: describing 100 known tools", ratio=_describing(name), limit=2, unit="ms"))
    return found


def _turns(protocol: str, reply: object) -> float:
    few, many = (Session(tools(count), protocol=protocol) for count in (1, 200))
    loop = asyncio.new_event_loop()
    try:
        variants = {
            "few": lambda: loop.run_until_complete(few.turn(reply)),
            "many": lambda: loop.run_until_complete(many.turn(reply)),
        }
        times = medians(variants, number=20, rounds=ROUNDS)
    finally:
        loop.close()
    return times["many"] / times["few"]


def _describing(protocol: str) -> float:
    registry = ToolRegistry()
    for spec in tools(100):
        registry.register(spec)
    times: list[float] = []
    for _ in range(ROUNDS):
        session = Session(registry, protocol=protocol)
        started = time.thread_time()
        assert session.instructions
        times.append(time.thread_time() - started)
    return sorted(times)[ROUNDS // 2] * 1000
