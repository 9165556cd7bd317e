"""Conversion of a tool's output, at once or in parts, to the result of its call."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from types import CoroutineType
from typing import Any, Final, cast

from toolwire.definition.tool import Tool
from toolwire.invocation.owners_fault import owners_fault
from toolwire.invocation.ports.ports import Part, Ports, Sink
from toolwire.runtime.own_cancellation import is_cancelled_error
from toolwire.vocabulary.blocks import (
    Content,
    ContentBlock,
    TextBlock,
    data_of,
    is_block,
    is_blocks,
    is_plain_text,
    own,
    text_of,
)
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import Interrupted, Progress
from toolwire.vocabulary.errors import CallNotAnswered, CallNotSent, Unrepresentable
from toolwire.vocabulary.failures import REPEATABLE, stop_facts
from toolwire.vocabulary.given_blocks import is_mcp_content, is_mcp_result, read_blocks
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

_LOG = logging.getLogger("toolwire.tools")

ERROR_LIMIT = 16_384
"""Maximum number of characters of an exception's message that are kept, enough for a traceback or an HTML page."""

ALL_GIVEN: Final = object()
"""Sentinel for a generator that ended. Its parts are its result."""
STOPPED: Final = object()
"""Sentinel for a generator that was closed, because its reader wanted no more."""


class CallOutput:
    """The parts of one call's output. They belong to the call, so that output before a failure is kept."""

    __slots__ = ("_is_read", "_is_waiting", "_last", "_parts", "_sink", "_unshown", "_values", "is_over")

    def __init__(self, sink: Sink | None, *, is_read: bool = True) -> None:
        """With `is_read`, the sink has a reader. Else it only tells observers, which must not change the result."""
        self._sink = sink
        self._is_read = is_read and sink is not None
        self._parts: list[Any] = []
        """The parts in order, starting with the last cumulative response."""
        self._values: list[Any] = []
        """The values that a generator yielded, without responses. They are its data."""
        self._last: ToolResponse | None = None
        """The latest part, if it is a streamed response marked as the last. The last chunk has its id."""
        self._unshown = False
        """True if a part cannot be shown. The result will report it."""
        self._is_waiting = False
        self.is_over = False
        """True if the caller has given up. The tool must not continue then."""

    def put(self, value: Any, *, is_yielded: bool = False) -> bool:
        """Takes a part and blocks until the reader wants the next one. False if no more is wanted."""
        for part in self._take(value, is_yielded):
            turn = None if self._sink is None else self._sink.offer(part)
            if turn is None:
                continue
            self._is_waiting = True
            is_wanted = turn.result()
            self._is_waiting = False
            if not is_wanted:
                return False
        return not self.is_over

    async def put_later(self, value: Any, ports: Ports, *, is_yielded: bool = False) -> bool:
        """Async version of `put`."""
        for part in self._take(value, is_yielded):
            turn = None if self._sink is None else self._sink.offer(part)
            if turn is not None and not await ports.wait_for(turn):
                return False
        return not self.is_over

    def stop(self) -> bool:
        """Stops the tool at its next part. True if it has certainly stopped, because it was waiting for its reader."""
        self._name_last()
        # The order matters: a tool that is about to stop waiting will then see `is_over`.
        self.is_over = True
        return self._is_waiting

    def blocks(self) -> list[ContentBlock]:
        """Returns all content so far, without parts that cannot be shown."""
        content = Content()
        for part in self._parts:
            if isinstance(part, ToolResponse) and part.is_cumulative:
                content.replace(own(block) for block in part.content)
                continue
            with suppress(Unrepresentable):
                content.extend(_pieces(part))
        return content.blocks()

    def result(self, call: ToolCall, value: Any) -> ToolResult:
        """Returns the result of a call whose tool returned this value."""
        if value is STOPPED:
            return self.prepend_to(interruption_result(call))
        if value is not ALL_GIVEN and isinstance(value, ToolResponse) and value.is_cumulative:
            self._last = value
        self._name_last()
        if value is ALL_GIVEN:
            return self._of_generator(call)
        return self._with_parts(call, value) if self._parts else result_of(call, value)

    def prepend_to(self, failed: ToolResult) -> ToolResult:
        """Returns the failed result with the earlier content."""
        self._name_last()
        blocks = (*self.blocks(), *failed.blocks)
        return replace(failed, blocks=blocks) if blocks else failed

    # -- one part -----------------------------------------------------------------------------------------------

    def _take(self, value: Any, is_yielded: bool) -> Iterable[Part]:
        """Returns the parts to show now. A streamed response marked as the last is shown now and again at the end."""
        if type(value) is Progress:
            return (Part(progress=value),)
        self._last = None
        if isinstance(value, ToolResponse):
            value = replace(value, content=list(read_blocks(value.content)))
            if value.is_cumulative:
                self._parts.clear()
            if value.stream and value.is_last:
                self._last = value
        elif is_yielded:
            self._values.append(value)
        elif type(value) is not str and not _has_blocks(value) and not isinstance(value, ToolResult):
            # A part that cannot be shown is the tool's mistake, so the error is raised inside the tool.
            show(value)
        self._parts.append(value)
        return () if self._sink is None else (self._part(value),)

    def _part(self, value: Any) -> Part:
        if isinstance(value, ToolResponse):
            return Part(response=value, pieces=() if value.is_cumulative else tuple(_pieces(value)))
        try:
            return Part(pieces=tuple(_pieces(value)))
        except Unrepresentable:
            self._unshown = True
            return Part()

    def _name_last(self) -> None:
        if self._last is not None and self._sink is not None:
            self._sink.end_with(self._last)

    # -- the whole ----------------------------------------------------------------------------------------------

    def _of_generator(self, call: ToolCall) -> ToolResult:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, ToolResult):
            return result_of(call, last) if last.failure is None else self.prepend_to(result_of(call, last))
        responses = [part for part in self._parts if isinstance(part, ToolResponse)]
        if responses:
            blocks = tuple(self.blocks())
            return ToolResult(True, data_of(blocks), None, responses[-1].metadata, content=blocks, call=call)
        if self._unshown or (self._is_plain and not self._is_read):
            return ToolResult(True, self._values, call=call)
        # A reader has already seen the parts, so the result must not repeat them in another form.
        return ToolResult(True, self._values, content=self.blocks() if self._parts else (), call=call)

    @property
    def _is_plain(self) -> bool:
        return len(self._values) == len(self._parts) and not any(_has_blocks(value) for value in self._values)

    def _with_parts(self, call: ToolCall, value: Any) -> ToolResult:
        """Returns the result of a function that gave parts before it returned. Its content follows theirs."""
        result = result_of(call, value)
        if isinstance(value, ToolResponse) and value.is_cumulative:
            return result
        if result.failure is not None:
            return self.prepend_to(result)
        try:
            added = () if value is None else result.blocks or (TextBlock(type="text", text=show(result.data)),)
        except Unrepresentable:
            # The next step reports the problem.
            return result
        return replace(result, blocks=(*self.blocks(), *added))


