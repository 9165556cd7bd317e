"""The cost of a program and its tool calls through the whole path: registry, validation, permission, and back."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.plain import add
from benchmarks.sandbox import TRIPS, one_processor, ping_pong
from benchmarks.sandbox import figures as sandbox_figures
from benchmarks.timing import Figure
from toolwire import ToolRegistry
from toolwire.runtime.runtime import default_runtime
from toolwire.sandbox.limits import Limits

ROUNDS = 9
SETTLE_S = 0.06
"""Seconds after which the zygote has made its spares."""
STRINGS = 20
LOOP = f"for number in range({TRIPS}):\n    add(number, 2)\n"
EMPTY = "for number in range(0):\n    add(number, 2)\n"


async def add_async(a: int, b: int) -> int:
    """Adds two numbers, awaited."""
    return a + b


def figures() -> list[Figure]:
    """A fresh program against a bare fork of the same zygote; a tool call against a raw ping-pong, on one processor."""
    logging.getLogger("toolwire.sandbox").setLevel(logging.ERROR)
    alone = sandbox_figures()
    # Threads keep the processors they were made with: those of this part must all be on one.
    default_runtime().close()
    with one_processor():
        trips = _trips()
    return [
        Figure(
            name="a program, against a bare fork of the zygote", ratio=alone["fresh execution / bare fork"], limit=2
        ),
        Figure(name="the same with a spare", ratio=alone["with a spare / bare fork"], limit=1),
        Figure(
            name="programs a second, from two threads",
            ratio=alone["executions a second"],
            limit=400,
            unit="/s",
            is_least=True,
        ),
        Figure(
            name="100 recorded calls replayed, against an empty run", ratio=alone["100 recorded calls / empty"], limit=3
        ),
        Figure(name="memory of a live program", ratio=alone["memory of a live program, MB"], limit=2, unit="MB"),
        *_strings(),
        Figure(name="its call of a sync tool, against a ping-pong", ratio=trips["blocking"], limit=3),
        Figure(name="a sync tool under asyncio", ratio=trips["under asyncio"], limit=3.5),
        Figure(name="an async tool", ratio=trips["async tool"], limit=7),
        Figure(name="the sandbox alone: a sync tool", ratio=alone["plain tool / ping-pong"], limit=2.5),
        Figure(name="a sync tool under asyncio, alone", ratio=alone["plain tool, asyncio / ping-pong"], limit=3.5),
        Figure(name="an async tool, alone", ratio=alone["async tool / ping-pong"], limit=7),
    ]


def _strings() -> list[Figure]:
    """Megabytes a second of 1 MB strings, there and back through a tool."""
    registry = ToolRegistry()
    registry.register(echo)
    limits = Limits(calls=STRINGS)
    found: list[Figure] = []
    for name, letter, least in (("ASCII", "x", 300), ("CJK", "\u4e2d", 120)):
        text = f"{letter!r} * {1_000_000 // len(letter.encode())}"
        code = f"text = {text}\nfor _ in range(STRINGS):\n    echo(text)".replace("STRINGS", str(STRINGS))
        empty = f"text = {text}\nfor _ in range(0):\n    echo(text)"
        rates: list[float] = []
        for _ in range(ROUNDS):
            seconds = _timed(lambda code: registry.run_program(code, limits=limits), code)
            seconds -= _timed(lambda code: registry.run_program(code, limits=limits), empty)
            rates.append(2 * STRINGS / seconds)
        rate = statistics.median(rates)
        found.append(Figure(name=f"1 MB strings, {name}", ratio=rate, limit=least, unit="MB/s", is_least=True))
    return found


def echo(text: str) -> str:
    """Gives the text back."""
    return text


def _trips() -> dict[str, float]:
    plain, awaited = ToolRegistry(), ToolRegistry()
    plain.register(add)
    awaited.register(add_async, name="add")
    limits = Limits(calls=TRIPS)
    for registry in (plain, awaited):
        registry.enable_code_execution(limits=limits)
    variants: dict[str, Callable[[str], object]] = {
        "blocking": lambda code: plain.run_program(code, limits=limits),
        "under asyncio": lambda code: asyncio.run(_awaited(plain.ainvoke("code_execution", {"code": code}))),
        "async tool": lambda code: asyncio.run(_awaited(awaited.ainvoke("code_execution", {"code": code}))),
    }
    ratios: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, run in variants.items():
            # Each beside a floor of its own: what else the machine does then weighs on both.
            floor = ping_pong()
            ratios[name].append((_timed(run, LOOP) - _timed(run, EMPTY)) / floor)
    return {name: statistics.median(values) for name, values in ratios.items()}


async def _awaited(result: Coroutine[Any, Any, Any]) -> None:
    ended = await result
    assert ended.success, ended.text


def _timed(run: Callable[[str], object], code: str) -> float:
    time.sleep(SETTLE_S)
    started = time.perf_counter()
    run(code)
    return time.perf_counter() - started
