"""Several programs of one reply, each with a thought of its own: each runs once the one before it has finished."""

from __future__ import annotations

import pytest

from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, program
from toolwire import CallContext, Session, ToolRegistry, Turn
from toolwire.journal.kept_reply import reply_form, reply_of
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore

FIRST = program("paid = price('tea')\nprint(paid)")
SECOND = program("print(price('bread'))")
ASKS = program("print(pay(5))")
FAILS = program("print(price('tea'))\nraise ValueError('no')")
BLOCKED = "'code_execution' was not run: the one before it in your reply had failed.\nMend that one first."


def outcomes(turn: Turn) -> list[tuple[bool, str]]:
    return [(result.success, result.text if result.success else result.text.splitlines()[0]) for result in turn.results]


async def test_programs_run_one_after_the_other(store: RunStore) -> None:
    till, heard = Till(), list[str]()
    session = till.session(store, protocol="attp")
    session.observe(lambda event: heard.append(f"{event.type} {event.tool}"))
    turn = await session.turn(f"{FIRST}\n{SECOND}")
    assert outcomes(turn) == [(True, "3\n"), (True, "5\n")]
    assert till.asked == ["tea", "bread"]
    program_events = ["TOOL_START code_execution", "TOOL_START price", "TOOL_COMPLETE price"]
    assert heard == [*program_events, "TOOL_COMPLETE code_execution"] * 2


async def test_a_program_does_not_run_behind_one_that_failed(store: RunStore) -> None:
    till, heard = Till(), list[str]()
    session = till.session(store, protocol="attp")
    session.observe(lambda event: heard.append(f"{event.type} {event.tool}"))
    turn = await session.turn(f"{FAILS}\n{SECOND}")
    assert [success for success, _ in outcomes(turn)] == [False, False]
    assert (turn.results[1].text, till.asked) == (BLOCKED, ["tea"])
    assert BLOCKED in turn.messages[0]["content"]
    ended = [event.rpartition(" ")[2] for event in heard if event.startswith("TOOL_COMPLETE")]
    assert ended == ["price", "code_execution", "code_execution"]
    again = await Till().session(store, protocol="attp").resume(turn.run_id)
    assert outcomes(again) == outcomes(turn)


async def test_the_control_programs_below_one_thought_do_not_wait_for_each_other() -> None:
    till = Till()
    below = SECOND[SECOND.index("[tool_call]") :].replace("print(", "__result__ = (")
    turn = await till.session(None, protocol="attp").turn(FAILS.replace("raise", "__result__ = 1\nraise") + below)
    assert [success for success, _ in outcomes(turn)] == [False, True]


async def test_a_program_waits_as_long_as_the_one_before_it_waits_for_a_person(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, protocol="attp").turn(f"{ASKS}\n{SECOND}")
    assert [request.tool for request in waiting(turn)] == ["pay"]
    assert till.asked == []
    decisions = decided(waiting(turn), "approve")
    done = [await till.session(store, protocol="attp").resume(waiting(turn)[0].run_id, decisions) for _ in range(2)]
    assert [outcomes(each) for each in done] == [[(True, "paid 5 to shop\n"), (True, "5\n")]] * 2
    assert (till.paid, till.asked) == ([5], ["bread"])


async def test_a_program_that_waits_does_not_run_behind_one_that_is_denied_or_stopped(store: RunStore) -> None:
    for verdict, told in (("deny", BLOCKED.splitlines()[0]), ("stop_run", "'code_execution' was not run: ")):
        till = Till()
        turn = await till.session(store, protocol="attp").turn(f"{ASKS}\n{SECOND}")
        decisions = decided(waiting(turn), verdict, reason="no")  # type: ignore[arg-type]
        done = await till.session(store, protocol="attp").resume(waiting(turn)[0].run_id, decisions)
        assert (done.results[1].success, till.paid, till.asked) == (False, [], [])
        assert done.results[1].text.startswith(told)


async def test_a_second_program_may_wait_too() -> None:
    till, store = Till(), MemoryStore()
    turn = await till.session(store, protocol="attp").turn(f"{FIRST}\n{ASKS}")
    decisions = decided(waiting(turn), "approve")
    done = await till.session(store, protocol="attp").resume(waiting(turn)[0].run_id, decisions)
    assert outcomes(done) == [(True, "3\n"), (True, "paid 5 to shop\n")]
    assert (till.paid, till.asked) == ([5], ["tea"])


async def test_nothing_runs_behind_a_program_that_ended_the_work() -> None:
    till = Till()
    session = till.session(None, protocol="attp", finish="answer")
    ends = program("answer(answer='done')")
    turn = await session.turn(f"{ends}\n{SECOND}")
    assert (turn.final, till.asked) == ("done", [])


async def test_programs_of_a_sub_agent_run_one_after_the_other_too() -> None:
    till, lead = Till(), ToolRegistry()

    @lead.register
    async def delegate(context: CallContext, second: bool) -> str:
        child = till.session(None, protocol="attp")
        turn = await child.turn(f"{FIRST if second else FAILS}\n{SECOND}", below=context)
        return turn.results[1].text

    session = Session(lead, protocol="attp", store=MemoryStore())
    turn = await session.turn(program("print(delegate(second=True))\nprint(delegate(second=False))"))
    assert turn.results[0].text == f"5\n\n{BLOCKED}\n"
    assert till.asked == ["tea", "bread", "tea"]


@pytest.mark.parametrize("reply", [f"{FIRST}\n{SECOND}", FIRST])
def test_a_stored_reply_still_says_whether_its_programs_rely_on_each_other(reply: str) -> None:
    parsed = Till().session(None, protocol="attp").protocol.parse(reply)
    assert reply_of(reply_form(parsed)) == parsed
    assert parsed.is_sequence == (len(parsed.calls) > 1)


async def test_a_program_that_was_left_out_is_no_repeated_mistake() -> None:
    till = Till()
    session = till.session(None, protocol="attp")
    await session.turn(f"{FAILS}\n{program('price(1, 2, 3)')}")
    turn = await session.turn(program("price(1, 2, 3)"))
    assert not turn.results[0].success
    assert "failed before" not in turn.messages[0]["content"]
