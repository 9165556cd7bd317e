"""The ledger of one run: it records each call before it runs, and recalls the calls on record.

It implements `Ledger` of `invocation.ports.ports`. Records are also in memory; if processes could disagree, the
database decides.
"""

# Over 500 lines: all records of a run go through one queue, behind its start and with its lease, and no part of that
# stands alone.

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, select, update

from toolwire.journal.database.tables import RUNS
from toolwire.journal.database.work import RecordFuture, RecordKind, Rows, Work, has_succeeded
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.approvals import RunStop
from toolwire.journal.ledger.asked import in_doubt
from toolwire.journal.ledger.begin import begin, divergence, stop_failure, takeover_failure, why_not
from toolwire.journal.ledger.conversations import has_read
from toolwire.journal.ledger.forms import encode_form, result_form, start_form, texts_of
from toolwire.journal.ledger.history import KeptStep, ReplayHistory
from toolwire.journal.ledger.kept_results import KeptResults
from toolwire.journal.ledger.leases import (
    LEASE_CHECK,
    Lease,
    LeaseLost,
    check_lease,
    end_run,
    give_up,
    next_look,
    set_ready_at,
)
from toolwire.journal.ledger.shared_variables import keep_variables
from toolwire.journal.ledger.steps import BEGUN, ENDED, NOTED, USED, StepEnd, note_row, step_end_row, step_start_row
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import call_event, run_event
from toolwire.journal.log.memory_log import EndedCall, row_of
from toolwire.journal.run import RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step
from toolwire.vocabulary.variables import VariablesChange

T = TypeVar("T")

COMPOSITE_PATIENCE_S = 1.0
"""Seconds that the start of a program waits for the program's first call, to share its transaction. Most programs make
one sooner. One that takes longer is on record while it runs."""

