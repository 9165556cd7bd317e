"""Runs a tool's generator part by part, at the pace of its reader."""

from __future__ import annotations

from contextlib import aclosing, closing
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import Any, cast

from toolwire.invocation.fold import ALL_GIVEN, STOPPED, Produced
from toolwire.invocation.owner import owners_fault
from toolwire.invocation.ports import Ports, Raised
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import BoundValueError

GENERATORS: tuple[type[Any], ...] = (GeneratorType, AsyncGeneratorType)
"""The types that are iterated. A value of any other type is the tool's result."""

PASSING = (KeyboardInterrupt, GeneratorExit, BoundValueError)
"""Exceptions that never count as a tool's error: they end the program or the call's coroutine, or are for the host."""


async def iterate(call: ToolCall, generator: object, produced: Produced, ports: Ports, limit_s: float | None) -> Any:
    """Returns `ALL_GIVEN` or `STOPPED` once the parts are in `produced`, or `Raised`. The generator is then closed.

    The body of a generator is the tool's code, so all of it runs in the tool's thread.

    Raises:
        TimedOut: The generator did not end in time. In a thread, it ends when it next yields a part.
        WorkersExhausted: No worker was free.
    """
    if isinstance(generator, GeneratorType):
        pulled = partial(_pulled, cast("GeneratorType[Any, Any, Any]", generator), produced)
        return await ports.execute(pulled, is_async=False, limit_s=limit_s)
    if ports.is_blocking:
        return owners_fault(
            "invalid_result",
            f"{call.name!r} gave back an async generator instead of a value.",
            for_owner="write it with `async def` and `yield`, or call it from an event loop.",
            call=call,
        )
    later = partial(_pulled_later, cast("AsyncGeneratorType[Any, Any]", generator), produced, ports)
    return await ports.execute(later, is_async=True, limit_s=limit_s)


def _pulled(generator: GeneratorType[Any, Any, Any], produced: Produced) -> Any:
    try:
        with closing(generator):
            for value in generator:
                if not produced.put(value, is_yielded=True):
                    return STOPPED
        return ALL_GIVEN
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - any exception of a tool is its result
        return Raised(error)


async def _pulled_later(generator: AsyncGeneratorType[Any, Any], produced: Produced, ports: Ports) -> Any:
    try:
        async with aclosing(generator):
            async for value in generator:
                if not await produced.put_later(value, ports, is_yielded=True):
                    return STOPPED
        return ALL_GIVEN
    except PASSING:
        raise
    except BaseException as error:
        if ports.is_cancellation(error):
            raise
        return Raised(error)
