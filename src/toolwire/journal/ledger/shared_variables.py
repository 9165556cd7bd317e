"""The variables that the programs of a conversation share, for callers with a principal.

Each run holds those that it set last. So they are forgotten with the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import RUNS, VARIABLES
from toolwire.journal.ledger.conversations import lock_conversation, whose
from toolwire.journal.ledger.forms import encode_form, plain_form, read_form, read_plain
from toolwire.journal.ledger.history import ReplayHistory
from toolwire.journal.ledger.steps import VARIABLES as KEY
from toolwire.journal.ledger.steps import note_row
from toolwire.journal.run import RunStart
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.variables import Variables, VariablesChange, drop_oldest


def with_variables(connection: Connection, sealer: Sealer, run: RunStart) -> RunStart:
    """Returns a new run with the variables that its conversation, principal, tenant and agent share.

    Without a principal it keeps its own. Lock the conversation first.
    """
    if not shares_variables(run):
        return run
    kept = _read_variables(connection, sealer, run).values()
    return replace(run, variables={name: text for one in kept for name, text in one.items()})


def note_variables(sealer: Sealer, run: RunStart, history: ReplayHistory) -> list[Mapping[str, Any]]:
    """Notes the variables of a new run, so that each pass over it starts with the same. Returns the rows to write."""
    rows = list[Mapping[str, Any]]()

    def put(place: int) -> int:
        rows.append(note_row(sealer, run.run_id, "", {KEY: run.variables}, place))
        return len(rows[-1]["entry"].data)

    if run.variables is not None:
        history.note("", {KEY: run.variables}, put)
    return rows


def variables_in(history: ReplayHistory) -> Variables | None:
    """Returns the variables with which a recorded run has started."""
    return next((entry[KEY] for parent, entry in history.notes if not parent and KEY in entry), None)


def keep_variables(connection: Connection, sealer: Sealer, run: RunStart, change: VariablesChange, now: float) -> None:
    """Records a run's changes of the variables of its conversation. Without a principal nothing is recorded."""
    if not _is_shared(run) or not (change.set or change.removed):
        return
    lock_conversation(connection, sealer, run.conversation, run.caller, now)
    kept = _read_variables(connection, sealer, run)
    after = {name: text for one in kept.values() for name, text in one.items() if name not in change.set}
    after = {name: text for name, text in after.items() if name not in change.removed} | dict(change.set)
    drop_oldest(after)
    for run_id, one in kept.items():
        left = {name: text for name, text in one.items() if after.get(name) is text}
        if len(left) < len(one):
            connection.execute(delete(VARIABLES).where(VARIABLES.c.run_id == run_id))
            _write_variables(connection, sealer, run, run_id, left)
    _write_variables(
        connection, sealer, run, run.run_id, {name: text for name, text in change.set.items() if name in after}
    )


def shares_variables(run: RunStart) -> bool:
    """Returns whether a new run has the variables of other runs."""
    return run.variables is not None and _is_shared(run)


def _is_shared(run: RunStart) -> bool:
    return bool(run.conversation and run.caller.principal)


def _read_variables(connection: Connection, sealer: Sealer, run: RunStart) -> dict[str, dict[str, str]]:
    """Returns the variables that this run may read, by the run that has set them, the oldest first."""
    same = (RUNS.c[column] == value for column, value in whose(run).items())
    query = select(VARIABLES).join(RUNS, RUNS.c.run_id == VARIABLES.c.run_id).where(*same)
    found = dict[str, dict[str, str]]()
    for row in connection.execute(query.order_by(RUNS.c.created_at, RUNS.c.run_id)):
        owner, kept = read_form(sealer.open(row.data, *_variables_place(run, row.run_id)), _decode_variables)
        # The columns are in plain text; the sealed caller counts.
        if owner == run.caller:
            found[row.run_id] = kept
    return found


def _write_variables(connection: Connection, sealer: Sealer, run: RunStart, run_id: str, kept: Variables) -> None:
    if kept:
        form = encode_form({"caller": plain_form(run.caller), "variables": dict(kept)})
        values = {"run_id": run_id, "data": sealer.seal(form, *_variables_place(run, run_id))}
        connection.execute(insert(VARIABLES).values(values))


def _variables_place(run: RunStart, run_id: str) -> tuple[str, ...]:
    return "variables", run.conversation, run_id


def _decode_variables(form: dict[str, Any]) -> tuple[Caller, dict[str, str]]:
    return read_plain(Caller, form["caller"]), dict(form["variables"])
