"""Reads a run back from the store to continue it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from toolwire.journal.database.tables import RUNS
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.conversations import rejoin_conversation
from toolwire.journal.ledger.forms import read_form, read_result, read_results, read_run, texts_of
from toolwire.journal.ledger.history import history_of
from toolwire.journal.ledger.leases import PARKED, take
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.ledger.shared_variables import note_variables, variables_in, with_variables
from toolwire.journal.ledger.steps import NOTED
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.run import RunStatus, SuspendedRun
from toolwire.permission.approval import DecisionRefused


def look_at_suspended(connection: Connection, database: Database, run_id: str) -> SuspendedRun:
    """Returns a run that waits for people as it stands, without its lease.

    Raises:
        DecisionRefused: `unknown_run`, `bad_mac` or `schema_too_new`.
    """
    sealer = database.sealer
    row = connection.execute(select(RUNS.c.start, RUNS.c.rev).where(RUNS.c.run_id == run_id)).one_or_none()
    if row is None:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    head, root = history_of(connection, sealer, run_id).root()
    return SuspendedRun(
        start=read_form(sealer.open(row.start, "runs", run_id, "start"), read_run),
        rev=row.rev,
        head=head,
        root=root,
        pending=tuple(approvals.pending(connection, sealer, run_id, database.clock())),
        key=sealer.wire_key,
    )


def reopen_run(connection: Connection, database: Database, row: Any) -> RunLedger:
    """Returns the ledger of a run from its row in `runs`. Takes the lease unless the run has ended.

    Raises:
        DecisionRefused: See `Store.reopen`.
    """
    sealer, run_id = database.sealer, str(row.run_id)
    written = sealer.open(row.start, "runs", run_id, "start")
    start = read_form(written, read_run)
    outcome = divergence = lease = None
    urls: tuple[str, ...] = ()
    if row.divergence is not None:
        divergence = read_form(
            sealer.open(row.divergence, "runs", run_id, "divergence"), lambda form: read_result(form["result"], None)
        )
    status: RunStatus = row.status
    if status == "parked":
        raise DecisionRefused("parked", PARKED.format(run_id=run_id))
    is_new = status == "queued"
    if row.outcome is None and divergence is None:
        now = database.clock()
        if start.expires_at and now > start.expires_at:
            raise DecisionRefused("expired", f"run {run_id!r} was not continued in time")
        is_ours = database.held.get(run_id) is None
        until = database.lease_until()
        lease = take(connection, run_id, database.owner, now, lease_until=until, is_ours=is_ours)
        status = "running"
        start, urls = rejoin_conversation(connection, sealer, start, database.owner, now)
        begins = "started" if is_new else "resumed"
        append(connection, sealer, [run_event(start, begins, lease=lease.number, process=database.owner.process_id)])
    # Only after the lease is taken: until then another process may add to the history.
    history = history_of(connection, sealer, run_id)
    history.size += len(written)
    if is_new and lease is not None:
        # What its conversation has read and set since it was submitted counts.
        start = with_variables(connection, sealer, start)
        if notes := note_variables(sealer, start, history):
            NOTED.write(connection, notes)
    else:
        start = replace(start, variables=variables_in(history))
    history.stopped = divergence
    if lease is not None:
        history.requests = approvals.requests_of_run(
            connection, sealer, run_id, frozenset(history.end_order), database.clock()
        )
    if row.outcome is not None:
        results = {key: kept.result for key, kept in history.steps.items()}
        sealed = sealer.open(row.outcome, "runs", run_id, "outcome")
        outcome = read_form(sealed, lambda form: read_results(form, results, texts_of(start)))
    stop = None if row.stop is None else approvals.read_stop(sealer, run_id, row.stop)
    rev = connection.execute(select(RUNS.c.rev).where(RUNS.c.run_id == run_id)).scalar_one()
    return RunLedger(
        database, start, lease, status=status, rev=rev, history=history, outcome=outcome, urls=urls, stop=stop
    )
