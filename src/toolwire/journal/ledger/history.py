"""The records of one run in memory: its steps, their results, and the notes of composite tools."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import NOTES, STEPS
from toolwire.journal.ledger.asked import AskedRequest
from toolwire.journal.ledger.begin import may_have_run, too_much_to_begin, too_much_to_keep
from toolwire.journal.ledger.compare import Span, spans
from toolwire.journal.ledger.forms import (
    REFERRING,
    WHOLE,
    encode_form,
    expand_form,
    read_form,
    read_start,
    read_step_end,
    results_form,
    step_end_form,
)
from toolwire.journal.ledger.large_values import LARGE_BYTES, LargeValues
from toolwire.journal.ledger.steps import StepEnd, make_step_end
from toolwire.journal.run import RUN_LIMIT_BYTES
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step


@dataclass(slots=True, kw_only=True)
class KeptStep:
    """A step of a run, as the ledger has it in memory."""

    step: Step
    start: Start | None = None
    """The record written before the step ran; None if the step needed none."""
    started_at: float = 0.0
    result: ToolResult | None = None
    """The result; None if the step has not ended or its outcome is unknown."""
    is_running: bool = False
    """True while a call in this process runs the step."""
    before: KeptStep | None = None
    """The earlier state of a step that was begun here; None for a new step."""


@dataclass(slots=True, kw_only=True)
class ReplayHistory:
    """All that is on record about the calls of one run. Thread-safe: a reader copies a list before it walks it."""

    size: int
    """Bytes of these records when they are read: unpacked."""
    steps: dict[str, KeptStep] = field(default_factory=dict[str, KeptStep])
    end_order: list[str] = field(default_factory=list[str])
    """Keys of the ended steps, in order."""
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    """Pairs of parent and entry, in order."""
    large: set[str] = field(default_factory=set[str])
    """Keys of the steps whose result is large."""
    large_values: LargeValues = field(default_factory=LargeValues)
    """The values of the large results."""
    requests: tuple[AskedRequest, ...] = ()
    """The requests of the run when it was opened, oldest first."""
    stopped: ToolResult | None = None
    """The failure that keeps steps from running; None while the run goes on."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self, failure: ToolResult) -> ToolResult:
        """Stops the run. Returns the failure that stopped it first."""
        with self._lock:
            if self.stopped is None:
                self.stopped = failure
            return self.stopped

    def is_of_tool(self, step: Step) -> bool:
        """True if a tool makes the call through its context. False for a model's call, and for a program's."""
        parent = self.steps.get(step.parent)
        return bool(step.parent) and not (parent is not None and parent.start is not None and parent.start.is_composite)

    def begin(self, start: Start, now: float, size: int, refused: ToolResult | None) -> KeptStep | ToolResult:
        """Marks a step as begun, or returns the failure that says why it must not begin.

        `size` is the size of its record in bytes. `refused` is the caller's own reason against any step, or None.
        """
        key = start.step.key
        with self._lock:
            before = self.steps.get(key)
            if self.stopped is not None:
                return self.stopped
            if before is not None and (before.is_running or before.result is not None):
                return may_have_run(start.step, "it was begun already")
            if refused is not None:
                return refused
            if self.size + size > RUN_LIMIT_BYTES:
                return too_much_to_begin(start.step)
            kept = KeptStep(step=start.step, start=start, started_at=now, is_running=True, before=before)
            if before is not None and start.is_composite:
                kept.started_at = before.started_at
            self.steps[key] = kept
            self.size += size
            return kept

    def undo(self, kept: KeptStep) -> None:
        """Removes the mark that `begin` made: the database did not take the record."""
        key = kept.step.key
        with self._lock:
            if self.steps.get(key) is kept:
                if kept.before is None:
                    del self.steps[key]
                else:
                    self.steps[key] = kept.before

    def end(self, step: Step, result: ToolResult, put: Callable[[KeptStep, StepEnd, int], None]) -> ToolResult | None:
        """Marks a step as ended. `put` queues its record, given the place of the step among the ended ones.

        Returns None, or the failure `limit` for a step without a record: it was not begun, and the run is full.
        """
        is_begun = (before := self.steps.get(step.key)) is not None and before.start is not None
        end = make_step_end(step, result, self.large_values, is_begun=is_begun)
        with self._lock:
            is_kept = self.size + len(end.data) <= RUN_LIMIT_BYTES
            if not is_kept:
                result = too_much_to_keep(step, result.call, len(end.data))
                end = make_step_end(step, result, self.large_values, is_begun=is_begun)
            kept = self.steps.setdefault(step.key, KeptStep(step=step))
            kept.result, kept.is_running = result, False
            if not is_kept and not is_begun:
                # The call may run again, and recording each refusal would need room as well.
                return result
            self.end_order.append(step.key)
            self.size += len(end.data)
            if end.is_large:
                self.share(step.key, end.value)
            # Under the lock, so that the writer receives the steps in the order of their places.
            put(kept, end, len(self.end_order))
        return None

    def list_ended(self) -> list[KeptStep]:
        """Returns the ended steps in the order in which they ended."""
        with self._lock:
            return [self.steps[key] for key in self.end_order]

    def note(self, parent: str, entry: Mapping[str, Any], put: Callable[[int], int]) -> None:
        """Keeps a note. `put` queues its record, given the place of the note, and returns the size in bytes."""
        with self._lock:
            self.notes.append((parent, dict(entry)))
            self.size += put(len(self.notes))

    def share(self, key: str, value: Any) -> None:
        """Lets later records refer to a large result, given the step's key and its tagged value."""
        self.large.add(key)
        self.large_values.add(key, value)

    def spans(self) -> list[Span]:
        """Returns the keys of all steps on record. The log keeps them, so that a missing step shows later."""
        with self._lock:
            begun = [key for key, kept in self.steps.items() if kept.start is not None]
            return spans(dict.fromkeys((*begun, *self.end_order)))

    def root(self) -> tuple[int, str]:
        """Returns the number of ended steps and `sha256:` over them, in order.

        Every process with the same steps gets the same value.
        """
        ended, hashed = self.list_ended(), sha256()
        for kept in ended:
            if kept.result is not None:
                hashed.update(sha256(encode_form(step_end_form(kept.step, kept.result))).digest())
        return len(ended), f"sha256:{hashed.hexdigest()}"

    def outcome(self, results: Sequence[ToolResult], texts: Sequence[str]) -> bytes:
        """Returns the written form of the run's results. `texts` holds the model's own text for each call."""
        steps = {key: self.steps[key].step for key in self.large}
        return encode_form(results_form(results, steps, texts), REFERRING if steps else WHOLE)