def stop_producing(produced: CallOutput | None) -> bool:
    """Stops a tool at its next part. True if it has certainly stopped."""
    return produced is not None and produced.stop()


def with_earlier_content(failed: ToolResult, produced: CallOutput | None) -> ToolResult:
    """Returns the failed result with the content that came before."""
    return failed if produced is None else produced.prepend_to(failed)


def _has_blocks(value: object) -> bool:
    return is_block(value) or is_blocks(value)


def interruption_result(call: ToolCall, blocks: Sequence[ContentBlock] = ()) -> ToolResult:
    """Returns the result of a call that began and was stopped after these blocks."""
    data = stop_facts(is_started=True, may_repeat=False)
    failed = ToolResult.failed("interrupted", f"{call.name!r} was interrupted.", data=data, call=call)
    return replace(failed, blocks=blocks)


def with_repeatable_stop(result: ToolResult, tool: Tool) -> ToolResult:
    """Returns the result. That of a call that did not end says so if its tool may be called again."""
    failure = result.failure
    if failure is None or failure.data.get("is_ended") is not False or tool.effects.idempotent != "natural":
        return result
    data = {**failure.data, **stop_facts(is_started=True, may_repeat=True)}
    return replace(result, failure=replace(failure, hint=REPEATABLE, data=data))


def is_interruption(error: BaseException) -> bool:
    """True if the tool stopped itself, or work that it waited for was cancelled. The caller did not cancel it."""
    return all(isinstance(leaf, Interrupted) or is_cancelled_error(leaf) for leaf in _leaves(error))


def result_of(call: ToolCall, value: Any) -> ToolResult:
    """Converts a returned value to a result."""
    if type(value) in _PLAIN:
        return ToolResult(True, value, call=call)
    if isinstance(value, ToolResponse):
        return _of_response(call, value)
    if isinstance(value, ToolResult):
        return ToolResult(
            value.success,
            value.data,
            None if value.error is None else _shorten_message(value.error),
            value.metadata if type(value) is ToolResult else {**value.metadata, **_own_fields(value)},
            content=value.blocks if all(map(is_block, value.blocks)) else read_blocks(value.blocks),
            failure=value.failure,
            call=call,
        )
    if isinstance(value, CoroutineType):
        cast("CoroutineType[Any, Any, Any]", value).close()
        return owners_fault(
            "invalid_result",
            f"{call.name!r} returned a coroutine instead of a value.",
            for_owner="await the coroutine that it returns.",
            call=call,
        )
    if is_block(value):
        return ToolResult(True, value, content=(value,), call=call)
    if is_mcp_content(value):
        blocks = read_blocks(value)
        return ToolResult(True, data_of(blocks), content=blocks, call=call)
    if is_mcp_result(value):
        return _of_mcp_result(call, value)
    return ToolResult(True, value, content=value if is_blocks(value) else (), call=call)


def _of_mcp_result(call: ToolCall, value: Any) -> ToolResult:
    """Returns the result of a function that was written for an MCP server. Two releases of the SDK spell its fields."""
    given: dict[str, Any] = value.model_dump(by_alias=True)
    blocks, structured = read_blocks(value.content), given.get("structuredContent")
    if given.get("isError"):
        return ToolResult.failed("tool_error", text_of(blocks) or f"{call.name!r} failed.", call=call)
    return ToolResult(True, data_of(blocks) if structured is None else structured, content=blocks, call=call)


