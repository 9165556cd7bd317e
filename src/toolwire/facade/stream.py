"""A call's output while it runs: `ToolStream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

from toolwire.invocation.fold import interrupted, raised
from toolwire.invocation.invoker import invoke
from toolwire.invocation.scope import Scope, ended
from toolwire.invocation.sink import Part
from toolwire.runtime.rendezvous import Rendezvous
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.content import Content, ContentBlock, new_blocks
from toolwire.vocabulary.pending import Outcome
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

Hook = Callable[[ToolResponse], ToolResponse | Awaitable[ToolResponse | None] | None]
"""What stands in for a chunk; None keeps it."""

STOP_GRACE_S = 1.0
"""Seconds that a call which nobody reads any more has to end by itself, then once cancelled: enough to clean up."""


def stream_call(call: ToolCall, scope: Scope, *, hook: Hook | None = None) -> ToolStream:
    """The call's output, as it comes. The call begins with the first chunk that is asked for, on that event loop.

    `scope` is one of awaited calls. `hook` sees every chunk, with its content so far.
    """
    return ToolStream(_Reading(call, scope, hook))


class ToolStream:
    """The chunks of one call, one after the other, as they come: `async for chunk in stream`, or `in await stream`.

    Each chunk holds all that there is so far (`is_cumulative`), after `deltas()` what is new; exactly the last one has
    `is_last`. The tool goes on when the next chunk is asked for, so a slow reader holds it up. Leaving, `aclose()` and
    cancelling the reader stop the call. It never raises for a call that fails: its last chunk says so.
    """

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        # Of the reading, not of the stream: when nobody holds the stream, its generator is closed.
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
        """How the call ended; None before its last chunk."""
        return self._reading.result

    def deltas(self) -> ToolStream:
        """The same stream, from here on with what is new in each chunk.

        A chunk of a tool that took back what it had said is all that there is now, and has `is_cumulative`.
        """
        self._reading.gives_deltas = True
        return self

    def interrupt(self) -> None:
        """Stops the call: its last chunk comes now, with what was produced and `is_interrupted`. From any thread."""
        self._reading.interrupt()

    async def aclose(self) -> None:
        """Stops the call, if it still runs, and waits for its tool to clean up (a second at most)."""
        await self._chunks.aclose()


class _HookFailed(Exception):
    """The owner's code that sees the chunks raised."""


