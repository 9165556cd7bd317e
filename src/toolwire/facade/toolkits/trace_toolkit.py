"""`trace_toolkit`: one span for each call of a `call_tool_function`, of toolwire or of another library."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from opentelemetry import context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_tracer, set_span_in_context

from toolwire.facade.observing.traced import default_redact
from toolwire.observability import names
from toolwire.observability.content import Redact, content_text
from toolwire.observability.tracing import OUTER, OuterSpan, record_exception
from toolwire.vocabulary.errors import DefinitionError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

CallToolFunction = TypeVar("CallToolFunction", bound=Callable[..., Any])
"""Takes a tool-use block (first, or after `self`), and gives chunks: directly, awaited, or as an async generator."""


@overload
def trace_toolkit(function: CallToolFunction) -> CallToolFunction: ...
@overload
def trace_toolkit(
    function: None = None, *, redact: Redact | None = None, tracer_provider: TracerProvider | None = None
) -> Callable[[CallToolFunction], CallToolFunction]: ...
def trace_toolkit(
    function: Callable[..., Any] | None = None,
    *,
    redact: Redact | None = None,
    tracer_provider: TracerProvider | None = None,
) -> Any:
    """Decorates a `call_tool_function`: each call is an OpenTelemetry span with its input, output and exception.

    The span begins with the first requested chunk and ends with the last one, or when the stream is left. `redact`
    removes values from them as JSON before they are recorded; by default it removes values that look like secrets. If
    the toolkit's own tracing is on, both share one span. Without a provider the global one is used.

    Checkers see the function's own type. The stream that it returns has all attributes of the function's stream.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., TracedStream]:
        @functools.wraps(function)
        def call_tool_function(*args: Any, **kwargs: Any) -> TracedStream:
            block = _block_of([*args, *kwargs.values()])
            return TracedStream(lambda: function(*args, **kwargs), block, redact or default_redact(), tracer_provider)

        return call_tool_function

    return decorate if function is None else decorate(function)


class TracedStream:
    """The chunks of a call that has a span: `async for chunk in stream`, or `in await stream`.

    It has all attributes of the stream inside, such as `interrupt()` and `result` of a toolkit's own.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        block: Mapping[str, Any],
        redact: Redact,
        tracer_provider: TracerProvider | None,
    ) -> None:
        self._redact = redact
        self._block = block
        self._tracer_provider = tracer_provider
        self._given = call()
        self._chunks: AsyncIterator[Any] | None = None
        self._outer: OuterSpan | None = None
        self._is_over = False
        self._output: list[Any] = []

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    def __await__(self) -> Generator[Any, Any, TracedStream]:
        return self
        yield

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that are not found here.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._given, name)

    async def __anext__(self) -> Any:
        if self._is_over and self._outer is not None:
            return await self._next()
        outer = self._outer = self._outer or OuterSpan(self._start_span())
        # Current only for one step: a stream is read in its reader's context.
        is_inside, is_outer = context.attach(set_span_in_context(outer.span)), OUTER.set(outer)
        try:
            chunk = await self._next()
        except StopAsyncIteration:
            self._end()
            raise
        except BaseException as error:
            self._end(error)
            raise
        finally:
            OUTER.reset(is_outer)
            context.detach(is_inside)
        self._take(chunk)
        return chunk

    def deltas(self) -> TracedStream:
        """Makes further chunks hold only their new part; returns this stream."""
        self._given.deltas()
        return self

    async def aclose(self) -> None:
        """Stops the call, and ends its span."""
        try:
            close = getattr(self._chunks or self._given, "aclose", None) or getattr(self._given, "close", None)
            closing = None if close is None else close()
            if closing is not None:
                await closing
        finally:
            self._end()

    def __del__(self) -> None:
        # A reader may leave a stream half-read without closing it.
        if self.__dict__.get("_outer") is not None:
            self._end()

    async def _next(self) -> Any:
        if self._chunks is None:
            given = self._given
            if not hasattr(given, "__anext__") and isinstance(given, Awaitable):
                given = await cast("Awaitable[Any]", given)
            if not hasattr(given, "__aiter__"):
                raise DefinitionError(
                    f"trace_toolkit: the function gave {given!r:.80}; "
                    "decorate one that gives chunks to be read by `async for`, a call_tool_function"
                )
            self._chunks = cast("AsyncIterator[Any]", aiter(given))
        return await anext(self._chunks)

    def _start_span(self) -> Span:
        tool = str(self._block["name"])
        tracer = get_tracer(
            names.SCOPE,
            tracer_provider=self._tracer_provider,
            attributes={names.SCOPE_CONVENTIONS: names.CONVENTIONS},
        )
        return tracer.start_span(
            f"{names.EXECUTE_TOOL} {tool}",
            kind=SpanKind.INTERNAL,
            attributes={
                names.OPERATION_NAME: names.EXECUTE_TOOL,
                names.TOOL_NAME: tool,
                names.TOOL_TYPE: names.FUNCTION,
                names.TOOL_CALL_ID: str(self._block.get("id") or ""),
                names.TOOL_CALL_ARGUMENTS: content_text(self._block["input"], self._redact),
            },
            record_exception=False,
            set_status_on_exception=False,
        )

    def _take(self, chunk: Any) -> None:
        content = getattr(chunk, "content", chunk)
        if getattr(chunk, "is_cumulative", True):
            self._output = [content]
        else:
            self._output.append(content)
        kind = _failure_kind(chunk)
        if kind and self._outer is not None:
            self._outer.span.set_attribute(names.ERROR_TYPE, kind)
            self._outer.span.set_status(Status(StatusCode.ERROR))
        # A reader need not ask for a chunk after the last one.
        if getattr(chunk, "is_last", False):
            self._end()

    def _end(self, error: BaseException | None = None) -> None:
        if self._is_over or self._outer is None:
            return
        self._is_over = True
        span = self._outer.span
        if self._output:
            output = self._output[0] if len(self._output) == 1 else [part for parts in self._output for part in parts]
            span.set_attribute(names.TOOL_CALL_RESULT, content_text(output, self._redact))
        if error is not None:
            record_exception(span, error, self._redact)
        span.end()


def _failure_kind(chunk: object) -> str:
    """Returns the kind of failure from a toolkit's last chunk; empty when the call did not fail."""
    metadata: Any = getattr(chunk, "metadata", None)
    failure = _mapping(_mapping(metadata).get("failure"))
    return str(failure.get("kind", ""))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _block_of(given: list[Any]) -> Mapping[str, Any]:
    for value in given:
        if isinstance(value, Mapping) and "name" in value and "input" in value:
            return cast("Mapping[str, Any]", value)
    raise DefinitionError("trace_toolkit: no tool-use block was given, a mapping with 'name' and 'input'")