def _own_fields(value: ToolResult) -> dict[str, Any]:
    """Returns the fields that a subclass of a tool's owner adds. The path goes on with a plain `ToolResult`."""
    known = {field.name for field in fields(ToolResult)}
    return {field.name: getattr(value, field.name) for field in fields(value) if field.name not in known}


_PLAIN: frozenset[object] = frozenset({str, int, float, bool, type(None)})
"""The types that most tools return. Their values need no conversion."""
READY: frozenset[object] = _PLAIN | {dict, list, tuple}
"""The types of values for which nothing waits and which nothing iterates."""


_NO_LOOP = ("no running event loop", "There is no current event loop")
"""Beginnings of asyncio's messages in a thread without an event loop."""


def failure_of_exception(call: ToolCall, error: BaseException) -> ToolResult:
    """Returns the result of a call whose tool raised. The log `toolwire.tools` gets the traceback.

    A tool tells by `CallNotSent` and `CallNotAnswered` how far its call came. They are no fault of its code, so the log
    gets a line.
    """
    name = type(error).__name__
    is_outside = isinstance(error, CallNotSent | CallNotAnswered)
    if not is_outside:
        _LOG.warning("The tool %r raised %s.", call.name, name, exc_info=error)
    message = _shorten_message(_message(error))
    data: dict[str, Any] = {"exception": name, "message": message}
    if isinstance(error, RuntimeError) and message.startswith(_NO_LOOP):
        return owners_fault(
            "tool_error",
            f"{name}: {message}",
            hint="Other arguments will not help.",
            for_owner="write the tool with async def: a plain function runs in a thread without an event loop.",
            data=data,
            exception=error,
            call=call,
        )
    if is_outside:
        is_sent = isinstance(error, CallNotAnswered)
        text = f"{call.name!r} was {'not answered' if is_sent else 'not sent'}"
        text = f"{text}: {message}" if message else f"{text}."
        _LOG.warning("%s", text)
        return ToolResult.failed(
            "unknown_outcome" if is_sent else "unavailable",
            text,
            data={**data, "is_sent": is_sent},
            exception=error,
            call=call,
        )
    return ToolResult.failed(
        "tool_error",
        f"{name}: {message}" if message else name,
        data=data,
        exception=error,
        call=call,
    )


LEAVES_LIMIT = 20
"""Maximum number of exceptions of a group that are told."""


def _message(error: BaseException) -> str:
    """Returns the message of an exception, with its notes. That of a group ends with each exception inside it."""
    # The `__str__` of an exception is the tool's code as well.
    try:
        message = str(error)
    except (Exception, SystemExit):  # noqa: BLE001
        message = "(its message cannot be shown)"
    lines = [message, *_notes(error)]
    if isinstance(error, BaseExceptionGroup):
        leaves = list(_leaves(cast("BaseExceptionGroup[BaseException]", error)))
        lines += [f"- {type(leaf).__name__}: {_message(leaf)}".removesuffix(": ") for leaf in leaves[:LEAVES_LIMIT]]
        lines += [f"- and {len(leaves) - LEAVES_LIMIT} more"] if len(leaves) > LEAVES_LIMIT else []
    return "\n".join(line for line in lines if line)


def _notes(error: BaseException) -> list[str]:
    """Returns what `add_note` added. Only the owner's own code can have put other values there."""
    notes: Any = getattr(error, "__notes__", ())
    return [note for note in cast("Iterable[object]", notes) if type(note) is str] if isinstance(notes, list) else []


def _leaves(group: BaseException) -> Iterator[BaseException]:
    """Yields the exceptions of a group and of the groups inside it, in order."""
    waiting = [group]
    while waiting:
        error = waiting.pop()
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(reversed(cast("BaseExceptionGroup[BaseException]", error).exceptions))
        else:
            yield error


def _shorten_message(message: str) -> str:
    """Returns the beginning and end of a message that is too long. Either may hold the important part."""
    if len(message) <= ERROR_LIMIT:
        return message
    half = ERROR_LIMIT // 2
    return f"{message[:half]}\n[{count_of(len(message) - ERROR_LIMIT, 'character')} left out]\n{message[-half:]}"


def _of_response(call: ToolCall, response: ToolResponse) -> ToolResult:
    blocks = read_blocks(response.content)
    return ToolResult(True, data_of(blocks), None, response.metadata, content=blocks, call=call)


def _pieces(value: Any) -> Iterator[str | ContentBlock]:
    """Yields the content of a part: text as strings, which are joined, and everything else as blocks."""
    if type(value) is str:
        yield value
    elif is_block(value):
        yield value["text"] if is_plain_text(value) else own(value)
    elif is_blocks(value):
        for block in value:
            yield from _pieces(block)
    elif isinstance(value, ToolResponse):
        for block in value.content:
            yield from _pieces(block) if is_block(block) else (own(block),)
    else:
        yield TextBlock(type="text", text=value.text if isinstance(value, ToolResult) else show(value))
