"""Toolkits give streams: a model's tool use in, chunks out; programs get the final result of a stream."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire import DefinitionError, Session, Toolkit, ToolRegistry, ToolResponse


def text(words: str) -> Any:
    return {"type": "text", "text": words}


async def read(toolkit: Toolkit, name: str, **arguments: Any) -> list[ToolResponse]:
    async with asyncio.timeout(PATIENCE_S):
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
        return [chunk async for chunk in toolkit.call_tool_function(block)]


def sync(word: str) -> ToolResponse:
    """Answers."""
    return ToolResponse([text(word)])


async def coroutine(word: str) -> ToolResponse:
    """Answers."""
    return sync(word)


def sync_generator(word: str) -> Iterator[ToolResponse]:
    """Answers letter by letter."""
    for end in range(1, len(word) + 1):
        yield ToolResponse([text(word[:end])], stream=True, is_last=end == len(word))


async def async_generator(word: str) -> AsyncIterator[ToolResponse]:
    """Answers letter by letter."""
    for response in sync_generator(word):
        yield response


async def coroutine_of_generator(word: str) -> Iterator[ToolResponse]:
    """Answers letter by letter."""
    return sync_generator(word)


async def coroutine_of_async_generator(word: str) -> AsyncIterator[ToolResponse]:
    """Answers letter by letter."""
    return async_generator(word)


STREAMING = [
    sync_generator,
    async_generator,
    coroutine_of_generator,
    coroutine_of_async_generator,
    functools.partial(sync_generator),
]


@pytest.mark.requirement(
    "toolkit.call.sync",
    "toolkit.call.coroutine",
    "toolkit.call.by-block",
    "toolkit.wrapper.object",
    "toolkit.registered.single-chunk",
    "toolkit.function.return-kinds",
)
@pytest.mark.parametrize("function", [sync, coroutine])
async def test_a_function_that_returns_a_response_answers_in_one_chunk(function: Any) -> None:
    toolkit = Toolkit()
    toolkit.add_tools([sync_generator, function, async_generator])
    (chunk,) = await read(toolkit, function.__name__, word="abc")
    assert (chunk.content, chunk.is_last, chunk.stream) == ([text("abc")], True, False)


@pytest.mark.requirement(
    "toolkit.call.sync-generator",
    "toolkit.call.async-generator",
    "toolkit.pattern.generators",
    "toolkit.call.last-chunk",
    "toolkit.call.stream-flag",
    "toolkit.function.return-kinds",
)
@pytest.mark.parametrize("function", STREAMING)
async def test_generators_of_every_kind_answer_chunk_by_chunk(function: Any) -> None:
    toolkit = Toolkit()
    toolkit.add_tool(function)
    name = getattr(function, "__name__", "sync_generator")
    chunks = await read(toolkit, name, word="abc")
    assert [(chunk.content, chunk.is_last, chunk.stream) for chunk in chunks] == [
        ([text("a")], False, True),
        ([text("ab")], False, True),
        ([text("abc")], False, True),
        ([text("abc")], True, True),
    ]


@pytest.mark.requirement("toolkit.call.error", "toolkit.boundary.error-to-agent")
async def test_a_tool_that_raises_in_the_middle_ends_with_an_error_block() -> None:
    def half() -> Iterator[str]:
        """Gives half."""
        yield "half"
        raise ValueError("no more")

    toolkit = Toolkit()
    toolkit.add_tool(half)
    *_, last = await read(toolkit, "half")
    hint = "Read the error; change the arguments or try another tool."
    assert last.content == [text("half"), text(f"ValueError: no more\n{hint}")]
    assert last.metadata == {"failure": {"kind": "tool_error", "hint": hint}}


@pytest.mark.parametrize(
    "block", [{"name": "sync", "input": {"word": "a"}}, {"name": "sync", "input": {"word": "a"}, "id": 3}]
)
async def test_any_mapping_with_name_and_input_is_a_tool_use(block: Any) -> None:
    toolkit = Toolkit()
    toolkit.add_tool(sync)
    chunks = [chunk async for chunk in await toolkit.call_tool_function(block)]
    assert [chunk.content for chunk in chunks] == [[text("a")]]


@pytest.mark.parametrize(
    "block", [{"input": {}}, {"name": "sync", "input": "{}"}, {"name": 3, "input": {}}, "sync", None]
)
def test_a_value_that_is_not_a_tool_use_is_refused(block: Any) -> None:
    with pytest.raises(DefinitionError) as caught:
        Toolkit().call_tool_function(block)
    assert str(caught.value) == (
        f"{block!r} is not a tool use: give a mapping with a name (a str) and an input (a mapping)"
    )


async def test_a_tool_use_without_input_is_a_call_without_arguments() -> None:
    toolkit = Toolkit()
    toolkit.add_tool(sync)
    (chunk,) = await read(toolkit, "sync")
    assert chunk.content[0] == text(
        "The arguments of 'sync' are wrong:\n- 'word' is missing: give a string.\n"
        "Correct them and call 'sync' again. It takes: word (required)."
    )


def words() -> Iterator[str]:
    """Gives words."""
    yield from ("a", "b")


async def words_later() -> AsyncIterator[str]:
    """Gives words."""
    yield "a"
    yield "b"


PROGRAM = "print(words(), sync_generator(word='abc'))"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_program_gets_what_a_stream_comes_to(is_async: bool) -> None:
    registry = ToolRegistry()
    registry.register(words_later if is_async else words, name="words")
    registry.register(async_generator if is_async else sync_generator, name="sync_generator")
    assert registry.run_program(PROGRAM).stdout == "['a', 'b'] abc\n"


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_program_in_a_session_or_a_stream_gets_it_too(is_async: bool) -> None:
    registry = ToolRegistry()
    registry.register(words_later if is_async else words, name="words")
    registry.register(async_generator if is_async else sync_generator, name="sync_generator")
    registry.enable_code_execution()
    session = Session(registry, protocol="openai")
    reply = {
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "words", "arguments": "{}"}},
        ],
    }
    turn = await session.turn(reply)
    assert turn.results[0].data == ["a", "b"]
    toolkit = registry.create_agent_toolkit("agent", ["code_execution", "words", "sync_generator"])
    chunks = await read(toolkit, "code_execution", code=PROGRAM)
    assert [chunk.content for chunk in chunks] == [[text("['a', 'b'] abc\n")]]


# -- options registered with a tool ---------------------------------------------------------------------------------


def shouting(block: Any, response: ToolResponse) -> ToolResponse:
    said = "".join(part["text"] for part in response.content if part["type"] == "text")
    return ToolResponse([text(f"{block['id']}: {said.upper()}")])


async def shouting_later(block: Any, response: ToolResponse) -> ToolResponse:
    await asyncio.sleep(0)
    return shouting(block, response)


@pytest.mark.requirement("toolkit.register.postprocess-replaces", "toolkit.registered.postprocess-func")
@pytest.mark.parametrize("hook", [shouting, shouting_later])
async def test_the_result_of_postprocess_func_replaces_each_response(hook: Any) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(async_generator, postprocess_func=hook)
    chunks = await read(toolkit, "async_generator", word="ab")
    assert [chunk.content for chunk in chunks] == [[text("toolu_1: A")], [text("toolu_1: AB")], [text("toolu_1: AB")]]
    assert toolkit.tools["async_generator"].postprocess_func is hook
    result = await toolkit.execute_tool("async_generator", {"word": "ab"})
    assert result.text.endswith(": AB")


@pytest.mark.requirement("toolkit.register.postprocess-none")
async def test_when_postprocess_func_gives_none_the_response_stays() -> None:
    seen: list[ToolResponse] = []

    def look(_: Any, response: ToolResponse) -> None:
        seen.append(response)

    toolkit = Toolkit()
    toolkit.register_tool_function(sync, postprocess_func=look)
    (chunk,) = await read(toolkit, "sync", word="abc")
    assert (chunk.content, [each.content for each in seen]) == ([text("abc")], [[text("abc")]])


@pytest.mark.requirement("toolkit.registered.call")
@pytest.mark.parametrize("stream_print", [None, False, True])
async def test_a_registered_function_is_called_with_its_presets_and_printed_when_asked(
    stream_print: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    def letters(word: str, after: str) -> Iterator[str]:
        """Gives letters."""
        for letter in word:
            yield letter + after

    toolkit = Toolkit()
    toolkit.register_tool_function(letters, preset_kwargs={"after": "."})
    stream = toolkit.tools["letters"].call(arguments={"word": "ab"}, stream_print=stream_print)
    chunks = [chunk async for chunk in stream]
    assert [chunk.content for chunk in chunks] == [[text("a.")], [text("a.b.")], [text("a.b.")]]
    assert capsys.readouterr().out == ("a.b.\n" if stream_print else "")


async def test_a_tool_of_an_inactive_group_says_in_its_one_chunk_how_to_activate_it() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("words", "Words.")
    toolkit.register_tool_function(sync, "words")
    (chunk,) = await read(toolkit, "sync", word="a")
    assert chunk.metadata is not None
    assert (chunk.metadata["failure"]["kind"], chunk.is_last) == ("inactive_tool", True)
