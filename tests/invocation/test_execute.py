"""The result of a tool's call, whatever it returns or raises."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.invocation.world import World
from toolwire import ToolRegistry, ToolSpec
from toolwire.definition.from_function import from_function
from toolwire.invocation.fold import ERROR_LIMIT
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import FAILURE_RULES, Failure
from toolwire.vocabulary.results import ToolResult

READ_IT = FAILURE_RULES["tool_error"].hint


def later(function: Callable[[], Any]) -> Callable[[], Any]:
    """The same as a coroutine function."""

    async def tool() -> Any:
        await asyncio.sleep(0)
        return function()

    return tool


def gives(value: Any) -> Callable[[], Any]:
    return lambda: value


def raises(error: BaseException) -> Callable[[], Any]:
    def tool() -> Any:
        raise error

    return tool


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest, world: World) -> Callable[[Callable[[], Any]], ToolResult]:
    """Runs a function as the tool `tool`, or a coroutine function that does the same."""

    def made(function: Callable[[], Any]) -> ToolResult:
        world.add(function if request.param == "sync" else later(function), name="tool")
        return world.call("tool")

    return made


Run = Callable[[Callable[[], Any]], ToolResult]


@pytest.mark.parametrize("data", [None, 3, "text", [1, {"a": None}], b"raw", ("a", {1})], ids=repr)
def test_the_return_value_of_a_tool_is_its_data(run: Run, data: Any) -> None:
    result = run(gives(data))
    assert (result.success, result.data, result.call) == (True, data, ToolCall("tool", {}, id="r_1"))


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


class Panic(BaseException):
    """As extension modules written in Rust raise."""


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (KeyError("name"), "KeyError: 'name'"),
        (RuntimeError(), "RuntimeError"),
        (OSError(2, "No such file", "x.txt"), "FileNotFoundError: [Errno 2] No such file: 'x.txt'"),
        (SystemExit(3), "SystemExit: 3"),
        (Panic("index out of bounds"), "Panic: index out of bounds"),
        (Unprintable(), "Unprintable: (its message cannot be shown)"),
        (AssertionError("多字节 \ud800"), "AssertionError: 多字节 \ud800"),
        (TimeoutError("the server did"), "TimeoutError: the server did"),
        (concurrent.futures.CancelledError(), "CancelledError"),
        (
            ExceptionGroup("both", [ValueError(1), ValueError(2)]),
            "ExceptionGroup: both (2 sub-exceptions)\n- ValueError: 1\n- ValueError: 2",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_exception_of_a_tool_is_its_error(run: Run, error: BaseException, text: str) -> None:
    result = run(raises(error))
    assert result.text == f"{text}\n{READ_IT}".replace("\ud800", "\ufffd")
    name, _, message = text.partition(": ")
    assert result.failure == Failure(kind="tool_error", hint=READ_IT, data={"exception": name, "message": message})
    assert result.failure.exception is error


def test_a_sync_tool_may_raise_stop_iteration(world: World) -> None:
    world.add(lambda: next(iter([])), name="first")
    assert world.call("first").text == f"StopIteration\n{READ_IT}"


def test_a_keyboard_interrupt_passes(run: Run, world: World) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(raises(KeyboardInterrupt()))
    assert world.recording.story == [("r_1", "", "interrupted")]


def test_the_world_still_works_after_a_keyboard_interrupt(run: Run, world: World) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(raises(KeyboardInterrupt()))
    world.add(later(gives("fine")), name="other")
    assert world.call("other").data == "fine"


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (ERROR_LIMIT, "x" * ERROR_LIMIT),
        (ERROR_LIMIT + 1, f"{'x' * 8192}\n[1 character left out]\n{'x' * 8192}"),
        (ERROR_LIMIT * 10, f"{'x' * 8192}\n[147,456 characters left out]\n{'x' * 8192}"),
    ],
    ids=["at the limit", "above it", "far above it"],
)
def test_a_long_message_keeps_its_beginning_and_its_end(run: Run, length: int, shown: str) -> None:
    assert run(raises(ValueError("x" * length))).error == f"ValueError: {shown}"


def test_a_long_error_of_a_result_keeps_its_beginning_and_its_end(run: Run) -> None:
    result = run(gives(ToolResult(False, error="x" * (ERROR_LIMIT + 1))))
    assert result.error == f"{'x' * 8192}\n[1 character left out]\n{'x' * 8192}"


class OwnResult(ToolResult):
    """A tool author's own."""


@pytest.mark.parametrize("kind", [ToolResult, OwnResult])
def test_a_result_that_a_tool_makes_is_its_result(run: Run, kind: type[ToolResult]) -> None:
    result = run(gives(kind(True, {"n": 1}, metadata={"took": 1}, content=[{"type": "text", "text": "one"}])))
    assert result == ToolResult(
        True,
        {"n": 1},
        metadata={"took": 1},
        content=[{"type": "text", "text": "one"}],
        call=ToolCall("tool", {}, id="r_1"),
    )


def test_a_failure_that_a_tool_makes_is_its_failure(run: Run, world: World) -> None:
    assert run(gives(ToolResult.failed("unavailable", "Down.", hint="Wait."))).text == "Down.\nWait."
    assert world.recording.story == [("r_1", "", "unavailable")]


