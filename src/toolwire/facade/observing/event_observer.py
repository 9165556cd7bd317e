"""Converts notices of the path into events: copied, bounded and redacted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from toolwire.invocation.ports.ports import CallRecord, Part
from toolwire.journal.log.memory_log import copy_arguments, copy_of, cut_log_text, row_of
from toolwire.journal.log.redaction import redact, redact_text
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.vocabulary.blocks import ContentBlock, TextBlock
from toolwire.vocabulary.call_events import (
    PermissionDecided,
    PermissionRequested,
    ToolChunk,
    ToolCompleted,
    ToolEvent,
    ToolStarted,
)
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import read_stop_facts

SECRET_WINDOW = 4_096
"""Characters of earlier text that are searched together with a new part, for secrets that span several parts. A private
key of 4,096 bits has 3,300."""


class EventObserver:
    """An observer of calls that passes on events. Satisfies `invocation.ports.ports.Observer`."""

    def __init__(self, deliver: Callable[[ToolEvent], None]) -> None:
        """`deliver` receives each event, from any thread."""
        self._deliver = deliver

    def started(self, call: ToolCall, invocation_id: str, /) -> None:
        """Tells of a call that arrived."""
        self._deliver(ToolStarted(**_of(call, invocation_id), arguments=redact(copy_arguments(call.arguments))))

    def asked(self, request: ApprovalRequest, invocation_id: str, /) -> None:
        """Tells that a person is asked."""
        event = PermissionRequested(
            **_of_request(request, invocation_id),
            arguments=redact(copy_arguments(request.arguments)),
            reasons=[redact_text(reason) for reason in request.reasons],
            expires_at=request.expires_at,
        )
        self._deliver(event)

    def decided(self, request: ApprovalRequest, decision: Decision, invocation_id: str, /) -> None:
        """Tells of the decision."""
        event = PermissionDecided(
            **_of_request(request, invocation_id),
            verdict=decision.verdict,
            reason=redact_text(decision.reason),
            principal=decision.by.principal,
            channel=decision.by.channel,
        )
        self._deliver(event)

    def parts(self, call: ToolCall, invocation_id: str, /) -> Callable[[Part], None]:
        """Returns what tells of the parts of one call."""
        text = _TextBuffer()

        def tell(part: Part) -> None:
            whole = part.response if part.response is not None and part.response.is_cumulative else None
            progress = part.progress
            if whole is not None:
                text.forget()
            chunk = ToolChunk(
                **_of(call, invocation_id),
                content=[text.redact_piece(piece) for piece in (part.pieces if whole is None else whole.content)],
                is_cumulative=whole is not None,
                progress=None
                if progress is None
                else redact({"done": progress.done, "total": progress.total, "message": progress.message}),
            )
            self._deliver(chunk)

        return tell

    def ended(self, record: CallRecord, /) -> None:
        """Tells of a call that ended, unless its result comes from the record of an earlier pass."""
        if record.is_from_record:
            return
        row, failure = row_of(record), record.result.failure
        event = ToolCompleted(
            **_of(record.call, record.run_id),
            status=row[5],
            result=redact(row[8]),
            error=redact(row[9]),
            duration_ms=record.duration_s * 1000,
            stop_facts=None if failure is None else read_stop_facts(failure.data),
        )
        self._deliver(event)


class _TextBuffer:
    """Redacts text that comes in parts: a secret that spans parts is hidden as soon as it can be recognised."""

    def __init__(self) -> None:
        self._before = self._shown = ""

    def forget(self) -> None:
        """Starts anew, for content that replaces all earlier content."""
        self._before = self._shown = ""

    def redact_piece(self, piece: str | ContentBlock) -> ContentBlock:
        """Returns the piece as a block, without secrets."""
        if isinstance(piece, str):
            return TextBlock(type="text", text=self._new(piece))
        if piece["type"] == "text":
            return redact(copy_of({**piece, "text": ""})) | {"text": self._new(piece["text"])}
        return redact(copy_of(piece))

    def _new(self, text: str) -> str:
        whole = self._before + cut_log_text(text)
        shown = redact_text(whole)
        same = len(self._shown) if shown.startswith(self._shown) else _same(self._shown, shown)
        self._before = whole[-SECRET_WINDOW:]
        self._shown = shown if self._before == whole else redact_text(self._before)
        return shown[same:]


def _same(first: str, second: str) -> int:
    """How many characters at the beginning of both are the same."""
    differs = (place for place, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    return next(differs, min(len(first), len(second)))


def _of(call: ToolCall, invocation_id: str) -> dict[str, Any]:
    """The fields that all events of a call share."""
    return {
        "tool": call.name,
        "call_id": call.id,
        "invocation_id": invocation_id,
        "parent": call.parent,
        "at": time.time(),
    }


def _of_request(request: ApprovalRequest, invocation_id: str) -> dict[str, Any]:
    return {
        "tool": request.tool,
        "call_id": request.call_id,
        "invocation_id": invocation_id,
        "parent": request.parent,
        "at": time.time(),
        "request_id": request.id,
    }
