"""What a program costs, each figure beside its floor, interleaved in one run: trust the ratios.

* fresh execution against a bare fork and exit of the same zygote, asked for over the same sockets;
* a tool's round trip against a raw ping-pong over a socket pair, both ends on one processor:
  a plain tool without an event loop, a plain tool under asyncio, an async tool.

Run: python benchmarks/sandbox.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolwire.runtime.workers import Workers
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, Program, ProgramCall, ProgramParameter, ProgramTool

EXECUTIONS = 120
ROUNDS = 7
TRIPS = 700
ADD = ProgramTool(
    name="add",
    program_name="add",
    parameters=tuple(
        ProgramParameter(name=name, program_name=name, kind="either", required=True) for name in ("a", "b")
    ),
)
FRESH = Program(source="x = 1\n__result__ = x + 1")
LOOP = f"""
for number in range({TRIPS}):
    add(number, 2)
"""
EMPTY_LOOP = "for number in range(0):\n    add(number, 2)\n"


def add(call: ProgramCall) -> Answer:
    """The trivial tool."""
    return Answer(value=call.arguments["a"] + call.arguments["b"])


async def add_async(call: ProgramCall) -> Answer:
    """The trivial tool, awaited."""
    return add(call)


def figures() -> dict[str, float]:
    """Medians in milliseconds and microseconds, and the ratios that the project's goals are about."""
    logging.getLogger("toolwire.sandbox").setLevel(logging.ERROR)
    with Sandbox() as sandbox:
        found = _executions(sandbox)
    # The zygote and new threads inherit the processor: both ends of a channel share it.
    with one_processor(), Sandbox(Workers()) as sandbox:
        found |= _round_trips(sandbox)
    return found


def main() -> None:
    """Prints the figures."""
    for name, value in figures().items():
        print(f"{name:32} {value:10.2f}")


def _executions(sandbox: Sandbox) -> dict[str, float]:
    def bare() -> None:
        child = sandbox.zygotes.current().ask(Limits(), kind="bare").wait()
        child.exit(5)
        child.close()

    def fresh() -> None:
        result = sandbox.run(FRESH, add)
        assert result.value == 2, result

    times = _interleaved({"bare fork": bare, "fresh execution": fresh}, EXECUTIONS)
    return {
        "bare fork, ms": times["bare fork"] * 1e3,
        "fresh execution, ms": times["fresh execution"] * 1e3,
        "fresh execution / bare fork": times["fresh execution"] / times["bare fork"],
    }


def _round_trips(sandbox: Sandbox) -> dict[str, float]:
    program, empty = (Program(source=source, tools=(ADD,), limits=Limits(calls=TRIPS)) for source in (LOOP, EMPTY_LOOP))

    def trips(run: Callable[[Program], object]) -> Callable[[], float]:
        def measure() -> float:
            return _timed(lambda: run(program)) - _timed(lambda: run(empty))

        return measure

    variants = {
        "ping-pong": ping_pong,
        "plain tool": trips(lambda program: sandbox.run(program, add)),
        "plain tool, asyncio": trips(lambda program: asyncio.run(sandbox.run_beside(program, add))),
        "async tool": trips(lambda program: asyncio.run(sandbox.run_async(program, add_async))),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, measure in variants.items():
            seconds[name].append(measure() / TRIPS)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    floor = medians.pop("ping-pong")
    found = {"ping-pong, us": floor * 1e6}
    for name, value in medians.items():
        found[f"{name}, us"] = value * 1e6
        found[f"{name} / ping-pong"] = value / floor
    return found


def ping_pong() -> float:
    """Seconds for TRIPS frames there and back, in Python, without any meaning."""
    here, there = socket.socketpair()
    process = os.fork()
    if process == 0:
        try:
            for _ in range(TRIPS):
                there.send(there.recv(65536))
        finally:
            os._exit(0)
    message = b"x" * 40
    here.send(message)
    here.recv(65536)
    started = time.perf_counter()
    for _ in range(TRIPS - 1):
        here.send(message)
        here.recv(65536)
    took = time.perf_counter() - started
    os.waitpid(process, 0)
    here.close()
    there.close()
    return took


def _interleaved(variants: dict[str, Callable[[], None]], count: int) -> dict[str, float]:
    for run in variants.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(count):
        for name, run in variants.items():
            seconds[name].append(_timed(run))
    return {name: statistics.median(values) for name, values in seconds.items()}


def _timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


@contextmanager
def one_processor() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    sys.exit(main())
