"""Steps and notes in the database: rows that are written together, and the whole history of a run read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, exists, select, update

from toolwire.journal.database.driver import run_many
from toolwire.journal.database.sealing import Draft, Sealer
from toolwire.journal.database.tables import NOTES, STEPS
from toolwire.journal.ledger.forms import (
    FORM,
    WHOLE,
    ended_form,
    ended_of,
    lengthened,
    read,
    results_form,
    shortened,
    start_of,
    written,
)
from toolwire.journal.ledger.large_values import LARGE_BYTES, Shared
from toolwire.journal.log.compare import Span, spans
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step


class Rows:
    """A kind of record with one statement, run for many rows at once.

    The writing thread seals the draft column: a calling thread would have to wait for the interpreter after each seal.
    """

    def __init__(self, rank: int, statement: str, *columns: str, draft: str = "") -> None:
        self.rank = rank
        self._statement = statement
        # With a single column, `itemgetter` would return the value instead of a tuple.
        self._values: Callable[[Any], Any] = itemgetter(*columns) if columns[1:] else lambda row: (row[columns[0]],)
        self._draft = draft

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Writes all rows with one call of the driver and returns how many database rows changed."""
        values: list[tuple[Any, ...]] = list(map(self._values, rows))
        if self._draft:
            drafts: list[Draft] = [row[self._draft] for row in rows]
            sealed = drafts[0].sealer.seal_all(drafts)
            values = [(*row, last) for row, last in zip(values, sealed, strict=True)]
        return run_many(connection, self._statement, values)


BEGUN = Rows(
    1,
    "INSERT INTO steps (run_id, key, started_at, attempt, begun) VALUES (?, ?, ?, ?, ?)",
    *("run_id", "key", "started_at", "attempt"),
    draft="begun",
)
"""A step that is about to run. The insert fails if the row exists, so no step begins twice."""
ENDED = Rows(
    2,
    "INSERT INTO steps (run_id, key, started_at, attempt, place, ended_at, ended) VALUES (?, ?, 0.0, 0, ?, ?, ?)"
    " ON CONFLICT (run_id, key) DO UPDATE"
    " SET place = excluded.place, ended_at = excluded.ended_at, ended = excluded.ended"
    # If a step ends twice, the first result stands.
    " WHERE steps.ended IS NULL",
    *("run_id", "key", "place", "ended_at"),
    draft="ended",
)
"""The end of a step, whether or not it was begun."""
NOTED = Rows(
    2,
    "INSERT INTO notes (run_id, place, parent, entry) VALUES (?, ?, ?, ?)",
    *("run_id", "place", "parent"),
    draft="entry",
)
"""A note of a composite tool."""
USED = Rows(3, "UPDATE requests SET state = 'done' WHERE request_id = ? AND state = 'reserved'", "request_id")
"""The end of an approved call."""


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


@dataclass(slots=True, kw_only=True)
class ReplayHistory:
    """All that is on record about the calls of one run."""

    steps: dict[str, KeptStep]
    ended: list[str]
    """Keys of the ended steps, in order."""
    notes: list[tuple[str, Mapping[str, Any]]]
    """Pairs of parent and entry, in order."""
    size: int
    """Bytes of these records in the database."""
    large: set[str] = field(default_factory=set[str])
    """Keys of the steps whose result is large."""
    shared: Shared = field(default_factory=Shared)
    """The values of the large results."""
    asked: frozenset[str] = frozenset()
    """Ids of the calls that a person was asked about."""

    def share(self, key: str, value: Any) -> None:
        """Lets later records refer to a large result, given the step's key and its tagged value."""
        self.large.add(key)
        self.shared.add(key, value)

    def spans(self) -> list[Span]:
        """Returns the keys of all steps on record. The log keeps them, so that a missing step shows later."""
        # Copies, because other threads add to both.
        begun = [key for key, kept in list(self.steps.items()) if kept.start is not None]
        return spans(dict.fromkeys((*begun, *list(self.ended))))

    def outcome(self, results: Sequence[ToolResult], texts: Sequence[str]) -> bytes:
        """Returns the written form of the run's results. `texts` holds the model's own text for each call."""
        steps = {key: self.steps[key].step for key in self.large}
        return written(results_form(results, steps, texts), FORM if steps else WHOLE)


