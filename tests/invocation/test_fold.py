"""The results of calls, for every kind of function, with either driver; parts from before a failure are kept."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from tests.invocation.test_postprocess import PICTURE, text_block
from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.definition.from_function import from_function
from toolwire.invocation.scope import RESULT_LIMIT_BYTES
from toolwire.vocabulary.blocks import ContentBlock
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

LIMIT_S = 1
"""Long enough for the first part to come on a busy machine."""


def said(*texts: str, **more: Any) -> ToolResponse:
    return ToolResponse([text_block(text) for text in texts], **more)


# -- kinds of functions ---------------------------------------------------------------------------------------------


def numbers(start: int = 1) -> Iterator[int]:
    yield from (start, start + 1)


async def numbers_later(start: int = 1) -> AsyncIterator[int]:
    yield start
    await asyncio.sleep(0)
    yield start + 1


async def coroutine_giving_a_generator(start: int = 1) -> Iterator[int]:
    await asyncio.sleep(0)
    return numbers(start)


async def coroutine_giving_an_async_generator(start: int = 1) -> AsyncIterator[int]:
    return numbers_later(start)


class Counter:
    def sync(self, start: int = 1) -> Iterator[int]:
        return numbers(start)

    async def later(self, start: int = 1) -> AsyncIterator[int]:
        async for number in numbers_later(start):
            yield number


class CallableNow:
    def __call__(self, start: int = 1) -> Iterator[int]:
        yield from numbers(start)


class CallableLater:
    async def __call__(self, start: int = 1) -> AsyncIterator[int]:
        yield start
        yield start + 1


KINDS: dict[str, Callable[..., Any]] = {
    "generator": numbers,
    "async generator": numbers_later,
    "coroutine giving a generator": coroutine_giving_a_generator,
    "coroutine giving an async generator": coroutine_giving_an_async_generator,
    "partial": functools.partial(numbers, 1),
    "partial of an async generator": functools.partial(numbers_later, 1),
    "method": Counter().sync,
    "async method": Counter().later,
    "callable object": CallableNow(),
    "async callable object": CallableLater(),
}


@pytest.mark.parametrize("timeout_s", [None, PATIENCE_S])
@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_every_kind_of_generator_are_a_list(world: World, kind: str, timeout_s: float | None) -> None:
    world.add(KINDS[kind], name="count", timeout_s=timeout_s)
    result = world.call("count")
    assert (result.data, result.text, result.success) == ([1, 2], "[1, 2]", True)


def test_a_plain_function_may_give_back_an_async_generator_where_there_is_a_loop(world: World) -> None:
    world.add(lambda: numbers_later(), name="count")
    result = world.call("count")
    if world.driver == "asyncio":
        assert result.data == [1, 2]
    else:
        assert result.text == (
            "'count' returned an async generator instead of a value.\nThe tool ran, but its result cannot be shown."
        )


def as_sync(value: Any) -> Callable[[], Any]:
    return lambda: value


def as_async(value: Any) -> Callable[[], Any]:
    async def tool() -> Any:
        return value

    return tool


def as_generator(value: Any) -> Callable[[], Any]:
    def tool() -> Iterator[Any]:
        yield value

    return tool


def as_async_generator(value: Any) -> Callable[[], Any]:
    async def tool() -> AsyncIterator[Any]:
        yield value

    return tool


RETURNED = (as_sync, as_async)
YIELDED = (as_generator, as_async_generator)


@pytest.mark.parametrize("kind", [*RETURNED, *YIELDED])
def test_a_response_is_its_content_its_metadata_and_as_data_its_text(
    world: World, kind: Callable[[Any], Callable[[], Any]]
) -> None:
    world.add(kind(said("one", "two", metadata={"took": 1})), name="tool")
    result = world.call("tool")
    assert result.content == [text_block("one"), text_block("two")]
    assert (result.data, result.text, dict(result.metadata)) == ("one\ntwo", "one\ntwo", {"took": 1})


@pytest.mark.parametrize("kind", [*RETURNED, *YIELDED])
def test_the_data_of_a_response_with_a_picture_are_its_blocks(
    world: World, kind: Callable[[Any], Callable[[], Any]]
) -> None:
    world.add(kind(ToolResponse([text_block("look"), PICTURE])), name="tool")
    result = world.call("tool")
    assert (result.data, result.content) == ([text_block("look"), PICTURE], [text_block("look"), PICTURE])


BLOCKS: list[tuple[Any, list[ContentBlock]]] = [
    (text_block("one"), [text_block("one")]),
    (PICTURE, [PICTURE]),
    ([text_block("one"), PICTURE], [text_block("one"), PICTURE]),
]


@pytest.mark.parametrize("kind", RETURNED)
@pytest.mark.parametrize(("value", "content"), BLOCKS, ids=["text", "picture", "several"])
def test_blocks_are_the_content_and_the_data(
    world: World, kind: Callable[[Any], Callable[[], Any]], value: Any, content: list[ContentBlock]
) -> None:
    world.add(kind(value), name="tool")
    result = world.call("tool")
    assert (result.data, result.content) == (value, content)


NO_BLOCKS = [
    {"type": "text"},
    {"type": "text", "text": 3},
    {"type": "text", "text": "a", "more": 1},
    {"type": "image", "source": "x.png"},
    {"type": "audio", "source": {"type": "base64", "data": "eA=="}},
    [{"type": "text", "text": "a"}, "b"],
    [],
]


@pytest.mark.parametrize("value", NO_BLOCKS, ids=repr)
def test_a_value_that_resembles_a_block_is_plain(world: World, value: Any) -> None:
    world.add(lambda: value, name="tool")
    assert world.call("tool").blocks == ()


@pytest.mark.parametrize("kind", YIELDED)
def test_yielded_blocks_join_to_the_content(world: World, kind: Callable[[Any], Callable[[], Any]]) -> None:
    world.add(kind([text_block("one "), text_block("two"), PICTURE]), name="tool")
    assert world.call("tool").content == [text_block("one two"), PICTURE]


def test_the_last_cumulative_response_counts(world: World) -> None:
    def tool() -> Iterator[ToolResponse]:
        yield said("o")
        yield said("one", metadata={"n": 2})

    world.add(tool)
    result = world.call("tool")
    assert (result.content, result.data, dict(result.metadata)) == ([text_block("one")], "one", {"n": 2})


def test_responses_that_are_not_cumulative_add_up(world: World) -> None:
    def tool() -> Iterator[Any]:
        yield said("never seen")
        yield said("a ")
        yield said("b ", is_cumulative=False)
        yield said("c", is_cumulative=False)

    world.add(tool)
    assert world.call("tool").content == [text_block("a "), text_block("b c")]


def test_a_response_that_the_tool_changes_after_it_gave_it_stays_as_it_was(world: World) -> None:
    def tool() -> Iterator[Any]:
        response = said("a")
        yield response
        response.content[0] = text_block("changed")
        yield said("b", is_cumulative=False)

    world.add(tool)
    assert world.call("tool").content == [text_block("a"), text_block("b")]


@pytest.mark.parametrize("kind", YIELDED)
def test_a_yielded_result_that_comes_last_is_the_result(world: World, kind: Callable[[Any], Callable[[], Any]]) -> None:
    world.add(kind(ToolResult(True, 3, metadata={"n": 1})), name="tool")
    result = world.call("tool")
    assert (result.data, dict(result.metadata)) == (3, {"n": 1})


@pytest.mark.parametrize("kind", YIELDED)
def test_a_yielded_value_that_json_cannot_hold_is_named_with_its_place(
    world: World, kind: Callable[[Any], Callable[[], Any]]
) -> None:
    world.add(kind(object()), name="tool")
    assert world.call("tool").error == (
        "'tool' ran, but its result cannot be shown: a value of type object cannot be written as JSON at [0]."
    )


# -- parts that a tool emits ----------------------------------------------------------------------------------------


def emitting(*parts: Any, returns: Any = None, is_async: bool) -> Callable[..., Any]:
    async def later(context: CallContext) -> Any:
        for part in parts:
            await context.emit(part)
        await context.progress(1, 2, "half")
        return returns

    def now(context: CallContext) -> Any:
        for part in parts:
            context.emit(part)
        context.progress(1, 2, "half")
        return returns

    return later if is_async else now


IS_ASYNC = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@IS_ASYNC
def test_emitted_parts_come_before_the_returned_value(world: World, is_async: bool) -> None:
    world.add(from_function(emitting("one ", "two", 3, returns={"n": 4}, is_async=is_async), name="tool"))
    result = world.call("tool")
    assert result.data == {"n": 4}
    assert result.content == [text_block("one two"), text_block("3"), text_block('{"n": 4}')]


@IS_ASYNC
def test_a_tool_that_only_emits_gives_that(world: World, is_async: bool) -> None:
    world.add(from_function(emitting("one ", PICTURE, "two", is_async=is_async), name="tool"))
    result = world.call("tool")
    assert (result.data, result.content) == (None, [text_block("one "), PICTURE, text_block("two")])


@IS_ASYNC
def test_a_cumulative_response_stands_in_place_of_what_was_emitted(world: World, is_async: bool) -> None:
    world.add(from_function(emitting("draft", returns=said("final"), is_async=is_async), name="tool"))
    assert world.call("tool").content == [text_block("final")]


@IS_ASYNC
def test_parts_emitted_before_a_failing_result_are_kept(world: World, is_async: bool) -> None:
    failing = ToolResult.failed("unavailable", "Down.", hint="Wait.")
    world.add(from_function(emitting("one", returns=failing, is_async=is_async), name="tool"))
    assert world.call("tool").content == [text_block("one"), text_block("Down.\nWait.")]


@IS_ASYNC
def test_a_part_that_cannot_be_shown_is_an_error_where_it_is_emitted(world: World, is_async: bool) -> None:
    world.add(from_function(emitting(object(), is_async=is_async), name="tool"))
    assert world.call("tool").error == "Unrepresentable: a value of type object cannot be written as JSON"


@IS_ASYNC
def test_a_returned_value_that_cannot_be_shown_is_named_after_emits_too(world: World, is_async: bool) -> None:
    world.add(from_function(emitting("one", returns=object(), is_async=is_async), name="tool"))
    assert outcome(world.call("tool")) == "invalid_result"


def test_emitted_parts_of_a_generator_stand_between_its_values(world: World) -> None:
    def tool(context: CallContext) -> Iterator[Any]:
        yield "a"
        context.emit("b")
        yield "c"

    world.add(from_function(tool))
    result = world.call("tool")
    assert (result.data, result.content) == (["a", "c"], [text_block("abc")])


# -- before a failure -----------------------------------------------------------------------------------------------

HINT = "Read the error; change the arguments or try another tool."


def failing(*parts: Any, is_async: bool) -> Callable[[], Any]:
    def now() -> Iterator[Any]:
        yield from parts
        raise ValueError("half way")

    async def later() -> AsyncIterator[Any]:
        for part in parts:
            yield part
        raise ValueError("half way")

    return later if is_async else now


@IS_ASYNC
@pytest.mark.parametrize(
    ("parts", "content"),
    [
        (("one ", "two"), [text_block("one two")]),
        ((1, {"a": 2}), [text_block("1"), text_block('{"a": 2}')]),
        ((said("o"), said("one")), [text_block("one")]),
        ((said("held back", stream=True),), [text_block("held back")]),
        ((object(), "one"), [text_block("one")]),
        ((), []),
    ],
    ids=["text", "values", "responses", "held", "unshowable", "nothing"],
)
def test_output_before_an_error_is_kept(
    world: World, is_async: bool, parts: tuple[Any, ...], content: list[ContentBlock]
) -> None:
    world.add(failing(*parts, is_async=is_async), name="tool")
    result = world.call("tool")
    assert (result.error, list(result.blocks)) == ("ValueError: half way", content)
    assert result.content == [*content, text_block(f"ValueError: half way\n{HINT}")]


@IS_ASYNC
def test_output_before_a_failure_is_cut_like_any_result(world: World, is_async: bool) -> None:
    world.add(failing("x" * (RESULT_LIMIT_BYTES + 1), is_async=is_async), name="tool")
    result = world.call("tool")
    cut = f"{'x' * RESULT_LIMIT_BYTES}\n[cut: the first 32,768 of 32,769 bytes are shown]"
    assert result.text == f"{cut}\nValueError: half way\n{HINT}"


def test_what_is_no_block_of_a_failing_result_is_shown(world: World) -> None:
    bad: Any = [{"typ": "text"}]
    world.add(lambda: ToolResult(False, error="no", content=bad), name="tool")
    assert world.call("tool").text == f'{{"typ": "text"}}\nno\n{HINT}'


# -- time, threads, closing -----------------------------------------------------------------------------------------


def test_an_async_generator_that_takes_too_long_is_closed_and_what_it_gave_is_kept(world: World) -> None:
    ended: list[str] = []

    async def work() -> AsyncIterator[str]:
        try:
            yield "one"
            await asyncio.Event().wait()
        finally:
            ended.append("closed")

    world.add(work, timeout_s=LIMIT_S)
    result = world.call("work")
    assert (outcome(result), result.blocks, ended) == ("timeout", (text_block("one"),), ["closed"])


def test_a_generator_in_a_thread_that_takes_too_long_ends_when_it_next_gives_something(
    world: World, release: threading.Event
) -> None:
    ended, closed = list[str](), threading.Event()

    def work() -> Iterator[str]:
        try:
            yield "one"
            release.wait(PATIENCE_S)
            yield "two"
            ended.append("went on")
        finally:
            closed.set()

    world.add(work, timeout_s=LIMIT_S)
    result = world.call("work")
    assert (outcome(result), result.blocks) == ("unknown_outcome", (text_block("one"),))
    assert result.error == "'work' took longer than 1 s and cannot be stopped; its result will be ignored."
    release.set()
    assert (closed.wait(PATIENCE_S), ended) == (True, [])


@pytest.mark.parametrize("timeout_s", [None, PATIENCE_S])
def test_a_generator_runs_in_one_thread_with_its_callers_context_variables(
    world: World, timeout_s: float | None
) -> None:
    colour = ContextVar("colour", default="none")
    colour.set("red")
    threads = set[int]()

    def work() -> Iterator[str]:
        for _ in range(3):
            threads.add(threading.get_ident())
            yield colour.get()
            colour.set("blue")

    world.add(work, timeout_s=timeout_s)
    assert world.call("work").data == ["red", "blue", "blue"]
    is_here = world.driver == "blocking" and timeout_s is None
    assert (len(threads), threading.get_ident() in threads) == (1, is_here)


def test_a_keyboard_interrupt_in_a_generator_passes(world: World) -> None:
    def work() -> Iterator[str]:
        yield "one"
        raise KeyboardInterrupt

    world.add(work)
    with pytest.raises(KeyboardInterrupt):
        world.call("work")
    assert world.recording.story == [("r_1", "", "interrupted")]
