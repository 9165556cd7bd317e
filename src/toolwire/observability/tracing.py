"""OpenTelemetry spans for agents, requests to models, turns, calls and waits for a person.

An error in tracing is logged and never fails a call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Literal

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from toolwire.observability import names
from toolwire.observability.content import Redact, content_text, result_text
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import Outcome, Pending, ToolResult
from toolwire.vocabulary.texts.lone_surrogates import encodable_text

MADE_UP_NAME_LIMIT = 128
"""Maximum characters of an unknown tool's name. Providers allow 64, and a model may write any number."""

_OPENED: ContextVar[None] = ContextVar("toolwire_opened")
"""Set with each span, to know at its end whether the place is still that of its start."""

TurnOutcome = Literal["answered", "refused", "suspended"]

_LOG = logging.getLogger("toolwire.tracing")


@dataclass(slots=True, eq=False)
class OuterSpan:
    """A span that other code opened for one call and will end. The first call inside it uses it as its own span."""

    span: Span
    is_taken: bool = False


OUTER: ContextVar[OuterSpan | None] = ContextVar("toolwire_outer_span", default=None)
_GIVEN_IDS: ContextVar[Mapping[str, str]] = ContextVar("toolwire_given_ids")
"""The provider's ids of a turn's calls."""


class SpanTracer:
    """Creates spans and metrics by the GenAI conventions. Implements `runtime.tracer.Tracer`.

    Usable from several threads and event loops at once.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        redact: Redact | None = None,
    ) -> None:
        """A provider that is None means the global one, even if it is set later.

        `redact` removes secrets from arguments and results; None records neither.
        """
        scope = {names.SCOPE_CONVENTIONS: names.CONVENTIONS}
        self.tracer = get_tracer(names.SCOPE, tracer_provider=tracer_provider, attributes=scope)
        # The counts of this histogram are the numbers of calls.
        self.meter = get_meter(names.SCOPE, meter_provider=meter_provider, attributes=scope)
        self.durations = self.meter.create_histogram(
            names.EXECUTE_TOOL_DURATION,
            unit="s",
            description="The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=list(names.DURATION_BOUNDARIES_S),
        )
        self.redact = redact

    def call(self, call: ToolCall, *, tool: str | None, description: str, caller: Caller, run_id: str) -> OtelCallSpan:
        """Opens the span of a call and makes it current. `tool` is None for an unknown tool name."""
        attributes: dict[str, AttributeValue] = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            names.TOOL_NAME: encodable_text(call.name[:MADE_UP_NAME_LIMIT]) if tool is None else tool,
            names.TOOL_TYPE: names.FUNCTION,
            names.TOOL_CALL_ID: _GIVEN_IDS.get({}).get(call.id, call.id),
            names.CALL_ID: call.id,
            names.RUN_ID: run_id,
        }
        if description:
            attributes[names.TOOL_DESCRIPTION] = description
        if caller.agent:
            attributes[names.AGENT_NAME] = caller.agent
        if caller.principal:
            attributes[names.PRINCIPAL] = encodable_text(caller.principal)
        if tool is not None and (server := server_of(tool)):
            attributes[names.SERVER] = server
        return OtelCallSpan(self, call, tool, attributes)

    def approval(self, tool: str, request_id: str) -> OtelApprovalSpan:
        """Opens the span of a wait for a person and makes it current."""
        attributes: dict[str, AttributeValue] = {names.TOOL_NAME: tool, names.REQUEST_ID: request_id}
        return OtelApprovalSpan(self, _span_name(names.REQUEST_APPROVAL, tool), attributes)

    def turn(self, run_id: str, *, caller: Caller, protocol: str, given_ids: Mapping[str, str]) -> OtelTurnSpan:
        """Opens the span of a turn and makes it current. `given_ids` maps toolwire's call ids to the provider's."""
        attributes: dict[str, AttributeValue] = {
            names.OPERATION_NAME: names.RUN_TURN,
            names.RUN_ID: run_id,
            names.PROTOCOL: protocol,
        }
        if caller.agent:
            attributes[names.AGENT_NAME] = caller.agent
        return OtelTurnSpan(self, _span_name(names.RUN_TURN, caller.agent), attributes, given_ids)

    def agent(self, name: str, *, conversation: str) -> OtelAgentSpan:
        """Opens the span of a run of an agent and makes it current."""
        attributes = _text_attributes({names.AGENT_NAME: name, names.CONVERSATION_ID: conversation})
        attributes[names.OPERATION_NAME] = names.INVOKE_AGENT
        return OtelAgentSpan(self, _span_name(names.INVOKE_AGENT, encodable_text(name)), attributes)

    def chat(self, model: str, *, provider: str, conversation: str) -> OtelChatSpan:
        """Opens the span of a request to a model and makes it current. Empty texts are left out."""
        attributes = _text_attributes(
            {names.REQUEST_MODEL: model, names.PROVIDER_NAME: provider, names.CONVERSATION_ID: conversation}
        )
        attributes[names.OPERATION_NAME] = names.CHAT
        return OtelChatSpan(self, _span_name(names.CHAT, encodable_text(model)), attributes, SpanKind.CLIENT)


class _CurrentSpan:
    """A span that is current from its opening to its end, in the thread or task that opened it."""

    __slots__ = ("_opened", "_span", "_started", "_started_ns", "_token")

    def __init__(
        self,
        tracer: SpanTracer,
        name: str,
        attributes: dict[str, AttributeValue],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._span: Span | None = None
        self._token: Token[Context] | None = None
        self._opened = _OPENED.set(None)
        self._started_ns, self._started = time.time_ns(), time.perf_counter()
        try:
            self._span = tracer.tracer.start_span(
                name,
                kind=kind,
                attributes=attributes,
                start_time=self._started_ns,
                record_exception=False,
                set_status_on_exception=False,
            )
            self._token = context.attach(set_span_in_context(self._span))
        except Exception:  # noqa: BLE001 - samplers and processors are the host's code
            _LOG.exception("the span %r could not be opened", name)

    def _close(self, attributes: dict[str, AttributeValue], status: Status | None = None) -> float:
        """Ends the span and returns its duration in seconds."""
        duration_s = time.perf_counter() - self._started
        if self._token is not None and _is_own(self._opened):
            context.detach(self._token)
        span = self._span
        try:
            if span is not None:
                span.set_attributes(attributes)
                if status is not None:
                    span.set_status(status)
                span.end(self._started_ns + int(duration_s * 1e9))
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("a span could not be ended")
        return duration_s

    def fail(self, error: BaseException) -> None:
        """Ends the span of work that raised an exception. Its message is not recorded."""
        self._close({names.ERROR_TYPE: type(error).__qualname__}, Status(StatusCode.ERROR))


class OtelCallSpan(_CurrentSpan):
    """The span of one call."""

    __slots__ = ("_call", "_is_from_record", "_outer", "_tool", "_tracer")

    def __init__(
        self, tracer: SpanTracer, call: ToolCall, tool: str | None, attributes: dict[str, AttributeValue]
    ) -> None:
        self._tracer = tracer
        self._call = call
        self._tool = tool
        self._is_from_record = False
        outer = OUTER.get()
        self._outer = outer if outer is not None and not outer.is_taken else None
        if self._outer is None:
            super().__init__(tracer, _span_name(names.EXECUTE_TOOL, tool), attributes)
            return
        self._outer.is_taken = True
        self._span, self._token = self._outer.span, None
        self._started_ns, self._started = time.time_ns(), time.perf_counter()
        self._span.set_attributes(attributes)

    def from_record(self) -> None:
        """Marks the call as answered from the record: nothing ran for it."""
        self._is_from_record = True

    def end(self, outcome: Outcome) -> None:
        """Ends the span, in the thread or task that opened it."""
        attributes: dict[str, AttributeValue] = {}
        status = None
        error_type = ""
        if self._is_from_record:
            attributes[names.CALL_FROM_RECORD] = True
        if isinstance(outcome, Pending):
            attributes[names.CALL_OUTCOME] = "pending"
            attributes[names.REQUEST_IDS] = list(outcome.request_ids)
        else:
            attributes[names.CALL_OUTCOME] = "answered" if outcome.success else "failed"
            if outcome.failure is not None:
                error_type = attributes[names.ERROR_TYPE] = outcome.failure.kind
                exception = outcome.failure.exception
                if exception is not None:
                    attributes[names.EXCEPTION_TYPE] = type(exception).__qualname__
                status = Status(StatusCode.ERROR)
            if self._outer is None:
                self._add_content(attributes, outcome)
        duration_s = self._close(attributes, status) if self._outer is None else self._leave(attributes, status)
        if not isinstance(outcome, Pending) and not self._is_from_record:
            self._measure(error_type, duration_s)

    def _add_content(self, attributes: dict[str, AttributeValue], result: ToolResult) -> None:
        span, redact = self._span, self._tracer.redact
        if redact is not None and span is not None and span.is_recording():
            attributes[names.TOOL_CALL_ARGUMENTS] = content_text(self._call.arguments, redact)
            attributes[names.TOOL_CALL_RESULT] = result_text(result, redact)

    def _leave(self, attributes: dict[str, AttributeValue], status: Status | None) -> float:
        assert self._span is not None
        self._span.set_attributes(attributes)
        if status is not None:
            self._span.set_status(status)
        return time.perf_counter() - self._started

    def _measure(self, error_type: str, duration_s: float) -> None:
        attributes = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            # A model can invent any number of names.
            names.TOOL_NAME: names.OTHER if self._tool is None else self._tool,
            names.TOOL_TYPE: names.FUNCTION,
        }
        if error_type:
            attributes[names.ERROR_TYPE] = error_type
        try:
            self._tracer.durations.record(duration_s, attributes)
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("a call could not be measured")


class OtelApprovalSpan(_CurrentSpan):
    """The span of a wait for a person."""

    __slots__ = ()

    def end(self, verdict: str) -> None:
        """Ends the span. An empty verdict means that the request stayed undecided."""
        self._close({names.VERDICT: verdict or "none"})


class OtelTurnSpan(_CurrentSpan):
    """The span of a session's turn."""

    __slots__ = ("_ids",)

    def __init__(
        self, tracer: SpanTracer, name: str, attributes: dict[str, AttributeValue], given_ids: Mapping[str, str]
    ) -> None:
        super().__init__(tracer, name, attributes)
        self._ids = _GIVEN_IDS.set(given_ids)

    def end(self, outcome: TurnOutcome, calls: int) -> None:
        """Ends the span of a turn that completed."""
        _GIVEN_IDS.reset(self._ids)
        self._close({names.TURN_OUTCOME: outcome, names.TURN_CALLS: calls})

    def fail(self, error: BaseException) -> None:
        """Ends the span of a turn that raised an exception."""
        _GIVEN_IDS.reset(self._ids)
        super().fail(error)