def begun_row(sealer: Sealer, run_id: str, start: Start, data: bytes, started_at: float) -> dict[str, Any]:
    """Returns the row of a step that is about to run. `data` is its written form."""
    key = start.step.key
    draft = Draft(sealer, data, ("steps", run_id, key, "begun"))
    return {"run_id": run_id, "key": key, "started_at": started_at, "attempt": start.attempt, "begun": draft}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a step in its written form."""

    step: Step
    data: bytes
    """The written form, without values that are on record already."""
    is_large: bool = False
    """True if later records may refer to it."""
    value: Any = None
    """The tagged data of a large result, else None."""


def end_of(step: Step, result: ToolResult, shared: Shared, *, is_begun: bool) -> End:
    """Returns the end of a step. A large end omits the arguments of a begun step, which are on record already."""
    form = ended_form(step, result)
    data = written(form)
    if len(data) <= LARGE_BYTES:
        return End(step=step, data=data)
    short = shortened(form, shared, is_begun=is_begun)
    return End(step=step, data=written(short, FORM), is_large=True, value=form["result"]["data"])


def ended_row(sealer: Sealer, run_id: str, end: End, place: int, now: float) -> dict[str, Any]:
    """Returns the row of a step that ended."""
    key = end.step.key
    draft = Draft(sealer, end.data, ("steps", run_id, key, "ended"))
    return {"run_id": run_id, "key": key, "place": place, "ended_at": now, "ended": draft}


def note_row(sealer: Sealer, run_id: str, parent: str, entry: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Returns the row of a note."""
    draft = Draft(sealer, written({"entry": dict(entry)}), ("notes", run_id, parent, str(place)))
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


def is_begun(connection: Connection, run_id: str, key: str) -> bool:
    """True if the step has been begun."""
    there = exists().where(STEPS.c.run_id == run_id, STEPS.c.key == key)
    return bool(connection.execute(select(there)).scalar())


def history_of(connection: Connection, sealer: Sealer, run_id: str) -> ReplayHistory:
    """Reads all records about the run's calls.

    Raises:
        DecisionRefused: `bad_mac`: a record was changed in the database.
    """
    notes, size = _notes(connection, sealer, run_id)
    history = ReplayHistory(steps={}, ended=[], notes=notes, size=size)
    values: dict[str, Any] = {}
    query = select(STEPS).where(STEPS.c.run_id == run_id).order_by(STEPS.c.place, STEPS.c.started_at)
    for row in connection.execute(query):
        start = None
        if row.begun is not None:
            history.size += len(row.begun)
            start = read(sealer.open(row.begun, "steps", run_id, row.key, "begun"), start_of)
        if row.ended is not None:
            history.size += len(row.ended)
            text = sealer.open(row.ended, "steps", run_id, row.key, "ended")
            form, step, result = read(text, partial(_end_read, start, values))
            history.steps[row.key] = KeptStep(step=step, start=start, started_at=row.started_at, result=result)
            history.ended.append(row.key)
            if len(text) > LARGE_BYTES or form["form"] > WHOLE:
                values[row.key] = form["result"]["data"]
                history.share(row.key, values[row.key])
        elif start is not None:
            history.steps[row.key] = KeptStep(step=start.step, start=start, started_at=row.started_at)
    return history


def _end_read(
    start: Start | None, values: Mapping[str, Any], form: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Step, ToolResult]:
    found = lengthened(form, start, values)
    return {"form": form["form"], **found}, *ended_of(found)


def root_of(ended: Iterable[KeptStep]) -> str:
    """Returns `sha256:` over the ended steps, in order. Every process with the same steps gets the same value."""
    hashed = sha256()
    for kept in ended:
        if kept.result is not None:
            hashed.update(sha256(written(ended_form(kept.step, kept.result))).digest())
    return f"sha256:{hashed.hexdigest()}"


def _notes(connection: Connection, sealer: Sealer, run_id: str) -> tuple[list[tuple[str, Mapping[str, Any]]], int]:
    """Returns the notes and their size in the database, in bytes."""
    query = select(NOTES).where(NOTES.c.run_id == run_id).order_by(NOTES.c.place)
    rows = connection.execute(query).all()
    notes = [
        (
            row.parent,
            read(sealer.open(row.entry, "notes", run_id, row.parent, str(row.place)), lambda form: form["entry"]),
        )
        for row in rows
    ]
    return notes, sum(len(row.entry) for row in rows)
