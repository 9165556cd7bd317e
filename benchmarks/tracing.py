"""The cost of tracing calls: about zero when it is off, and the cost of the SDK when it is on."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from benchmarks.plain import add
from benchmarks.timing import Figure, show
from toolwire import ToolRegistry
from toolwire.invocation import invoker
from toolwire.invocation.scope import Scope
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import Outcome

OFF_LIMIT_US = 0.5
"""Microseconds of processor time that a call may cost more because it could be followed."""
ROUNDS = 41
_NUMBER = 2_000
_CALL = ToolCall("add", {"a": 1, "b": 2}, id="r_1")


async def unfollowed(call: ToolCall, scope: Scope) -> Outcome:
    """`invoke` as it would be if no call could be followed."""
    if scope.ledger is None and not scope.observers:
        return await invoker._take_steps(call, scope, None)
    raise AssertionError("measured without a ledger and observers")


def off_cost_us(*, rounds: int = ROUNDS, number: int = _NUMBER) -> float:
    """Microseconds of processor time that tracing code adds to a call while it is off; the two variants take turns."""
    registry = ToolRegistry()
    registry.register(add)
    scope = registry._parts.scope
    return _difference_us(
        lambda: step(unfollowed(_CALL, scope)), lambda: step(invoker.invoke(_CALL, scope)), rounds=rounds, number=number
    )


def on_costs_us() -> dict[str, float]:
    """The same for calls that are followed, without an SDK and with one that keeps spans in memory."""
    plain = ToolRegistry()
    plain.register(add)
    found: dict[str, float] = {}
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for name, providers in (("without an SDK", {}), ("with an SDK in memory", {"tracer_provider": provider})):
        followed = ToolRegistry()
        followed.register(add)
        followed.enable_tracing(**providers)
        found[name] = _difference_us(
            lambda: plain.invoke("add", _CALL.arguments),
            lambda followed=followed: followed.invoke("add", _CALL.arguments),
            rounds=9,
            number=500,
        )
        exporter.clear()
    return found


def _difference_us(one: Callable[[], Any], other: Callable[[], Any], *, rounds: int, number: int) -> float:
    """The median over rounds of the pair's difference; which goes first alternates."""
    differences: list[float] = []
    for turn in range(rounds):
        first, second = (one, other) if turn % 2 else (other, one)
        times = {first: _processor_s(first, number)}
        times[second] = _processor_s(second, number)
        differences.append((times[other] - times[one]) / number * 1e6)
    return statistics.median(differences)


def _processor_s(function: Callable[[], Any], number: int) -> float:
    started = time.process_time()
    for _ in range(number):
        function()
    return time.process_time() - started


def figures() -> list[Figure]:
    """The cost when off, with its limit, and when on."""
    on = [Figure(name=f"on, {name}", ratio=cost, limit=None, unit="us") for name, cost in on_costs_us().items()]
    return [Figure(name="off", ratio=off_cost_us(), limit=OFF_LIMIT_US, unit="us"), *on]


def main() -> int:
    """Prints the figures; 1 when the limit is not met."""
    found = figures()
    show("Following calls, processor time a call", found)
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