class _Reading:
    """One call and its one reader. It is the call's sink."""

    def __init__(self, call: ToolCall, scope: Scope, hook: Hook | None) -> None:
        self._call = call
        self._scope = replace(scope, sink=self)
        self._hook = hook
        self._meeting: Rendezvous[Part] = Rendezvous()
        self._task: asyncio.Task[Outcome] | None = None
        self._last: ToolResponse | None = None
        self._content = Content()
        """All that the chunks so far said, before the hook."""
        self._shown: list[ContentBlock] = []
        """The same after the hook, when there is one."""
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
        """The chunks; closing it stops the call."""
        if not self._is_interrupted:
            self._start()
        try:
            while self._task is not None and (part := await asyncio.wrap_future(self._meeting.take())) is not None:
                chunk = await self._chunk(part)
                if not self._is_interrupted:
                    yield chunk
            self.result = await self._outcome()
            last = await self._final(self.result)
        except _HookFailed as failed:
            self.result = self._not_shown(failed)
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
            return self._cut_off()
        await (_stopped(task) if self._is_interrupted else asyncio.wait((task,)))
        return self._cut_off() if not task.done() or task.cancelled() else ended(task.result())

    def _cut_off(self) -> ToolResult:
        """The result of a call that did not get to tell it."""
        if self._last is not None:
            self._content.replace(self._last.content)
        return interrupted(self._call, self._content.blocks())

    async def _leave(self) -> None:
        task = self._task
        if task is None or task.done():
            return
        if not self._meeting.close():
            task.cancel()
        await _stopped(task)

    # -- chunks -------------------------------------------------------------------------------------------------

    async def _chunk(self, part: Part) -> ToolResponse:
        self._has_begun = True
        told = part.response or ToolResponse([], stream=True)
        if part.progress is not None:
            return self._progress(part)
        if self.gives_deltas and part.pieces and self._hook is None:
            self._content.extend(part.pieces)
            new = Content()
            new.extend(part.pieces)
            return replace(told, content=new.blocks(), is_last=False, is_cumulative=False)
        before = self._before()
        if part.response is not None and part.response.is_cumulative:
            self._content.replace(part.response.content)
        self._content.extend(part.pieces)
        return await self._shaped(replace(told, content=self._content.blocks(), is_last=False), before)

    def _progress(self, part: Part) -> ToolResponse:
        progress = part.progress
        assert progress is not None
        so_far = [] if self.gives_deltas else self._before()
        metadata = {"done": progress.done, "total": progress.total, "message": progress.message}
        return ToolResponse(
            so_far, {"progress": metadata}, stream=True, is_last=False, is_cumulative=not self.gives_deltas
        )

    async def _final(self, result: ToolResult) -> ToolResponse:
        before, last = self._before(), self._last
        failure = result.failure
        if last is not None and failure is not None:
            self._content.replace(last.content)
        metadata = _metadata(result)
        told = ToolResponse(
            self._final_content(result),
            metadata,
            stream=self._has_begun,
            is_interrupted=failure is not None and failure.kind == "interrupted",
        )
        if last is not None and failure is None:
            told = replace(last, content=told.content, metadata=metadata, is_last=True)
        return await self._shaped(replace(told, is_cumulative=True), before)

    def _final_content(self, result: ToolResult) -> list[ContentBlock]:
        """What the call has said in all; of a call that failed, and how it did."""
        if result.failure is None:
            is_whole = not result.blocks and not result.metadata.get("is_cut")
            return self._content.blocks() if self._content and is_whole else result.content
        if result.failure.kind == "interrupted" and self._content:
            return self._content.blocks()
        return result.content if result.blocks else [*self._content.blocks(), *result.content]

    def _not_shown(self, failed: _HookFailed) -> ToolResult:
        # What the tool gave is left out: the owner wanted none of it shown as it was.
        error = cast("Exception", failed.__cause__)
        return ToolResult.failed(
            "internal",
            f"{self._call.name!r} ran, but its postprocessing failed: {raised(self._call, error).error}.",
            hint="It may have taken effect. Do not call it again.",
            exception=error,
            call=self._call,
        )

    def _before(self) -> list[ContentBlock]:
        return self._content.blocks() if self._hook is None else self._shown

    async def _shaped(self, chunk: ToolResponse, before: Sequence[ContentBlock]) -> ToolResponse:
        """The chunk after the hook; with `gives_deltas`, what is new in it."""
        if self._hook is not None:
            chunk = await _hooked(chunk, self._hook)
            self._shown = chunk.content
        new = new_blocks(before, chunk.content) if self.gives_deltas else None
        return chunk if new is None else replace(chunk, content=new, is_cumulative=False)


def _metadata(result: ToolResult) -> dict[str, Any] | None:
    """The result's metadata; for a program that reads them, also how the call failed."""
    failure = result.failure
    how = {} if failure is None else {"failure": {"kind": failure.kind, "hint": failure.hint}}
    return {**result.metadata, **how} or None


async def _hooked(chunk: ToolResponse, hook: Hook) -> ToolResponse:
    is_last, is_interrupted = chunk.is_last, chunk.is_interrupted
    try:
        found = hook(chunk)
        instead = await found if isinstance(found, Awaitable) else found
    except Exception as error:
        raise _HookFailed from error
    # Whatever a hook makes of the content, which chunk is the last is not for it to say.
    return replace(chunk if instead is None else instead, is_last=is_last, is_interrupted=is_interrupted)


async def _stopped(task: asyncio.Task[Any]) -> None:
    """Waits for a call that was told to stop; one that does not hear of it is cancelled."""
    try:
        await asyncio.wait((task,), timeout=STOP_GRACE_S)
    finally:
        task.cancel()
    await asyncio.wait((task,), timeout=STOP_GRACE_S)
