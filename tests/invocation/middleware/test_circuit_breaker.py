"""A tool whose server cannot be reached is not called for a while."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.invocation.middleware.clock import Clock
from tests.invocation.middleware.failing import Service, failed
from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.circuit_breaker import CircuitBreaker
from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import Outcome

DOWN = ConnectionRefusedError()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "toolwire.middleware")


def calls(world: World, count: int, name: str = "fetch") -> list[str]:
    return [outcome(world.call(name)) for _ in range(count)]


def test_after_so_many_failures_in_a_row_calls_fail_at_once(world: World, clock: Clock) -> None:
    service = Service(DOWN)
    world.add(service.tool())
    world.middleware = (CircuitBreaker(3, open_s=30, clock=clock),)
    assert calls(world, 5) == ["tool_error"] * 3 + ["unavailable"] * 2
    refusal = world.call("fetch")
    assert service.requests == 3
    assert refusal.text == (
        "'fetch' was not started: it could not be reached 3 times in a row.\n"
        "It did not run. Try again in 30 s, or do without."
    )
    assert refusal.failure is not None
    assert refusal.failure.data == {"is_started": False, "retry_after_s": 30.0}


@pytest.mark.parametrize("answer", ["fine", ValueError("no such user")], ids=repr)
def test_a_call_that_arrives_begins_the_count_anew_a_tools_own_error_too(
    world: World, clock: Clock, answer: Any
) -> None:
    service = Service(DOWN, DOWN, answer, DOWN, DOWN, answer)
    world.add(service.tool())
    world.middleware = (CircuitBreaker(3, clock=clock),)
    calls(world, 7)
    assert service.requests == 7


@pytest.mark.parametrize("error", [ValueError("no such user"), failed("invalid_arguments"), failed("limit")], ids=repr)
def test_a_tools_own_errors_never_open_it(world: World, clock: Clock, error: Any) -> None:
    service = Service(error)
    world.add(service.tool())
    world.middleware = (CircuitBreaker(3, clock=clock),)
    calls(world, 50)
    assert service.requests == 50


def test_when_the_time_is_over_one_call_tries_and_opens_the_way_for_all(world: World, clock: Clock) -> None:
    service = Service(DOWN, DOWN, "back")
    world.add(service.tool())
    world.middleware = (CircuitBreaker(2, open_s=30, clock=clock),)
    assert calls(world, 3) == ["tool_error", "tool_error", "unavailable"]
    clock.sleep(29.9)
    assert calls(world, 1) == ["unavailable"]
    clock.sleep(0.2)
    assert calls(world, 3) == ["success"] * 3


def test_a_try_that_fails_closes_the_way_for_as_long_again(world: World, clock: Clock) -> None:
    service = Service(DOWN)
    world.add(service.tool())
    world.middleware = (CircuitBreaker(2, open_s=30, clock=clock),)
    calls(world, 2)
    for _ in range(3):
        clock.sleep(30)
        assert calls(world, 3) == ["tool_error", "unavailable", "unavailable"]
    assert service.requests == 5


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_only_one_call_tries_at_a_time_and_a_cancelled_try_lets_the_next_one_try() -> None:
    world, clock, tries, door = World(driver="asyncio"), Clock(), [], asyncio.Event()

    async def fetch() -> str:
        if not tries:
            tries.append("first")
            raise DOWN
        tries.append("again")
        await door.wait()
        return "back"

    world.add(fetch)
    world.middleware = (CircuitBreaker(1, open_s=30, clock=clock),)

    def start() -> asyncio.Task[Outcome]:
        return asyncio.ensure_future(invoke(ToolCall("fetch"), world.loop_scope()))  # type: ignore[return-value]

    await start()
    clock.sleep(31)
    probe, other = start(), start()
    await settled()
    assert (tries, outcome(other.result())) == (["first", "again"], "unavailable")  # type: ignore[arg-type]
    probe.cancel()
    await settled()
    probe = start()
    door.set()
    assert (await asyncio.wait_for(probe, PATIENCE_S)).success  # type: ignore[union-attr]
    assert (await start()).success  # type: ignore[union-attr]


async def test_a_call_from_before_says_nothing_of_how_things_are_now() -> None:
    world, clock, door = World(driver="asyncio"), Clock(), asyncio.Event()

    async def fetch(slow: bool) -> str:
        if not slow:
            raise DOWN
        await door.wait()
        return "late"

    world.add(fetch)
    world.middleware = (CircuitBreaker(1, open_s=30, clock=clock),)

    def start(slow: bool) -> asyncio.Task[Outcome]:
        call = ToolCall("fetch", {"slow": slow})
        return asyncio.ensure_future(invoke(call, world.loop_scope()))  # type: ignore[return-value]

    late = start(True)
    await settled()
    await start(False)
    door.set()
    assert outcome(await asyncio.wait_for(late, PATIENCE_S)) == "success"  # type: ignore[arg-type]
    assert outcome(await start(False)) == "unavailable"  # type: ignore[arg-type]


def test_calls_that_never_started_do_not_open_it(world: World, clock: Clock) -> None:
    world.add(Service("fine").tool(), middleware=())
    world.middleware = (CircuitBreaker(1, clock=clock), Concurrency(1, queue_limit=0))
    holder = world.catalogue.find("fetch")
    assert holder is not None
    layer = world.middleware[1]
    gate = layer._places.of("fetch").gate  # type: ignore[attr-defined]
    assert gate.enter() is None
    assert calls(world, 3) == ["overloaded"] * 3
    gate.leave()
    assert calls(world, 1) == ["success"]


def test_each_tool_has_a_circuit_of_its_own_unless_a_key_joins_them(world: World, clock: Clock) -> None:
    world.add(Service(DOWN).tool("crm_read"))
    world.add(Service("fine").tool("crm_list"))
    world.middleware = (CircuitBreaker(1, clock=clock),)
    assert (calls(world, 2, "crm_read"), calls(world, 1, "crm_list")) == (["tool_error", "unavailable"], ["success"])
    world.middleware = (CircuitBreaker(1, key=lambda call: call.tool.partition("_")[0], clock=clock),)
    assert (calls(world, 1, "crm_read"), calls(world, 1, "crm_list")) == (["tool_error"], ["unavailable"])


def test_an_operator_reads_when_it_opens_and_when_it_closes(
    world: World, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "toolwire.middleware")
    world.add(Service(DOWN, "back").tool())
    world.middleware = (CircuitBreaker(1, open_s=30, clock=clock),)
    calls(world, 2)
    clock.sleep(31)
    calls(world, 2)
    assert [record.getMessage() for record in caplog.records if record.name == "toolwire.middleware"] == [
        "the circuit of 'fetch' is open for 30 s: it cannot be reached",
        "the circuit of 'fetch' is closed: it can be reached again",
    ]
