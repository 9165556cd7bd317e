"""A call's output while it runs: chunks, deltas, interrupts, and a tool that goes no faster than its reader."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.definition.from_function import from_function
from toolwire.facade import tool_stream as stream_module
from toolwire.facade.tool_stream import ToolStream, stream_call
from toolwire.invocation.scope import RESULT_LIMIT_BYTES
from toolwire.permission.policy import Rule
from toolwire.vocabulary.blocks import ContentBlock, TextBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext, Interrupted
from toolwire.vocabulary.failures import FAILURE_RULES
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

INTERRUPTED = FAILURE_RULES["interrupted"].hint
LATE = FAILURE_RULES["timeout"].hint

HINT = "Read the error; change the arguments or try another tool."


@pytest.fixture
def world() -> Iterator[World]:
    found = World(driver="asyncio")
    yield found
    found.runtime.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def text(words: str) -> TextBlock:
    return {"type": "text", "text": words}


def said(words: str, **more: Any) -> ToolResponse:
    return ToolResponse([text(words)], **more)


def stream(world: World, name: str = "work") -> ToolStream:
    return stream_call(ToolCall(name, {}, id="r_1"), world.loop_scope())


async def read(chunks: ToolStream) -> list[ToolResponse]:
    async with asyncio.timeout(PATIENCE_S):
        return [chunk async for chunk in chunks]


def seen(chunks: list[ToolResponse]) -> list[tuple[str, str]]:
    """The text of each chunk, and its flags."""
    flags = ("is_last", "is_interrupted", "stream", "is_cumulative")
    return [
        ("|".join(block["text"] for block in chunk.content if block["type"] == "text"), _letters(chunk, flags))
        for chunk in chunks
    ]


def _letters(chunk: ToolResponse, flags: tuple[str, ...]) -> str:
    return "".join(letter for letter, flag in zip("lisc", flags, strict=True) if getattr(chunk, flag))


class Writing:
    """Gives texts, in either colour, and remembers how far it came and whether it was closed."""

    def __init__(self, texts: Any = ("a", "b", "c")) -> None:
        self.texts = texts
        self.given: list[Any] = []
        self.closed = threading.Event()

    def now(self) -> Iterator[Any]:
        try:
            for item in self.texts:
                self.given.append(item)
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed.set()

    async def later(self) -> AsyncIterator[Any]:
        try:
            for item in self.texts:
                self.given.append(item)
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed.set()

    async def generator_later(self) -> Iterator[Any]:
        return self.now()

    async def async_generator_later(self) -> AsyncIterator[Any]:
        return self.later()


COLOURS = pytest.mark.parametrize("colour", ["now", "later", "generator_later", "async_generator_later"])


def endless() -> Iterator[str]:
    while True:
        yield "x"


# -- chunks ---------------------------------------------------------------------------------------------------------


@COLOURS
async def test_each_chunk_holds_all_so_far_and_only_the_last_is_last(world: World, colour: str) -> None:
    world.add(getattr(Writing(), colour), name="work")
    chunks = await read(stream(world))
    assert seen(chunks) == [("a", "sc"), ("ab", "sc"), ("abc", "sc"), ("abc", "lsc")]
    assert len({chunk.id for chunk in chunks}) == 4
    assert [chunk.id for chunk in chunks] == sorted(chunk.id for chunk in chunks)


@COLOURS
async def test_with_deltas_each_chunk_holds_what_is_new(world: World, colour: str) -> None:
    world.add(getattr(Writing(), colour), name="work")
    assert seen(await read(stream(world).deltas())) == [("a", "s"), ("b", "s"), ("c", "s"), ("", "ls")]


async def test_a_stream_may_be_awaited_first(world: World) -> None:
    world.add(Writing().later, name="work")
    assert seen([chunk async for chunk in await stream(world)]) == [
        ("a", "sc"),
        ("ab", "sc"),
        ("abc", "sc"),
        ("abc", "lsc"),
    ]


async def test_from_the_middle_on_deltas_are_what_is_new_since_then(world: World) -> None:
    world.add(Writing().later, name="work")
    chunks = stream(world)
    first = [await anext(chunks), await anext(chunks)]
    assert seen(first + await read(chunks.deltas())) == [("a", "sc"), ("ab", "sc"), ("c", "s"), ("", "ls")]


def returning(value: Any, *, is_async: bool) -> Callable[[], Any]:
    async def later() -> Any:
        return value

    return later if is_async else lambda: value


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("one", [text("one")]),
        ({"n": 1}, [text('{"n": 1}')]),
        ([text("a"), text("b")], [text("a"), text("b")]),
        (None, [text("null")]),
    ],
)
async def test_a_function_that_returns_a_value_gives_one_chunk(
    world: World, is_async: bool, value: Any, content: list[ContentBlock]
) -> None:
    world.add(returning(value, is_async=is_async), name="work")
    (chunk,) = await read(stream(world))
    assert chunk == ToolResponse(content, id=chunk.id)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_that_returns_a_response_gives_it_once(world: World, is_async: bool) -> None:
    response = said("one", metadata={"n": 1}, stream=True, is_last=False, is_interrupted=True)
    world.add(returning(response, is_async=is_async), name="work")
    (chunk,) = await read(stream(world))
    assert chunk == said("one", metadata={"n": 1}, stream=True, is_last=True, is_interrupted=True, id=response.id)


@COLOURS
async def test_a_tool_decides_on_stream_metadata_and_id_of_each_of_its_responses(world: World, colour: str) -> None:
    given = [said("a", is_last=False, stream=True, metadata={"n": 1}), said("ab", is_last=False), said("abc")]
    world.add(getattr(Writing(given), colour), name="work")
    *first, last = await read(stream(world))
    assert [(chunk.stream, chunk.metadata, chunk.id) for chunk in first] == [
        (each.stream, each.metadata, each.id) for each in given
    ]
    assert seen([*first, last]) == [("a", "sc"), ("ab", "c"), ("abc", "c"), ("abc", "lsc")]


@COLOURS
async def test_a_response_that_says_it_is_the_last_is_shown_at_once_and_is_the_last_chunk_too(
    world: World, colour: str
) -> None:
    given = [said("a", stream=True, is_last=False), said("ab", stream=True, metadata={"n": 2})]
    world.add(getattr(Writing(given), colour), name="work")
    chunks = await read(stream(world))
    assert seen(chunks) == [("a", "sc"), ("ab", "sc"), ("ab", "lsc")]
    assert [(chunk.id, chunk.metadata) for chunk in chunks[1:]] == [(given[1].id, {"n": 2})] * 2


@COLOURS
async def test_a_response_that_was_not_the_last_though_it_said_so_is_shown_at_once(world: World, colour: str) -> None:
    world.add(getattr(Writing([said("a", stream=True), said("ab", stream=True)]), colour), name="work")
    assert seen(await read(stream(world))) == [("a", "sc"), ("ab", "sc"), ("ab", "lsc")]


@COLOURS
async def test_the_last_response_before_a_failure_is_shown(world: World, colour: str) -> None:
    world.add(getattr(Writing([said("a", stream=True), LookupError("gone")]), colour), name="work")
    first, last = await read(stream(world))
    assert seen([first]) == [("a", "sc")]
    assert last.content[0] == {"type": "text", "text": "a"}
    assert last.metadata is not None
    assert last.metadata["failure"]["kind"] == "tool_error"


async def test_deltas_of_cumulative_responses_are_what_each_adds(world: World) -> None:
    world.add(Writing([said("a"), said("ab"), said("ab")]).later, name="work")
    assert seen(await read(stream(world).deltas())) == [("a", ""), ("b", ""), ("", ""), ("", "ls")]


async def test_a_tool_that_takes_back_what_it_said_gives_all_of_it_even_among_deltas(world: World) -> None:
    world.add(Writing([said("draft"), said("final")]).later, name="work")
    assert seen(await read(stream(world).deltas())) == [("draft", ""), ("final", "c"), ("", "ls")]


async def test_responses_that_are_not_cumulative_become_so(world: World) -> None:
    given = [said("a", is_cumulative=False), said("b", is_cumulative=False)]
    world.add(Writing(given).later, name="work")
    assert seen(await read(stream(world))) == [("a", "c"), ("ab", "c"), ("ab", "lsc")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_chunk_stays_as_it_was_when_the_tool_changes_its_response(world: World, is_async: bool) -> None:
    response = said("a")

    def work() -> Iterator[ToolResponse]:
        yield response
        response.content.append(text("b"))
        yield response

    async def work_later() -> AsyncIterator[ToolResponse]:
        for each in work():
            yield each

    world.add(work_later if is_async else work, name="work")
    assert seen(await read(stream(world))) == [("a", "c"), ("a|b", "c"), ("a|b", "lsc")]


async def test_values_are_chunks_of_their_own_and_the_result_is_their_list(world: World) -> None:
    world.add(Writing([1, {"n": 2}]).later, name="work")
    chunks = stream(world)
    assert seen(await read(chunks)) == [("1", "sc"), ('1|{"n": 2}', "sc"), ('1|{"n": 2}', "lsc")]
    assert chunks.result is not None
    assert chunks.result.data == [1, {"n": 2}]


async def test_a_value_that_cannot_be_shown_ends_with_its_place(world: World) -> None:
    world.add(Writing(["a", object()]).later, name="work")
    chunks = await read(stream(world))
    assert [chunk.is_last for chunk in chunks] == [False, False, True]
    assert chunks[-1].metadata == {
        "failure": {
            "kind": "invalid_result",
            "hint": "It may have taken effect.",
        }
    }
    assert chunks[-1].content[0] == text("a")


async def test_the_last_chunk_is_no_longer_than_a_model_can_read(world: World) -> None:
    world.add(Writing(["x" * RESULT_LIMIT_BYTES, "y"]).later, name="work")
    *_, last = await read(stream(world))
    assert last.content == [
        text(f"{'x' * RESULT_LIMIT_BYTES}\n[cut: the first 32,768 of 32,769 bytes are shown]"),
    ]
    assert last.metadata == {"is_cut": True}


# -- responses of a tool --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_emitted_parts_and_progress_are_chunks(world: World, is_async: bool) -> None:
    async def later(context: CallContext) -> int:
        await context.emit("a")
        await context.progress(1, 2, "half")
        await context.emit("b")
        return 3

    def now(context: CallContext) -> int:
        context.emit("a")
        context.progress(1, 2, "half")
        context.emit("b")
        return 3

    world.add(from_function(later if is_async else now, name="work"))
    chunks = await read(stream(world))
    assert seen(chunks) == [("a", "sc"), ("a", "sc"), ("ab", "sc"), ("ab|3", "lsc")]
    assert chunks[1].metadata == {"progress": {"done": 1, "total": 2, "message": "half"}}
    assert seen(await read(stream(world).deltas())) == [("a", "s"), ("", "s"), ("b", "s"), ("3", "ls")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_inner_calls_give_their_caller_the_whole_and_its_reader_nothing(world: World, is_async: bool) -> None:
    async def work(context: CallContext) -> Any:
        await context.emit("outer ")
        return (await context.call("inner")).data

    world.add(from_function(work))
    world.add(Writing().later if is_async else Writing().now, name="inner")
    assert seen(await read(stream(world))) == [("outer ", "sc"), ('outer |["a", "b", "c"]', "lsc")]


# -- failures -------------------------------------------------------------------------------------------------------


async def test_a_call_that_may_not_run_is_one_chunk_that_says_so(world: World) -> None:
    world.add(Writing().now, name="work")
    world.rules = [Rule(effect="deny", tool="work")]
    (chunk,) = await read(stream(world))
    assert chunk.is_last
    assert chunk.metadata == {
        "failure": {"kind": "denied", "hint": "Do not call it again; find another way or tell the user."}
    }
    unknown = "There is no tool named 'wrok'.\n"
    assert seen(await read(stream(world, "wrok")))[0][0] == f"{unknown}There are no tools here: answer without one."
    world.rules = []
    assert seen(await read(stream(world, "wrok")))[0][0] == f"{unknown}Did you mean 'work'?"


@COLOURS
async def test_a_tool_that_raises_in_the_middle_ends_with_what_it_gave_and_an_error(world: World, colour: str) -> None:
    def half() -> Iterator[str]:
        yield "a"
        raise ValueError("no more")

    writing = Writing(half())
    world.add(getattr(writing, colour), name="work")
    chunks = stream(world)
    assert seen(await read(chunks)) == [("a", "sc"), (f"a|ValueError: no more\n{HINT}", "lsc")]
    assert chunks.result is not None
    assert (outcome(chunks.result), chunks.result.blocks) == ("tool_error", (text("a"),))
    assert writing.closed.is_set()


async def test_a_time_limit_ends_a_stream_with_what_it_gave(world: World) -> None:
    closed: list[str] = []

    async def work() -> AsyncIterator[str]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    world.add(work, timeout_s=1)
    *_, last = await read(stream(world))
    assert seen([last]) == [
        (
            f"a|'work' took longer than 1 s and was stopped.\n{LATE}",
            "lsc",
        )
    ]
    assert closed == ["closed"]


@pytest.mark.parametrize("colour", ["now", "later"])
async def test_a_time_limit_counts_the_readers_time_and_stops_a_tool_that_waits_for_it(
    world: World, colour: str
) -> None:
    """Long enough for the first chunk to come on a busy machine."""
    writing = Writing(endless())
    world.add(getattr(writing, colour), name="work", timeout_s=1)
    chunks = stream(world)
    await anext(chunks)
    await asyncio.to_thread(writing.closed.wait, PATIENCE_S)
    (last,) = await read(chunks)
    assert seen([last]) == [
        (
            f"x|'work' took longer than 1 s and was stopped.\n{LATE}",
            "lsc",
        )
    ]
    assert len(writing.given) == 1


# -- leaving, interrupting, cancelling ------------------------------------------------------------------------------


@COLOURS
async def test_nothing_runs_before_the_first_chunk_is_asked_for(world: World, colour: str) -> None:
    writing = Writing()
    world.add(getattr(writing, colour), name="work")
    chunks = await stream(world)
    await asyncio.sleep(0)
    assert writing.given == []
    await chunks.aclose()
    assert (await read(chunks), world.recording.story) == ([], [])


@COLOURS
async def test_when_the_reader_leaves_after_three_chunks_the_tool_has_made_three_and_is_closed(
    world: World, colour: str
) -> None:
    writing = Writing(endless())
    world.add(getattr(writing, colour), name="work")
    count = 0
    async for _ in stream(world):
        count += 1
        if count == 3:
            break
    assert await asyncio.to_thread(writing.closed.wait, PATIENCE_S)
    assert len(writing.given) == 3


@COLOURS
async def test_closing_a_stream_closes_its_tool_before_it_returns(world: World, colour: str) -> None:
    writing = Writing(endless())
    world.add(getattr(writing, colour), name="work")
    chunks = stream(world)
    for _ in range(3):
        await anext(chunks)
    await chunks.aclose()
    assert (writing.closed.is_set(), len(writing.given)) == (True, 3)
    assert world.recording.story == [("r_1", "", "interrupted")]
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


@COLOURS
@pytest.mark.parametrize("taken", [0, 1, 2, 3])
async def test_an_interrupted_call_ends_with_what_was_produced(world: World, colour: str, taken: int) -> None:
    writing = Writing()
    world.add(getattr(writing, colour), name="work")
    chunks = stream(world)
    for _ in range(taken):
        await anext(chunks)
    chunks.interrupt()
    words = "abc"[:taken] or f"'work' was interrupted.\n{INTERRUPTED}"
    assert seen(await read(chunks)) == [(words, "lisc" if taken else "lic")]
    assert chunks.result is not None
    assert (outcome(chunks.result), len(writing.given)) == ("interrupted", taken)
    assert writing.closed.is_set() is (taken > 0)


async def test_an_interrupt_while_the_tool_works_cancels_it(world: World) -> None:
    begun, closed = asyncio.Event(), list[str]()

    async def work() -> AsyncIterator[str]:
        yield "a"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    world.add(work)
    chunks = stream(world)
    reading = asyncio.ensure_future(read(chunks))
    await begun.wait()
    chunks.interrupt()
    assert seen(await reading) == [("a", "sc"), ("a", "lisc")]
    assert (closed, world.recording.story) == (["closed"], [("r_1", "", "interrupted")])


async def test_an_interrupt_while_a_sync_tool_works_does_not_wait_for_it(
    world: World, release: threading.Event
) -> None:
    begun, writing = threading.Event(), Writing()

    def stuck() -> Iterator[str]:
        yield "a"
        begun.set()
        release.wait(PATIENCE_S)
        yield "b"
        yield "c"

    writing.texts = stuck()
    world.add(writing.now, name="work")
    chunks = stream(world)
    reading = asyncio.ensure_future(read(chunks))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    chunks.interrupt()
    assert seen(await reading) == [("a", "sc"), ("a", "lisc")]
    release.set()
    assert await asyncio.to_thread(writing.closed.wait, PATIENCE_S)
    assert writing.given == ["a", "b"]


async def test_an_interrupt_may_come_from_another_thread(world: World) -> None:
    begun = threading.Event()

    async def work() -> AsyncIterator[str]:
        yield "a"
        begun.set()
        await asyncio.Event().wait()

    world.add(work)
    chunks = stream(world)
    thread = threading.Thread(target=lambda: (begun.wait(PATIENCE_S), chunks.interrupt()))
    thread.start()
    assert seen(await read(chunks)) == [("a", "sc"), ("a", "lisc")]
    thread.join(PATIENCE_S)


async def test_output_after_cancellation_is_in_the_last_chunk(world: World) -> None:
    begun = asyncio.Event()

    async def work() -> AsyncIterator[ToolResponse]:
        yield said("a")
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield said("a, and then I was stopped", is_interrupted=True)

    world.add(work)
    chunks = stream(world)
    reading = asyncio.ensure_future(read(chunks))
    await begun.wait()
    chunks.interrupt()
    assert seen(await reading) == [("a", "c"), ("a, and then I was stopped", "lisc")]


async def test_an_interrupt_after_the_end_changes_nothing(world: World) -> None:
    world.add(Writing().later, name="work")
    chunks = stream(world)
    found = await read(chunks)
    chunks.interrupt()
    assert (seen(found)[-1], await read(chunks)) == (("abc", "lsc"), [])
    assert chunks.result is not None
    assert chunks.result.success


async def test_a_tool_that_will_not_stop_is_left_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "STOP_GRACE_S", 0.05)
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "done"

    world.add(work)
    chunks = stream(world)
    reading = asyncio.ensure_future(read(chunks))
    await begun.wait()
    chunks.interrupt()
    assert seen(await reading) == [
        (
            f"'work' was interrupted.\n{INTERRUPTED}",
            "lic",
        )
    ]
    let_go.set()


@COLOURS
async def test_cancelling_the_reader_passes_and_ends_the_tool(world: World, colour: str) -> None:
    writing, got = Writing(endless()), asyncio.Event()
    world.add(getattr(writing, colour), name="work")

    async def reader() -> None:
        async for chunk in stream(world):
            if len(chunk.content[0].get("text", "")) == 3:
                got.set()
                await asyncio.Event().wait()

    task = asyncio.ensure_future(reader())
    await asyncio.wait_for(got.wait(), PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(writing.closed.wait, PATIENCE_S)
    assert len(writing.given) == 3


async def test_cancelling_a_reader_that_waits_for_a_chunk_cancels_the_tool(world: World) -> None:
    begun, closed = asyncio.Event(), list[str]()

    async def work() -> AsyncIterator[str]:
        begun.set()
        try:
            await asyncio.Event().wait()
            yield "never"
        finally:
            closed.append("closed")

    world.add(work)
    task = asyncio.ensure_future(read(stream(world)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (closed, world.recording.story) == (["closed"], [("r_1", "", "interrupted")])


async def test_a_time_limit_around_the_reader_works(world: World) -> None:
    world.add(lambda: None, name="other")

    async def work() -> None:
        await asyncio.Event().wait()

    world.add(work)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read(stream(world)), 0.01)
    assert world.recording.story == [("r_1", "", "interrupted")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_emitting_tool_gets_an_exception_when_the_reader_leaves(world: World, is_async: bool) -> None:
    raised: list[str] = []

    async def later(context: CallContext) -> None:
        try:
            while True:
                await context.emit("x")
        except Interrupted:
            raised.append("interrupted")
            raise

    def now(context: CallContext) -> None:
        try:
            while True:
                context.emit("x")
        except Interrupted:
            raised.append("interrupted")
            raise

    world.add(from_function(later if is_async else now, name="work"))
    chunks = stream(world)
    for _ in range(3):
        await anext(chunks)
    chunks.interrupt()
    assert seen(await read(chunks)) == [("xxx", "lisc")]
    assert (raised, world.recording.story) == (["interrupted"], [("r_1", "", "interrupted")])


# -- back-pressure, threads, loops, leaks ---------------------------------------------------------------------------


@COLOURS
async def test_a_tool_makes_the_next_part_only_when_it_is_asked_for(world: World, colour: str) -> None:
    writing = Writing(endless())
    world.add(getattr(writing, colour), name="work")
    chunks = stream(world)
    for count in range(1, 50):
        await anext(chunks)
        await asyncio.sleep(0)
        assert len(writing.given) == count
    await chunks.aclose()


async def test_a_tool_sees_its_readers_context_variables(world: World) -> None:
    colour = ContextVar("colour", default="none")
    colour.set("red")

    def work() -> Iterator[str]:
        yield colour.get()

    world.add(work)
    assert (await read(stream(world)))[0].content == [text("red")]


def test_one_catalogue_serves_streams_of_many_loops_and_threads_at_once(world: World) -> None:
    world.add(lambda: iter_words(), name="now")
    world.add(words_later, name="later")
    found: list[list[tuple[str, str]]] = []

    async def many() -> None:
        streams = [read(stream(world, name)) for name in ("now", "later") * 3]
        found.extend(seen(chunks) for chunks in await asyncio.gather(*streams))

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [[("a", "sc"), ("ab", "sc"), ("ab", "lsc")]] * 24


def iter_words() -> Iterator[str]:
    yield from "ab"


async def words_later() -> AsyncIterator[str]:
    yield "a"
    yield "b"


async def test_streams_read_left_interrupted_or_cancelled_leave_nothing_behind(world: World, whole: bool) -> None:
    count = 10_000 if whole else 2_000
    world.add(iter_words, name="now")
    world.add(words_later, name="later")

    async def leave(chunks: ToolStream) -> None:
        async for _ in chunks:
            break

    async def interrupt(chunks: ToolStream) -> None:
        await anext(chunks)
        chunks.interrupt()
        await read(chunks)

    async def close(chunks: ToolStream) -> None:
        await anext(chunks)
        await chunks.aclose()

    ways: list[Callable[[ToolStream], Awaitable[Any]]] = [read, leave, interrupt, close]

    tasks = len(asyncio.all_tasks())

    async def use(count: int) -> tuple[int, int]:
        for number in range(count):
            await ways[number % 4](stream(world, "later" if number % 8 < 6 else "now"))
        # Streams that were left are closed by tasks of their own.
        async with asyncio.timeout(PATIENCE_S):
            while len(asyncio.all_tasks()) > tasks:  # noqa: ASYNC110 - it is the loop that makes them
                await asyncio.sleep(0)
        gc.collect()
        kinds = ("Task", "ToolStream", "Rendezvous", "Produced", "async_generator", "Future")
        alive = sum(type(thing).__name__ in kinds for thing in gc.get_objects())
        return alive, threading.active_count()

    alive, threads = await use(400)
    world.recording.records.clear()
    alive_after, threads_after = await use(count)
    # The whole process is counted, with what earlier tests left. One object kept of each stream of one way with one
    # tool would be 250 or more, and 1,250 in the whole run.
    assert alive_after - alive < 100
    assert threads_after - threads < 100
    assert len(world.recording.records) == count


# -- amending -------------------------------------------------------------------------------------------------------


def amending(world: World, function: Any, amend: Any) -> None:
    world.add(function, name="work").finalise = amend


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_owner_may_put_another_response_in_place_of_each_chunk(world: World, is_async: bool) -> None:
    blocks: list[Any] = []

    def now(block: Any, response: ToolResponse) -> ToolResponse:
        blocks.append(block)
        words = "|".join(part["text"] for part in response.content if part["type"] == "text")
        return said(words.upper())

    async def later(block: Any, response: ToolResponse) -> ToolResponse:
        await asyncio.sleep(0)
        return now(block, response)

    amending(world, Writing().later, later if is_async else now)
    chunks = stream(world)
    assert seen(await read(chunks)) == [("A", "c"), ("AB", "c"), ("ABC", "c"), ("ABC", "lsc")]
    assert blocks == [{"type": "tool_use", "id": "r_1", "name": "work", "input": {}}] * 4
    assert chunks.result is not None
    assert chunks.result.data == "ABC"
    assert seen(await read(stream(world).deltas())) == [("A", ""), ("B", ""), ("C", ""), ("", "ls")]


@pytest.mark.parametrize("changes", [False, True])
async def test_an_owner_who_gives_none_keeps_the_response_as_they_may_have_changed_it(
    world: World, changes: bool
) -> None:
    def amend(_: Any, response: ToolResponse) -> None:
        if changes:
            response.content.append(text("!"))

    amending(world, Writing(["a"]).later, amend)
    chunks = stream(world)
    assert seen(await read(chunks)) == ([("a|!", "sc"), ("a|!", "lsc")] if changes else [("a", "sc"), ("a", "lsc")])
    assert chunks.result is not None
    assert chunks.result.data == ("a\n!" if changes else ["a"])


@pytest.mark.parametrize("way", ["failure", "interrupt"])
async def test_what_is_kept_of_a_call_that_did_not_end_is_what_its_owner_lets_be_seen(world: World, way: str) -> None:
    begun = asyncio.Event()

    async def work() -> AsyncIterator[str]:
        yield "secret"
        if way == "failure":
            raise ValueError("no")
        begun.set()
        await asyncio.Event().wait()

    amending(world, work, lambda _, __: said("[hidden]"))
    chunks = stream(world)
    reading = asyncio.ensure_future(read(chunks))
    if way == "interrupt":
        await begun.wait()
        chunks.interrupt()
    words = f"[hidden]|ValueError: no\n{HINT}" if way == "failure" else "[hidden]"
    assert seen(await reading) == [("[hidden]", "c"), (words, "lsc" if way == "failure" else "lisc")]
    assert chunks.result is not None
    assert chunks.result.blocks == (text("[hidden]"),)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", ["generator", "function"])
async def test_an_owners_code_that_fails_shows_nothing_and_stops_the_tool(
    world: World, is_async: bool, kind: str
) -> None:
    async def later(*_: Any) -> None:
        raise KeyError("oops")

    def now(*_: Any) -> int:
        return 3

    writing = Writing(endless())
    amending(world, writing.later if kind == "generator" else lambda: "secret", later if is_async else now)
    error = "KeyError: 'oops'" if is_async else "TypeError: postprocess_func must return a ToolResponse or None, not 3"
    chunks = stream(world)
    text = f"'work' ran, but postprocessing its result failed: {error}."
    hint = "It may have taken effect."
    assert seen(await read(chunks)) == [(f"{text}\n{hint}", "lc")]
    assert isinstance(chunks.result, ToolResult)
    assert outcome(chunks.result) == "internal"
    assert len(writing.given) == (kind == "generator")
