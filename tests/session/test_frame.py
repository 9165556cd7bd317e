"""The frame of one turn: its deadline, the reader of its events, and its caller."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.journal.conftest import opened as opened
from tests.journal.conftest import url as url
from tests.patience import PATIENCE_S
from tests.session.till import Till, calls, program
from toolwire import (
    ApprovalRequest,
    CallContext,
    Caller,
    ConfigurationError,
    Decision,
    Reply,
    Session,
    Store,
    ToolCall,
    ToolEvent,
    ToolSpec,
)
from toolwire.log import LogFilter
from toolwire.permission.approval import DecisionRefused
from toolwire.types import ToolChunk

ANN = Caller(principal="ann", agent="clerk", tenant="acme")
BOB = Caller(principal="bob", agent="clerk", tenant="acme")
PRICE = calls(("price", {"thing": "tea"}))
PAY = calls(("pay", {"amount": 5}))
KB = 1024


def types(heard: list[ToolEvent]) -> list[str]:
    return [event.type for event in heard]


def failures(turn: Any) -> list[str]:
    return [result.failure.kind if result.failure else "" for result in turn.results]


# -- the deadline -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deadline_s", [-1, -0.001, float("nan"), float("inf"), True, "5"])
async def test_a_deadline_that_is_not_a_time_is_refused_with_what_to_write(deadline_s: Any) -> None:
    till = Till()
    with pytest.raises(ConfigurationError, match=r"write the seconds .* such as deadline_s=30, or None"):
        await till.session(None).turn(PRICE, deadline_s=deadline_s)
    assert till.asked == []


async def test_no_call_starts_after_the_deadline_and_the_next_turn_has_none() -> None:
    till = Till()
    session = till.session(None)
    assert failures(await session.turn(PRICE, deadline_s=0)) == ["timeout"]
    assert till.asked == []
    assert failures(await session.turn(PRICE)) == [""]
    assert failures(await session.turn(PRICE, deadline_s=PATIENCE_S)) == [""]
    assert till.asked == ["tea", "tea"]


async def test_the_deadline_stops_a_call_that_has_no_limit_of_its_own() -> None:
    async def endless() -> None:
        """Never ends."""
        await asyncio.Event().wait()

    turn = await asyncio.wait_for(
        Session([endless], protocol="openai").turn(calls(("endless", {})), deadline_s=0.05), PATIENCE_S
    )
    assert failures(turn) == ["timeout"]


async def test_the_deadline_reaches_a_call_that_a_tool_makes() -> None:
    seen: list[float | None] = []

    async def inner(context: CallContext) -> None:
        """Says when it must end."""
        seen.append(context.deadline)

    async def outer(context: CallContext) -> None:
        """Calls another tool."""
        seen.append(context.deadline)
        await context.call("inner")

    session = Session([inner, outer], protocol="openai")
    await session.turn(calls(("outer", {})), deadline_s=PATIENCE_S)
    assert seen[0] is not None
    assert seen[1] is not None
    await session.turn(calls(("outer", {})))
    assert seen[2:] == [None, None]


def test_the_deadline_ends_a_program_and_reaches_its_calls() -> None:
    ends: list[float | None] = []

    def when(context: CallContext) -> None:
        """Notes when it must end."""
        ends.append(context.deadline)

    session = Session([when])
    assert failures(session.run_turn(program("while True:\n    pass"), deadline_s=0.5)) == ["timeout"]
    assert failures(session.run_turn(program("when()\n1"), deadline_s=PATIENCE_S)) == [""]
    assert failures(session.run_turn(program("when()\n1"))) == [""]
    assert [end is None for end in ends] == [False, True]


async def test_a_person_who_does_not_answer_in_time_lets_nothing_run() -> None:
    asked = asyncio.Event()

    async def approver(request: ApprovalRequest) -> Decision:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    till = Till()
    session = till.session(None, approver=approver)
    turn = await asyncio.wait_for(session.turn(PAY, deadline_s=1.0), PATIENCE_S)
    assert failures(turn) == ["approval_required"]
    assert asked.is_set()
    assert till.paid == []


async def test_an_answer_in_time_counts() -> None:
    till = Till()
    session = till.session(None, approver=lambda request: Decision(verdict="approve"))
    assert failures(await session.turn(PAY, deadline_s=PATIENCE_S)) == [""]
    assert till.paid == [5]


# -- events -----------------------------------------------------------------------------------------------------------


def counting(context: CallContext) -> Iterator[str]:
    """Gives three parts."""
    for part in ("a", "b", "c"):
        context.progress(1, 3)
        yield part


def gather(heard: list[ToolEvent], *, is_async: bool) -> Callable[[ToolEvent], Any]:
    async def later(event: ToolEvent) -> None:
        await asyncio.sleep(0)
        heard.append(event)

    return later if is_async else heard.append


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_tells_its_events_in_order_and_all_of_them_before_it_ends(is_async: bool) -> None:
    heard: list[ToolEvent] = []
    till = Till()
    tools = [ToolSpec.from_function(till.pay, permission="confirm"), counting]
    session = Session(tools, protocol="openai", approver=lambda request: Decision(verdict="approve"))
    await session.turn(calls(("counting", {})), events=gather(heard, is_async=is_async))
    assert types(heard) == ["TOOL_START", *["TOOL_CHUNK"] * 6, "TOOL_COMPLETE"]
    chunks = [event for event in heard if isinstance(event, ToolChunk)]
    assert [chunk.progress is None for chunk in chunks] == [False, True] * 3
    assert [block["text"] for chunk in chunks for block in chunk.content if block["type"] == "text"] == ["a", "b", "c"]

    heard.clear()
    await session.turn(PAY, events=gather(heard, is_async=is_async))
    assert types(heard) == ["TOOL_START", "PERMISSION_REQUEST", "PERMISSION_DECIDED", "TOOL_COMPLETE"]

    heard.clear()
    await session.turn(PAY)
    assert heard == []


async def test_events_do_not_change_what_the_model_reads() -> None:
    session = Session([counting], protocol="openai")
    alone = await session.turn(calls(("counting", {})))
    heard = await session.turn(calls(("counting", {})), events=lambda event: None)
    assert [message["content"] for message in heard.messages] == [message["content"] for message in alone.messages]


def test_a_plain_function_hears_a_program_and_its_calls_in_a_blocking_turn() -> None:
    heard: list[ToolEvent] = []
    till = Till()
    session = till.session(None, protocol="attp")
    session.run_turn(program("price(thing='tea')\nprice(thing='milk')"), events=heard.append)
    assert types(heard) == ["TOOL_START", *["TOOL_START", "TOOL_COMPLETE"] * 2, "TOOL_COMPLETE"]
    assert {event.parent for event in heard[1:-1]} == {heard[0].call_id}


async def test_a_reader_that_fails_breaks_no_call(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def fail(event: ToolEvent) -> None:
        heard.append(event.type)
        raise StopIteration

    till = Till()
    assert failures(await till.session(None).turn(PRICE, events=fail)) == [""]
    assert heard == ["TOOL_START", "TOOL_COMPLETE"]
    assert "failed on an event" in caplog.text


async def test_events_that_cannot_be_called_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="write a function that takes one event"):
        await Till().session(None).turn(PRICE, events=[])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class Producer:
    """A tool that gives many parts, and a reader that stops after a few."""

    def __init__(self, parts: int) -> None:
        self.parts, self.made, self.read = parts, 0, 0
        self.is_held = threading.Event()
        self.go_on = threading.Event()

    def work(self) -> Iterator[str]:
        """Gives its parts."""
        for number in range(self.parts):
            self.made += 1
            yield chr(97 + number % 26) * 16 * KB

    async def work_later(self) -> AsyncIterator[str]:
        """Gives its parts."""
        for part in self.work():
            yield part

    def hear(self, event: ToolEvent) -> None:
        if isinstance(event, ToolChunk):
            self.read += 1
            if self.read == 3:
                self.is_held.set()
                assert self.go_on.wait(PATIENCE_S)

    async def hear_later(self, event: ToolEvent) -> None:
        await asyncio.to_thread(self.hear, event)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("tool", ["work", "work_later"])
async def test_a_slow_reader_holds_the_tool_up(tool: str, is_async: bool) -> None:
    producer = Producer(parts=200)
    session = Session([getattr(producer, tool)], protocol="openai")
    hear = producer.hear_later if is_async else producer.hear
    turn = asyncio.ensure_future(session.turn(calls((tool, {})), events=hear))
    await asyncio.to_thread(producer.is_held.wait, PATIENCE_S)
    # The loop and every worker have their turn, and still nothing is produced in advance.
    for _ in range(100):
        await asyncio.sleep(0)
    assert (producer.read, producer.made) == (3, 3)
    producer.go_on.set()
    assert failures(await turn) == [""]
    assert (producer.read, producer.made) == (200, 200)


async def test_an_observer_of_the_session_does_not_hold_the_tool_up() -> None:
    """The control: the same reader through `observe`, for which no call waits."""
    producer = Producer(parts=200)
    session = Session([producer.work], protocol="openai")
    async with session.observe(producer.hear_later):
        await session.turn(calls(("work", {})))
        assert producer.made == 200
        assert producer.read <= 3
        producer.go_on.set()


async def test_a_slow_reader_costs_little_memory() -> None:
    """The tool gives 5 MB, of which its own result keeps every part; the events add less than 1 MB to that."""

    async def peak(**options: Any) -> int:
        producer = Producer(parts=300)
        producer.go_on.set()
        session = Session([producer.work], protocol="openai")
        gc.collect()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        await session.turn(calls(("work", {})), **options)
        assert producer.made == 300
        return tracemalloc.get_traced_memory()[1] - before

    async def slow(event: ToolEvent) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    tracemalloc.start()
    try:
        await peak(events=slow)
        alone, heard = await peak(), await peak(events=slow)
    finally:
        tracemalloc.stop()
    assert heard - alone < 1_000 * KB


@pytest.mark.parametrize("tool", ["work", "work_later"])
async def test_a_cancelled_turn_lets_a_tool_go_that_waits_for_its_reader(tool: str) -> None:
    producer = Producer(parts=200)
    has_ended = threading.Event()

    def work() -> Iterator[str]:
        """Gives its parts."""
        try:
            yield from producer.work()
        finally:
            has_ended.set()

    async def work_later() -> AsyncIterator[str]:
        """Gives its parts."""
        for part in work():
            yield part

    session = Session([work if tool == "work" else work_later], protocol="openai")
    turn = asyncio.ensure_future(session.turn(calls((tool, {})), events=producer.hear))
    await asyncio.to_thread(producer.is_held.wait, PATIENCE_S)
    turn.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(turn, PATIENCE_S)
    assert turn.cancelled()
    assert tool == "work_later" or await asyncio.to_thread(has_ended.wait, PATIENCE_S)
    assert producer.made < 200
    producer.go_on.set()


# -- the caller -------------------------------------------------------------------------------------------------------


def only_for_ann(name: str, caller: Caller) -> bool:
    return name != "pay" or caller.principal == "ann"


async def test_a_caller_counts_for_one_turn() -> None:
    till, asked = Till(), list[Caller]()

    def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.caller)
        return Decision(verdict="approve")

    def whose(context: CallContext) -> str:
        """Names the principal."""
        return context.caller.principal

    tools = [ToolSpec.from_function(till.pay, permission="confirm"), whose]
    session = Session(tools, protocol="openai", approver=approver, visible=only_for_ann)
    whom = calls(("pay", {"amount": 5}), ("whose", {}))
    first = await session.turn(whom, caller=ANN)
    assert (failures(first), first.results[1].data, asked) == (["", ""], "ann", [ANN])

    with pytest.raises(DecisionRefused, match="another principal's") as refused:
        await session.turn(whom, caller=BOB)
    assert refused.value.code == "not_permitted"
    with pytest.raises(DecisionRefused, match="another principal's"):
        await session.turn(whom)
    assert (till.paid, asked) == ([5], [ANN])

    again = Session(tools, protocol="openai", approver=approver, visible=only_for_ann)
    assert failures(await again.turn(whom, caller=BOB)) == ["unknown_tool", ""]


async def test_a_search_finds_the_tools_of_the_turns_caller() -> None:
    till = Till()
    search = calls(("search_tools", {"query": "pay"}))
    for caller, found in ((ANN, ["pay"]), (BOB, [])):
        session = Session([till.pay, till.price], protocol="openai", always=(), visible=only_for_ann)
        turn = await session.turn(search, caller=caller)
        assert turn.results[0].metadata["found"] == found


async def test_what_is_not_a_caller_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="write caller=Caller"):
        await Till().session(None).turn(PRICE, caller="ann")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_runs_rows_and_requests_are_those_of_the_turns_caller(opened: Callable[[], Store]) -> None:
    kept, till, heard = opened(), Till(), list[ToolEvent]()
    session = till.session(kept, conversation="c-1")
    turn = await session.turn(PAY, caller=ANN)
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    assert request.caller == ANN
    decisions = [{"request_id": request.id, "verdict": "approve"}]
    for caller in (None, BOB):
        with pytest.raises(DecisionRefused) as refused:
            await session.resume(turn.suspended.run_id, decisions, caller=caller)
        assert refused.value.code == "not_permitted"
        with pytest.raises(DecisionRefused) as refused:
            await session.turn(PRICE, caller=caller)
        assert refused.value.code == "not_permitted"
    assert till.paid == []

    late = await session.resume(turn.suspended.run_id, caller=ANN, deadline_s=0)
    assert late.suspended is not None
    done = await session.resume(turn.suspended.run_id, decisions, caller=ANN, events=heard.append)
    assert (failures(done), till.paid) == ([""], [5])
    assert types(heard) == ["TOOL_START", "PERMISSION_DECIDED", "TOOL_COMPLETE"]
    (run,) = kept.runs()
    rows = kept.log(LogFilter(conversation="c-1"))
    assert run.caller == ANN
    assert {(row.principal, row.agent, row.tenant) for row in rows} == {("ann", "clerk", "acme")}


async def test_parallel_turns_keep_their_callers_apart() -> None:
    def whose(context: CallContext) -> str:
        """Names the agent."""
        return context.caller.agent

    session = Session([whose], protocol="openai")
    reply = Reply(text="", calls=(ToolCall("whose", {}, id="c1"),))
    agents = [f"agent-{number}" for number in range(20)]
    turns = await asyncio.gather(
        *(session.turn(reply, caller=Caller(principal="ann", agent=agent)) for agent in agents)
    )
    assert [turn.results[0].data for turn in turns] == agents
