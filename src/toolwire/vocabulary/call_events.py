"""The events of calls, as observers receive them. All values are redacted copies in JSON types."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from toolwire.vocabulary.blocks import ContentBlock

EventType = Literal["TOOL_START", "TOOL_CHUNK", "PERMISSION_REQUEST", "PERMISSION_DECIDED", "TOOL_COMPLETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent:
    """One event of one call, as `registry.observe(function)` gives it. The events of a call come in order.

    The classes of events have these attributes too.

    Attributes:
        type: The kind of event.
        tool: The name by which the tool was called.
        call_id: The id of the call, as in the log.
        invocation_id: The run of the call, as in the log. All calls of one program share it.
        parent: The id of the call whose program makes this one; empty for a call of the model.
        at: Time of the event, in seconds since the epoch.
    """

    type: ClassVar[EventType]
    tool: str
    call_id: str
    invocation_id: str
    parent: str
    at: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the event as a JSON object, with its type."""
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(ToolEvent):
    """A call arrived. It is not validated or permitted yet.

    Attributes:
        arguments: The arguments as the model wrote them.
    """

    type: ClassVar[EventType] = "TOOL_START"
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChunk(ToolEvent):
    """A running tool gave a part of its output, or reported its progress.

    Attributes:
        content: The new content blocks.
        is_cumulative: True if the content replaces all earlier content of the call.
        progress: The progress as `done`, `total` and `message`; None for a part of the output.
    """

    type: ClassVar[EventType] = "TOOL_CHUNK"
    content: list[ContentBlock]
    is_cumulative: bool = False
    progress: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequested(ToolEvent):
    """A person is asked about the call.

    Attributes:
        request_id: The id of the request, for the decision.
        arguments: The arguments that will run.
        reasons: The rules and guards that require a decision.
        expires_at: Time after which a decision is refused, in seconds since the epoch; 0 means never.
    """

    type: ClassVar[EventType] = "PERMISSION_REQUEST"
    request_id: str
    arguments: dict[str, Any]
    reasons: list[str]
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecided(ToolEvent):
    """A decision on the call counts. A call that no person has to decide on has no such event.

    Attributes:
        request_id: The id of the request.
        verdict: `approve`, `edit`, `deny` or `stop_run`.
        reason: The reason that was given; empty without one.
        principal: The person or service that decided; empty if unknown.
        channel: The channel of the decision, such as `console`.
    """

    type: ClassVar[EventType] = "PERMISSION_DECIDED"
    request_id: str
    verdict: str
    reason: str
    principal: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted(ToolEvent):
    """A call ended: its tool returned, or the call failed at any step.

    Attributes:
        status: `success`, or the kind of failure.
        result: The data of the result, as in the log; None for a failure.
        error: The message of a failure; None on success.
        duration_ms: Milliseconds from the call to its result, including the wait for a person.
        stop_facts: What is known of a call that was cancelled, timed out or interrupted, as `is_started`, `is_ended`
            and `may_repeat`; None for any other.
    """

    type: ClassVar[EventType] = "TOOL_COMPLETE"
    status: str
    result: Any
    error: str | None
    duration_ms: float
    stop_facts: dict[str, bool] | None = None
