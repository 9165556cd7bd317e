"""A call's output while it runs: `ToolStream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

from toolwire.invocation.finalise import FinaliseFailed, finalise_response, finalise_result
from toolwire.invocation.fold import interruption_result
from toolwire.invocation.invoker import invoke
from toolwire.invocation.ports.ports import Part
from toolwire.invocation.scope import Scope, require_result
from toolwire.runtime.identity import new_id
from toolwire.runtime.rendezvous import Rendezvous
from toolwire.vocabulary.blocks import Content, ContentBlock, new_blocks
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import Outcome, ToolResult

STOP_GRACE_S = 1.0
"""Seconds for a call without a reader to end by itself, and again once it is cancelled: enough to clean up."""


def stream_call(call: ToolCall, scope: Scope) -> ToolStream:
    """Returns the call's output as it comes. The call begins on the reader's event loop, with the first requested
    chunk.

    `scope` is one of awaited calls.
    """
    return ToolStream(_StreamedCall(call, scope))


class ToolStream:
    """The chunks of one call, in order, as they come: `async for chunk in stream`, or `in await stream`.

    Each chunk holds all output so far (`is_cumulative`), after `deltas()` only the new part. Exactly the last one has
    `is_last`. The tool goes on when the next chunk is requested, so a slow reader holds it up. Leaving the loop,
    `aclose()` and cancelling the reader stop the call. It never raises for a call that fails: its last chunk says so.
    """

    def __init__(self, reading: _StreamedCall) -> None:
        self._reading = reading
        # Held by the reading, not by the stream: when the stream is collected, its generator is closed.
        self._chunks = reading.chunks()

    def __aiter__(self) -> AsyncIterator[ToolResponse]:
        return self

    def __anext__(self) -> Awaitable[ToolResponse]:
        return self._chunks.__anext__()

    def __await__(self) -> Generator[Any, Any, ToolStream]:
        return self
        yield

    @property
    def result(self) -> ToolResult | None:
        """The call's result; None before its last chunk."""
        return self._reading.result

    def deltas(self) -> ToolStream:
        """Makes further chunks hold only their new part; returns this stream.

        A chunk of a tool that took back earlier output holds all present output, and has `is_cumulative`.
        """
        self._reading.gives_deltas = True
        return self

    def interrupt(self) -> None:
        """Stops the call, from any thread: its last chunk comes now, with the output so far and `is_interrupted`."""
        self._reading.interrupt()

    async def aclose(self) -> None:
        """Stops the call, if it still runs, and waits for its tool to clean up (a second at most)."""
        await self._chunks.aclose()


