"""`Session.interrupt`: running calls stop and say so, ended ones keep their results, and the turn returns."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire import Caller, Session, ToolRegistry, ToolSpec, Turn
from toolwire.sandbox.limits import Limits
from toolwire.session.runs.resume import RunStore

REASON = "the user stopped it"
MAY_HAVE = "It began and did not end. It may have taken effect: check that before you repeat it."


def reply(*names: str) -> dict[str, Any]:
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for at, name in enumerate(names)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


class Tools(ToolRegistry):
    """Tools that note what happens to them."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.has_begun = threading.Event()
        self.release = threading.Event()
        self.register(self.quick)
        self.register(self.slow)
        self.register(self.block)
        self.register(self.pay, permission="confirm")

    async def quick(self) -> int:
        """Ends at once."""
        self.steps.append("quick")
        return 1

    async def slow(self) -> None:
        """Waits."""
        self.steps.append("slow")
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            self.steps.append("cleaned up")

    def block(self) -> None:
        """Waits in a thread, which nothing can stop."""
        self.has_begun.set()
        self.release.wait(PATIENCE_S)

    def pay(self) -> None:
        """Needs a person."""
        self.steps.append("pay")


async def interrupted(
    session: Session, tools: Tools, given: Any, *, reason: str | None = None, after: threading.Event | None = None
) -> Turn:
    """The turn, which is interrupted once a tool has begun, and `after` is set."""
    turn = asyncio.create_task(session.turn(given))
    await asyncio.to_thread(tools.has_begun.wait, PATIENCE_S)
    if after is not None:
        await asyncio.to_thread(after.wait, PATIENCE_S)
    if reason is None:
        session.interrupt()
    else:
        session.interrupt(reason)
    return await asyncio.wait_for(turn, PATIENCE_S)


@pytest.mark.parametrize("kept", [False, True])
async def test_ended_calls_keep_their_results_and_running_ones_say_what_is_known(store: RunStore, kept: bool) -> None:
    tools = Tools()
    session = Session(tools, protocol="openai", store=store if kept else None)
    has_ended = threading.Event()
    session.observe(lambda event: has_ended.set() if event.type == "TOOL_COMPLETE" else None)
    turn = await interrupted(session, tools, reply("quick", "slow"), after=has_ended)
    ended, stopped = turn.results
    assert (ended.data, stopped.success) == (1, False)
    assert stopped.text == f"'slow' was stopped: {REASON}.\n{MAY_HAVE}"
    assert stopped.failure is not None
    assert stopped.failure.kind == "interrupted"
    assert stopped.failure.data == {"is_started": True, "is_ended": False, "may_repeat": False}
    assert [message["tool_call_id"] for message in turn.messages] == ["call_0", "call_1"]
    assert sorted(tools.steps) == ["cleaned up", "quick", "slow"]
    if kept:
        again = await session.resume(turn.run_id)
        assert [result.text for result in again.results] == [result.text for result in turn.results]
        assert tools.steps.count("slow") == 1


async def test_nothing_waits_for_a_person_after_an_interruption(store: RunStore) -> None:
    tools = Tools()
    session = Session(tools, protocol="openai", store=store)
    turn = await interrupted(session, tools, reply("pay", "slow"), reason="enough")
    waiting, _ = turn.results
    assert turn.suspended is None
    assert waiting.failure is not None
    assert (waiting.failure.kind, waiting.failure.data["is_started"]) == ("interrupted", False)
    assert "'pay' was not run: enough." in waiting.text
    assert "pay" not in tools.steps


async def test_the_control_without_an_interruption_waits_for_the_person(store: RunStore) -> None:
    session = Session(Tools(), protocol="openai", store=store)
    assert (await session.turn(reply("pay", "quick"))).suspended is not None


