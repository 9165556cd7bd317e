"""At most a number of calls begins in a period."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invocation.middleware.clock import Clock
from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.invocation.middleware.rate_limit import CALLS_LIMIT, RateLimit, _StartTimes
from toolwire.vocabulary.errors import ConfigurationError


def test_the_call_beyond_fails_as_overloaded_and_says_when_there_is_room(world: World, clock: Clock) -> None:
    ran: list[int] = []
    world.add(lambda: ran.append(1), name="work")
    world.middleware = (RateLimit(2, per_s=60, clock=clock),)
    results = [world.call("work") for _ in range(3)]
    assert [outcome(result) for result in results] == ["success", "success", "overloaded"]
    assert results[2].text == (
        "'work' was not started: it takes 2 calls in 60 s.\nIt did not run. Try again in 60 s, or do without."
    )
    assert results[2].failure is not None
    assert (results[2].failure.data, len(ran)) == ({"is_started": False, "retry_after_s": 60.0}, 2)


def test_there_is_room_again_when_the_first_call_is_old_enough(world: World, clock: Clock) -> None:
    world.add(lambda: 1, name="work")
    world.middleware = (RateLimit(2, per_s=60, wait_limit_s=0, clock=clock),)
    found = []
    for seconds in (0, 30, 29.5, 1, 1):
        clock.sleep(seconds)
        found.append(outcome(world.call("work")))
    assert found == ["success", "success", "overloaded", "success", "overloaded"]


def test_a_short_wait_is_waited(world: World, clock: Clock) -> None:
    world.add(lambda: 1, name="work")
    # A limit of exactly the wait would be met or not by how the clock's time is rounded.
    world.middleware = (RateLimit(1, per_s=0.5, wait_limit_s=0.6, clock=clock),)
    clock.slept.clear()
    assert [outcome(world.call("work")) for _ in range(3)] == ["success"] * 3
    assert clock.slept == [0.5, 0.5]


def test_no_call_waits_beyond_the_deadline(world: World, clock: Clock) -> None:
    world.add(lambda: 1, name="work")
    world.deadline = clock() + 0.3
    world.middleware = (RateLimit(1, per_s=0.5, wait_limit_s=1, clock=clock),)
    assert [outcome(world.call("work")) for _ in range(2)] == ["success", "overloaded"]


def test_each_tool_has_a_limit_of_its_own_unless_a_key_joins_them(world: World, clock: Clock) -> None:
    world.add(lambda: 1, name="crm_read")
    world.add(lambda: 1, name="crm_list")
    world.middleware = (RateLimit(1, per_s=60, clock=clock),)
    assert [outcome(world.call(name)) for name in ("crm_read", "crm_list")] == ["success", "success"]
    world.middleware = (RateLimit(1, per_s=60, key=lambda call: call.tool.partition("_")[0], clock=clock),)
    assert [outcome(world.call(name)) for name in ("crm_read", "crm_list")] == ["success", "overloaded"]


@given(
    calls=st.integers(1, 5),
    per_s=st.floats(0.1, 100),
    limit_s=st.floats(0, 50),
    steps=st.lists(st.floats(0, 50), max_size=60),
)
def test_in_no_stretch_of_that_length_do_more_calls_begin(
    calls: int, per_s: float, limit_s: float, steps: list[float]
) -> None:
    begun, now, times = _StartTimes(calls, per_s), 0.0, []
    for step in steps:
        now += step
        wait_s, is_taken = begun.take(now, limit_s)
        if is_taken:
            assert wait_s <= limit_s
            times.append(now + wait_s)
    apart = [later - first for first, later in zip(times, times[calls:], strict=False)]
    assert all(gap >= per_s * (1 - 1e-9) for gap in apart)


def test_calls_that_count_no_more_are_forgotten() -> None:
    begun = _StartTimes(1_000, 10)
    for now in range(100):
        begun.take(float(now), 0)
    assert len(begun._times) == 10


def test_threads_together_get_no_more_than_one_alone() -> None:
    begun, taken = _StartTimes(50, 60), []

    def take() -> None:
        taken.extend(begun.take(0.0, 0.0)[1] for _ in range(100))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (len(taken), sum(taken)) == (800, 50)


def test_more_calls_than_can_be_remembered_are_refused_at_once() -> None:
    RateLimit(CALLS_LIMIT, per_s=1)
    with pytest.raises(ConfigurationError) as caught:
        RateLimit(CALLS_LIMIT + 1, per_s=1)
    assert str(caught.value) == "RateLimit(calls=100001): give 100,000 at most; count in shorter times"