def counting(values: int, fails: bool = False) -> Iterator[int]:
    yield from range(values)
    if fails:
        raise ValueError("half way")


def test_a_generators_values_are_a_list(world: World) -> None:
    world.add(lambda: counting(3), name="count")
    assert world.call("count").data == [0, 1, 2]


def test_the_exception_of_a_generator_is_its_error(world: World) -> None:
    world.add(lambda: counting(3, fails=True), name="count")
    assert world.call("count").error == "ValueError: half way"


def test_a_generators_body_runs_within_the_time_limit_and_off_the_loop(world: World) -> None:
    threads = []

    def where() -> Iterator[str]:
        threads.append(threading.current_thread().name)
        yield "done"

    world.add(where, timeout_s=5)
    assert (world.call("where").data, threads) == (["done"], ["toolwire-worker"])


async def fetch(text: str = "x") -> str:
    return text


def through_a_decorator(text: str) -> Any:
    """Fetches."""
    return fetch(text)


async def failing() -> str:
    raise LookupError("nothing there")


class Waiting:
    def __await__(self) -> Iterator[Any]:
        return fetch("own").__await__()


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda: fetch(), "x"),
        (lambda: through_a_decorator("decorated"), "decorated"),
        (Waiting, "own"),
    ],
)
@pytest.mark.parametrize("timeout_s", [None, 60])
def test_an_awaitable_of_a_sync_function_is_awaited(
    world: World, function: Callable[[], Any], value: str, timeout_s: float | None
) -> None:
    world.add(lambda: function(), name="fetch_later", timeout_s=timeout_s)
    assert world.call("fetch_later").data == value


@pytest.mark.parametrize("kind", ["task", "future"])
async def test_a_task_or_a_future_is_awaited_on_the_callers_loop(kind: str) -> None:
    loop = asyncio.get_running_loop()
    made = loop.create_task(fetch("made")) if kind == "task" else loop.create_future()
    if isinstance(made, asyncio.Future) and kind == "future":
        loop.call_soon(made.set_result, "made")
    registry = ToolRegistry()
    registry.register(ToolSpec.from_function(lambda: made, name="later"))
    assert (await registry.ainvoke("later", {})).data == "made"


def test_the_exception_of_such_an_awaitable_is_its_tools_error(world: World) -> None:
    world.add(lambda: failing(), name="fetch_later")
    assert world.call("fetch_later").error == "LookupError: nothing there"


def test_such_an_awaitable_is_cancelled_when_its_time_is_over(world: World) -> None:
    ended = list[str]()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    world.add(lambda: hang(), name="hang", timeout_s=0.05)
    result = world.call("hang")
    assert (result.failure and result.failure.kind, ended) == ("timeout", ["cleaned up"])


def test_a_coroutine_that_an_async_function_gives_is_named(world: World) -> None:
    async def twice() -> Any:
        return fetch()

    world.add(twice)
    assert world.call("twice").text == (
        "'twice' returned a coroutine instead of a value.\nThe tool ran, but its result cannot be shown."
    )


def test_the_log_has_the_traceback_of_what_a_tool_raised_and_no_arguments(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def look_up(secret: str) -> str:
        raise LookupError("nothing there")

    world.add(look_up)
    result = world.call("look_up", secret="s3cr3t")
    (record,) = [each for each in caplog.records if each.name == "toolwire.tools"]
    assert (record.levelname, record.getMessage()) == ("WARNING", "The tool 'look_up' raised LookupError.")
    assert record.exc_info is not None
    assert record.exc_info[1] is result.failure.exception
    assert "s3cr3t" not in caplog.text
    assert 'raise LookupError("nothing there")' in caplog.text


def test_a_failure_that_no_exception_caused_is_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.add(lambda: ToolResult(False, error="no"), name="decline")
    assert (world.call("decline").error, caplog.records) == ("no", [])


def holding_itself() -> list[Any]:
    rows: list[Any] = []
    rows.append(rows)
    return rows


IT_MAY = "It may have taken effect."


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: [{"file": object()}], "a value of type object cannot be written as JSON at [0].file"),
        (lambda: 10**5000, "an integer of more than 4,200 digits cannot be written as JSON"),
        (lambda: {(1, 2): 3}, "a key of type tuple cannot be written as JSON"),
        (
            holding_itself,
            f"nested deeper than 64 levels, or holding itself cannot be written as JSON at {'[0]' * 64}",
        ),
    ],
    ids=["object", "huge", "key", "itself"],
)
def test_a_result_that_json_cannot_hold_is_named_with_its_place(run: Run, make: Callable[[], Any], what: str) -> None:
    assert run(make).text == f"'tool' ran, but its result cannot be shown: {what}.\n{IT_MAY}"


def test_a_tool_known_by_its_schema_alone_cannot_be_run(world: World) -> None:
    tool = from_function(lambda: None, name="remote")
    tool.function = None
    world.add(tool)
    assert world.call("remote").text == (
        "'remote' cannot be run: it is known by its schema alone.\n"
        "It cannot be reached now. Try again later, or do without."
    )
    assert world.recording.story == [("r_1", "", "unavailable")]


def test_a_tool_sees_its_callers_context_variables(run: Run) -> None:
    colour = contextvars.ContextVar("colour", default="none")
    colour.set("red")
    assert run(lambda: colour.get()).data == "red"
