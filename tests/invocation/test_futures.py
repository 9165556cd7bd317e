"""Tools that give a `concurrent.futures.Future`, for all drivers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.invocation.future_server import MANY, FutureServer
from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire import CallNotAnswered, CallNotSent
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.retry import Retry
from toolwire.invocation.scope import require_result
from toolwire.mcp.convert import from_mcp
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.failures import FAILURE_RULES

LIMIT_S = 0.05
UNKNOWN = FAILURE_RULES["unknown_outcome"].hint


class Server(FutureServer):
    """The same server behind other tools."""

    def far_unannotated(self, n: int) -> Any:
        return self.far(n)

    def far_blocking(self, n: int) -> int:
        return self.far(n).result(PATIENCE_S)


def workers_of(world: World) -> int:
    return world.runtime.workers._threads


@pytest.mark.parametrize("timeout_s", [None, PATIENCE_S])
def test_many_calls_at_once_are_all_under_way_and_take_no_worker(world: World, timeout_s: float | None) -> None:
    world.add(Server().far, timeout_s=timeout_s)
    results = world.batch(*(("far", {"n": n}) for n in range(MANY)))
    assert [result.data for result in results] == [n * 2 for n in range(MANY)]
    assert workers_of(world) == 0


async def test_without_the_annotation_a_worker_is_taken_only_for_the_start() -> None:
    world = World(driver="asyncio")
    world.add(Server().far_unannotated)
    scope = world.loop_scope()
    calls = (invoke(ToolCall("far_unannotated", {"n": n}), scope) for n in range(MANY))
    assert [outcome(require_result(result)) for result in await asyncio.gather(*calls)] == ["success"] * MANY
    assert world.runtime.workers.busy == 0
    world.runtime.close()


async def test_the_control_blocking_calls_take_every_worker_and_are_overloaded() -> None:
    world = World(driver="asyncio")
    server = Server()
    world.add(server.far_blocking, timeout_s=1)
    scope = world.loop_scope()
    calls = (invoke(ToolCall("far_blocking", {"n": n}), scope) for n in range(MANY))
    outcomes = {outcome(require_result(result)) for result in await asyncio.gather(*calls)}
    assert (outcomes, workers_of(world)) == ({"overloaded", "unknown_outcome"}, world.runtime.workers.cap)
    for _, future in server.sent:
        future.set_result(0)
    world.runtime.close()


@pytest.mark.parametrize("is_done", [True, False])
def test_the_result_of_the_future_is_the_result_of_the_call(world: World, is_done: bool) -> None:
    with ThreadPoolExecutor(1) as pool:
        released = threading.Event()

        def far() -> Future[list[int]]:
            future = pool.submit(lambda: released.wait(PATIENCE_S) and [1, 2])
            released.set()
            if is_done:
                future.result(PATIENCE_S)
            return future  # type: ignore[return-value]

        world.add(far)
        assert world.call("far").data == [1, 2]


def test_a_coroutine_function_may_give_a_future_too(world: World) -> None:
    async def far() -> Future[int]:
        return resolved(3)

    world.add(far)
    assert world.call("far").data == 3


def test_a_tool_of_a_schema_may_give_a_future_too(world: World) -> None:
    world.add(from_schema("far", input_schema={"type": "object"}, function=lambda: resolved(3)))
    assert world.call("far").data == 3


def test_a_tool_with_a_context_shows_parts_before_its_future(world: World) -> None:
    def far(context: CallContext) -> Future[str]:
        context.emit("first")
        return resolved("then")

    world.add(from_function(far))
    assert world.call("far").text == "first\nthen"


def resolved(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def failing(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def test_the_schema_describes_the_result_of_the_future() -> None:
    def far() -> Future[int]:
        return resolved(1)

    def plain() -> int:
        return 1

    assert from_function(far).output_schema == from_function(plain).output_schema


def given(error: Exception) -> Callable[[], Future[int]]:
    return lambda: failing(error)


def thrown(error: Exception) -> Callable[[], int]:
    def far() -> int:
        raise error

    return far


@pytest.mark.parametrize("way", [given, thrown])
@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (CallNotAnswered("gone"), "unknown_outcome", f"'far' was not answered: gone\n{UNKNOWN}"),
        (CallNotAnswered(), "unknown_outcome", f"'far' was not answered.\n{UNKNOWN}"),
        (CallNotSent("refused"), "unavailable", f"'far' was not sent: refused\n{FAILURE_RULES['unavailable'].hint}"),
        (ValueError("odd"), "tool_error", f"ValueError: odd\n{FAILURE_RULES['tool_error'].hint}"),
        (StopIteration("odd"), "tool_error", f"StopIteration: odd\n{FAILURE_RULES['tool_error'].hint}"),
    ],
)
def test_an_exception_says_how_far_the_call_came(
    world: World, way: Callable[[Exception], Callable[[], Any]], error: Exception, kind: str, text: str
) -> None:
    world.add(way(error), name="far")
    result = world.call("far")
    assert (outcome(result), result.text) == (kind, text)
    assert result.failure is not None
    assert result.failure.exception is error


@pytest.mark.parametrize(
    ("error", "line", "has_traceback"),
    [
        (CallNotSent("refused"), "'far' was not sent: refused", False),
        (CallNotAnswered("gone"), "'far' was not answered: gone", False),
        # The control: a fault of the tool's own code.
        (ValueError("odd"), "The tool 'far' raised ValueError.", True),
    ],
)
def test_a_server_that_is_down_is_a_line_in_the_log_and_no_traceback(
    world: World, error: Exception, line: str, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def far() -> None:
        raise error

    world.add(far)
    world.call("far")
    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info is not None) == (line, has_traceback)


@pytest.mark.parametrize("is_begun", [True, False])
def test_only_a_future_that_was_cancelled_was_stopped(world: World, is_begun: bool) -> None:
    future: Future[int] = Future()
    if is_begun:
        future.set_running_or_notify_cancel()

    def far() -> Future[int]:
        return future

    world.add(far, timeout_s=LIMIT_S)
    said = "cannot be stopped; its result will be ignored" if is_begun else "was stopped"
    assert world.call("far").error == f"'far' took longer than 0.05 s and {said}."
    assert world.recording.story == [("r_1", "", "unknown_outcome" if is_begun else "timeout")]
    assert (future.cancelled(), workers_of(world)) == (not is_begun, 0)


def test_a_future_that_others_cancel_has_an_unknown_outcome(world: World) -> None:
    def far() -> Future[int]:
        future: Future[int] = Future()
        threading.Thread(target=future.cancel).start()
        return future

    world.add(far)
    assert world.call("far").error == (
        "'far' was not answered: the future of the call was cancelled, and not by the caller"
    )


async def test_a_cancelled_call_cancels_its_future() -> None:
    world, future, called = World(driver="asyncio"), Future[int](), asyncio.Event()

    def far() -> Future[int]:
        called.set()
        return future

    world.add(far)
    task = asyncio.create_task(invoke(ToolCall("far", {}, id="r_1"), world.loop_scope()))
    await called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (future.cancelled(), world.recording.story) == (True, [("r_1", "", "interrupted")])


@pytest.mark.parametrize(("error", "made"), [(CallNotSent("refused"), 3), (CallNotAnswered("gone"), 1)])
def test_a_retry_repeats_what_was_not_sent_and_nothing_else(world: World, error: Exception, made: int) -> None:
    calls: list[int] = []
    world.on_sleep = lambda _: None

    def far() -> Future[int]:
        calls.append(1)
        return failing(error)

    world.add(far, middleware=(Retry(),))
    world.call("far")
    assert len(calls) == made


class McpServer:
    """Answers in the form of MCP, when `future` is resolved."""

    def __init__(self) -> None:
        self.future: Future[Any] = Future()

    def tool(self, *, is_async: bool) -> Any:
        async def far_later() -> Future[Any]:
            return self.future

        function = far_later if is_async else lambda: self.future
        return from_mcp({"name": "far", "inputSchema": {"type": "object"}}, function, permission="auto")


@pytest.mark.parametrize("is_async", [False, True])
def test_the_future_of_an_mcp_call_is_read_as_its_result(world: World, is_async: bool) -> None:
    server = McpServer()
    server.future.set_result({"content": [{"type": "text", "text": "clear"}], "isError": True})
    world.add(server.tool(is_async=is_async))
    result = world.call("far")
    assert (outcome(result), result.error) == ("tool_error", "clear")


@pytest.mark.parametrize("is_begun", [False, True])
def test_the_future_of_an_mcp_call_is_cancelled_itself(world: World, is_begun: bool) -> None:
    server = McpServer()
    if is_begun:
        server.future.set_running_or_notify_cancel()
    world.add(server.tool(is_async=False), timeout_s=LIMIT_S)
    assert outcome(world.call("far")) == ("unknown_outcome" if is_begun else "timeout")
    assert server.future.cancelled() is not is_begun


def test_the_error_of_an_mcp_future_is_the_calls(world: World) -> None:
    server = McpServer()
    server.future.set_exception(CallNotSent("refused"))
    world.add(server.tool(is_async=False))
    assert outcome(world.call("far")) == "unavailable"
