"""The calls of one run, those that wait among them, in pages. Only the records of the page are opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, func, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import DECISIONS, NOTES, OWNERS, REQUESTS, RUNS, STEPS
from toolwire.journal.ledger.approvals import WITH_DECISION, read_request
from toolwire.journal.ledger.asked import AskedRequest, in_doubt
from toolwire.journal.ledger.forms import expand_form, read_form, read_start, read_step_end
from toolwire.journal.page import Page, cursor_of, page_of, read_cursor
from toolwire.journal.reading.holders import Holders
from toolwire.journal.run import CallState, RecordedCall
from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step
from toolwire.vocabulary.values import untag

KIND = "calls"
"""The kind of the cursors of these lists."""

READ_AT_ONCE = 500
"""Records per query: some databases bound the parameters of a statement."""

LINE_NOTE_BYTES = 2_048
"""Bytes of a note that says where a program made a call: several times as many as it takes. Notes with the variables of
programs may be large, and are not opened."""

_ENDED = ("finished", "stopped", "diverged")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A call, as the columns tell of it."""

    id: str
    moment: float
    step: Any = None
    """The row of the step, without its records; None for a call that has none, because it waited."""

    @property
    def place(self) -> tuple[Any, ...]:
        """The place in the list: the start, and the numbers of the id in their order."""
        return self.moment, *_id_place(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepRecord:
    """The opened records of a step."""

    step: Step
    start: Start | None
    result: ToolResult | None


class _Records(Mapping[str, Any]):
    """Opens the records of one run's steps. As a mapping it gives the tagged data of a step, for later ones."""

    def __init__(self, connection: Connection, sealer: Sealer, run_id: str) -> None:
        self._connection, self._sealer, self._run_id = connection, sealer, run_id
        self._opened: dict[str, _StepRecord] = {}
        self._data: dict[str, Any] = {}

    def open(self, keys: Sequence[str]) -> Mapping[str, _StepRecord]:
        """Returns the records of these steps by key.

        Raises:
            DecisionRefused: `bad_mac`, or `schema_too_new`.
        """
        missing = [key for key in keys if key not in self._opened]
        columns = (STEPS.c.key, STEPS.c.begun, STEPS.c.ended)
        for at in range(0, len(missing), READ_AT_ONCE):
            some = STEPS.c.key.in_(missing[at : at + READ_AT_ONCE])
            for row in self._connection.execute(select(*columns).where(STEPS.c.run_id == self._run_id, some)).all():
                self._opened[row.key] = self._open_row(row)
        return self._opened

    def _open_row(self, row: Any) -> _StepRecord:
        start = None
        if row.begun is not None:
            start = read_form(self._sealer.open(row.begun, "steps", self._run_id, row.key, "begun"), read_start)
        if row.ended is None:
            assert start is not None  # A row has one of both.
            return _StepRecord(step=start.step, start=start, result=None)
        text = self._sealer.open(row.ended, "steps", self._run_id, row.key, "ended")
        data, step, result = read_form(text, partial(self._read_end, start))
        self._data[row.key] = data
        return _StepRecord(step=step, start=start, result=result)

    def _read_end(self, start: Start | None, form: Mapping[str, Any]) -> tuple[Any, Step, ToolResult]:
        found = expand_form(form, start, self)
        return found["result"]["data"], *read_step_end(found)

    def __getitem__(self, key: str) -> Any:
        if key not in self._data:
            self.open([key])
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


class _Requests:
    """The requests of one run, as their columns tell of them. One is opened where its record is needed."""

    def __init__(self, connection: Connection, sealer: Sealer, run_id: str, ended: set[str], now: float) -> None:
        self._connection, self._sealer = connection, sealer
        columns = (REQUESTS.c.request_id, REQUESTS.c.call_id, REQUESTS.c.state, REQUESTS.c.created_at)
        query = select(*columns, REQUESTS.c.expires_at, DECISIONS.c.decided_at).outerjoin(
            DECISIONS, DECISIONS.c.request_id == REQUESTS.c.request_id
        )
        rows = connection.execute(query.where(REQUESTS.c.run_id == run_id).order_by(REQUESTS.c.created_at)).all()
        self.rows = {row.call_id: row for row in rows}
        """The last request of each call, and each question."""
        self.asked = [_read_asked(row, ended, now) for row in rows]
        self.waiting = {one.call_id: one.id for one in self.asked if one.is_waiting}
        """The calls and questions that wait, with their requests."""

    def open(self, call_id: str) -> ApprovalRequest:
        """Returns the request of a call.

        Raises:
            DecisionRefused: `bad_mac`, or `schema_too_new`.
        """
        same = REQUESTS.c.request_id == self.rows[call_id].request_id
        return read_request(self._sealer, self._connection.execute(WITH_DECISION.where(same)).one())


def list_calls(
    connection: Connection,
    sealer: Sealer,
    run_id: str,
    now: float,
    *,
    limit: int | None,
    after: str | None,
    parent: str | None,
) -> Page[RecordedCall]:
    """Returns the calls of a run in the order of their starts. A call that did not begin stands where it ended.

    Raises:
        ConfigurationError: `after` is not the cursor of a page of calls.
        DecisionRefused: `unknown_run`, `bad_mac`, or `schema_too_new`.
    """
    place = None if after is None else read_cursor(f"{KIND} of {run_id}", after)
    return _CallList(connection, sealer, run_id, now).page(limit, place, parent)


class _CallList:
    def __init__(self, connection: Connection, sealer: Sealer, run_id: str, now: float) -> None:
        self._connection, self._sealer, self._run_id = connection, sealer, run_id
        columns = (RUNS.c.status, RUNS.c.owner, RUNS.c.lease_until, OWNERS.c.alive_until)
        query = select(*columns).outerjoin(OWNERS, OWNERS.c.owner == RUNS.c.owner)
        run = connection.execute(query.where(RUNS.c.run_id == run_id)).one_or_none()
        if run is None:
            raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
        self._has_ended, self._is_held = run.status in _ENDED, Holders(now).is_held(run)
        columns = (STEPS.c.key, STEPS.c.started_at, STEPS.c.attempt, STEPS.c.ended_at)
        steps = connection.execute(select(*columns).where(STEPS.c.run_id == run_id)).all()
        ended = {row.key for row in steps if row.ended_at is not None}
        self._requests = _Requests(connection, sealer, run_id, ended, now)
        self._records = _Records(connection, sealer, run_id)
        entries = [_Entry(id=row.key, moment=row.started_at or row.ended_at or 0.0, step=row) for row in steps]
        known = {entry.id for entry in entries}
        for call_id, row in self._requests.rows.items():
            # The request of a question has the id of its call, which has begun, and a number.
            if call_id not in known and call_id.rpartition("?")[0] not in known:
                entries.append(_Entry(id=call_id, moment=row.created_at))
        self._entries = sorted(entries, key=lambda entry: entry.place)
        self._by_id = {entry.id: entry for entry in entries}
        self._parents: dict[str, str] = {}
        """The parent of the calls whose ids have this beginning."""
        self._waiting = self._find_waiting()

    def page(self, limit: int | None, place: tuple[float, str] | None, parent: str | None) -> Page[RecordedCall]:
        """Returns one page. `place` is that of the last call before it."""
        entries = self._entries
        if place is not None:
            last = (place[0], *_id_place(place[1]))
            entries = [entry for entry in entries if entry.place > last]
        if parent is not None:
            entries = [entry for entry in entries if self._parent_of(entry.id) == parent]
        entries, more = page_of(entries, limit)
        records = self._records.open([entry.id for entry in entries if entry.step is not None])
        calls = [
            self._call(entry, records) if entry.step is not None else self._call_of_request(entry) for entry in entries
        ]
        lines = self._lines({call.parent for call in calls if call.parent})
        found = [_with_line(call, lines) for call in calls]
        kind = f"{KIND} of {self._run_id}"
        return Page(found, more=more, cursor=cursor_of(kind, entries[-1].moment, entries[-1].id) if entries else "")

    def _call(self, entry: _Entry, records: Mapping[str, _StepRecord]) -> RecordedCall:
        row, record = entry.step, records[entry.id]
        start, own = record.start, self._requests.rows.get(entry.id)
        return RecordedCall(
            id=entry.id,
            parent=record.step.parent,
            tool=record.step.tool,
            arguments=untag(record.step.given),
            attempt=row.attempt,
            started_at=row.started_at or None,
            ended_at=row.ended_at,
            result=record.result,
            state=self._state(entry, record),
            request_id=self._question_of(entry.id) if own is None else own.request_id,
            final_arguments=None if start is None else start.arguments,
        )

    def _call_of_request(self, entry: _Entry) -> RecordedCall:
        """Returns a call that is only known by its request."""
        request, row = self._requests.open(entry.id), self._requests.rows[entry.id]
        state: CallState = "decided"
        if entry.id in self._requests.waiting:
            state = "waiting"
        elif self._has_ended:
            state = "stopped"
        elif row.state == "pending":
            state = "expired"
        return RecordedCall(
            id=entry.id,
            parent=request.parent,
            tool=request.tool,
            arguments=request.given or request.arguments,
            attempt=0,
            started_at=None,
            ended_at=None,
            result=None,
            state=state,
            request_id=request.id,
        )

    def _state(self, entry: _Entry, record: _StepRecord) -> CallState:
        if record.result is not None or record.start is None:
            return "ended"
        if entry.id in self._waiting:
            return "waiting"
        if self._is_held:
            return "running"
        doubt = in_doubt(self._run_id, record.start, entry.moment, self._requests.asked)
        return "decided" if doubt.is_asking and not self._has_ended else "in_doubt"

    def _question_of(self, call_id: str) -> str:
        """Returns the question for which a call waits; empty without one."""
        questions = self._requests.waiting.items()
        return next((request for asked, request in questions if asked.rpartition("?")[0] == call_id), "")

    def _find_waiting(self) -> set[str]:
        """Returns the calls that wait, and those that made them."""
        found = set[str]()
        for asked in self._requests.waiting:
            call_id = asked if asked in self._by_id else asked.rpartition("?")[0]
            while call_id and call_id not in found:
                found.add(call_id)
                call_id = self._parent_of(call_id)
        return found

    def _parent_of(self, call_id: str) -> str:
        """Returns the id of the call that made this one. Calls whose ids differ in their last number have one parent.

        So one record is opened for all calls of a program.
        """
        path = call_id.rpartition("/")[0]
        if path == self._run_id or path in self._by_id:
            return "" if path == self._run_id else path
        if path not in self._parents:
            entry = self._by_id.get(call_id)
            if entry is None or entry.step is None:
                self._parents[path] = self._requests.open(call_id).parent
            else:
                self._parents[path] = self._records.open([call_id])[call_id].step.parent
        return self._parents[path]

    def _lines(self, parents: Set[str]) -> Mapping[tuple[str, str], int]:
        """Returns the lines of programs by the program's id and the number of the call, as text."""
        found: dict[tuple[str, str], int] = {}
        small = func.length(NOTES.c.entry) <= LINE_NOTE_BYTES
        query = select(NOTES).where(NOTES.c.run_id == self._run_id, small)
        for row in self._connection.execute(query) if parents else ():
            if row.parent not in parents:
                continue
            data = self._sealer.open(row.entry, "notes", self._run_id, row.parent, str(row.place))
            entry: Mapping[str, Any] = read_form(data, lambda form: form["entry"])
            if isinstance(line := entry.get("line"), int):
                found[row.parent, str(entry.get("ordinal"))] = line
        return found


def _with_line(call: RecordedCall, lines: Mapping[tuple[str, str], int]) -> RecordedCall:
    line = lines.get((call.parent, call.id.rpartition("/")[2]))
    return call if line is None else replace(call, line=line)


def _read_asked(row: Any, ended: set[str], now: float) -> AskedRequest:
    is_late = bool(row.expires_at) and now > row.expires_at
    return AskedRequest(
        id=row.request_id,
        call_id=row.call_id,
        asked_at=row.created_at,
        decided_at=row.decided_at or 0.0,
        is_used=row.state in ("reserved", "done") or row.call_id in ended,
        is_waiting=row.state == "pending" and not is_late,
        is_question="?" in row.call_id,
    )


def _id_place(id: str) -> tuple[tuple[int, str], ...]:
    """Returns the order of an id: numbers in it count as numbers."""
    return tuple((len(part), part) for part in id.split("/"))
