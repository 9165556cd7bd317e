"""The ledger of one run: it records each call before it runs, and recalls the calls on record.

It implements `invocation.ports.Ledger`. Records are also in memory; if processes could disagree, the database decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, select, update

from toolwire.journal.database.database import Database
from toolwire.journal.database.tables import RUNS
from toolwire.journal.database.work import Kind, RecordFuture, Rows, Work
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.begin import (
    Attempt,
    begin,
    divergence,
    may_have_run,
    not_settled,
    taken_over,
    too_much_to_begin,
    too_much_to_keep,
)
from toolwire.journal.ledger.forms import result_form, start_form, texts_of, written
from toolwire.journal.ledger.leases import TOUCH, Lease, LeaseLost, give_up, touch
from toolwire.journal.ledger.steps import (
    BEGUN,
    ENDED,
    NOTED,
    USED,
    KeptStep,
    ReplayHistory,
    begun_row,
    end_of,
    ended_row,
    note_row,
    root_of,
)
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.run import RUN_LIMIT_BYTES, RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step, idempotency_key

T = TypeVar("T")


class RunLedger:
    """The records of one run and the right to continue it. `Store.start` and `Store.reopen` return it."""

    def __init__(
        self,
        database: Database,
        start: RunStart,
        lease: Lease | None,
        *,
        status: RunStatus,
        rev: int,
        history: ReplayHistory,
        outcome: tuple[ToolResult, ...] | None = None,
        divergence: ToolResult | None = None,
    ) -> None:
        self.run_id = start.run_id
        self.start, self.asked = start, history.asked
        """The run's start, and the ids of the calls that a person was asked about."""
        self.status: RunStatus = status
        self.rev = rev
        """The revision when the run was last opened, suspended or finished. It goes up with every change."""
        self.outcome = outcome
        """The results of the finished run; None for any other run."""
        self._database = database
        self._lease = lease
        self._is_given_up = lease is None
        self._lock = threading.Lock()
        self._history, self._steps, self._ended, self._notes = history, history.steps, history.ended, history.notes
        self._stopped = divergence
        """The failure that keeps steps from running; None while the run goes on."""

    # -- the port ---------------------------------------------------------------------------------------------------

    def recall(self, step: Step) -> ToolResult | InDoubtStep | None:
        """Returns the recorded result of the step, an `InDoubtStep` if it may have run, or None if it is new.

        A step that differs from its record returns the failure `divergence`, and so does every later step.
        """
        with self._lock:
            if self._stopped is not None:
                return self._stopped
            kept = self._steps.get(step.key)
            if kept is None:
                return None
            if kept.step.digest != step.digest:
                return self._diverge(kept.step, step)
            if kept.result is not None or kept.start is None:
                return kept.result
            return InDoubtStep(
                idempotent=kept.start.idempotent,
                is_composite=kept.start.is_composite,
                started_at=kept.started_at,
                attempt=kept.start.attempt,
                idempotency_key=idempotency_key(self.run_id, step.key, kept.start.arguments_digest),
                has_key=kept.start.has_key,
            )

    def recorded(self, parent: str) -> Sequence[tuple[Step, ToolResult]]:
        """Returns the ended steps below `parent`, in the order in which they ended."""
        with self._lock:
            kept = [self._steps[key] for key in self._ended]
        return [(one.step, one.result) for one in kept if one.step.parent == parent and one.result is not None]

    def note(self, parent: str, entry: Mapping[str, Any]) -> None:
        """Records the data, in JSON types, that a composite tool needs to replay its calls."""
        with self._lock:
            self._notes.append((parent, dict(entry)))
            row = note_row(self._database.sealer, self.run_id, parent, entry, len(self._notes))
            self._history.size += len(row["entry"].data)
            self._put([(NOTED, row)])

    def notes(self, parent: str) -> Sequence[Mapping[str, Any]]:
        """Returns the notes of `parent` in order, including those of earlier processes."""
        with self._lock:
            return [entry for of, entry in self._notes if of == parent]

    def ask(self, request: ApprovalRequest) -> Future[tuple[ApprovalRequest, Decision | None]]:
        """Records the request before a person sees it. Returns the recorded one, with its decision if it has one."""

        def job(connection: Connection) -> tuple[ApprovalRequest, Decision | None]:
            self._touch(connection)
            return approvals.ask(connection, self._database.sealer, request)

        return self._run(job)

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        """Records the decision and returns the first one, which counts."""

        def job(connection: Connection) -> Decision:
            try:
                return approvals.decide(connection, self._database.sealer, request.id, decision, is_vetted=True)
            except DecisionRefused as refused:
                if refused.decided is None:
                    raise
                return refused.decided

        return self._run(job)

    def begin(self, start: Start) -> Future[float | ToolResult]:
        """Records that the step is about to run, uses up its approval, and returns its start time.

        Returns a failure if it must not run: it was begun elsewhere, the lease is lost, or its approval does not fit.
        """
        now = time.time()
        future = RecordFuture[float | ToolResult]()
        data = written(start_form(start))
        with self._lock:
            refused = self._refusal(start, len(data))
            if refused is not None:
                future.set_result(refused)
                return future
            before = self._steps.get(start.step.key)
            kept = KeptStep(step=start.step, start=start, started_at=now, is_running=True)
            if before is not None and start.is_composite:
                kept.started_at = before.started_at
            self._steps[start.step.key] = kept
            self._history.size += len(data)
        row = begun_row(self._database.sealer, self.run_id, start, data, kept.started_at)
        attempt = Attempt(run_id=self.run_id, lock=self._lock, steps=self._steps, kept=kept, before=before)
        work = Work(
            future=future,
            answer=kept.started_at,
            otherwise=attempt.refused,
            failed=attempt.failed,
        )
        if before is None and not start.request_id:
            work.records = [self._touching(now), (BEGUN, row)]
        else:
            work.job = lambda connection: begin(
                connection, self._database.sealer, self._held(), start, row, is_again=before is not None
            )
        self._database.put(work)
        return future

    def settle(self, step: Step, result: ToolResult) -> Future[ToolResult]:
        """Records the end of the step. Returns the result that counts: the failure `limit` if the run is full."""
        future, now = RecordFuture[ToolResult](), time.time()
        with self._lock:
            is_begun = (before := self._steps.get(step.key)) is not None and before.start is not None
        end = end_of(step, result, self._history.shared, is_begun=is_begun)
        with self._lock:
            is_kept = self._history.size + len(end.data) <= RUN_LIMIT_BYTES
            if not is_kept:
                result = too_much_to_keep(step, result.call, len(end.data))
                end = end_of(step, result, self._history.shared, is_begun=is_begun)
            kept = self._steps.setdefault(step.key, KeptStep(step=step))
            kept.result, kept.is_running = result, False
            if not is_kept and not is_begun:
                # The call may run again, and recording each refusal would need room as well.
                future.set_result(result)
                return future
            self._ended.append(step.key)
            self._history.size += len(end.data)
            if end.is_large:
                self._history.share(step.key, end.value)
            # Under the lock, so that the writer receives the steps in the order of their places.
            row = ended_row(self._database.sealer, self.run_id, end, len(self._ended), now)
            records: list[tuple[Kind, Mapping[str, Any]]] = [(ENDED, row)]
            if kept.start is not None and kept.start.request_id:
                records.append((USED, {"request_id": kept.start.request_id}))
            self._put(records, future, result)
        return future

    def interrupted(self, step: Step) -> None:
        """Notes that the step no longer runs here. Its outcome stays open."""
        with self._lock:
            kept = self._steps.get(step.key)
            if kept is not None:
                kept.is_running = False

    # -- the run ----------------------------------------------------------------------------------------------------

    def finish(self, results: Sequence[ToolResult]) -> Future[None]:
        """Records the results of the run and releases it. Every later `Store.reopen` returns these results."""
        kept = tuple(results)
        sealed = self._sealed(self._history.outcome(kept, texts_of(self.start)), "outcome")

        def job(connection: Connection) -> None:
            self._touch(connection)
            approvals.supersede(connection, self.run_id)
            self._end(connection, status=self._final(connection), outcome=sealed)
            self.outcome = kept

        return self._run(job)

    def suspend(self) -> Future[SuspendedRun]:
        """Records that the run waits for people, and releases it for any process."""

        def job(connection: Connection) -> SuspendedRun:
            self._touch(connection)
            self._end(connection, status="suspended")
            sealer = self._database.sealer
            with self._lock:
                ended = [self._steps[key] for key in self._ended]
            return SuspendedRun(
                start=self.start,
                rev=self.rev,
                head=len(ended),
                root=root_of(ended),
                pending=tuple(approvals.pending(connection, sealer, self.run_id, time.time())),
                key=sealer.wire_key,
            )

        return self._run(job)

    def release(self) -> Future[None]:
        """Releases the run as it stands. Does nothing if the run was released before."""

        def job(connection: Connection) -> None:
            give_up(connection, self._held())

        if not self._is_given_up:
            self._is_given_up = True
            return self._database.run(job)
        future = RecordFuture[None]()
        future.set_result(None)
        return future

    def _final(self, connection: Connection) -> RunStatus:
        # A diverged run stays diverged: nothing of it runs again.
        if self.status == "diverged":
            return "diverged"
        return "stopped" if approvals.is_stopped(connection, self.run_id) else "finished"

    def _end(self, connection: Connection, *, status: RunStatus, **values: Any) -> None:
        lease = self._held()
        connection.execute(update(RUNS).where(RUNS.c.run_id == self.run_id).values(status=status, **values))
        give_up(connection, lease)
        self.rev = connection.execute(select(RUNS.c.rev).where(RUNS.c.run_id == self.run_id)).scalar_one()
        append(connection, self._database.sealer, [run_event(self.run_id, status, steps=self._history.spans())])
        self.status, self._is_given_up = status, True

    # -- how --------------------------------------------------------------------------------------------------------

    def _run(self, job: Callable[[Connection], T]) -> Future[T]:
        return self._database.run(job, self._refused)

    def _put(self, records: Rows, future: RecordFuture[Any] | None = None, answer: Any = None) -> None:
        if self._lease is not None:
            records = [self._touching(time.time()), *records]
            otherwise = None if future is None else partial(not_settled, self.run_id, answer)
            self._database.put(Work(future=future, records=records, answer=answer, otherwise=otherwise))
        elif future is not None:
            future.set_result(answer)

    def _touching(self, now: float) -> tuple[Kind, Mapping[str, Any]]:
        return TOUCH, {"lease": self._held(), "now": now}

    def _touch(self, connection: Connection) -> None:
        touch(connection, self._held(), time.time())

    def _held(self) -> Lease:
        if self._lease is not None:
            return self._lease
        raise LeaseLost

    def _sealed(self, data: bytes, column: str) -> bytes:
        return self._database.sealer.seal(data, "runs", self.run_id, column)

    def _refused(self, _: Connection, error: Exception) -> Any:
        if not isinstance(error, LeaseLost):
            raise error
        raise DecisionRefused("run_busy", f"run {self.run_id!r} was taken over by another process") from error

    def _refusal(self, start: Start, size: int) -> ToolResult | None:
        """Returns why the step must not begin, as far as this process knows, or None."""
        if self._stopped is not None:
            return self._stopped
        kept = self._steps.get(start.step.key)
        if kept is not None and (kept.is_running or kept.result is not None):
            return may_have_run(start.step, "it was begun already")
        if self._lease is None:
            return taken_over(self.run_id)
        if self._history.size + size > RUN_LIMIT_BYTES:
            return too_much_to_begin(start.step)
        if self._database.writer.is_full:
            return ToolResult.failed("overloaded", "The store cannot keep up: too many calls wait to be recorded.")
        return None

    def _diverge(self, kept: Step, step: Step) -> ToolResult:
        """Stops the run: it asks for another call than its record, and only a person can tell which was meant."""
        self._stopped = divergence(kept, step)
        self.status = "diverged"
        sealed = self._sealed(written({"result": result_form(self._stopped)}), "divergence")

        def job(connection: Connection) -> None:
            self._touch(connection)
            change = update(RUNS).where(RUNS.c.run_id == self.run_id)
            connection.execute(change.values(status="diverged", divergence=sealed))
            append(connection, self._database.sealer, [run_event(self.run_id, "diverged", step=step.key)])

        self._database.put(Work(future=None, job=job, otherwise=partial(not_settled, self.run_id, None)))
        return self._stopped