async def test_a_question_to_an_approver_ends_and_its_call_does_not_run() -> None:
    tools = Tools()

    async def approve(request: Any) -> None:
        tools.has_begun.set()
        await asyncio.Event().wait()

    session = Session(tools, protocol="openai", approver=approve)
    turn = await interrupted(session, tools, reply("pay"))
    (result,) = turn.results
    assert result.text == f"'pay' was not run: {REASON}.\nIt did not run."
    assert result.failure is not None
    assert result.failure.data == {"is_started": False, "is_ended": False, "may_repeat": True}
    assert tools.steps == []


async def test_a_thread_that_goes_on_is_told_as_one_that_goes_on() -> None:
    tools = Tools()
    session = Session(tools, protocol="openai", limits=Limits(cleanup_s=0.05))
    try:
        turn = await interrupted(session, tools, reply("block"))
    finally:
        tools.release.set()
    (result,) = turn.results
    assert result.failure is not None
    assert result.failure.kind == "unknown_outcome"
    assert result.text.startswith(f"'block' could not be stopped and goes on: {REASON}.")


async def test_a_program_and_the_calls_that_it_makes_stop() -> None:
    tools = Tools()
    session = Session(tools, protocol="json", programs=True)
    call = json.dumps({"name": "code_execution", "arguments": {"code": "await slow()\n__result__ = 1"}})
    turn = await interrupted(session, tools, f"<tool_call>\n{call}\n</tool_call>")
    (result,) = turn.results
    assert result.failure is not None
    assert (result.failure.kind, tools.steps) == ("interrupted", ["slow", "cleaned up"])
    assert f"'code_execution' was stopped: {REASON}." in turn.text


def test_another_thread_interrupts_a_blocking_turn() -> None:
    tools = Tools()
    session = Session(tools, protocol="openai")
    turns: list[Turn] = []
    working = threading.Thread(target=lambda: turns.append(session.run_turn(reply("slow"))))
    working.start()
    assert tools.has_begun.wait(PATIENCE_S)
    session.interrupt()
    working.join(PATIENCE_S)
    assert [turn.results[0].success for turn in turns] == [False]


async def test_the_next_turn_runs_as_ever_and_idle_sessions_ignore_it() -> None:
    tools = Tools()
    session = Session(tools, protocol="openai")
    session.interrupt()
    assert (await session.turn(reply("quick"))).results[0].data == 1
    await interrupted(session, tools, reply("slow"))
    assert (await session.turn(reply("quick"))).results[0].data == 1


async def test_a_turn_that_is_cancelled_too_ends_as_cancelled() -> None:
    tools = Tools()
    session = Session(tools, protocol="openai")
    turn = asyncio.create_task(session.turn(reply("slow")))
    await asyncio.to_thread(tools.has_begun.wait, PATIENCE_S)
    session.interrupt()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert tools.steps == ["slow", "cleaned up"]


async def test_a_tool_that_does_not_heed_the_cancellation_keeps_its_result() -> None:
    tools = Tools()

    @tools.register
    async def stubborn() -> str:
        """Ends all the same."""
        tools.has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"

    turn = await interrupted(Session(tools, protocol="openai"), tools, reply("stubborn"))
    assert turn.results[0].data == "done"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_tool_that_may_be_repeated_says_so() -> None:
    tools = Tools()
    tools.register(ToolSpec.from_function(tools.slow, name="again", idempotent="natural"))
    turn = await interrupted(Session(tools, protocol="openai"), tools, reply("again"))
    failure = turn.results[0].failure
    assert failure is not None
    assert (failure.data["may_repeat"], failure.hint) == (True, "It began and did not end. It may be repeated.")


async def test_a_turn_has_the_id_of_its_run(store: RunStore) -> None:
    session = Session(Tools(), protocol="openai", store=store, caller=Caller(principal="ann"))
    assert (await session.turn({"role": "assistant", "content": "Hi."})).run_id == ""
    turn = await session.turn(reply("quick"))
    assert (await session.resume(turn.run_id)).results[0].data == 1
    waiting = await session.turn(reply("pay"))
    assert waiting.suspended is not None
    assert waiting.run_id == waiting.suspended.run_id
    assert (await session.resume(waiting.run_id)).run_id == waiting.run_id
