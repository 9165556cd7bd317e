"""A reader and its producers: no producer runs ahead, whichever side waits."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from tests.patience import PATIENCE_S
from toolwire.runtime.rendezvous import Rendezvous


@pytest.fixture
def meeting() -> Rendezvous[str]:
    return Rendezvous()


def test_a_maker_waits_until_the_reader_comes_for_the_next_thing(meeting: Rendezvous[str]) -> None:
    turn = meeting.offer("a")
    assert not turn.done()
    assert (meeting.take().result(0), turn.done()) == ("a", False)
    following = meeting.take()
    assert (turn.result(0), following.done()) == (True, False)


def test_a_reader_waits_until_something_is_made(meeting: Rendezvous[str]) -> None:
    found = meeting.take()
    assert not found.done()
    turn = meeting.offer("a")
    assert (found.result(0), turn.done()) == ("a", False)


def test_things_of_several_makers_are_taken_in_the_order_of_their_offers(meeting: Rendezvous[str]) -> None:
    turns = [meeting.offer("a"), meeting.offer("b")]
    assert [meeting.take().result(0), meeting.take().result(0)] == ["a", "b"]
    assert [turn.done() for turn in turns] == [True, False]


def test_after_the_end_what_was_offered_can_be_taken_and_then_there_is_nothing(meeting: Rendezvous[str]) -> None:
    turns = [meeting.offer("a"), meeting.offer("b")]
    assert meeting.close()
    assert [turn.result(0) for turn in turns] == [False, False]
    assert [meeting.take().result(0) for _ in range(4)] == ["a", "b", None, None]


def test_an_offer_after_the_end_is_answered_at_once(meeting: Rendezvous[str]) -> None:
    assert not meeting.close()
    assert meeting.offer("late").result(0) is False
    assert [meeting.take().result(0) for _ in range(2)] == ["late", None]


def test_the_end_reaches_a_waiting_reader_and_the_maker_of_what_it_has_in_hand(meeting: Rendezvous[str]) -> None:
    turn = meeting.offer("a")
    meeting.take()
    assert (meeting.close(), turn.result(0)) == (True, False)
    other: Rendezvous[str] = Rendezvous()
    waiting = other.take()
    assert (other.close(), waiting.result(0)) == (False, None)


def test_ending_twice_is_ending_once(meeting: Rendezvous[str]) -> None:
    meeting.offer("a")
    assert (meeting.close(), meeting.close()) == (True, False)


def test_an_item_that_a_cancelled_reader_left_goes_to_the_next(meeting: Rendezvous[str]) -> None:
    assert meeting.take().cancel()
    meeting.offer("a")
    assert meeting.take().result(0) == "a"


def test_threads_and_loops_meet(meeting: Rendezvous[str]) -> None:
    made: list[bool] = []

    def make() -> None:
        made.extend(meeting.offer(str(number)).result(PATIENCE_S) for number in range(100))
        meeting.close()

    async def read() -> list[str]:
        found: list[str] = []
        while (thing := await asyncio.wrap_future(meeting.take())) is not None:
            found.append(thing)
            assert len(made) <= len(found)
        return found

    thread = threading.Thread(target=make)
    thread.start()
    found = asyncio.run(read())
    thread.join(PATIENCE_S)
    assert (found, made) == ([str(number) for number in range(100)], [True] * 100)


def test_many_makers_lose_nothing(meeting: Rendezvous[str]) -> None:
    def make(name: str) -> None:
        for number in range(200):
            meeting.offer(f"{name}{number}").result(PATIENCE_S)

    threads = [threading.Thread(target=make, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    taken = [meeting.take() for _ in range(1)]
    while len(taken) < 800:
        wait_for(taken[-1])
        taken.append(meeting.take())
    last = wait_for(taken[-1])
    meeting.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert last is not None
    assert sorted(str(thing.result(0)) for thing in taken) == sorted(f"{n}{i}" for n in "abcd" for i in range(200))


def wait_for(found: Future[str | None]) -> str | None:
    return found.result(PATIENCE_S)