class OtelAgentSpan(_CurrentSpan):
    """The span of a run of an agent."""

    __slots__ = ()

    def end(self, stop: str, input_tokens: int, output_tokens: int) -> None:
        """Ends the span of a run that has a result."""
        self._close({names.AGENT_STOP: stop, **_tokens(input_tokens, output_tokens)})


class OtelChatSpan(_CurrentSpan):
    """The span of a request to a model."""

    __slots__ = ()

    def end(self, input_tokens: int, output_tokens: int) -> None:
        """Ends the span of a request that was replied to."""
        self._close(_tokens(input_tokens, output_tokens))


def _is_own(opened: Token[None]) -> bool:
    """True in the context in which the span was opened. The last call of a turn with a store ends in that of the turn.

    OpenTelemetry would log an error there, and the context of the call is gone.
    """
    try:
        _OPENED.reset(opened)
    except ValueError:
        return False
    return True


def record_exception(span: Span, error: BaseException, redact: Redact) -> None:
    """Records an exception on the span, without the traceback: its lines may contain values."""
    kind = type(error).__qualname__
    message = content_text(str(error), redact)
    span.add_event(names.EXCEPTION, {names.EXCEPTION_TYPE: kind, names.EXCEPTION_MESSAGE: message})
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR))


def server_of(tool: str) -> str:
    """Returns the server behind a tool; empty for a tool of this process."""
    server, mark, _ = tool.partition("/")
    return server if mark else ""


def _tokens(input_tokens: int, output_tokens: int) -> dict[str, AttributeValue]:
    return {names.INPUT_TOKENS: input_tokens, names.OUTPUT_TOKENS: output_tokens}


def _text_attributes(texts: Mapping[str, str]) -> dict[str, AttributeValue]:
    """Returns the texts that are not empty, in a form that every exporter can encode."""
    return {name: encodable_text(text) for name, text in texts.items() if text}


def _span_name(operation: str, what: str | None) -> str:
    return f"{operation} {what}" if what else operation
