"""A tool that raises a cancellation itself, or whose inner work was cancelled, is interrupted: no caller did it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from toolwire import ToolRegistry, ToolResult


async def cancels_itself() -> str:
    raise asyncio.CancelledError


async def awaits_cancelled_work() -> str:
    task = asyncio.ensure_future(asyncio.sleep(10))
    task.cancel()
    await task
    return "done"


def cancels_in_a_thread() -> str:
    raise asyncio.CancelledError


def returns_cancelled_work() -> Awaitable[str]:
    return awaits_cancelled_work()


async def cancels_in_a_group() -> str:
    raise BaseExceptionGroup("two tasks", [asyncio.CancelledError(), asyncio.CancelledError()])


async def streams() -> AsyncIterator[str]:
    yield "a part"
    raise asyncio.CancelledError


def streams_in_a_thread() -> Iterator[str]:
    yield "a part"
    raise asyncio.CancelledError


TOOLS: list[tuple[Callable[..., Any], list[str]]] = [
    *((tool, []) for tool in (cancels_itself, awaits_cancelled_work, cancels_in_a_thread, cancels_in_a_group)),
    *((tool, []) for tool in (returns_cancelled_work,)),
    *((tool, ["a part"]) for tool in (streams, streams_in_a_thread)),
]


def check(result: ToolResult, parts: list[str]) -> None:
    assert result.failure is not None
    assert result.failure.kind == "interrupted"
    assert result.call is not None
    assert result.error == f"{result.call.name!r} was interrupted."
    assert [block["text"] for block in result.blocks if block["type"] == "text"] == parts


@pytest.mark.parametrize(("tool", "parts"), TOOLS, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_cancellation_of_its_own_is_an_interruption_that_keeps_the_parts(
    tool: Callable[..., Any], parts: list[str]
) -> None:
    registry = ToolRegistry()
    registry.register(tool)
    check(await registry.ainvoke(tool.__name__), parts)


@pytest.mark.parametrize(("tool", "parts"), TOOLS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_same_holds_without_an_event_loop(tool: Callable[..., Any], parts: list[str]) -> None:
    registry = ToolRegistry()
    registry.register(tool)
    check(registry.invoke(tool.__name__), parts)


async def test_a_group_with_an_error_in_it_is_an_error() -> None:
    async def fails() -> str:
        raise BaseExceptionGroup("two tasks", [asyncio.CancelledError(), ValueError("no")])

    registry = ToolRegistry()
    registry.register(fails)
    result = await registry.ainvoke("fails")
    assert result.failure is not None
    assert result.failure.kind == "tool_error"


async def test_the_callers_own_cancellation_still_leaves_the_call() -> None:
    began = asyncio.Event()

    async def waits() -> str:
        began.set()
        await asyncio.sleep(10)
        return "done"

    registry = ToolRegistry()
    registry.register(waits)
    task = asyncio.create_task(registry.ainvoke("waits"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
