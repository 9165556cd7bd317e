"""The cost of one trivial call from its name to its result, against pydantic's validation alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pydantic import validate_call

from benchmarks.plain import add
from benchmarks.timing import Figure, medians
from toolwire import Rule, ToolRegistry

PEERS = ("toolregistry", "fastmcp", "langchain_core")
RULES = (
    Rule(effect="confirm", tool="delete_*", note="deleting is for people"),
    Rule(effect="deny", tool="admin.*"),
    Rule(effect="auto", tool="add"),
)


def figures() -> list[Figure]:
    """Ratios to `validate_call` with keywords, ours and the peers' that are installed."""
    validated = validate_call(add)
    plain, logged = ToolRegistry(rules=RULES), ToolRegistry(rules=RULES)
    plain.register(add)
    logged.register(add)
    logged.enable_logging()
    arguments = {"a": 1, "b": 2}
    fast = {
        "floor": lambda: validated(a=1, b=2),
        "registry.invoke, three rules in force": lambda: plain.invoke("add", arguments),
        "the same with the in-memory log": lambda: logged.invoke("add", arguments),
    }
    times = medians(fast, number=2000)
    found = [
        Figure(name="registry.invoke, three rules in force", ratio=0, limit=6),
        Figure(name="the same with the in-memory log", ratio=0, limit=10),
    ]
    ours = [Figure(name=figure.name, ratio=times[figure.name] / times["floor"], limit=figure.limit) for figure in found]
    return ours + _peers(fast["floor"])


def _peers(floor: Callable[[], object]) -> list[Figure]:
    found: list[Figure] = []
    for name in PEERS:
        try:
            import_module(name)
        except ImportError:
            print(f"  ({name} is not installed: `make bench` brings it)")
            continue
        call, close = globals()[f"_{name}"]()
        try:
            times = medians({"floor": floor, name: call}, number=50, rounds=15)
        finally:
            close()
        found.append(Figure(name=f"{name}, the same tool", ratio=times[name] / times["floor"], limit=None))
    return found


def _toolregistry() -> tuple[Callable[[], object], Callable[[], None]]:
    peer = import_module("toolregistry").ToolRegistry()
    peer.register(add)
    return lambda: peer.invoke("add", {"a": 1, "b": 2}), peer.close


def _fastmcp() -> tuple[Callable[[], object], Callable[[], None]]:
    tool: Any = import_module("fastmcp.tools").Tool.from_function(add)
    loop = asyncio.new_event_loop()
    return lambda: loop.run_until_complete(tool.run({"a": 1, "b": 2})), loop.close


def _langchain_core() -> tuple[Callable[[], object], Callable[[], None]]:
    tool: Any = import_module("langchain_core.tools").tool(add)
    return lambda: tool.invoke({"a": 1, "b": 2}), lambda: None
