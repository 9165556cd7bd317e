"""Observers receive the events of every call in order and without secrets, and no call depends on them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.session.till import calls, program
from toolwire import (
    CallContext,
    ConfigurationError,
    Decision,
    Session,
    ToolEvent,
    Toolkit,
    ToolRegistry,
    ToolResponse,
    ToolSpec,
)
from toolwire.approvals import Decider
from toolwire.facade.observing import observation as observing
from toolwire.facade.observing.event_observer import SECRET_WINDOW
from toolwire.permission.approval import ApprovalRequest
from toolwire.testing import MemoryStore
from toolwire.types import PermissionDecided, PermissionRequested, ToolChunk, ToolCompleted, ToolStarted

KEY = "sk-live-abcdefghijklmnop1234"


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def count(to: int) -> Iterator[str]:
    """Counts."""
    for number in range(to):
        yield f"{number} "


async def count_later(to: int) -> AsyncIterator[str]:
    """Counts."""
    for number in range(to):
        yield f"{number} "


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def fail() -> None:
    """Fails."""
    raise ValueError(f"bad key {KEY}")


def tools(**options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    for tool in (add, count, count_later, fail):
        registry.register(tool)
    registry.register(pay, permission="confirm")
    return registry


def types(events: list[ToolEvent]) -> list[str]:
    return [event.type for event in events]


def texts(events: list[ToolEvent]) -> list[Any]:
    chunks = [event.content for event in events if isinstance(event, ToolChunk)]
    return ["".join(block["text"] for block in content if block["type"] == "text") for content in chunks]


START, CHUNK, END = "TOOL_START", "TOOL_CHUNK", "TOOL_COMPLETE"
ASKED, DECIDED = "PERMISSION_REQUEST", "PERMISSION_DECIDED"


# -- the events and their order -----------------------------------------------------------------------------------


def test_a_call_starts_and_ends_with_all_that_is_known_of_it() -> None:
    registry, events = tools(), list[ToolEvent]()
    log = registry.enable_logging()
    registry.observe(events.append)
    before = time.time()
    registry.invoke("add", {"a": 1, "b": 2})
    start, end = events
    (entry,) = log.get_entries()
    assert isinstance(start, ToolStarted)
    assert isinstance(end, ToolCompleted)
    assert (start.tool, start.arguments, start.parent) == ("add", {"a": 1, "b": 2}, "")
    assert (end.status, end.result, end.error) == ("success", 3, None)
    assert {(event.call_id, event.invocation_id) for event in events} == {(entry.id, entry.invocation_id)}
    assert before <= start.at <= end.at <= time.time()
    assert end.duration_ms == entry.duration_ms
    assert end.to_dict() == {
        "type": "TOOL_COMPLETE",
        "tool": "add",
        "call_id": entry.id,
        "invocation_id": entry.invocation_id,
        "parent": "",
        "at": end.at,
        "status": "success",
        "result": 3,
        "error": None,
        "duration_ms": end.duration_ms,
        "stop_facts": None,
    }


def test_the_end_of_a_call_that_was_stopped_has_the_facts_of_its_result() -> None:
    registry, events = ToolRegistry(), list[ToolEvent]()

    @registry.register(timeout_s=0.01)
    async def wait() -> None:
        """Waits."""
        await asyncio.Event().wait()

    registry.observe(events.append)
    failure = registry.invoke("wait").failure
    end = events[-1]
    assert isinstance(end, ToolCompleted)
    assert failure is not None
    assert end.stop_facts == {"is_started": True, "is_ended": False, "may_repeat": False}
    assert end.stop_facts.items() <= failure.data.items()


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("ad", {}, "unknown_tool"),
        ("add", {"a": "x"}, "invalid_arguments"),
        ("fail", {}, "tool_error"),
        ("pay", {"amount": 5}, "approval_required"),
    ],
)
def test_a_call_that_fails_at_any_step_starts_and_ends_too(name: str, arguments: Any, status: str) -> None:
    registry, events = tools(), list[ToolEvent]()
    registry.observe(events.append)
    registry.invoke(name, arguments)
    (end,) = [event for event in events if isinstance(event, ToolCompleted)]
    assert types(events) == [START, *([ASKED] if name == "pay" else []), END]
    assert (end.status, end.result) == (status, None)


@pytest.mark.parametrize("name", ["count", "count_later"])
@pytest.mark.parametrize("is_read", [False, True])
async def test_the_parts_of_a_call_are_told_whether_or_not_they_are_read(name: str, is_read: bool) -> None:
    registry, events = tools(), list[ToolEvent]()
    toolkit = registry.create_agent_toolkit("reader", [name])
    toolkit.observe(events.append)
    if is_read:
        chunks = [chunk async for chunk in toolkit.call_tool_function({"name": name, "input": {"to": 3}})]
        assert chunks[-1].is_last
    else:
        await toolkit.execute_tool(name, {"to": 3})
    assert types(events) == [START, CHUNK, CHUNK, CHUNK, END]
    assert texts(events) == ["0 ", "1 ", "2 "]


def test_progress_emitted_parts_and_replaced_content_are_told() -> None:
    registry, events = ToolRegistry(), list[ToolEvent]()

    @registry.register
    def work(context: CallContext) -> ToolResponse:
        """Works."""
        context.progress(1, 2, "half")
        context.emit("first")
        context.emit(ToolResponse([{"type": "text", "text": "all"}], stream=True, is_last=False))
        return ToolResponse([{"type": "text", "text": "done"}])

    registry.observe(events.append)
    registry.invoke("work")
    chunks = [event for event in events if isinstance(event, ToolChunk)]
    assert [(chunk.progress, chunk.is_cumulative) for chunk in chunks[:2]] == [
        ({"done": 1, "total": 2, "message": "half"}, False),
        (None, False),
    ]
    assert (texts(events)[1:3], chunks[2].is_cumulative, types(events)[-1]) == (["first", "all"], True, END)


def test_what_postprocessing_may_hide_is_told_only_as_it_leaves_it() -> None:
    toolkit, events = Toolkit("clerk"), list[ToolEvent]()

    def hide(_: Any, response: ToolResponse) -> ToolResponse:
        return ToolResponse([{"type": "text", "text": "hidden"}])

    toolkit.register_tool_function(count, postprocess_func=hide)
    toolkit.observe(events.append)
    asyncio.run(toolkit.execute_tool("count", {"to": 3}))
    (end,) = [event for event in events if isinstance(event, ToolCompleted)]
    assert (types(events), end.result) == ([START, END], "hidden")


@pytest.mark.parametrize(
    ("verdict", "status", "result"),
    [("approve", "success", "paid 5"), ("edit", "success", "paid 6"), ("deny", "denied", None)],
)
def test_a_decision_comes_between_the_request_and_the_end(verdict: Any, status: str, result: Any) -> None:
    def decide(request: ApprovalRequest) -> Decision:
        arguments = {"amount": 6} if verdict == "edit" else None
        by = Decider(principal="ann", channel="desk")
        return Decision(verdict=verdict, arguments=arguments, reason=f"key {KEY}", by=by)

    registry, events = tools(approver=decide), list[ToolEvent]()
    registry.observe(events.append)
    registry.invoke("pay", {"amount": 5})
    _, asked, decided, end = events
    assert types(events) == [START, ASKED, DECIDED, END]
    assert isinstance(asked, PermissionRequested)
    assert isinstance(decided, PermissionDecided)
    assert isinstance(end, ToolCompleted)
    assert (asked.arguments, asked.reasons) == ({"amount": 5}, ["the permission of 'pay' is confirm"])
    assert (decided.verdict, decided.principal, decided.channel) == (verdict, "ann", "desk")
    assert (decided.reason, decided.request_id) == ("key <redacted>", asked.request_id)
    assert (end.status, end.result) == (status, result)


def test_a_program_and_its_calls_are_told_with_their_parent() -> None:
    registry, events = tools(), list[ToolEvent]()
    registry.enable_code_execution()
    registry.observe(events.append)
    registry.invoke("code_execution", {"code": "print(add(1, 2))\nprint(add(3, 4))"})
    outer = events[0]
    assert [(event.type, event.tool) for event in events] == [
        (START, "code_execution"),
        *[(START, "add"), (END, "add")] * 2,
        (END, "code_execution"),
    ]
    assert {event.parent for event in events[1:-1]} == {outer.call_id}


async def test_a_resumed_turn_goes_on_where_it_was_and_tells_nothing_twice() -> None:
    registry, store = tools(), MemoryStore()
    reply = calls(("add", {"a": 1, "b": 2}), ("pay", {"amount": 5}))
    first, second = list[ToolEvent](), list[ToolEvent]()
    session = Session(registry, protocol="openai", store=store)
    with session.observe(first.append):
        turn = await session.turn(reply)
    assert turn.suspended is not None
    by_tool = {name: [event.type for event in first if event.tool == name] for name in ("add", "pay")}
    assert by_tool == {"add": [START, END], "pay": [START, ASKED]}
    later = Session(registry, protocol="openai", store=store)
    with later.observe(second.append):
        (request,) = turn.suspended.pending
        await later.resume(turn.suspended.run_id, [{"request_id": request.id, "verdict": "approve"}])
    assert [(event.tool, event.type) for event in second] == [("pay", START), ("pay", DECIDED), ("pay", END)]


# -- where one observes ---------------------------------------------------------------------------------------------


async def test_a_registry_sees_all_and_a_toolkit_and_a_session_their_own_though_made_before() -> None:
    registry = tools()
    one, other = (registry.create_agent_toolkit(name, ["add"]) for name in ("one", "other"))
    session = Session(one, protocol="openai")
    seen: dict[str, list[ToolEvent]] = {"registry": [], "toolkit": [], "session": []}
    handles = [
        registry.observe(seen["registry"].append),
        one.observe(seen["toolkit"].append),
        session.observe(seen["session"].append),
    ]
    made = {"a": 1, "b": 2}
    await registry.ainvoke("add", made)
    await one.execute_tool("add", made)
    await other.execute_tool("add", made)
    await session.turn(calls(("add", made)))
    assert {where: len(events) for where, events in seen.items()} == {"registry": 8, "toolkit": 4, "session": 2}
    for handle in handles:
        handle.stop()
        handle.stop()
    await session.turn(calls(("add", made)))
    registry.invoke("add", made)
    assert sum(map(len, seen.values())) == 14


def test_a_stopped_observer_leaves_nothing_behind() -> None:
    registry, events = tools(), list[ToolEvent]()
    with registry.observe(events.append):
        assert len(registry._parts.scope.listeners) == 1
        registry.invoke("add", {"a": 1, "b": 2})
    registry.invoke("add", {"a": 1, "b": 2})
    assert (len(events), registry._parts.scope.listeners) == (2, ())


def test_a_call_that_runs_when_it_is_stopped_tells_no_more() -> None:
    registry, events = ToolRegistry(), list[ToolEvent]()
    registry.register(lambda: handle.stop(), name="stop")
    handle = registry.observe(events.append)
    registry.invoke("stop")
    assert types(events) == [START]


def test_observers_that_come_and_go_in_threads_lose_no_event_and_no_rule() -> None:
    registry, kept, broken = tools(), list[ToolEvent](), list[BaseException]()
    registry.observe(kept.append)

    def come_and_go() -> None:
        try:
            for _ in range(100):
                with registry.observe(lambda _: None):
                    registry.invoke("add", {"a": 1, "b": 2})
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    registry.configure(rules=[{"effect": "deny", "tool": "count"}])
    for thread in threads:
        thread.join(PATIENCE_S)
    refused = registry.invoke("count", {"to": 1})
    assert (broken, refused.failure and refused.failure.kind) == ([], "denied")
    assert types(kept).count(END) == types(kept).count(START) == 401
    assert len(registry._parts.scope.listeners) == 1


# -- secrets --------------------------------------------------------------------------------------------------------


def login(user: str, password: str) -> dict[str, str]:
    """Logs in."""
    return {"user": user, "token": f"t-{password}"}


@pytest.mark.threat(24)
def test_no_event_holds_a_secret_that_the_log_would_hide() -> None:
    registry, events = ToolRegistry(approver=lambda _: Decision(verdict="approve")), list[ToolEvent]()
    registry.register(login, permission="confirm")
    registry.register(fail)
    registry.observe(events.append)
    registry.invoke("login", {"user": "ada", "password": "hunter2"})
    registry.invoke("fail")
    told = str([event.to_dict() for event in events])
    assert ("hunter2" in told, KEY in told, "ada" in told) == (False, False, True)
    end = events[3]
    assert isinstance(end, ToolCompleted)
    assert end.result == {"user": "ada", "token": "<redacted>"}


def pieces(text: str, size: int) -> list[str]:
    return [text[place : place + size] for place in range(0, len(text), size)]


def told_of(parts: list[str]) -> str:
    registry, events = ToolRegistry(), list[ToolEvent]()

    @registry.register
    def say() -> Iterator[str]:
        """Speaks."""
        yield from parts

    registry.observe(events.append)
    registry.invoke("say")
    return "".join(texts(events))


@pytest.mark.parametrize("size", [1, 2, 5, 13, 100])
def test_a_secret_in_several_parts_is_hidden_as_soon_as_it_can_be_recognised(size: int) -> None:
    told = told_of(pieces(f"the key is {KEY} and that is all", size))
    assert KEY not in told
    # Its form says that it is a key from the sixteenth character on.
    assert KEY[16:] not in told.replace("<redacted>", "")
    assert (told.startswith("the key is "), told.endswith(" and that is all")) == (True, True)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_text_without_secrets_arrives_as_it_is_in_parts_of_any_size(size: int) -> None:
    text = "Two rows were found: tea at 3 and bread at 5.\n" * 3
    assert told_of(pieces(text, size)) == text


def test_a_secret_is_recognised_by_its_beginning_within_the_window_and_not_beyond() -> None:
    head = "-----BEGIN RSA PRIVATE KEY-----"
    inside = told_of([head, "A" * (SECRET_WINDOW - len(head)), "BBBB"])
    beyond = told_of([head, "A" * (SECRET_WINDOW + 1), "BBBB"])
    assert ("BBBB" in inside, "BBBB" in beyond) == (False, True)


def test_what_is_changed_later_and_what_is_too_large_is_not_in_the_events() -> None:
    registry, events = ToolRegistry(), list[ToolEvent]()
    rows = [{"n": 1}]
    registry.register(lambda text: rows, name="rows")
    registry.observe(events.append)
    registry.invoke("rows", {"text": "x" * 100_000})
    rows[0]["n"] = 2
    start, end = events
    assert isinstance(start, ToolStarted)
    assert isinstance(end, ToolCompleted)
    assert (start.arguments, end.result) == ({"text": "<not kept: more than 65536 bytes>"}, [{"n": 1}])


# -- observers that fail, wait or are gone --------------------------------------------------------------------------


def test_a_failing_observer_is_logged_and_called_again_and_no_call_suffers(caplog: pytest.LogCaptureFixture) -> None:
    registry, called, others = tools(), list[str](), list[ToolEvent]()

    def broken(event: ToolEvent) -> None:
        called.append(event.type)
        raise OSError("no line")

    registry.observe(broken)
    registry.observe(others.append)
    assert registry.invoke("count", {"to": 2}).success
    assert called == types(others) == [START, CHUNK, CHUNK, END]
    (call_id,) = {event.call_id for event in others}
    assert [record.getMessage() for record in caplog.records if record.name == "toolwire.observers"] == [
        f"an observer failed on {what} {call_id}"
        for what in ("the start of call", "a part of call", "a part of call", "the record of call")
    ]


async def test_a_failing_coroutine_function_is_logged_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    registry, called = tools(), list[str]()

    async def broken(event: ToolEvent) -> None:
        called.append(event.type)
        raise OSError("no line")

    async with registry.observe(broken):
        assert (await registry.ainvoke("add", {"a": 1, "b": 2})).data == 3
    assert called == [START, END]
    logged = [record for record in caplog.records if record.name == "toolwire.observers"]
    assert [record.getMessage().endswith("failed on an event") for record in logged] == [True, True]


class Late:
    """A callable whose call is a coroutine function."""

    def __init__(self, events: list[ToolEvent]) -> None:
        self.events = events

    async def __call__(self, event: ToolEvent) -> None:
        await asyncio.sleep(0)
        self.events.append(event)


@pytest.mark.parametrize(
    "wrap", [lambda late: late, lambda late: late.__call__, lambda late: lambda event: late(event)]
)
async def test_async_observers_of_every_form_get_all_events_in_order_on_the_loop_they_were_given_on(
    wrap: Callable[[Late], Any],
) -> None:
    registry, events = tools(), list[ToolEvent]()
    toolkit = registry.create_agent_toolkit("reader", ["count"])
    async with registry.observe(wrap(Late(events))):
        # A sync generator runs in a worker: its events come from there.
        await toolkit.execute_tool("count", {"to": 3})
    assert types(events) == [START, CHUNK, CHUNK, CHUNK, END]
    assert texts(events) == ["0 ", "1 ", "2 "]


def test_a_coroutine_function_works_in_blocking_code_too() -> None:
    registry, events, ended = tools(), list[ToolEvent](), threading.Event()

    async def note(event: ToolEvent) -> None:
        events.append(event)
        if event.type == END:
            ended.set()

    registry.observe(note)
    assert registry.invoke("add", {"a": 1, "b": 2}).data == 3
    assert ended.wait(PATIENCE_S)
    assert types(events) == [START, END]


async def test_no_call_waits_for_a_coroutine_function_and_what_is_too_much_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(observing, "WAITING_LIMIT", 4)
    registry, go, events = tools(), asyncio.Event(), list[ToolEvent]()

    async def slow(event: ToolEvent) -> None:
        await go.wait()
        events.append(event)

    handle = registry.observe(slow)
    registry.invoke("add", {"a": 1, "b": 2})
    registry.invoke("add", {"a": 1, "b": 2})
    assert (handle.dropped, caplog.messages) == (0, [])
    registry.invoke("add", {"a": 1, "b": 2})
    assert handle.dropped == 2
    assert [message.endswith("is too slow: events beyond 4 are dropped") for message in caplog.messages] == [True]
    go.set()
    async with handle:
        pass
    assert types(events) == [START, END] * 2


async def test_leaving_waits_for_an_observer_that_hangs_only_so_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(observing, "STOP_WAIT_S", 0.05)
    registry = tools()

    async def hang(_: ToolEvent) -> None:
        await asyncio.Event().wait()

    async with registry.observe(hang):
        await registry.ainvoke("add", {"a": 1, "b": 2})
    logged = [record.getMessage() for record in caplog.records if record.name == "toolwire.observers"]
    assert [message.endswith("did not take its events within 0.05 s") for message in logged] == [True]


def test_an_observer_whose_event_loop_has_ended_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    registry, events = tools(), list[ToolEvent]()

    async def note(event: ToolEvent) -> None:
        events.append(event)

    async def begin() -> Any:
        return registry.observe(note)

    handle = asyncio.run(begin())
    for _ in range(3):
        assert registry.invoke("add", {"a": 1, "b": 2}).data == 3
    assert ["its event loop has ended" in message for message in caplog.messages] == [True]
    assert (handle.dropped, events) == (6, [])


def test_a_value_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="write a function that takes one event"):
        ToolRegistry().observe("print")  # pyright: ignore[reportArgumentType]


def test_a_session_of_plain_functions_can_be_observed_through_programs() -> None:
    events = list[ToolEvent]()
    session = Session([ToolSpec.from_function(add)])
    session.observe(events.append)
    turn = asyncio.run(session.turn(program("print(add(1, 2))")))
    assert (turn.text, [event.tool for event in events]) == ("3\n", ["code_execution", "add", "add", "code_execution"])
