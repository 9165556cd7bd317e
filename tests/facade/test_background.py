"""Calls that run in the background."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.invocation.world import outcome
from tests.patience import PATIENCE_S
from toolwire import ApprovalRequest, CallContext, Caller, Decision, Session, ToolRegistry, ToolSpec
from toolwire.builtin.background_calls import WAIT_LIMIT_S
from toolwire.facade.built_in import background
from toolwire.facade.built_in.background import BackgroundCall
from toolwire.vocabulary.failures import FAILURE_RULES

INTERRUPTED = FAILURE_RULES["interrupted"].hint


class Slow:
    """Tools that take until they are let go."""

    def __init__(self) -> None:
        self.door = threading.Event()
        self.told: list[str] = []

    def render(self, n: int) -> str:
        """Renders, in a thread."""
        self.door.wait(PATIENCE_S)
        return f"rendered {n}"

    async def fetch(self) -> str:
        """Fetches, on a loop."""
        self.told.append("begun")
        try:
            while not self.door.is_set():  # noqa: ASYNC110 - it is set from another thread
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.told.append("cancelled")
            raise
        return "fetched"


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    yield found
    found.door.set()


@pytest.fixture
def registry(slow: Slow) -> Iterator[ToolRegistry]:
    found = ToolRegistry()
    found.register(slow.render)
    found.register(slow.fetch)
    found.configure(background_calls=True)
    yield found
    slow.door.set()
    found.close()


def finished(call: BackgroundCall) -> Any:
    return call.ended.result(PATIENCE_S)


@pytest.mark.parametrize(("name", "arguments", "data"), [("render", {"n": 1}, "rendered 1"), ("fetch", {}, "fetched")])
def test_it_is_started_polled_and_waited_for(
    registry: ToolRegistry, slow: Slow, name: str, arguments: dict[str, Any], data: str
) -> None:
    call = registry.background.start(name, arguments)
    assert (call.result, registry.background.poll(call.id), registry.background.wait(call.id, 0.01)) == (None,) * 3
    slow.door.set()
    result = registry.background.wait(call.id, PATIENCE_S)
    assert result is not None
    assert (result.data, call.result, registry.background.poll(call.id)) == (data, result, result)


async def test_the_same_from_an_event_loop(registry: ToolRegistry, slow: Slow) -> None:
    call = await registry.background.astart("fetch")
    assert registry.background.poll(call.id) is None
    slow.door.set()
    assert (await asyncio.wait_for(registry.background.await_result(call.id), PATIENCE_S)).data == "fetched"


async def test_giving_up_waiting_leaves_the_call_alone(registry: ToolRegistry, slow: Slow) -> None:
    call = await registry.background.astart("fetch")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(registry.background.await_result(call.id), 0.01)
    slow.door.set()
    assert (await asyncio.wait_for(registry.background.await_result(call.id), PATIENCE_S)).data == "fetched"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [("render", {}, "invalid_arguments"), ("redner", {}, "unknown_tool"), ("forbidden", {}, "denied")],
)
def test_a_call_that_cannot_run_has_its_result_at_once(
    registry: ToolRegistry, name: str, arguments: dict[str, Any], kind: str
) -> None:
    registry.register(lambda: 1, name="forbidden", permission="deny")
    call = registry.background.start(name, arguments)
    assert call.result is not None
    assert outcome(call.result) == kind


def test_a_person_is_asked_when_it_starts(slow: Slow) -> None:
    asked: list[str] = []

    def ask(request: ApprovalRequest) -> Decision:
        asked.append(request.tool)
        return Decision(verdict="deny", reason="not now")

    registry = ToolRegistry(approver=ask)
    registry.register(slow.render, permission="confirm")
    call = registry.background.start("render", {"n": 1})
    assert (asked, call.result is not None and outcome(call.result)) == (["render"], "denied")


def test_an_async_tool_is_cancelled(registry: ToolRegistry, slow: Slow) -> None:
    call = registry.background.start("fetch")
    assert registry.background.cancel(call.id)
    result = finished(call)
    assert (result.text, slow.told[-1]) == (
        f"'fetch' was cancelled before it ended.\n{INTERRUPTED}",
        "cancelled",
    )
    assert not registry.background.cancel(call.id)


def test_the_outcome_of_a_cancelled_sync_tool_is_unknown(registry: ToolRegistry) -> None:
    call = registry.background.start("render", {"n": 1})
    registry.background.cancel(call.id)
    assert outcome(finished(call)) == "unknown_outcome"


@pytest.mark.parametrize("name", ["fetch", "render"])
def test_closing_the_registry_cancels_and_says_so(registry: ToolRegistry, name: str) -> None:
    call = registry.background.start(name, {"n": 1} if name == "render" else {})
    registry.close()
    assert call.result is not None
    assert outcome(call.result) == {"fetch": "interrupted", "render": "unknown_outcome"}[name]


def test_so_many_run_at_once_and_no_more(registry: ToolRegistry, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RUNNING_LIMIT", 2)
    calls = [registry.background.start("fetch") for _ in range(3)]
    assert [call.result and outcome(call.result) for call in calls] == [None, None, "overloaded"]
    slow.door.set()
    assert [outcome(finished(call)) for call in calls] == ["success", "success", "overloaded"]
    assert registry.background.start("fetch").begun.done()


def test_fetched_results_are_dropped_first(registry: ToolRegistry, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "KEPT_LIMIT", 2)
    slow.door.set()
    calls = []
    for n in range(3):
        calls.append(registry.background.start("render", {"n": n}))
        finished(calls[-1])
        if n == 1:
            registry.background.poll(calls[1].id)
    found = [registry.background.poll(call.id) for call in calls]
    assert [result and outcome(result) for result in found] == ["success", "invalid_arguments", "success"]


def test_an_id_that_is_not_here_says_so(registry: ToolRegistry) -> None:
    result = registry.background.poll("abc")
    assert result is not None
    assert result.text == (
        "There is no background call 'abc': its result was dropped, or it is not yours.\n"
        "If you copied the id exactly, start a new call."
    )
    assert not registry.background.cancel("abc")


# -- by a model -------------------------------------------------------------------------------------------------


def started(registry: ToolRegistry, tool: str, **arguments: Any) -> str:
    result = registry.invoke("start_call", {"tool": tool, "arguments": arguments})
    call_id = result.metadata["background_id"]
    assert result.text == f"'{tool}' was started. Call poll_call with id='{call_id}' to get its result."
    return call_id


@pytest.mark.parametrize("tool", ["render", "fetch"])
def test_a_model_starts_a_call_polls_and_gets_its_result(registry: ToolRegistry, slow: Slow, tool: str) -> None:
    call_id = started(registry, tool, **({"n": 1} if tool == "render" else {}))
    running = registry.invoke("poll_call", {"id": call_id})
    assert running.text == f"'{tool}' is still running, for 0 s so far. Ask again later."
    slow.door.set()
    result = registry.invoke("poll_call", {"id": call_id, "wait_s": WAIT_LIMIT_S})
    assert (result.data, result.call and result.call.name) == (
        {"render": "rendered 1", "fetch": "fetched"}[tool],
        "poll_call",
    )


def test_a_model_cancels_a_call(registry: ToolRegistry) -> None:
    call_id = started(registry, "fetch")
    assert registry.invoke("cancel_call", {"id": call_id}).text == "'fetch' was cancelled."
    assert outcome(registry.invoke("poll_call", {"id": call_id, "wait_s": WAIT_LIMIT_S})) == "interrupted"
    assert registry.invoke("cancel_call", {"id": call_id}).text == "'fetch' had ended already."


def test_a_call_that_cannot_run_is_reported_at_once(registry: ToolRegistry) -> None:
    assert outcome(registry.invoke("start_call", {"tool": "render"})) == "invalid_arguments"
    result = registry.invoke("start_call", {"tool": "start_call", "arguments": {"tool": "render"}})
    assert result.text == "'start_call' cannot be started in the background.\nCall it directly."


@pytest.mark.threat(27)
async def test_an_id_is_of_use_to_its_own_caller_alone(registry: ToolRegistry, slow: Slow) -> None:
    slow.door.set()
    sessions = [Session(registry, protocol="json", caller=Caller(principal=name)) for name in ("ada", "bo")]
    start = '{"name": "start_call", "arguments": {"tool": "fetch"}}'
    (first,) = (await sessions[0].turn(start)).results
    call_id = first.metadata.get("background_id") or next(iter(registry.background._calls))
    poll = f'{{"name": "poll_call", "arguments": {{"id": "{call_id}", "wait_s": 5}}}}'
    cancel = f'{{"name": "cancel_call", "arguments": {{"id": "{call_id}"}}}}'
    assert [outcome((await sessions[1].turn(reply)).results[0]) for reply in (poll, cancel)] == [
        "invalid_arguments",
        "invalid_arguments",
    ]
    # The control: the one who started it.
    assert (await sessions[0].turn(poll)).results[0].data == "fetched"


async def test_rules_know_what_the_run_has_read_when_a_call_is_started_and_when_it_is_polled() -> None:
    registry = ToolRegistry()
    registry.register(ToolSpec.from_function(lambda: "mail", name="read_mail", labels=["untrusted", "private"]))
    registry.register(ToolSpec.from_function(lambda: "sent", name="send", effects=["send"]))
    registry.configure(background_calls=True)
    read, send = (f'{{"name": "{name}", "arguments": {{}}}}' for name in ("read_mail", "send"))
    start_send, start_read = (
        f'{{"name": "start_call", "arguments": {{"tool": "{name}"}}}}' for name in ("send", "read_mail")
    )
    reader, starter, innocent = (Session(registry, protocol="json") for _ in range(3))
    await reader.turn(read)
    assert outcome((await reader.turn(start_send)).results[0]) == "approval_required"
    result = (await starter.turn(start_read)).results[0]
    if "background_id" in result.metadata:
        call_id = result.metadata["background_id"]
        poll = f'{{"name": "poll_call", "arguments": {{"id": "{call_id}", "wait_s": 5}}}}'
        assert (await starter.turn(poll)).results[0].data == "mail"
    assert outcome((await starter.turn(send)).results[0]) == "approval_required"
    assert (await innocent.turn(send)).results[0].success
    registry.close()


def test_a_long_result_is_read_in_pages(slow: Slow) -> None:
    registry = ToolRegistry(result_limit_bytes=500)
    registry.register(lambda: "x" * 2_000, name="long")
    registry.configure(background_calls=True)
    registry.configure(result_pages=True)
    first = registry.invoke("start_call", {"tool": "long"})
    if "background_id" in first.metadata:
        first = registry.invoke("poll_call", {"id": first.metadata["background_id"], "wait_s": WAIT_LIMIT_S})
    assert first.text.startswith("x" * 500 + "\n[the first 500 of 2,000 characters; call read_result with id=")
    registry.close()


def test_its_own_calls_run_beneath_it(registry: ToolRegistry, slow: Slow) -> None:
    slow.door.set()

    async def outer(context: CallContext) -> str:
        """Calls another tool."""
        return (await context.call("fetch")).text

    registry.register(outer)
    assert finished(registry.background.start("outer")).data == "fetched"


def test_the_tools_come_and_go(registry: ToolRegistry) -> None:
    names = {"start_call", "poll_call", "cancel_call"}
    registry.configure(background_calls=True)
    assert names < set(registry.list_toolspecs())
    registry.configure(background_calls=False)
    registry.configure(background_calls=False)
    assert not names & set(registry.list_toolspecs())