def history_of(connection: Connection, sealer: Sealer, run_id: str) -> ReplayHistory:
    """Reads all records about the run's calls.

    Raises:
        DecisionRefused: `bad_mac`: a record was changed in the database.
    """
    history = ReplayHistory(size=0)
    for row in connection.execute(select(NOTES).where(NOTES.c.run_id == run_id).order_by(NOTES.c.place)):
        data = sealer.open(row.entry, "notes", run_id, row.parent, str(row.place))
        history.notes.append((row.parent, read_form(data, itemgetter("entry"))))
        history.size += len(data)
    values: dict[str, Any] = {}
    query = select(STEPS).where(STEPS.c.run_id == run_id).order_by(STEPS.c.place, STEPS.c.started_at)
    for row in connection.execute(query):
        start = None
        if row.begun is not None:
            text = sealer.open(row.begun, "steps", run_id, row.key, "begun")
            history.size += len(text)
            start = read_form(text, read_start)
        if row.ended is not None:
            text = sealer.open(row.ended, "steps", run_id, row.key, "ended")
            history.size += len(text)
            form, step, result = read_form(text, partial(_read_end, start, values))
            history.steps[row.key] = KeptStep(step=step, start=start, started_at=row.started_at, result=result)
            history.end_order.append(row.key)
            if len(text) > LARGE_BYTES or form["form"] > WHOLE:
                values[row.key] = form["result"]["data"]
                history.share(row.key, values[row.key])
        elif start is not None:
            history.steps[row.key] = KeptStep(step=start.step, start=start, started_at=row.started_at)
    return history


def _read_end(
    start: Start | None, values: Mapping[str, Any], form: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Step, ToolResult]:
    found = expand_form(form, start, values)
    return found, *read_step_end(found)