_LOG = logging.getLogger("toolwire.store")


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
        urls: tuple[str, ...] = (),
        opening: Work | None = None,
        stop: RunStop | None = None,
    ) -> None:
        """`opening` writes the start of a new run; the first record takes it along."""
        self.run_id = start.run_id
        self.start = start
        self.approval_call_ids = frozenset(one.call_id for one in history.requests if not one.is_question)
        """Ids of the calls that a person was asked about."""
        self.status: RunStatus = status
        self.rev = rev
        """The revision when the run was last opened, suspended or finished. It goes up with every change."""
        self.outcome = outcome
        """The results of the finished run; None for any other run."""
        self.urls = urls
        """URLs that stood whole in results which the conversation had read when the run was opened."""
        self._stop = stop
        """The stop of the run by `Store.stop`, as far as this process knows."""
        self._interrupt: Callable[[str], object] | None = None
        self._database = database
        self._lease = lease
        self._is_lost = False
        """True once a record was refused because another process holds the run."""
        self._released: Future[Any] = Future()
        """The last write that releases the run. It may have failed."""
        self._history = history
        self._has_requests = bool(history.requests)
        """True if the run has, or may have, a request. Only this process can make one."""
        self._sending = threading.RLock()
        """Held while records are queued, so that none of them comes before the start of its run."""
        self._opening = opening
        """The start of the run, until it is queued."""
        self._started = None if opening is None else opening.future
        """Resolves when the start of the run that this ledger writes is durable."""
        self._locks = (start.conversation or start.run_id,)
        """What each of its records locks (`database/locks.py`): a conversation stands for its runs."""
        self._held: Rows = ()
        """Notes, and the end of the turn's last call, until the next record takes them along."""

    # -- the port ---------------------------------------------------------------------------------------------------

    def recall(self, step: Step) -> ToolResult | InDoubtStep | None:
        """Returns the recorded result of the step, an `InDoubtStep` if it may have run, or None if it is new.

        A step that differs from its record returns the failure `divergence`. So does every later step then, unless a
        tool made the call through its context: only that tool has to end.
        """
        history = self._history
        kept = history.steps.get(step.key)
        if history.stopped is not None or kept is None:
            return history.stopped
        if kept.step.digest != step.digest:
            return divergence(kept.step, step) if history.is_of_tool(step) else self._diverge(kept.step, step)
        if kept.result is not None or kept.start is None:
            return kept.result
        return in_doubt(self.run_id, kept.start, kept.started_at, history.requests)

    def steps_below(self, parent: str) -> Sequence[tuple[Step, ToolResult]]:
        """Returns the ended steps below `parent`, in the order in which they ended."""
        kept = self._history.list_ended()
        return [(one.step, one.result) for one in kept if one.step.parent == parent and one.result is not None]

    def note(self, parent: str, entry: Mapping[str, Any]) -> None:
        """Records the data, in JSON types, that a composite tool needs to replay its calls."""

        def put(place: int) -> int:
            row = note_row(self._database.sealer, self.run_id, parent, entry, place)
            self._hold([(NOTED, row)])
            return len(row["entry"].data)

        self._history.note(parent, entry, put)

    def notes(self, parent: str) -> Sequence[Mapping[str, Any]]:
        """Returns the notes of `parent` in order, including those of earlier processes."""
        return [entry for of, entry in list(self._history.notes) if of == parent]

    @property
    def pages(self) -> KeptResults:
        """The long results of the run's conversation."""
        return KeptResults(self._database, self.start, self._check_lease, self._run)

    def record_start(self) -> Future[None] | None:
        """Records the start of the run, unless it is on record; None then. No tool runs before this future resolves.

        The future raises what `Store.start` says. Any other record of the run records the start too.
        """
        if self._started is None or (self._started.done() and not self._was_refused):
            return None
        future = RecordFuture[None]()
        self._send(
            Work(future=future, records=[self._lease_record(self._database.clock())], otherwise=self._refuse_lost_lease)
        )
        return future

    def ask(self, request: ApprovalRequest) -> Future[tuple[ApprovalRequest, Decision | None]]:
        """Records the request before a person sees it. Returns the recorded one, with its decision if it has one."""

        def job(connection: Connection) -> tuple[ApprovalRequest, Decision | None]:
            self._check_lease(connection)
            return approvals.ask(connection, self._database.sealer, request)

        self._has_requests = True
        return self._run(job)

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        """Records the decision and returns the first one, which counts."""

        def job(connection: Connection) -> Decision:
            try:
                return approvals.decide(
                    connection, self._database.sealer, request.id, decision, self._database.clock(), is_vetted=True
                )
            except DecisionRefused as refused:
                if refused.decided is None:
                    raise
                return refused.decided

        return self._run(job)

    def use_answers(self, request_ids: Sequence[str]) -> Future[None]:
        """Records that the tool receives these answers."""

        def job(connection: Connection) -> None:
            self._check_lease(connection)
            approvals.use_answers(connection, request_ids)

        return self._run(job)

    def begin(self, start: Start) -> Future[float | ToolResult]:
        """Records that the step is about to run, uses up its approval, and returns its start time.

        Returns a failure if it must not run: it was begun elsewhere, the lease is lost, or its approval does not fit.

        The future of a composite is done: its only effects are its inner calls, whose records come after its own.
        """
        now = self._database.clock()
        future = RecordFuture[float | ToolResult]()
        data = encode_form(start_form(start))
        kept = self._history.begin(start, now, len(data), self._refusal(start.step))
        if isinstance(kept, ToolResult):
            future.set_result(kept)
            return future
        row = step_start_row(self._database.sealer, self.run_id, start, data, kept.started_at)
        work = Work(future=future, answer=kept.started_at, otherwise=partial(self._undo_begin, kept))
        is_again = kept.before is not None
        if is_again or start.request_id:
            sealer, lease = self._database.sealer, self._require_lease()
            work.job = lambda connection: begin(connection, sealer, lease, start, row, now=now, is_again=is_again)
        else:
            work.records = [self._lease_record(now), (BEGUN, row)]
        if start.is_composite and work.job is None:
            work.future, work.patience_s = None, COMPOSITE_PATIENCE_S
            future.set_result(kept.started_at)
        elif self._started is None or self._started.done():
            # A run that could not even be started raises instead.
            work.failed = partial(self._refuse_unrecorded, kept)
        self._send(work)
        return future

    def settle(self, step: Step, result: ToolResult, record: EndedCall | None = None) -> Future[ToolResult]:
        """Records the end of the step. Returns the result that counts: the failure `limit` if the run is full.

        `record` is the call for the log, whose row is written with it; None: the log has no row of it.
        """
        future = RecordFuture[ToolResult]()

        def put(kept: KeptStep, end: StepEnd, place: int) -> None:
            self._put(self._end_rows(kept, end, place, record), future, kept.result)

        refused = self._history.end(step, result, put)
        if refused is not None:
            future.set_result(refused)
        return future

    def settle_with_end(self, step: Step, result: ToolResult, record: EndedCall | None = None) -> ToolResult:
        """Works as `settle` for the turn's last call: it is recorded together with the end of the turn.

        Returns the result that counts. It is not durable before the end of the turn is.
        """
        found = result

        def put(kept: KeptStep, end: StepEnd, place: int) -> None:
            nonlocal found
            found = kept.result or result
            self._hold(self._end_rows(kept, end, place, record))

        return self._history.end(step, result, put) or found

    def _end_rows(self, kept: KeptStep, end: StepEnd, place: int, record: EndedCall | None) -> Rows:
        database = self._database
        rows: list[tuple[RecordKind, Mapping[str, Any]]] = [
            (ENDED, step_end_row(database.sealer, self.run_id, end, place, self._database.clock()))
        ]
        if kept.start is not None and kept.start.request_id:
            rows.append((USED, {"request_id": kept.start.request_id}))
        if record is not None and kept.result is not None:
            record.result, record.log_url = kept.result, database.location.shown
            rows.append((database.log, call_event(row_of(record), record.conversation, record.caller)))
        return rows

    def abandon(self, step: Step) -> None:
        """Notes that the step no longer runs here. Its outcome stays open."""
        kept = self._history.steps.get(step.key)
        if kept is not None:
            kept.is_running = False

    # -- the run ----------------------------------------------------------------------------------------------------

    def finish(
        self,
        results: Sequence[ToolResult],
        taints: Iterable[Label] = (),
        urls: Iterable[str] = (),
        variables: VariablesChange | None = None,
    ) -> Future[None]:
        """Records the results of the run and releases it. Every later `Store.reopen` returns these results.

        `taints` are the labels of the data that the run has read, and `urls` the URLs. Its conversation keeps them, and
        what its programs changed in the `variables`.
        """
        kept = tuple(results)
        sealed = self._seal_column(self._history.outcome(kept, texts_of(self.start)), "outcome")

        def job(connection: Connection) -> None:
            if self._has_requests:
                # First the run's row, as all do that change a run and its requests.
                self._check_lease(connection)
                approvals.supersede(connection, self.run_id)
            self._end(connection, taints, urls, self._final(connection), sealed)
            if variables is not None:
                keep_variables(connection, self._database.sealer, self.start, variables, self._database.clock())
            self.outcome = kept

        self._released = self._run_with_held(job)
        return self._released

    def suspend(self, taints: Iterable[Label] = (), urls: Iterable[str] = ()) -> Future[SuspendedRun | None]:
        """Records that the run waits for people, and releases it for any process.

        `taints` and `urls` are as for `finish`. None: the run was stopped, and must be finished.
        """

        def job(connection: Connection) -> SuspendedRun | None:
            if self._stop is not None:
                # What was held for this is written nevertheless.
                self._check_lease(connection)
                return None
            self._end(connection, taints, urls, "suspended", None)
            sealer, now = self._database.sealer, self._database.clock()
            # Only now is the row locked, so that no decision comes between.
            pending = approvals.pending(connection, sealer, self.run_id, now)
            set_ready_at(connection, self.run_id, next_look(pending, now))
            head, root = self._history.root()
            return SuspendedRun(
                start=self.start,
                rev=self.rev,
                head=head,
                root=root,
                pending=tuple(pending),
                key=sealer.wire_key,
            )

        self._released = self._run_with_held(job)
        return self._released

    def release(self) -> Future[None]:
        """Releases the run as it stands, also if its end could not be written. Does nothing if it was released before.

        Nor does it if the run was never written. If this cannot be written either, the next renewal of leases releases
        the run.
        """
        is_written = self._opening is None and not self._was_refused
        is_released = has_succeeded(self._released)
        if self._lease is not None and is_written and not is_released:
            self._released = future = self._run(self._give_up)
        else:
            future = RecordFuture[None]()
            future.set_result(None)
            if is_released:
                # The future before has this ledger in its callback. Both would live on until a garbage collection.
                self._released = future
        future.add_done_callback(lambda _: self._database.drop(self.run_id, self))
        return future

    def watch_stop(self, interrupt: Callable[[str], object]) -> str | None:
        """Calls `interrupt` with the reason when `Store.stop` stops the run: at the next record at the latest.

        Returns the reason if it was stopped before, else None.
        """
        self._interrupt = interrupt
        return None if self._stop is None else self._stop.why

    def notice_stop(self, connection: Connection) -> bool:
        """Looks whether `Store.stop` has stopped the run, and takes the number that it gave to the lease.

        True if so: the records of this process are accepted again, and nothing more begins.
        """
        columns = (RUNS.c.owner, RUNS.c.lease, RUNS.c.stop)
        row = connection.execute(select(*columns).where(RUNS.c.run_id == self.run_id)).one_or_none()
        if row is None or row.stop is None or self._lease is None or row.owner != self._lease.owner:
            return False
        stop = approvals.read_stop(self._database.sealer, self.run_id, row.stop)
        if row.lease != stop.lease or self._lease.number not in (stop.lease - 1, stop.lease):
            return False
        if self._stop is None:
            self._stop, self._lease = stop, replace(self._lease, number=stop.lease)
            if self._interrupt is not None:
                # A loop that was closed runs no calls.
                with suppress(RuntimeError):
                    self._interrupt(stop.why)
        return True

    def _give_up(self, connection: Connection) -> None:
        lease = self._require_lease()
        if not self.notice_stop(connection):
            give_up(connection, lease, self._database.clock())
        elif self._stop is not None:
            approvals.mark_stopped(
                connection, self._database.sealer, self.start, self._stop, lease=self._stop.lease + 1
            )

    def _final(self, connection: Connection) -> RunStatus:
        # A diverged run stays diverged: nothing of it runs again.
        if self.status == "diverged":
            return "diverged"
        is_stopped = self._stop is not None
        is_stopped = is_stopped or (self._has_requests and approvals.is_stopped(connection, self.run_id))
        return "stopped" if is_stopped else "finished"

    def _end(
        self,
        connection: Connection,
        taints: Iterable[Label],
        urls: Iterable[str],
        status: RunStatus,
        outcome: bytes | None,
    ) -> None:
        lease = self._require_lease()
        self.rev = end_run(connection, lease, status, outcome, self._database.clock())
        sealer = self._database.sealer
        append(connection, sealer, [run_event(self.start, status, lease=lease.number, steps=self._history.spans())])
        known = set(self.urls)
        state = has_read(connection, sealer, self.start, taints, [url for url in urls if url not in known])
        if state is not None:
            self._database.seen.keep(self.start.conversation, state)
        self.status = status

    # -- how --------------------------------------------------------------------------------------------------------

    def _run(
        self,
        job: Callable[[Connection], T],
        otherwise: Callable[[Connection, Exception], Any] | None = None,
        *locks: str,
    ) -> Future[T]:
        """Queues a job of the run. `locks` are the names of more that it locks (`database/locks.py`)."""
        future = RecordFuture[T]()
        self._send(Work(future=future, job=job, otherwise=otherwise or partial(self._run_again, (), job), locks=locks))
        return future

    def _run_with_held(self, job: Callable[[Connection], T]) -> Future[T]:
        """Runs the job that ends the turn, as one work with all that was held for it."""
        future = RecordFuture[T]()
        with self._sending:
            rows, self._held = self._held, ()
            # If the turn's end cannot be written, that of its last call still may, with the release.
            future.add_done_callback(lambda it: None if has_succeeded(it) else self._hold(rows))
            self._send(Work(future=future, records=rows, job=job, otherwise=partial(self._run_again, rows, job)))
        return future

    def _hold(self, rows: Rows) -> None:
        """Keeps rows until the next record takes them along."""
        if self._lease is not None and not self._is_lost:
            with self._sending:
                self._held = [*self._held, *rows]

    def _run_again(self, rows: Rows, job: Callable[[Connection], T], connection: Connection, error: Exception) -> T:
        """Runs the job of a run that was stopped meanwhile, after these records. Any other error is raised."""
        if not self._is_stopped(connection, error):
            return self._refuse_lost_lease(connection, error)
        self._write(connection, rows)
        return job(connection)

    def _put_again(self, records: Rows, answer: Any, connection: Connection, error: Exception) -> Any:
        """Writes the records of a run that was stopped meanwhile: what ran here stays on record."""
        if not self._is_stopped(connection, error):
            return self._answer_despite_loss(answer, connection, error)
        self._write(connection, [self._lease_record(self._database.clock()), *records])
        return answer

    def _is_stopped(self, connection: Connection, error: Exception) -> bool:
        """True if a record was refused because `Store.stop` has stopped the run."""
        return isinstance(error, LeaseLost) and self.notice_stop(connection)

    def _write(self, connection: Connection, records: Rows) -> None:
        for kind, row in sorted(records, key=lambda record: record[0].rank):
            kind.write(connection, [row])

    def _put(self, records: Rows, future: RecordFuture[Any] | None = None, answer: Any = None) -> None:
        if self._lease is not None and not self._is_lost:
            otherwise = partial(self._put_again, records, answer)
            records = [self._lease_record(self._database.clock()), *records]
            self._send(Work(future=future, records=records, answer=answer, otherwise=otherwise))
        elif future is not None:
            future.set_result(answer)

    def _send(self, work: Work) -> None:
        """Queues the work, directly behind the start of a new run and what was held for it."""
        with self._sending:
            before = list[Work]()
            if self._opening is not None:
                before.append(self._opening)
                self._opening = None
            if self._held:
                otherwise = partial(self._put_again, self._held, None)
                rows, self._held = [self._lease_record(self._database.clock()), *self._held], ()
                before.append(Work(future=None, records=rows, otherwise=otherwise, locks=self._locks))
            for one in (*before, work):
                one.patience_s = work.patience_s
                one.needs = self._started if one.future is not self._started else None
            work.locks = (*work.locks, *self._locks)
            self._database.put(*before, work)

    def _lease_record(self, now: float) -> tuple[RecordKind, Mapping[str, Any]]:
        return LEASE_CHECK, {"lease": self._require_lease(), "now": now}

    def _check_lease(self, connection: Connection) -> None:
        check_lease(connection, self._require_lease(), self._database.clock())

    def _require_lease(self) -> Lease:
        if self._lease is not None:
            return self._lease
        raise LeaseLost

    def _seal_column(self, data: bytes, column: str) -> bytes:
        return self._database.sealer.seal(data, "runs", self.run_id, column)

    def _answer_despite_loss(self, answer: Any, _: Connection, error: Exception) -> Any:
        """Returns the answer anyway if the run now belongs to another process. Raises any other error again."""
        self._raise_refusal_of_start()
        if not isinstance(error, LeaseLost):
            raise error
        if not self._is_lost:
            self._is_lost = True
            _LOG.error("run %s was taken over by another process; what runs of it here is not recorded", self.run_id)
        return answer

    def _refuse_lost_lease(self, _: Connection, error: Exception) -> Any:
        self._raise_refusal_of_start()
        if not isinstance(error, LeaseLost):
            raise error
        raise DecisionRefused("run_busy", f"run {self.run_id!r} was taken over by another process") from error

    @property
    def _was_refused(self) -> bool:
        """True if the run could not be started. Nothing of it is in the database."""
        return self._started is not None and self._started.done() and self._started.exception() is not None

    def _raise_refusal_of_start(self) -> None:
        """Raises the reason why the run was not started. Its other records fail for that reason."""
        if self._started is not None and self._was_refused:
            self._started.result(timeout=0)

    def _refusal(self, step: Step) -> ToolResult | None:
        """Returns why the step must not begin, as far as this process knows, or None."""
        if self._stop is not None:
            return stop_failure(step, self._stop.why, is_again=step.key in self._history.steps)
        if self._lease is None or self._is_lost:
            return takeover_failure(self.run_id)
        if self._database.writer.is_full:
            return ToolResult.failed("overloaded", "The store cannot keep up: too many calls wait to be recorded.")
        return None

    def _undo_begin(self, kept: KeptStep, connection: Connection, error: Exception) -> ToolResult:
        self._history.undo(kept)
        if self._is_stopped(connection, error) and self._stop is not None:
            return stop_failure(kept.step, self._stop.why, is_again=kept.before is not None)
        self._raise_refusal_of_start()
        return why_not(connection, error, self.run_id, kept.step)

    def _refuse_unrecorded(self, kept: KeptStep, error: Exception) -> ToolResult:
        self._history.undo(kept)
        return ToolResult.failed("unavailable", f"{kept.step.tool!r} was not run: {error}.")

    def _diverge(self, kept: Step, step: Step) -> ToolResult:
        """Stops the run: it asks for another call than its record, and only a person can tell which was meant."""
        failure = divergence(kept, step)
        first = self._history.stop(failure)
        if first is not failure:
            return first
        self.status = "diverged"
        sealed = self._seal_column(encode_form({"result": result_form(failure)}), "divergence")

        def job(connection: Connection) -> None:
            self._check_lease(connection)
            change = update(RUNS).where(RUNS.c.run_id == self.run_id)
            connection.execute(change.values(status="diverged", divergence=sealed, ready_at=None))
            append(
                connection,
                self._database.sealer,
                [run_event(self.start, "diverged", lease=self._require_lease().number, step=step.key)],
            )

        def diverge_again(connection: Connection, error: Exception) -> None:
            if self._is_stopped(connection, error):
                return job(connection)
            return self._answer_despite_loss(None, connection, error)

        self._send(Work(future=None, job=job, otherwise=diverge_again))
        return failure
