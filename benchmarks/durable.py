"""One durable step: a turn of one call with a SQLite store, beside DBOS and LangGraph's SqliteSaver in the same run.

Each does the least that its documentation shows for one step whose start and result outlive the process, on the disk
below the working folder. No network. Run: make bench-durable.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.timing import Figure, show

ROUNDS = 15
NUMBER = 20
LIMIT = 0.6
"""Times the faster peer."""

Step = Callable[[], object]
"""Runs one durable step and returns when its result is on the disk."""


def turn_of_one_call(folder: Path, ended: ExitStack) -> Step:
    """Returns the step of toolwire: a turn in a store."""
    from toolwire import Session, Store, ToolSpec

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    runner = ended.enter_context(asyncio.Runner())
    store = ended.enter_context(Store.open(f"sqlite:///{folder}/toolwire.db"))
    session = Session([ToolSpec.from_function(add, permission="auto")], protocol="openai", store=store)
    function = {"name": "add", "arguments": json.dumps({"a": 1, "b": 2})}
    reply = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}

    def take() -> None:
        turn = runner.run(session.turn(reply))
        assert turn.results[0].data == 3, turn

    return take


def dbos_workflow(folder: Path, ended: ExitStack) -> Step:
    """Returns the step of DBOS: a workflow of one step."""
    from dbos import DBOS

    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.db", "log_level": "ERROR"})

    @DBOS.step()
    def add(a: int, b: int) -> int:
        return a + b

    @DBOS.workflow()
    def work(a: int, b: int) -> int:
        return add(a, b)

    DBOS.launch()
    ended.callback(DBOS.destroy)

    def take() -> None:
        assert work(1, 2) == 3

    return take


class Sum(TypedDict):
    """The state of the graph."""

    a: int
    b: int


def langgraph_node(folder: Path, ended: ExitStack) -> Step:
    """Returns the step of LangGraph: a graph of one node, a new thread each time."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False)
    ended.callback(connection.close)
    graph: Any = StateGraph(Sum)
    graph.add_node("add", lambda state: {"a": state["a"] + state["b"]})
    graph.add_edge(START, "add")
    graph.add_edge("add", END)
    compiled = graph.compile(checkpointer=SqliteSaver(connection))
    numbers = itertools.count()

    def take() -> None:
        thread = {"configurable": {"thread_id": str(next(numbers))}}
        assert compiled.invoke({"a": 1, "b": 2}, thread)["a"] == 3

    return take


PEERS: dict[str, Callable[[Path, ExitStack], Step]] = {
    "dbos": dbos_workflow,
    "langgraph-checkpoint-sqlite": langgraph_node,
}


def measure(steps: Mapping[str, Step]) -> dict[str, tuple[float, float]]:
    """Returns the median milliseconds of processor and of wall time of one step of each; they take turns."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(ROUNDS):
        for name, step in steps.items():
            wall, processor = time.perf_counter(), time.process_time()
            for _ in range(NUMBER):
                step()
            times = time.process_time() - processor, time.perf_counter() - wall
            taken[name].append((times[0] / NUMBER * 1e3, times[1] / NUMBER * 1e3))
    return {
        name: (statistics.median(one[0] for one in times), statistics.median(one[1] for one in times))
        for name, times in taken.items()
    }


def main() -> int:
    """Prints the figures; exits 1 if a bound is not met."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, ExitStack() as ended:
        steps = {"toolwire": turn_of_one_call(Path(folder), ended)}
        steps |= {name: make(Path(folder), ended) for name, make in PEERS.items()}
        found = measure(steps)
    for name, (processor, wall) in found.items():
        print(f"{name} ({version(name)}): {processor:.2f} ms of processor, {wall:.2f} ms")
    ours = found.pop("toolwire")
    figures = [
        Figure(
            name=f"one durable step, {what}, times the faster peer",
            ratio=ours[place] / min(times[place] for times in found.values()),
            limit=LIMIT,
        )
        for place, what in enumerate(("processor", "wall"))
    ]
    show("Durable steps", figures)
    return 0 if all(figure.is_met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
