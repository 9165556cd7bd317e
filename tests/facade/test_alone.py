"""Tools that need one thing for themselves."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire import CallContext, RegistrationError, ToolCall, ToolRegistry
from toolwire.facade.driving import async_scope
from toolwire.invocation.batch import invoke_all
from toolwire.runtime.step import step

DRIVERS = ["blocking", "asyncio"]


class Printer:
    """Two tools that use one printer, which notes who has it and in which order they came."""

    def __init__(self) -> None:
        self.inside = 0
        self.seen: list[tuple[str, int]] = []

    def print_text(self, n: int) -> None:
        """Prints."""
        self._use(f"text {n}")

    def print_picture(self, n: int) -> None:
        """Prints."""
        self._use(f"picture {n}")

    def _use(self, what: str) -> None:
        self.inside += 1
        self.seen.append((what, self.inside))
        self.inside -= 1


def batch(registry: ToolRegistry, driver: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    scope = registry._call_scope
    made = [ToolCall(name, arguments, id=f"r_{place}") for place, (name, arguments) in enumerate(calls)]
    if driver == "blocking":
        return step(invoke_all(made, scope))
    return asyncio.run(invoke_all(made, async_scope(scope)))


@pytest.mark.parametrize("driver", DRIVERS)
def test_all_that_demand_it_take_their_calls_one_by_one_in_the_order_of_the_batch(driver: str) -> None:
    for _ in range(10):
        printer, registry = Printer(), ToolRegistry()
        registry.register(printer.print_text, alone="printer")
        registry.register(printer.print_picture, alone="printer")
        registry.register(lambda: None, name="other")
        calls = [
            call for n in range(5) for call in (("print_picture", {"n": n}), ("other", {}), ("print_text", {"n": n}))
        ]
        batch(registry, driver, *calls)
        assert printer.seen == [(f"{kind} {n}", 1) for n in range(5) for kind in ("picture", "text")]


@pytest.mark.parametrize("driver", DRIVERS)
def test_others_and_those_that_demand_another_thing_run_beside_them(driver: str) -> None:
    barrier, registry = threading.Barrier(4), ToolRegistry()
    for name, alone in (("a", "printer"), ("b", "scanner"), ("c", None), ("d", None)):
        registry.register(lambda: barrier.wait(PATIENCE_S), name=name, alone=alone)
    results = batch(registry, driver, *[(name, {}) for name in "abcd"])
    assert sorted(result.data for result in results) == [0, 1, 2, 3]


def test_threads_and_loops_take_it_in_turn() -> None:
    registry, printer = ToolRegistry(), Printer()
    registry.register(printer.print_text, alone="printer")
    registry.register(printer.print_picture, alone="printer")
    calls = [(name, {"n": n}) for n in range(20) for name in ("print_text", "print_picture")]
    threads = [threading.Thread(target=batch, args=(registry, driver, *calls)) for driver in DRIVERS * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (len(printer.seen), {inside for _, inside in printer.seen}) == (160, {1})


async def test_a_tool_that_has_it_and_calls_another_that_needs_it_is_told() -> None:
    registry = ToolRegistry()

    async def outer(context: CallContext) -> str:
        """Uses the printer and calls another tool that does."""
        return (await context.call("inner")).text

    registry.register(outer, alone="printer")
    registry.register(lambda: "printed", name="inner", alone="printer")
    assert (await registry.ainvoke("outer")).data == (
        "'inner' was not started: it needs 'printer' for itself, and this call comes from inside a call that holds "
        "it.\nIt cannot be reached now. Try again later, or do without."
    )
    assert (await registry.ainvoke("inner")).data == "printed"


async def test_a_tool_that_has_it_may_call_one_that_needs_another_thing() -> None:
    registry = ToolRegistry()

    async def outer(context: CallContext) -> str:
        """Uses the printer and calls another tool."""
        return (await context.call("inner")).text

    registry.register(outer, alone="printer")
    registry.register(lambda: "scanned", name="inner", alone="scanner")
    assert (await registry.ainvoke("outer")).data == "scanned"


async def test_a_toolkit_shares_it_with_its_registry() -> None:
    registry, printer = ToolRegistry(), Printer()
    registry.register(printer.print_text, alone="printer")
    toolkit = registry.create_agent_toolkit("scout", ["print_text"])
    gate = registry._call_scope.catalogue.gate_of("printer")
    assert gate.enter() is None
    task = asyncio.ensure_future(toolkit.execute_tool("print_text", {"n": 1}))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (task.done(), gate.waiting) == (False, 1)
    gate.leave()
    assert (await asyncio.wait_for(task, PATIENCE_S)).success


def test_the_same_tool_with_another_thing_is_refused() -> None:
    registry, printer = ToolRegistry(), Printer()
    registry.register(printer.print_text, alone="printer")
    with pytest.raises(RegistrationError) as caught:
        registry.register(printer.print_text, alone="scanner")
    assert str(caught.value).startswith("'print_text' is registered already with other options;")
