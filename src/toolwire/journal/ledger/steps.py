"""Steps and notes in the database: their rows, which are written together, and their written form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, exists, select, update

from toolwire.journal.database.driver import insert_rows, run_many
from toolwire.journal.database.sealing import Draft, Sealer
from toolwire.journal.database.tables import STEPS
from toolwire.journal.ledger.forms import GIVEN, ONCE, REFERRING, WHOLE, encode_form, shorten_form, step_end_form
from toolwire.journal.ledger.large_values import IN_DATA, LARGE_BYTES, LargeValues
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step

VARIABLES = "variables"
"""The key of the variables in the note of a run or a program that starts with them."""


class InsertKind:
    """A kind of record that is a new row, many of them in one statement.

    The writing thread seals the draft, the last column: a calling thread would have to wait for the interpreter after
    each seal.
    """

    def __init__(self, rank: int, table: str, *columns: str, conflict: str = "") -> None:
        """`conflict` is the clause `ON CONFLICT`."""
        self.rank = rank
        self._table, self._columns, self._conflict = table, columns, conflict
        self._values: Callable[[Any], tuple[Any, ...]] = itemgetter(*columns[:-1])
        self._draft = columns[-1]

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes all rows."""
        drafts: list[Draft] = [row[self._draft] for row in rows]
        sealed = drafts[0].sealer.seal_all(drafts)
        values = [(*self._values(row), data) for row, data in zip(rows, sealed, strict=True)]
        insert_rows(connection, self._table, self._columns, values, self._conflict)


class UsedKind:
    """The end of an approved call."""

    rank = 3

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Marks the requests of the calls as done."""
        run_many(connection, _USE, [(row["request_id"],) for row in rows])


_USE = "UPDATE requests SET state = 'done' WHERE request_id = ? AND state = 'reserved'"
BEGUN = InsertKind(1, "steps", "run_id", "key", "started_at", "attempt", "begun")
"""A step that is about to run. The insert fails if the row exists, so no step begins twice."""
ENDED = InsertKind(
    *(2, "steps", "run_id", "key", "started_at", "attempt", "place", "ended_at", "ended"),
    conflict="ON CONFLICT (run_id, key) DO UPDATE"
    " SET place = excluded.place, ended_at = excluded.ended_at, ended = excluded.ended"
    # If a step ends twice, the first result stands.
    " WHERE steps.ended IS NULL",
)
"""The end of a step, whether or not it was begun."""
NOTED = InsertKind(2, "notes", "run_id", "place", "parent", "entry")
"""A note of a composite tool."""
USED = UsedKind()


def step_start_row(sealer: Sealer, run_id: str, start: Start, data: bytes, started_at: float) -> dict[str, Any]:
    """Returns the row of a step that is about to run. `data` is its written form."""
    key = start.step.key
    draft = Draft(sealer, data, ("steps", run_id, key, "begun"))
    return {"run_id": run_id, "key": key, "started_at": started_at, "attempt": start.attempt, "begun": draft}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """The end of a step in its written form."""

    step: Step
    data: bytes
    """The written form, without values that are on record already."""
    is_large: bool = False
    """True if later records may refer to it."""
    value: Any = None
    """The tagged data of a large result, else None."""


def make_step_end(step: Step, result: ToolResult, shared: LargeValues, *, is_begun: bool) -> StepEnd:
    """Returns the end of a step. A large end omits the arguments of a begun step, which are on record already."""
    form = step_end_form(step, result)
    data = encode_form(form)
    if len(data) <= LARGE_BYTES:
        return StepEnd(step=step, data=data)
    short = shorten_form(form, shared, is_begun=is_begun)
    version = ONCE if short["result"]["blocks"] == IN_DATA else REFERRING
    return StepEnd(step=step, data=encode_form(short, version), is_large=True, value=form["result"]["data"])


def step_end_row(sealer: Sealer, run_id: str, end: StepEnd, place: int, now: float) -> dict[str, Any]:
    """Returns the row of a step that ended."""
    key = end.step.key
    draft = Draft(sealer, end.data, ("steps", run_id, key, "ended"))
    ends = {"place": place, "ended_at": now, "ended": draft}
    # These count if it was not begun.
    return {"run_id": run_id, "key": key, "started_at": 0.0, "attempt": 0, **ends}


def note_row(sealer: Sealer, run_id: str, parent: str, entry: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Returns the row of a note."""
    version = GIVEN if VARIABLES in entry else WHOLE
    draft = Draft(sealer, encode_form({"entry": dict(entry)}, version), ("notes", run_id, parent, str(place)))
    return {"run_id": run_id, "place": place, "parent": parent, "entry": draft}


def begin_again(connection: Connection, row: Mapping[str, Any]) -> bool:
    """Begins a step again that was begun and never ended.

    Returns False if it has ended or a later attempt has begun.
    """
    draft: Draft = row["begun"]
    found = connection.execute(
        update(STEPS)
        .where(
            STEPS.c.run_id == row["run_id"],
            STEPS.c.key == row["key"],
            STEPS.c.ended.is_(None),
            STEPS.c.attempt <= row["attempt"],
        )
        .values(started_at=row["started_at"], attempt=row["attempt"], begun=draft.sealer.seal(draft.data, *draft.place))
    )
    return found.rowcount == 1


def is_step_begun(connection: Connection, run_id: str, key: str) -> bool:
    """True if the step has been begun."""
    there = exists().where(STEPS.c.run_id == run_id, STEPS.c.key == key)
    return bool(connection.execute(select(there)).scalar())
