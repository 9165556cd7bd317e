"""Calls that are made again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invocation.middleware.clock import Clock
from tests.invocation.middleware.failing import Service, failed
from tests.invocation.world import World, outcome
from toolwire.invocation.middleware.circuit_breaker import CircuitBreaker
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.invocation.middleware.retry import BUDGET, SPARE_RETRIES, Retry
from toolwire.vocabulary.results import ToolResult

DOWN = ConnectionRefusedError()


def always(share: float) -> Any:
    return lambda: share


def test_a_call_that_failed_on_the_way_is_made_again_and_says_how_often(world: World, clock: Clock) -> None:
    service = Service(DOWN, failed("unavailable"), "at last")
    world.add(service.tool())
    world.middleware = (Retry(clock=clock, random=always(1.0)),)
    result = world.call("fetch")
    assert (result.data, dict(result.metadata), service.requests) == ("at last", {"attempts": 3}, 3)
    assert clock.slept == [0.2, 0.4]


def test_one_that_goes_through_is_made_once(world: World, clock: Clock) -> None:
    service = Service("at once")
    world.add(service.tool())
    world.middleware = (Retry(clock=clock),)
    result = world.call("fetch")
    assert (result.data, dict(result.metadata), service.requests, clock.slept) == ("at once", {}, 1, [])


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_it_is_made_so_often_and_no_more(world: World, clock: Clock, attempts: int) -> None:
    service = Service(DOWN)
    world.add(service.tool())
    world.middleware = (Retry(attempts, clock=clock, random=always(0.0)),)
    assert (outcome(world.call("fetch")), service.requests) == ("tool_error", attempts)


@pytest.mark.parametrize(("idempotent", "requests"), [("no", 1), ("key", 3), ("natural", 3)])
def test_only_a_tool_that_may_be_called_twice_is(world: World, clock: Clock, idempotent: str, requests: int) -> None:
    service = Service(DOWN)
    world.add(service.tool(idempotent=idempotent))
    world.middleware = (Retry(clock=clock),)
    world.call("fetch")
    assert service.requests == requests


def test_a_keyed_tool_gets_the_same_key_each_time(world: World, clock: Clock) -> None:
    from toolwire.definition.from_function import from_function
    from toolwire.vocabulary.context import CallContext

    keys: list[str] = []

    def pay(context: CallContext) -> None:
        keys.append(context.idempotency_key)
        raise DOWN

    world.add(from_function(pay, idempotent="key"))
    world.middleware = (Retry(clock=clock),)
    world.call("pay")
    assert (len(keys), len(set(keys)), bool(keys[0])) == (3, 1, True)


def test_a_call_that_never_reached_its_tool_is_made_again_whatever_the_tool_is(world: World, clock: Clock) -> None:
    service = Service("at last")
    refusals = [1, 1]

    @colourless
    async def refuse(call: PreparedCall, call_next: CallNext) -> ToolResult:
        if refusals:
            refusals.pop()
            return ToolResult.failed("overloaded", "full", data={"is_started": False}, call=call.call)
        return await call_next(call)

    world.add(service.tool(idempotent="no"))
    world.middleware = (Retry(clock=clock), refuse)
    assert (world.call("fetch").data, service.requests) == ("at last", 1)


@pytest.mark.parametrize("answer", [ValueError("no such user"), failed("invalid_arguments"), failed("limit")], ids=repr)
def test_a_tools_own_error_is_final(world: World, clock: Clock, answer: Any) -> None:
    service = Service(answer)
    world.add(service.tool())
    world.middleware = (Retry(clock=clock),)
    world.call("fetch")
    assert service.requests == 1


def test_a_failure_after_some_output_is_final_for_its_reader_has_seen_it(world: World, clock: Clock) -> None:
    requests: list[int] = []

    def fetch() -> Any:
        requests.append(1)
        yield "the first half"
        raise DOWN

    from toolwire.definition.from_function import from_function

    world.add(from_function(fetch, idempotent="natural"))
    world.middleware = (Retry(clock=clock),)
    assert (outcome(world.call("fetch")), len(requests)) == ("tool_error", 1)


def test_it_waits_as_long_as_it_is_told_to(world: World, clock: Clock) -> None:
    told = ToolResult.failed("overloaded", "slow down", data={"retry_after_s": 3})
    world.add(Service(told, told, "now").tool())
    world.middleware = (Retry(clock=clock, random=always(0.5)),)
    assert (world.call("fetch").data, clock.slept) == ("now", [3, 3])


def test_it_does_not_wait_longer_than_the_longest_wait(world: World, clock: Clock) -> None:
    service = Service(ToolResult.failed("overloaded", "slow down", data={"retry_after_s": 11}))
    world.add(service.tool())
    world.middleware = (Retry(longest_wait_s=10, clock=clock),)
    world.call("fetch")
    assert (service.requests, clock.slept) == (1, [])


@pytest.mark.parametrize(("left_s", "requests"), [(1.0, 3), (0.5, 2), (0.1, 1)])
def test_it_stops_where_the_deadline_leaves_no_time(world: World, clock: Clock, left_s: float, requests: int) -> None:
    service = Service(DOWN)
    world.add(service.tool())
    world.deadline = clock() + left_s + 60
    world.middleware = (Retry(clock=lambda: clock() + 60, random=always(1.0)),)
    world.call("fetch")
    assert service.requests == requests


def test_waits_are_anywhere_between_nothing_and_twice_the_last(world: World, clock: Clock) -> None:
    shares = iter([0.0, 0.3, 1.0, 0.5])
    world.add(Service(DOWN).tool())
    world.middleware = (Retry(5, first_wait_s=1, longest_wait_s=5, clock=clock, random=lambda: next(shares)),)
    world.call("fetch")
    assert clock.slept == [0.0, 0.6, 4.0, 2.5]


@pytest.mark.threat(56)
def test_in_an_outage_a_thousand_calls_make_hardly_more_requests_than_calls(world: World, clock: Clock) -> None:
    calls, service, storm = 1_000, Service(failed("unavailable")), Service(failed("unavailable"))
    breaker, behind = CircuitBreaker(clock=clock), Service(failed("unavailable"))
    world.add(service.tool("budgeted"), middleware=(Retry(clock=clock),))
    world.add(behind.tool("broken"), middleware=(Retry(clock=clock), breaker))
    # The control: the same with all the retries that anybody could want.
    world.add(storm.tool("storm"), middleware=(Retry(clock=clock, spare_retries=10 * calls),))
    for name in ("budgeted", "broken", "storm"):
        for _ in range(calls):
            world.call(name)
    assert service.requests == calls + SPARE_RETRIES <= 1.1 * calls
    assert behind.requests <= 0.1 * calls
    assert storm.requests == 3 * calls


def test_calls_that_go_through_pay_for_retries_to_come(world: World, clock: Clock) -> None:
    service = Service("fine")
    world.add(service.tool())
    world.middleware = (Retry(clock=clock, spare_retries=1),)
    service.answers = [DOWN]
    world.call("fetch")
    assert service.requests == 2
    service.answers = ["fine"]
    for _ in range(round(1 / BUDGET) + 1):
        world.call("fetch")
    service.requests, service.answers = 0, [DOWN]
    world.call("fetch")
    assert service.requests == 2


def test_each_tool_has_a_budget_of_its_own(world: World, clock: Clock) -> None:
    down, other = Service(DOWN), Service(DOWN)
    world.add(down.tool("down"))
    world.add(other.tool("other"))
    world.middleware = (Retry(clock=clock, spare_retries=2),)
    for _ in range(10):
        world.call("down")
    world.call("other")
    assert (down.requests, other.requests) == (12, 3)
