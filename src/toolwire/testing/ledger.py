"""A ledger in memory, for tests without a database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from toolwire.journal.ledger.asked import AskedRequest, in_doubt
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.vocabulary.kept_text import Spill
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step

P = ParamSpec("P")
T = TypeVar("T")


def done(method: Callable[P, T]) -> Callable[P, Future[T]]:
    """Returns the method with a finished future in place of its result or its exception."""

    @wraps(method)
    def call_at_once(*args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(method(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.set_exception(error)
        return future

    return call_at_once


@dataclass(slots=True)
class _LedgerStep:
    step: Step
    start: Start | None = None
    started_at: float = 0.0
    result: ToolResult | None = None


@dataclass(slots=True)
class _RequestRecord:
    request: ApprovalRequest
    decision: Decision | None = None
    is_used: bool = False


@dataclass(slots=True)
class Records:
    """The records that outlive a process. Pass them to a second `MemoryLedger` to simulate a restart."""

    steps: dict[str, _LedgerStep] = field(default_factory=dict[str, _LedgerStep])
    ended: list[str] = field(default_factory=list[str])
    requests: dict[str, _RequestRecord] = field(default_factory=dict[str, _RequestRecord])
    notes: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict[str, list[Mapping[str, Any]]])
    diverged: ToolResult | None = None


class MemoryLedger:
    """The ledger of one run, an implementation of `invocation.ports.ports.Ledger`. Every future is already done."""

    def __init__(self, run_id: str = "r_1", records: Records | None = None) -> None:
        self.run_id = run_id
        self.pages: Spill | None = None
        """Long results stay in the session's memory, which lives as long as these records."""
        self.records = Records() if records is None else records
        self.story: list[tuple[str, str]] = []
        """The calls of its methods in order: the method and the step's key or the id of the call."""
        self._lock = threading.Lock()
        self._running: set[str] = set()
        """Keys of the steps that were begun here and have not ended."""

    def recall(self, step: Step) -> ToolResult | InDoubtStep | None:
        """Implements `Ledger.recall`."""
        records = self.records
        if records.diverged is not None:
            return records.diverged
        kept = records.steps.get(step.key)
        if kept is None:
            return None
        if kept.step.digest != step.digest:
            failure = ToolResult.failed(
                "divergence",
                f"step {step.key} was {kept.step.tool!r} and is {step.tool!r} with other arguments now: the run was "
                "stopped.",
                data={"step": step.key},
            )
            parent = records.steps.get(step.parent)
            if not step.parent or (parent is not None and parent.start is not None and parent.start.is_composite):
                records.diverged = failure
            return failure
        if kept.result is not None or kept.start is None:
            return kept.result
        requests = [_request_state(asked, records.ended) for asked in records.requests.values()]
        return in_doubt(self.run_id, kept.start, kept.started_at, requests)

    def steps_below(self, parent: str) -> Sequence[tuple[Step, ToolResult]]:
        """Implements `Ledger.steps_below`."""
        kept = [self.records.steps[key] for key in self.records.ended]
        return [(one.step, one.result) for one in kept if one.step.parent == parent and one.result is not None]

    def note(self, parent: str, entry: Mapping[str, Any]) -> None:
        """Implements `Ledger.note`."""
        self.records.notes.setdefault(parent, []).append(dict(entry))

    def notes(self, parent: str) -> Sequence[Mapping[str, Any]]:
        """Implements `Ledger.notes`."""
        return list(self.records.notes.get(parent, ()))

    @done
    def ask(self, request: ApprovalRequest) -> tuple[ApprovalRequest, Decision | None]:
        """Implements `Ledger.ask`."""
        self.story.append(("ask", request.call_id))
        for asked in self.records.requests.values():
            if (asked.request.call_id, asked.request.attempt) == (request.call_id, request.attempt):
                return asked.request, asked.decision
        self.records.requests[request.id] = _RequestRecord(request)
        return request, None

    @done
    def decide(self, request: ApprovalRequest, decision: Decision) -> Decision:
        """Implements `Ledger.decide`."""
        self.story.append(("decide", request.call_id))
        asked = self.records.requests.get(request.id)
        if asked is None:
            raise DecisionRefused("unknown_request", f"there is no request {request.id!r}", request_id=request.id)
        with self._lock:
            if asked.decision is not None:
                raise DecisionRefused("already_decided", "it was decided before", decided=asked.decision)
            asked.decision = decision
        return decision

    @done
    def use_answers(self, request_ids: Sequence[str]) -> None:
        """Implements `Ledger.use_answers`."""
        for request_id in request_ids:
            self.records.requests[request_id].is_used = True

    @done
    def begin(self, start: Start) -> float | ToolResult:
        """Implements `Ledger.begin`."""
        self.story.append(("begin", start.step.key))
        if start.step.key in self._running:
            return ToolResult.failed("unknown_outcome", f"step {start.step.key} runs already")
        asked = self.records.requests.get(start.request_id)
        kept = self.records.steps.get(start.step.key)
        is_again = kept is not None and kept.start is not None
        if asked is not None:
            if asked.is_used and not is_again:
                return ToolResult.failed("denied", "the approval was used up before")
            asked.is_used = True
        self._running.add(start.step.key)
        if kept is not None and kept.start is not None and start.is_composite:
            return kept.started_at
        self.records.steps[start.step.key] = _LedgerStep(start.step, start, time.time())
        return self.records.steps[start.step.key].started_at

    def record_start(self) -> None:
        """Implements `Ledger.record_start`: the run has no start of its own."""

    @done
    def settle(self, step: Step, result: ToolResult, record: object = None) -> ToolResult:  # noqa: ARG002 - as the port
        """Implements `Ledger.settle`."""
        return self._settle(step, result)

    def settle_with_end(self, step: Step, result: ToolResult, record: object = None) -> ToolResult:  # noqa: ARG002
        """Implements `Ledger.settle_with_end`."""
        return self._settle(step, result)

    def _settle(self, step: Step, result: ToolResult) -> ToolResult:
        self.story.append(("settle", step.key))
        kept = self.records.steps.setdefault(step.key, _LedgerStep(step))
        kept.result = result
        self.records.ended.append(step.key)
        self._running.discard(step.key)
        return result

    def abandon(self, step: Step) -> None:
        """Implements `Ledger.abandon`."""
        self.story.append(("interrupted", step.key))
        self._running.discard(step.key)

    def restart(self) -> None:
        """Simulates a restart: forgets the running steps of this process."""
        self._running.clear()


def _request_state(asked: _RequestRecord, ended: Container[str]) -> AskedRequest:
    request, decision = asked.request, asked.decision
    return AskedRequest(
        id=request.id,
        call_id=request.call_id,
        asked_at=request.created_at,
        decided_at=0.0 if decision is None else decision.at,
        is_used=asked.is_used or request.call_id in ended,
        is_waiting=decision is None,
        is_question=request.kind == "question",
    )
