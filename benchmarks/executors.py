"""The cost of one small program: toolwire beside a bare fork, a cold interpreter, and the peers.

The peers confine less. codecell checks source text and starts an interpreter. smolagents interprets in the host's own
process. pydantic-monty runs a subset of Python in a worker that is kept warm.
"""

from __future__ import annotations

import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module

from benchmarks.plain import add
from benchmarks.timing import Figure
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, Program

ROUNDS = 25
SOURCE = "x = 1\nprint(x + 1)"
COLD = "import math, json, datetime, re, random, statistics\n" + SOURCE
CODECELL_TIMES = 25


def figures() -> list[Figure]:
    """Each executor's median time as a multiple of the bare fork's, all in one interleaved run."""
    logging.getLogger("toolwire.sandbox").setLevel(logging.ERROR)
    with ExitStack() as stack:
        runs = {name: stack.enter_context(make()) for name, make in EXECUTORS.items() if _is_there(name)}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(ROUNDS + 2):
            for name, run in runs.items():
                started = time.perf_counter()
                run()
                if turn >= 2:  # the first ones warm up
                    times[name].append(time.perf_counter() - started)
    middle = {name: statistics.median(values) for name, values in times.items()}
    floor = middle["bare fork of the zygote"]
    found = [
        Figure(name=name, ratio=value / floor, limit=LIMITS.get(name))
        for name, value in middle.items()
        if name != "bare fork of the zygote"
    ]
    if "codecell" in middle:
        cheaper = middle["codecell"] / middle["toolwire"]
        found.append(Figure(name="codecell, times ours", ratio=cheaper, limit=CODECELL_TIMES, is_least=True))
    return found


Run = Callable[[], object]


@contextmanager
def _bare_fork() -> Iterator[Run]:
    with Sandbox() as sandbox:

        def run() -> None:
            child = sandbox.zygotes.current().ask(Limits(), kind="bare").wait()
            child.exit(5)
            child.close()

        yield run


@contextmanager
def _toolwire() -> Iterator[Run]:
    with Sandbox() as sandbox:
        program = Program(source=SOURCE)
        yield lambda: _expect(sandbox.run(program, lambda _: Answer()).stdout, "2\n")


@contextmanager
def _cold_interpreter() -> Iterator[Run]:
    command = [sys.executable, "-I", "-c", COLD]
    yield lambda: _expect(subprocess.run(command, capture_output=True, text=True, check=True).stdout, "2\n")


@contextmanager
def _codecell() -> Iterator[Run]:
    # The runtime whose programs can call tools, as ours can.
    runtime = import_module("codecell").IpcSubprocessRuntime(import_module("codecell.python").PythonValidator())
    yield lambda: _expect(runtime.execute(SOURCE, timeout=10, namespace={"add": add}).stdout, "2\n")


@contextmanager
def _smolagents() -> Iterator[Run]:
    module = import_module("smolagents.local_python_executor")

    def run() -> None:
        executor = module.LocalPythonExecutor(["math"])
        executor.send_tools({})
        _expect(executor(SOURCE).logs, "2\n")

    yield run


@contextmanager
def _pydantic_monty() -> Iterator[Run]:
    with import_module("pydantic_monty").Monty() as pool:

        def run() -> None:
            with pool.checkout() as session:
                _expect(session.feed_run("x = 1\nx + 1"), 2)

        yield run


EXECUTORS = {
    "bare fork of the zygote": _bare_fork,
    "toolwire": _toolwire,
    "cold interpreter with the six modules": _cold_interpreter,
    "codecell": _codecell,
    "smolagents": _smolagents,
    "pydantic_monty": _pydantic_monty,
}
LIMITS = {"toolwire": 2.0}


def _is_there(name: str) -> bool:
    if name in ("codecell", "smolagents", "pydantic_monty"):
        try:
            import_module(name)
        except ImportError:
            print(f"  ({name} is not installed: `make bench` brings it)")
            return False
    return True


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found!r} is not {wanted!r}")
