"""A program that was suspended goes on in another process as if nothing had happened, or says where it differs."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import pytest

from tests.processor import ratio
from tests.sandbox.drive.replayed import AWAITED, BY_ORDER, LINES, Approver, attempts, by_ordinal, program, told
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Answer, Parked, ProgramCall, Recorded
from toolwire.sandbox.report import ProgramResult


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[Sandbox, ...]]:
    """Two sandboxes with a zygote each: where one attempt ran, the next one does not."""
    with Sandbox() as one, Sandbox() as other:
        yield one, other


EQUAL = LINES | AWAITED


def test_there_are_enough_programs() -> None:
    assert len(EQUAL) >= 60


@pytest.mark.threat(17)
@pytest.mark.parametrize("source", EQUAL.values(), ids=EQUAL.keys())
def test_suspended_at_every_call_it_ends_as_if_it_had_never_been(two: tuple[Sandbox, ...], source: str) -> None:
    free = Approver()
    (whole,) = attempts(two, source, free, on_loop=False)
    stopped = Approver(all_calls=True)
    runs = attempts(two, source, stopped, on_loop=False)
    assert told(runs[-1]) == told(whole)
    assert by_ordinal(stopped) == by_ordinal(free)
    assert_replays(two, source, runs)


def assert_replays(two: tuple[Sandbox, ...], source: str, runs: list[ProgramResult]) -> None:
    """Replayed from its whole record it runs nothing and ends in the same way, in the sandbox that did not end it."""
    nobody = Approver()
    again = two[len(runs) % 2].run(program(source, runs[-1].recorded), nobody)
    assert told(again) == told(runs[-1])
    assert (nobody.made, again.recorded) == ([], runs[-1].recorded)
    assert all(runs[-1].stdout.startswith(run.stdout) for run in runs)


@pytest.mark.parametrize("source", EQUAL.values(), ids=EQUAL.keys())
def test_suspended_at_any_one_call_it_ends_the_same_on_a_loop(two: tuple[Sandbox, ...], source: str) -> None:
    free = Approver()
    (whole,) = attempts(two, source, free, on_loop=True)
    count = len(whole.calls)
    for ordinal in sorted({1, count // 2 + 1, count}) if count else ():
        stopped = Approver([ordinal])
        runs = attempts(two, source, stopped, on_loop=True)
        assert len(runs) <= 2
        assert told(runs[-1]) == told(whole)
        assert by_ordinal(stopped) == by_ordinal(free)


@pytest.mark.parametrize("source", BY_ORDER.values(), ids=BY_ORDER.keys())
def test_replayed_from_its_whole_record_it_runs_nothing(two: tuple[Sandbox, ...], source: str) -> None:
    assert_replays(two, source, attempts(two, source, Approver(all_calls=True), on_loop=False))


@pytest.mark.parametrize("source", BY_ORDER.values(), ids=BY_ORDER.keys())
def test_so_it_does_when_the_first_attempts_were_on_a_loop(two: tuple[Sandbox, ...], source: str) -> None:
    runs = attempts(two, source, Approver([2, 3]), on_loop=True)
    nobody = Approver()
    again = two[len(runs) % 2].run(program(source, runs[-1].recorded), nobody)
    assert told(again) == told(runs[-1])
    assert nobody.made == []


def processor_s(sandbox: Sandbox, source: str, recorded: tuple[Recorded, ...]) -> float:
    started = time.process_time()
    result = sandbox.run(program(source, recorded), Approver())
    return time.process_time() - started + result.cpu_s


def test_a_hundred_recorded_calls_cost_at_most_three_empty_runs(two: tuple[Sandbox, ...]) -> None:
    source = "total = 0\nfor n in range(100):\n    total = add(total, n)\ntotal"
    recorded = two[0].run(program(source), Approver()).recorded
    found = ratio(
        lambda: processor_s(two[0], source, recorded), lambda: processor_s(two[0], "1", ()), enough=3, least_rounds=12
    )
    assert found <= 3


def a_race(seed: int) -> str:
    """An async program whose timers and calls get in each other's way, different for each seed."""
    chance = random.Random(seed)
    lines = ["async def step(name, seconds, value):", "    await asyncio.sleep(seconds)"]
    lines += ["    print(name, await echo(value))", "    return value"]
    lines += ["async def limited(name, seconds):", "    try:", "        async with asyncio.timeout(seconds):"]
    lines += ["            for n in range(4):", "                print(name, n, await echo(n))"]
    lines += ["    except TimeoutError:", "        print(name, 'late', await echo(name))"]
    works = [
        f"step('s{n}', {chance.random() / 100!r}, {n})"
        if chance.random() < 0.6
        else f"limited('l{n}', {chance.random() / 100!r})"
        for n in range(chance.randint(2, 6))
    ]
    lines.append(f"for done in asyncio.as_completed([{', '.join(works)}]):\n    print('done', await done)")
    lines.append("await echo(datetime.now())")
    return "\n".join(lines)


class Slow(Approver):
    """Takes its time, each time another, and sends some calls to a person."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        super().__init__([self._chance.randint(1, 8), self._chance.randint(1, 8)])

    async def awaited(self, call: ProgramCall) -> Answer | Parked:
        await asyncio.sleep(self._chance.random() / 200)
        return self(call)


@pytest.mark.parametrize("seed", range(8))
def test_timers_and_calls_that_race_end_as_they_did(two: tuple[Sandbox, ...], seed: int) -> None:
    source = a_race(seed)
    runs = attempts(two, source, slow := Slow(seed), on_loop=True)
    assert runs[-1].status == "finished"
    assert len({call[0] for call in slow.made}) == len(slow.made)
    nobody = Approver()
    again = two[len(runs) % 2].run(program(source, runs[-1].recorded), nobody)
    assert (told(again), nobody.made) == (told(runs[-1]), [])