class _StreamedCall:
    """One call and its one reader. It is the call's sink."""

    def __init__(self, call: ToolCall, scope: Scope) -> None:
        self._call = call
        self._scope = replace(scope, sink=self)
        entry = scope.tools.find(call.name)
        self._finalise = None if entry is None else entry.finalise
        self._meeting: Rendezvous[Part] = Rendezvous()
        self._task: asyncio.Task[Outcome] | None = None
        self._last: ToolResponse | None = None
        self._content = Content()
        """All output of the tool so far."""
        self._shown: list[ContentBlock] = []
        """The same output after the owner's `finalise` function; empty without such a function."""
        self._has_begun = False
        self._is_interrupted = False
        self.gives_deltas = False
        self.result: ToolResult | None = None

    # -- the sink, for the tool ---------------------------------------------------------------------------------

    def offer(self, part: Part, /) -> Future[bool]:
        return self._meeting.offer(part)

    def end_with(self, response: ToolResponse, /) -> None:
        self._last = response

    # -- for the reader -----------------------------------------------------------------------------------------

    async def chunks(self) -> AsyncGenerator[ToolResponse, None]:
        """Yields the chunks; closing the generator stops the call."""
        if not self._is_interrupted:
            self._start()
        try:
            while self._task is not None and (part := await asyncio.wrap_future(self._meeting.take())) is not None:
                chunk = await self._chunk(part)
                if not self._is_interrupted:
                    yield chunk
            self.result = await self._outcome()
            last = self._final(self.result)
        except FinaliseFailed as failed:
            self.result = failed.result
            last = ToolResponse(self.result.content, _metadata(self.result))
        finally:
            await self._leave()
        yield last

    def interrupt(self) -> None:
        self._is_interrupted = True
        task, was_waiting = self._task, self._meeting.close()
        if task is not None and not was_waiting:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(invoke(self._call, self._scope))
        self._task.add_done_callback(lambda _: self._meeting.close())

    async def _outcome(self) -> ToolResult:
        task = self._task
        if task is None:
            return await self._result_at_cut()
        await (_wait_for_stop(task) if self._is_interrupted else asyncio.wait((task,)))
        return await self._result_at_cut() if not task.done() or task.cancelled() else require_result(task.result())

    async def _result_at_cut(self) -> ToolResult:
        """Returns the result of a call that ended before it could give one."""
        if self._last is not None:
            self._content.replace(self._last.content)
        said = interruption_result(self._call, self._content.blocks())
        return (
            said
            if self._finalise is None
            else await finalise_result(said, self._call, self._finalise, self._scope.ports)
        )

    async def _leave(self) -> None:
        task = self._task
        if task is None or task.done():
            return
        if not self._meeting.close():
            task.cancel()
        await _wait_for_stop(task)

    # -- chunks -------------------------------------------------------------------------------------------------

    async def _chunk(self, part: Part) -> ToolResponse:
        self._has_begun = True
        told = part.response or ToolResponse([], stream=True)
        if part.progress is not None:
            return self._progress(part)
        if self.gives_deltas and part.pieces and self._finalise is None:
            self._content.extend(part.pieces)
            new = Content()
            new.extend(part.pieces)
            return replace(told, content=new.blocks(), is_last=False, is_cumulative=False)
        before = self._before()
        if part.response is not None and part.response.is_cumulative:
            self._content.replace(part.response.content)
        self._content.extend(part.pieces)
        chunk = replace(told, content=self._content.blocks(), is_last=False, is_cumulative=True)
        if self._finalise is not None:
            chunk = await finalise_response(chunk, self._call, self._finalise, self._scope.ports)
            # The owner's function must not decide which chunk is the last.
            chunk = replace(chunk, is_last=False, is_interrupted=False, is_cumulative=True)
            self._shown = chunk.content
        return self._as_delta(chunk, before)

    def _progress(self, part: Part) -> ToolResponse:
        progress = part.progress
        assert progress is not None
        so_far = [] if self.gives_deltas else self._before()
        metadata = {"done": progress.done, "total": progress.total, "message": progress.message}
        return ToolResponse(
            so_far, {"progress": metadata}, stream=True, is_last=False, is_cumulative=not self.gives_deltas
        )

    def _final(self, result: ToolResult) -> ToolResponse:
        before, last, failure = self._before(), self._last, result.failure
        content = result.content
        is_interrupted = failure is not None and failure.kind == "interrupted"
        if is_interrupted and result.blocks:
            content = list(result.blocks)
        elif failure is not None and not result.blocks:
            content = [*before, *content]
        chunk = ToolResponse(content, _metadata(result), stream=self._has_begun, is_interrupted=is_interrupted)
        if last is not None and failure is None:
            chunk = replace(last, content=content, metadata=chunk.metadata, is_last=True, is_cumulative=True)
        return self._as_delta(chunk, before)

    def _before(self) -> list[ContentBlock]:
        return self._content.blocks() if self._finalise is None else self._shown

    def _as_delta(self, chunk: ToolResponse, before: Sequence[ContentBlock]) -> ToolResponse:
        """Returns the chunk, or with `gives_deltas` its new part."""
        new = new_blocks(before, chunk.content) if self.gives_deltas else None
        return chunk if new is None else replace(chunk, content=new, is_cumulative=False)


def _metadata(result: ToolResult) -> dict[str, Any] | None:
    """Returns the result's metadata, with the kind and hint of a failure added for code that reads it."""
    failure = result.failure
    how = {} if failure is None else {"failure": {"kind": failure.kind, "hint": failure.hint}}
    return {**result.metadata, **how} or None


async def _wait_for_stop(task: asyncio.Task[Any]) -> None:
    """Waits for a call that was told to stop; cancels it if it does not end by itself."""
    try:
        await asyncio.wait((task,), timeout=STOP_GRACE_S)
    finally:
        task.cancel()
    await asyncio.wait((task,), timeout=STOP_GRACE_S)


def call_of(block: object) -> ToolCall:
    """Returns the call that a block asks for, under the block's id if it has one.

    Raises:
        DefinitionError: it is not a mapping with a name and an input.
    """
    if isinstance(block, Mapping):
        fields = cast("Mapping[str, Any]", block)
        name, arguments, given_id = fields.get("name"), fields.get("input"), fields.get("id")
        if isinstance(name, str) and (arguments is None or isinstance(arguments, Mapping)):
            call_id = given_id if isinstance(given_id, str) and given_id else new_id("r")
            return ToolCall(name, cast("Mapping[str, Any] | None", arguments), id=call_id)
    raise DefinitionError(
        f"{block!r:.200} is not a tool use: give a mapping with a name (a str) and an input (a mapping)"
    )
