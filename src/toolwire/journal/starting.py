"""The start of a run: what it reads of its conversation, and what it writes together with its first record."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.work import RecordFuture, Work
from toolwire.journal.ledger.conversations import (
    ConversationState,
    insert_run,
    join_conversation,
    look_at_conversation,
)
from toolwire.journal.ledger.forms import encode_form, run_form
from toolwire.journal.ledger.history import ReplayHistory
from toolwire.journal.ledger.leases import Lease
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.ledger.shared_variables import note_variables, shares_variables, with_variables
from toolwire.journal.ledger.steps import NOTED
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.run import KEYED, ConversationChanged, RunStart
from toolwire.permission.approval import DecisionRefused


def start_run(database: Database, run: RunStart) -> Future[RunLedger]:
    """Returns the ledger of a new run; see `Store.start`. Nothing is written yet."""
    state = None if shares_variables(run) else database.seen.find(run)
    if state is None:
        return database.read_soon(lambda connection: _look_and_open(connection, database, run))
    opened: Future[RunLedger] = Future()
    opened.set_result(_open_run(database, run, state))
    return opened


def is_on_record(connection: Connection, run_id: str) -> bool:
    """Returns whether there is a run with this id."""
    return run_statement(connection, _FIND_RUN, run_id).fetchone() is not None


_FIND_RUN = "SELECT 1 FROM runs WHERE run_id = ?"
_FIND_FORGOTTEN = "SELECT 1 FROM forgotten WHERE run_id = ?"


def refuse_forgotten(connection: Connection, run_id: str) -> None:
    """Refuses a run with a key that has run and was forgotten. Call it after the run's row was inserted, so that a
    process which forgets it meanwhile is seen.

    Raises:
        DecisionRefused: `run_ended`.
    """
    if not run_id.startswith(KEYED):
        return
    if run_statement(connection, _FIND_FORGOTTEN, run_id).fetchone() is not None:
        raise DecisionRefused(
            "run_ended",
            f"the turn with this key has run as {run_id!r}, and its record was deleted: give another turn another key",
        )


def _look_and_open(connection: Connection, database: Database, run: RunStart) -> RunLedger:
    state = look_at_conversation(connection, database.sealer, run)
    return _open_run(database, with_variables(connection, database.sealer, run), state)


def _open_run(database: Database, run: RunStart, state: ConversationState) -> RunLedger:
    """Returns the ledger of a run that starts from this state of its conversation."""
    sealer, lease = database.sealer, Lease(run_id=run.run_id, owner=str(database.owner), number=1)
    labels = state.taints | set(run.taints)
    start = run if labels == frozenset(run.taints) else replace(run, taints=tuple(sorted(labels)))
    # Sealed in this thread, since a reply may be large.
    written = encode_form(run_form(start))
    sealed = sealer.seal(written, "runs", run.run_id, "start")
    history = ReplayHistory(size=len(written))
    notes = note_variables(sealer, start, history)
    # Made now: its calls come later in time, and may begin before it is written.
    event = run_event(run, "started", lease=lease.number, caller=run.caller)

    def write(connection: Connection) -> None:
        now = database.clock()
        # Not kept, if this fails.
        database.seen.keep(run.conversation, None)
        database.seen.keep(run.conversation, join_conversation(connection, sealer, start, state, now))
        if with_variables(connection, sealer, start).variables != start.variables:
            raise ConversationChanged
        insert_run(connection, start, lease, sealed, database.owner, now, lease_until=database.lease_until())
        refuse_forgotten(connection, run.run_id)
        if notes:
            NOTED.write(connection, notes)
        append(connection, sealer, [event])
        database.hold(run.run_id, ledger)

    def refuse_duplicate(_: Connection, error: Exception) -> None:
        if isinstance(error, IntegrityError):
            raise DecisionRefused("run_busy", f"run {run.run_id!r} was started before") from error
        raise error

    opening = Work(future=RecordFuture(), job=write, otherwise=refuse_duplicate, locks=(run.conversation,))
    ledger = RunLedger(
        database, start, lease, status="running", rev=1, history=history, urls=state.urls, opening=opening
    )
    return ledger
