"""The cost of a program, each figure beside its floor, interleaved in one run: trust the ratios.

* fresh execution against a bare fork and exit of the same zygote, asked for over the same sockets; with a spare too;
* a program whose 100 calls are all recorded against an empty one;
* executions a second, asked for by two threads; memory that one more live program takes;
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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from toolwire.sandbox.forked import Child
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, Program, ProgramCall, ProgramParameter, ProgramTool, Replay
from toolwire.sandbox.report import Isolation
from toolwire.sandbox.zygote import ChildKind, Zygotes

EXECUTIONS = 120
GONE_S = 0.003
"""Seconds after which the last program's process, which the host did not wait for, is gone and costs the next no
time."""
SPARES_S = 0.05
"""Seconds in which the zygote has made its spares again."""
FLOOD_S = 2.0
LIVE = 12
ROUNDS = 7
TRIPS = 8000
"""Enough that the spare, which is made on the same processor meanwhile, weighs little."""
RECORDED = 100
REPLAYS = 40
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
    zygotes = _Choosing()
    with Sandbox(zygotes=zygotes) as sandbox:
        found = _executions(sandbox, zygotes)
        found |= replays(sandbox, REPLAYS)
    # The zygote and new threads inherit the processor: both ends of a channel share it.
    with one_processor(), Sandbox() as sandbox:
        found |= _round_trips(sandbox)
    return found


def main() -> None:
    """Prints the figures."""
    for name, value in figures().items():
        print(f"{name:32} {value:10.2f}")


class _Choosing(Zygotes):
    """Gives the kind of child that is to be measured."""

    kind: ChildKind = "any"

    def spawn(self, limits: Limits, *, kind: ChildKind = "any") -> tuple[Child, Isolation]:
        return super().spawn(limits, kind=self.kind if kind == "any" else kind)


def _executions(sandbox: Sandbox, zygotes: _Choosing) -> dict[str, float]:
    def bare() -> None:
        child, _ = zygotes.spawn(Limits(), kind="bare")
        child.exit(5)
        child.close()

    def execution(kind: ChildKind) -> Callable[[], None]:
        def run() -> None:
            zygotes.kind = kind
            result = sandbox.run(FRESH, add)
            assert result.value == 2, result

        return run

    tight = _interleaved({"bare": bare, "fresh": execution("fresh")}, EXECUTIONS, pause_s=GONE_S)
    # Spares are made while nothing is asked for; the floor then waits as long before its turn.
    calm = _interleaved({"bare": bare, "spare": execution("any")}, EXECUTIONS, pause_s=SPARES_S)
    return {
        "bare fork, ms": tight["bare"] * 1e3,
        "fresh execution, ms": tight["fresh"] * 1e3,
        "fresh execution / bare fork": tight["fresh"] / tight["bare"],
        "with a spare, ms": calm["spare"] * 1e3,
        "with a spare / bare fork": calm["spare"] / calm["bare"],
        "executions a second": _a_second(sandbox),
        "memory of a live program, MB": _memory_mb(sandbox),
    }


def replays(sandbox: Sandbox, count: int) -> dict[str, float]:
    """A run whose calls are all recorded, against one that makes none."""
    source = f"total = 0\nfor number in range({RECORDED}):\n    total = add(total, number)\ntotal"
    fresh = Replay(seed=1, started_at=0.0)
    recorded = sandbox.run(Program(source=source, tools=(ADD,), replay=fresh), add).recorded
    replay = Replay(seed=1, started_at=0.0, recorded=recorded)

    def nobody(call: ProgramCall) -> Answer:
        raise AssertionError(call)

    def run(program: Program) -> None:
        result = sandbox.run(program, nobody)
        assert result.status == "finished", result

    empty = Program(source="total = 0\ntotal", tools=(ADD,))
    again = Program(source=source, tools=(ADD,), replay=replay)
    seconds = _interleaved({"empty": lambda: run(empty), "replay": lambda: run(again)}, count, pause_s=GONE_S)
    return {
        "empty run, ms": seconds["empty"] * 1e3,
        f"{RECORDED} recorded calls, ms": seconds["replay"] * 1e3,
        f"{RECORDED} recorded calls / empty": seconds["replay"] / seconds["empty"],
    }


def _a_second(sandbox: Sandbox) -> float:
    """Programs a second, asked for by two threads for two seconds."""
    until = time.perf_counter() + FLOOD_S
    counts = [0, 0]

    def run(place: int) -> None:
        while time.perf_counter() < until:
            sandbox.run(FRESH, add)
            counts[place] += 1

    _in_threads([partial(run, place) for place in range(2)])
    return sum(counts) / FLOOD_S


def _memory_mb(sandbox: Sandbox) -> float:
    """The memory that one more live program adds, with shared pages counted once."""
    sizes: list[tuple[int, int]] = []
    there = threading.Barrier(LIVE, action=lambda: sizes.append(_weigh(sandbox)))

    def wait(_: ProgramCall) -> Answer:
        there.wait(30)
        return Answer(value=0)

    time.sleep(SPARES_S)
    sizes.append(_weigh(sandbox))
    program = Program(source="add(1, 2)", tools=(ADD,))
    _in_threads([lambda: sandbox.run(program, wait)] * LIVE)
    (before_kb, before), (after_kb, after) = sizes
    return (after_kb - before_kb) / (after - before) / 1024


def _weigh(sandbox: Sandbox) -> tuple[int, int]:
    """Kilobytes and number of the zygote and its children."""
    zygote = sandbox.zygotes.current().process_id
    processes = [zygote]
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if entry.read_text().rpartition(")")[2].split()[1] == str(zygote):
                processes.append(int(entry.parent.name))
    lines = [line for process in processes for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")), len(processes)


def _in_threads(runs: Sequence[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=run) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _round_trips(sandbox: Sandbox) -> dict[str, float]:
    program, empty = (Program(source=source, tools=(ADD,), limits=Limits(calls=TRIPS)) for source in (LOOP, EMPTY_LOOP))

    def trips(run: Callable[[Program], object]) -> Callable[[], float]:
        def measure() -> float:
            time.sleep(SPARES_S)
            return _timed(lambda: run(program)) - _timed(lambda: run(empty))

        return measure

    variants = {
        "plain tool": trips(lambda program: sandbox.run(program, add)),
        "plain tool, asyncio": trips(lambda program: asyncio.run(sandbox.run_beside(program, add))),
        "async tool": trips(lambda program: asyncio.run(sandbox.run_async(program, add_async))),
    }
    floors: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, measure in variants.items():
            # Each beside a floor of its own: what else the machine does then weighs on both.
            floors.append(ping_pong())
            seconds[name].append(measure())
    found = {"ping-pong, us": statistics.median(floors) / TRIPS * 1e6}
    for place, (name, values) in enumerate(seconds.items()):
        beside = floors[place :: len(variants)]
        found[f"{name}, us"] = statistics.median(values) / TRIPS * 1e6
        ratios = [value / floor for value, floor in zip(values, beside, strict=True)]
        found[f"{name} / ping-pong"] = statistics.median(ratios)
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


def _interleaved(variants: dict[str, Callable[[], None]], count: int, *, pause_s: float) -> dict[str, float]:
    for run in variants.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(count):
        for name, run in variants.items():
            time.sleep(pause_s)
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
