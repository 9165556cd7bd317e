"""One at a time, whatever waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import Future
from itertools import pairwise

import pytest

from tests.patience import PATIENCE_S
from toolwire.vocabulary.machine.gate import Gate, GateClosed, GateFull, ShareTaken


def queue_up(gate: Gate, waiters: int) -> list[Future[None]]:
    """Takes the gate and queues others behind it."""
    assert gate.enter() is None
    turns = [gate.enter() for _ in range(waiters)]
    return [turn for turn in turns if turn is not None]


def test_the_first_one_goes_through_and_the_next_one_waits() -> None:
    gate = Gate()
    (turn,) = queue_up(gate, 1)
    assert not turn.done()
    gate.leave()
    assert turn.result(timeout=0) is None
    gate.leave()
    assert gate.enter() is None


def test_waiters_are_let_in_one_by_one_in_the_order_they_came() -> None:
    gate = Gate()
    turns = queue_up(gate, 3)
    seen = []
    for _ in turns:
        gate.leave()
        seen.append([turn.done() for turn in turns])
    assert seen == [[True, False, False], [True, True, False], [True, True, True]]


def test_a_waiter_that_withdraws_is_passed_over() -> None:
    gate = Gate()
    first, second = queue_up(gate, 2)
    gate.withdraw(first)
    gate.leave()
    assert (first.cancelled(), second.cancelled(), second.done()) == (True, False, True)


def test_a_waiter_that_withdraws_after_its_turn_came_passes_it_on() -> None:
    gate = Gate()
    first, second = queue_up(gate, 2)
    gate.leave()
    gate.withdraw(first)
    assert second.done()


def test_a_turn_cancelled_before_it_is_withdrawn_is_passed_over() -> None:
    gate = Gate()
    first, second = queue_up(gate, 2)
    first.cancel()
    gate.leave()
    assert second.done()
    gate.withdraw(first)
    assert gate.enter() is not None


def test_a_full_queue_refuses_until_a_waiter_gives_up() -> None:
    gate = Gate(queue_limit=2)
    turns = queue_up(gate, 2)
    with pytest.raises(GateFull):
        gate.enter()
    turns[0].cancel()
    assert gate.waiting == 1
    assert gate.enter() is not None


def test_an_owner_takes_no_more_than_its_share_and_gives_it_back() -> None:
    gate = Gate(3, share=2)
    gate.enter_now("a")
    gate.enter_now("a")
    with pytest.raises(ShareTaken):
        gate.enter_now("a")
    gate.enter_now("b")
    with pytest.raises(GateFull) as full:
        gate.enter_now("c")
    assert type(full.value) is GateFull
    gate.leave("a")
    gate.enter_now("a")
    assert (gate.inside, gate.waiting) == (3, 0)


def test_a_caller_without_an_owner_takes_no_share() -> None:
    gate = Gate(3, share=1)
    for _ in range(3):
        gate.enter_now()
    assert gate.inside == 3


def test_a_closed_gate_lets_nobody_in_and_sends_the_waiters_away() -> None:
    gate = Gate()
    first, second = queue_up(gate, 2)
    first.cancel()
    gate.close()
    assert type(second.exception(timeout=0)) is GateClosed
    for enter in (gate.enter, gate.enter_now):
        with pytest.raises(GateClosed):
            enter()
    gate.leave()
    assert (gate.inside, gate.waiting) == (0, 0)


def test_threads_are_inside_one_at_a_time() -> None:
    gate, inside, overlaps = Gate(), [], []

    def visit() -> None:
        for _ in range(200):
            turn = gate.enter()
            if turn is not None:
                turn.result(timeout=PATIENCE_S)
            inside.append(None)
            overlaps.append(len(inside))
            inside.pop()
            gate.leave()

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)
    assert overlaps == [1] * 800


async def visit(gate: Gate, name: str, visits: list[str]) -> None:
    turn = gate.enter()
    if turn is not None:
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            gate.withdraw(turn)
            raise
    visits.append(f"+{name}")
    await asyncio.sleep(0)
    visits.append(f"-{name}")
    gate.leave()


async def test_tasks_are_inside_one_at_a_time_in_the_order_they_came() -> None:
    gate: Gate = Gate()
    visits: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(visit(gate, name, visits) for name in "abcd"))
    assert visits == ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "-d"]


async def test_a_cancelled_task_leaves_the_way_to_the_next() -> None:
    gate: Gate = Gate()
    visits: list[str] = []
    gate.enter()
    first, second = (asyncio.ensure_future(visit(gate, name, visits)) for name in "ab")
    await asyncio.sleep(0)
    first.cancel()
    gate.leave()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait((first, second))
    assert (first.cancelled(), visits) == (True, ["+b", "-b"])
    assert gate.enter() is None


def test_tasks_of_several_loops_are_inside_one_at_a_time() -> None:
    gate: Gate = Gate()
    visits: list[str] = []

    async def come_often(name: str) -> None:
        for _ in range(50):
            await visit(gate, name, visits)

    threads = [threading.Thread(target=lambda name=name: asyncio.run(come_often(name))) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)
    assert len(visits) == 300
    assert all(came[1] == left[1] for came, left in list(pairwise(visits))[::2])


def test_a_forked_child_finds_the_gate_open() -> None:
    code = (
        "import os\n"
        "from toolwire.vocabulary.machine.gate import Gate\n"
        "gate = Gate()\n"
        "gate.enter(), gate.enter()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if gate.enter() is None else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), gate.enter() is None)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert run.stdout == "0 False\n"
