"""`trace_toolkit` makes one span of each call of a `call_tool_function`, however that gives its chunks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry import trace

from tests.observability.world import Telescope
from toolwire import DefinitionError, TextBlock, Toolkit, ToolResponse
from toolwire.seeds import ToolUseBlock, trace_toolkit


def text(words: str) -> list[Any]:
    return [TextBlock(type="text", text=words)]


def use(**arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(type="tool_use", id="call_x", name="greet", input=arguments)


async def chunks(*words: str, error: Exception | None = None) -> AsyncIterator[ToolResponse]:
    for place, word in enumerate(words, 1):
        await asyncio.sleep(0)
        yield ToolResponse(text(word), stream=True, is_last=place == len(words) and error is None)
    if error is not None:
        raise error


def told(telescope: Telescope) -> list[tuple[str, dict[str, Any]]]:
    return [(span.name, dict(span.attributes or {})) for span in telescope.spans()]


def said(output: str | None = None, **more: Any) -> tuple[str, dict[str, Any]]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "greet",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_x",
        "gen_ai.tool.call.arguments": '{"name": "Ada"}',
        **more,
    }
    if output is not None:
        attributes["gen_ai.tool.call.result"] = output
    return "execute_tool greet", attributes


HELLO = '[{"type": "text", "text": "Hello"}]'


class Plain:
    """Toolkits as others write them: the three ways to give chunks."""

    def __init__(self, telescope: Telescope) -> None:
        self.decorate = trace_toolkit(tracer_provider=telescope.tracer_provider)

    def way(self, name: str) -> Any:
        async def generator(tool_call: Any) -> AsyncIterator[ToolResponse]:
            async for chunk in chunks("Hel", "Hello"):
                yield chunk

        async def awaited(tool_call: Any) -> AsyncIterator[ToolResponse]:
            return chunks("Hel", "Hello")

        def at_once(tool_call: Any) -> AsyncIterator[ToolResponse]:
            return chunks("Hel", "Hello")

        return self.decorate({"generator": generator, "awaited": awaited, "at once": at_once}[name])


@pytest.mark.requirement("toolkit.interaction.trace-errors")
@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("way", ["generator", "awaited", "at once"])
def test_a_call_is_one_span_with_input_and_output(way: str, is_awaited: bool) -> None:
    telescope = Telescope()
    call = Plain(telescope).way(way)

    async def read() -> list[str]:
        stream = await call(use(name="Ada")) if is_awaited else call(use(name="Ada"))
        return [chunk.content[0]["text"] async for chunk in stream]

    assert asyncio.run(read()) == ["Hel", "Hello"]
    assert told(telescope) == [said(HELLO)]


@pytest.mark.requirement("toolkit.interaction.trace-errors")
def test_an_exception_is_recorded_and_passes() -> None:
    telescope = Telescope()

    @trace_toolkit(tracer_provider=telescope.tracer_provider)
    def call(tool_call: Any) -> AsyncIterator[ToolResponse]:
        return chunks("Hello", error=OSError("the line is dead"))

    async def read() -> None:
        async for _ in call(use(name="Ada")):
            pass

    with pytest.raises(OSError, match="the line is dead"):
        asyncio.run(read())
    assert told(telescope) == [said(HELLO, **{"error.type": "OSError"})]
    (event,) = telescope.spans()[0].events
    expected = {"exception.type": "OSError", "exception.message": '"the line is dead"'}
    assert (event.name, dict(event.attributes or {})) == ("exception", expected)
    assert not telescope.spans()[0].status.is_ok


def test_the_span_ends_with_the_last_chunk_and_not_before() -> None:
    telescope = Telescope()
    call = Plain(telescope).way("generator")

    async def read() -> list[int]:
        stream = call(use(name="Ada"))
        assert telescope.spans() == ()
        seen: list[int] = []
        async for _ in stream:
            seen.append(len(telescope.spans()))
        return seen

    # The span ends as the last chunk is given: a reader that stops there has seen the whole.
    assert asyncio.run(read()) == [0, 1]
    assert len(telescope.spans()) == 1


@pytest.mark.parametrize("leave", ["aclose", "forget"])
def test_a_stream_that_is_left_ends_its_span(leave: str) -> None:
    telescope = Telescope()
    call = Plain(telescope).way("generator")

    async def read() -> None:
        stream = call(use(name="Ada"))
        await anext(stream)
        if leave == "aclose":
            await stream.aclose()
        del stream
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(read())
    assert told(telescope) == [said('[{"type": "text", "text": "Hel"}]')]


def test_deltas_are_recorded_as_one_output() -> None:
    telescope = Telescope()

    @trace_toolkit(tracer_provider=telescope.tracer_provider)
    async def call(tool_call: Any) -> AsyncIterator[ToolResponse]:
        yield ToolResponse(text("Hel"), stream=True, is_last=False, is_cumulative=False)
        yield ToolResponse(text("lo"), stream=True, is_cumulative=False)

    async def read() -> None:
        async for _ in call(use(name="Ada")):
            pass

    asyncio.run(read())
    assert told(telescope) == [said('[{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]')]


def test_the_reader_is_never_inside_of_the_span() -> None:
    telescope = Telescope()
    call = Plain(telescope).way("generator")

    async def read() -> list[bool]:
        return [trace.get_current_span() is trace.INVALID_SPAN async for _ in call(use(name="Ada"))]

    assert asyncio.run(read()) == [True, True]


def test_content_that_may_not_be_read_is_not_recorded() -> None:
    telescope = Telescope()

    @trace_toolkit(tracer_provider=telescope.tracer_provider, redact=lambda value: "***")
    def call(tool_call: Any) -> AsyncIterator[ToolResponse]:
        return chunks("Hello", error=OSError("Hello"))

    async def read() -> None:
        async for _ in call(use(name="Ada")):
            pass

    with pytest.raises(OSError, match="Hello"):
        asyncio.run(read())
    assert [text in telescope.text() for text in ("Hello", "Ada", "***")] == [False, False, True]


def test_secrets_are_not_recorded() -> None:
    telescope = Telescope()

    @trace_toolkit(tracer_provider=telescope.tracer_provider)
    def call(tool_call: Any) -> AsyncIterator[ToolResponse]:
        return chunks("password=hunter2hunter2", error=OSError("password=hunter2hunter2"))

    async def read() -> None:
        async for _ in call(use(name="Ada", password="hunter2hunter2")):
            pass

    with pytest.raises(OSError, match="hunter2"):
        asyncio.run(read())
    assert ["hunter2" in telescope.text(), "<redacted>" in telescope.text()] == [False, True]


# -- on a toolkit of ours ----------------------------------------------------------------------------------------


def greet(name: str) -> str:
    """Greets."""
    if not name:
        raise ValueError("nobody")
    return f"Hello {name}"


class Kit(Toolkit):
    """A toolkit whose calls are decorated."""

    def __init__(self, telescope: Telescope) -> None:
        super().__init__()
        self.register_tool_function(greet)
        self.call = trace_toolkit(tracer_provider=telescope.tracer_provider)(self.call_tool_function)


@pytest.mark.requirement("toolkit.pattern.aspect")
def test_a_toolkits_call_is_one_span() -> None:
    telescope = Telescope()
    kit = Kit(telescope)

    async def read() -> Any:
        stream = kit.call(use(name="Ada"))
        found = [chunk.content[0]["text"] async for chunk in stream]
        return found, stream.result.success

    assert asyncio.run(read()) == (["Hello Ada"], True)
    assert told(telescope) == [said('[{"type": "text", "text": "Hello Ada"}]')]


def test_a_failed_call_of_a_toolkit_is_an_error_of_its_kind() -> None:
    telescope = Telescope()
    kit = Kit(telescope)

    async def read() -> None:
        async for _ in kit.call(use(name="")):
            pass

    asyncio.run(read())
    ((_, attributes),) = told(telescope)
    assert attributes["error.type"] == "tool_error"
    assert not telescope.spans()[0].status.is_ok


def test_a_toolkit_that_is_traced_itself_shares_the_span() -> None:
    telescope = Telescope()
    kit = Kit(telescope)
    kit.enable_tracing(**telescope.providers)

    async def read() -> None:
        async for _ in kit.call(use(name="Ada")):
            pass

    asyncio.run(read())
    shared = {
        "gen_ai.tool.description": "Greets.",
        "toolwire.call.id": "call_x",
        "toolwire.run.id": "call_x",
        "toolwire.call.outcome": "answered",
    }
    assert told(telescope) == [said('[{"type": "text", "text": "Hello Ada"}]', **shared)]
    assert [count for _, count in telescope.durations()] == [1]


def test_interrupting_reaches_the_stream_inside() -> None:
    telescope = Telescope()
    kit = Kit(telescope)

    async def read() -> list[bool]:
        stream = kit.call(use(name="Ada"))
        stream.interrupt()
        return [chunk.is_interrupted async for chunk in stream]

    assert asyncio.run(read()) == [True]
    ((_, attributes),) = told(telescope)
    assert attributes["error.type"] == "interrupted"


# -- what cannot be decorated ------------------------------------------------------------------------------------


def test_what_is_given_no_tool_use_block_is_refused() -> None:
    with pytest.raises(DefinitionError) as refused:
        trace_toolkit(lambda block: chunks("Hello"))({"tool": "greet"})
    assert str(refused.value) == "trace_toolkit: no tool-use block was given, a mapping with 'name' and 'input'"


def test_a_function_without_chunks_is_refused() -> None:
    async def read() -> None:
        async for _ in trace_toolkit(lambda block: 5)(use(name="Ada")):
            pass

    with pytest.raises(DefinitionError) as refused:
        asyncio.run(read())
    assert str(refused.value) == (
        "trace_toolkit: the function gave 5; "
        "decorate one that gives chunks to be read by `async for`, a call_tool_function"
    )
