"""Bytes that a store keeps of a call of 1 KB in and 1 KB out through a `ToolServer`, by kind, and after pruning.

Run: python -m benchmarks.growth. The texts are words, which compress to a third, or random, which do not.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import tempfile
from collections.abc import Callable

from benchmarks.timing import Figure, show
from mcp import Client
from toolwire import Retention, Store, ToolRegistry, ToolServer
from toolwire.types import SpaceKind

CALLS = 300
SIDE_BYTES = 1_000
LIMIT_KB = 8.0
"""KB a call that all records may take, the log apart."""
LEFT_KB = 0.2
"""KB a call that may be left after pruning, the log apart: pages that are not full."""
AT_ONCE = 1e-9
"""Days after which all that has ended is due."""

_WORDS = [
    "budget",
    "forecast",
    "report",
    "annual",
    "region",
    "sales",
    "market",
    "order",
    "price",
    "invoice",
    "customer",
    "quarter",
    "total",
    "open",
]
_KINDS: tuple[SpaceKind, ...] = ("runs", "calls")


def figures(calls: int = CALLS) -> list[Figure]:
    """KB a call on SQLite, for both kinds of text."""
    chance = random.Random(1)
    texts: dict[str, Callable[[], str]] = {
        "words": lambda: " ".join(chance.choices(_WORDS, k=SIDE_BYTES // 4))[:SIDE_BYTES],
        "random": lambda: secrets.token_urlsafe(SIDE_BYTES)[:SIDE_BYTES],
    }
    return [figure for name, text in texts.items() for figure in _measure(name, text, calls)]


def _measure(name: str, text: Callable[[], str], calls: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(f"sqlite:///{folder}/runs.db") as store,
    ):
        empty = _kb_by_kind(store, calls)
        asyncio.run(_call(store, text, calls))
        found = [_figure(f"{name}: {kind}", _kb_by_kind(store, calls), empty, kind) for kind in (*_KINDS, "log")]
        found.append(_rest(f"{name}: all but the log", store, empty, calls, LIMIT_KB))
        for retention, title in (
            (Retention(results_days=AT_ONCE), "without whole results"),
            (Retention(runs_days=AT_ONCE), "without ended runs"),
        ):
            store.retain(retention)
            store.compact()
            limit = LEFT_KB if retention.runs_days else None
            found.append(_rest(f"{name}: all but the log, {title}", store, empty, calls, limit))
        return found


async def _call(store: Store, text: Callable[[], str], calls: int) -> None:
    registry = ToolRegistry()

    @registry.register
    def look_up(query: str) -> str:  # pyright: ignore[reportUnusedFunction] - the registry keeps it
        """Looks something up."""
        return f"{text()}{query[:0]}"

    async with Client(ToolServer(registry, "growth", store=store).in_memory()) as client:
        for _ in range(calls):
            await client.call_tool("look_up", {"query": text()})


def _kb_by_kind(store: Store, calls: int) -> dict[str, float]:
    return {kind: size / 1_000 / calls for kind, size in store.space().kinds.items()}


def _figure(name: str, found: dict[str, float], empty: dict[str, float], kind: str) -> Figure:
    return Figure(name=name, ratio=found.get(kind, 0.0) - empty.get(kind, 0.0), limit=None, unit="KB")


def _rest(name: str, store: Store, empty: dict[str, float], calls: int, limit: float | None) -> Figure:
    found = _kb_by_kind(store, calls)
    ratio = sum(size - empty.get(kind, 0.0) for kind, size in found.items() if kind != "log")
    return Figure(name=name, ratio=ratio, limit=limit, unit="KB")


if __name__ == "__main__":
    show("What a store keeps of a call of 1 KB in and out", figures())
