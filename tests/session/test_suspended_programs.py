"""Programs that wait for a person midway are replayed in another process, any number of times, and run every call
once."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest

from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, program
from toolwire import ConfigurationError, Session, ToolSpec, Turn
from toolwire.permission.approval import DecisionRefused
from toolwire.sandbox.answers import replay_engine
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore

THREE = """
total = 0
for thing in ["tea", "bread", "oranges"]:
    amount = price(thing)
    total += amount
    print(thing, pay(amount))
__result__ = total
"""


async def to_the_end(till: Till, store: RunStore, turn: Turn, limit: int = 10) -> tuple[Turn, list[Any]]:
    """The turn after everything was approved, one request after the other, each time by a session that is new."""
    shown: list[Any] = []
    while turn.suspended is not None and len(shown) < limit:
        shown.append([dict(request.arguments) for request in waiting(turn)])
        turn = await till.session(store, protocol="attp").resume(
            turn.suspended.run_id, decided(waiting(turn), "approve")
        )
    return turn, shown


async def test_a_session_without_programs_leaves_a_suspended_one_as_it_is(store: RunStore) -> None:
    till = Till()
    asked = await till.session(store, protocol="json", programs=True).turn(f"```python\n{THREE}\n```")
    assert asked.suspended is not None
    decisions = decided(waiting(asked), "approve")
    with pytest.raises(ConfigurationError, match=r"runs none: write Session\(\.\.\., programs=True\)$"):
        await till.session(store, protocol="json").resume(asked.suspended, decisions)
    assert till.paid == []
    turn = await till.session(store, protocol="json", programs=True).resume(asked.suspended.run_id)
    assert (till.paid, turn.suspended is not None) == ([3], True)


async def test_a_program_is_resumed_in_its_middle_as_often_as_it_asks(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, protocol="attp").turn(program(THREE))
    done, shown = await to_the_end(till, store, turn)
    assert done.text == "tea paid 3 to shop\nbread paid 5 to shop\noranges paid 7 to shop\n15"
    assert shown == [[{"amount": amount, "to": "shop"}] for amount in (3, 5, 7)]
    assert (till.paid, till.asked) == ([3, 5, 7], ["tea", "bread", "oranges"])


async def test_parallel_calls_of_a_program_are_all_pending_at_once(store: RunStore) -> None:
    till = Till()
    code = "import asyncio\nprint(await asyncio.gather(pay(1), pay(2), price('tea'), pay(3)))"
    turn = await till.session(store, protocol="attp").turn(program(code))
    assert sorted(request.arguments["amount"] for request in waiting(turn)) == [1, 2, 3]
    done, _ = await to_the_end(till, store, turn)
    assert done.text == "['paid 1 to shop', 'paid 2 to shop', 3, 'paid 3 to shop']\n"
    assert (sorted(till.paid), till.asked) == ([1, 2, 3], ["tea"])


async def test_partly_decided_parallel_calls_run_once_and_the_rest_still_waits(store: RunStore) -> None:
    till = Till()
    code = "import asyncio\nprint(await asyncio.gather(pay(1), pay(2), return_exceptions=True))"
    session = till.session(store, protocol="attp")
    turn = await session.turn(program(code))
    first, second = sorted(waiting(turn), key=lambda request: request.arguments["amount"])
    half = await till.session(store, protocol="attp").resume(first.run_id, decided([second], "approve"))
    assert ([request.id for request in waiting(half)], till.paid) == ([first.id], [2])
    done = await till.session(store, protocol="attp").resume(first.run_id, decided([first], "deny", reason="no"))
    assert (till.paid, done.suspended) == ([2], None)
    assert "may not be run: no" in done.text
    assert "'paid 2 to shop'" in done.text


async def test_a_denial_is_an_exception_that_the_program_may_catch(store: RunStore) -> None:
    till = Till()
    code = "try:\n    pay(5)\nexcept ToolError as error:\n    print('denied', pay(1))"
    session = till.session(store, protocol="attp")
    turn = await session.turn(program(code))
    turn = await till.session(store, protocol="attp").resume(
        waiting(turn)[0].run_id, decided(waiting(turn), "deny", reason="no")
    )
    done, _ = await to_the_end(till, store, turn)
    assert (done.text, till.paid) == ("denied paid 1 to shop\n", [1])


async def test_replay_repeats_the_clock_and_the_random_numbers(store: RunStore) -> None:
    till = Till()
    look = "seen = str([datetime.now(), random.random(), random.SystemRandom().random()])"
    code = f"{look}\nprice(seen)\npay(1)\nprint(seen)"
    turn = await till.session(store, protocol="attp").turn(program(f"print(price('tea'))\n{code}\n{code}"))
    done, _ = await to_the_end(till, store, turn)
    lines = done.text.splitlines()
    assert (till.asked, till.paid) == (["tea", *lines[1:]], [1, 1])
    assert lines[1] != lines[2]


async def test_the_calls_of_a_resumed_program_keep_their_ids(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, protocol="attp").turn(program(THREE))
    ids = [request.call_id for request in waiting(turn)]
    again = await till.session(store, protocol="attp").resume(waiting(turn)[0].run_id)
    assert [request.call_id for request in waiting(again)] == ids
    assert ids[0].startswith("tr_ptc_")
    assert ids[0].endswith("/2")


async def test_a_program_that_would_go_another_way_is_stopped_before_anything_runs() -> None:
    till, store = Till(), MemoryStore()
    turn = await till.session(store, protocol="attp").turn(program(THREE))
    run = store.kept[waiting(turn)[0].run_id]
    changed = dict(run.start.reply)
    changed["calls"] = [{**call, "arguments": {"code": "pay(1000)"}} for call in changed["calls"]]
    run.start = replace(run.start, reply=changed)
    with pytest.raises(DecisionRefused) as refused:
        await till.session(store, protocol="attp").resume(run.run_id, decided(waiting(turn), "approve"))
    assert (refused.value.code, till.paid) == ("divergence", [])


async def test_a_tool_that_gives_something_else_now_is_not_asked_again(store: RunStore) -> None:
    till = Till()
    session = till.session(store, protocol="attp")
    turn = await session.turn(program("print(price('tea'), pay(2))"))

    def price(thing: str) -> int:
        """The price of a thing."""
        raise AssertionError(thing)

    changed = Session([ToolSpec.from_function(till.pay, permission="confirm"), price], protocol="attp", store=store)
    done = await changed.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert done.text == "3 paid 2 to shop\n"


@pytest.mark.of_processes
async def test_a_program_is_not_replayed_on_another_interpreter() -> None:
    till, store = Till(), MemoryStore()
    turn = await till.session(store, protocol="attp").turn(program(THREE))
    run = store.kept[waiting(turn)[0].run_id]
    run.start = replace(run.start, engine="cpython-2.7/1")
    with pytest.raises(DecisionRefused) as refused:
        await till.session(store, protocol="attp").resume(run.run_id)
    assert refused.value.code == "divergence"
    assert str(refused.value) == (
        f"the run's program was recorded on 'cpython-2.7/1' and this is {replay_engine!r}: it would not replay the "
        "same way. Resume it with the same runner, and the same version of Python and toolwire."
    )
    run.start = replace(run.start, engine=replay_engine)
    assert (await to_the_end(till, store, await till.session(store, protocol="attp").resume(run.run_id)))[
        0
    ].suspended is None


async def test_a_programs_clock_is_a_plausible_one(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, protocol="attp").turn(program("__result__ = datetime.datetime.now().isoformat()"))
    assert abs(datetime.datetime.fromisoformat(turn.text) - datetime.datetime.now()) < datetime.timedelta(minutes=1)
