"""Reads the durable log: rows by filter, and their number."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from toolwire.journal.database.tables import LOG
from toolwire.journal.log.chain import WHOSE
from toolwire.journal.log.text_search import contains
from toolwire.vocabulary.html_display import html_table

RowKind = Literal["call", "request", "decision", "run"]
"""call: a call ended. request: a person was asked. decision: a request was decided. run: a run started, was suspended,
resumed, diverged or ended.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One row of the durable log, redacted.

    Attributes:
        seq: Position in the log, from 1 without gaps.
        at: Seconds since the epoch: for a call when it began, else when the event happened.
        kind: The kind of event.
        run_id: The run that the row belongs to.
        subject: The id of the call, the request or the run.
        tool: The tool's name; empty for a run.
        status: For a call `success` or a kind of failure; for a request `asked`; for a decision its verdict; for a run
            its state.
        entry: All other data of the event.
        hash: `sha256` over this row and the hash of the row before.
        conversation: The conversation of the run; empty if it is unknown.
        principal: The person or service for which the call was made; empty if it is unknown.
        agent: The agent that acted for the principal; empty if it is unknown.
        tenant: The organisation of both; empty if it is unknown.
    """

    seq: int
    at: float
    kind: RowKind
    run_id: str
    subject: str
    tool: str
    status: str
    entry: Mapping[str, Any]
    hash: str
    conversation: str = ""
    principal: str = ""
    agent: str = ""
    tenant: str = ""

    def _repr_html_(self) -> str:
        """Returns the row as an HTML table, which notebooks show. All texts are escaped."""
        return html_table([(field.name, getattr(self, field.name)) for field in fields(self)])


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Selects rows of the durable log. A row must match every field that is set; None sets no condition.

    Attributes:
        after: Only rows with a higher `seq`; 0 means all.
        kind: Only rows of this kind.
        run_id: Only rows of this run.
        tool: Only rows of this tool.
        status: Only rows with this status.
        since: Only rows of this time or later, in seconds since the epoch.
        conversation: Only rows of this conversation.
        principal: Only rows of this principal.
        agent: Only rows of this agent.
        tenant: Only rows of this tenant.
        before: Only rows with a lower `seq`, for the next page of a list that shows the newest rows first.
        until: Only rows before this time, in seconds since the epoch.
        parent: Only calls that this call made: a program, or a tool through its context.
        min_duration_s: Only calls that took at least so many seconds.
        text: Only rows whose entry contains this text: arguments, results, errors, reasons. The case of the letters A
            to Z is ignored. See `Store.log` for its cost.
    """

    after: int = 0
    kind: RowKind | None = None
    run_id: str | None = None
    tool: str | None = None
    status: str | None = None
    since: float | None = None
    conversation: str | None = None
    principal: str | None = None
    agent: str | None = None
    tenant: str | None = None
    before: int | None = None
    until: float | None = None
    parent: str | None = None
    min_duration_s: float | None = None
    text: str | None = None


def rows(
    connection: Connection, wanted: LogFilter, *, limit: int | None = None, newest_first: bool = False
) -> list[LogRow]:
    """Returns the rows that match. Every value is a parameter of the query, never part of its text."""
    query = _apply_filter(connection, select(*_SHOWN), wanted).order_by(LOG.c.seq.desc() if newest_first else LOG.c.seq)
    found = connection.execute(query if limit is None else query.limit(limit)).mappings()
    return [_row_of(dict(row.items())) for row in found]


def count(connection: Connection, wanted: LogFilter) -> int:
    """Returns the number of rows that match."""
    return connection.execute(_apply_filter(connection, select(func.count()).select_from(LOG), wanted)).scalar_one()


def newest(connection: Connection) -> int:
    """Returns the number of the last row; 0 for an empty log."""
    return connection.execute(select(func.max(LOG.c.seq))).scalar() or 0


def tree(connection: Connection, run_id: str) -> list[LogRow]:
    """Returns the rows of a run and of all calls that its programs made, in the order of the log."""
    found = {row.seq: row for row in rows(connection, LogFilter(run_id=run_id))}
    # The parent may not have ended: while a program waits, only the calls that it made have rows. "0" follows "/".
    below = connection.execute(_CHILDREN.where(LOG.c.parent > f"{run_id}/", LOG.c.parent < f"{run_id}0"))
    new = [row for one in below.mappings() if (row := _row_of(dict(one.items()))).seq not in found]
    parents = [row.subject for row in found.values() if row.kind == "call"]
    while new or parents:
        found.update({row.seq: row for row in new})
        parents += [row.subject for row in new]
        some, parents = parents[:_PARENTS_AT_ONCE], parents[_PARENTS_AT_ONCE:]
        below = connection.execute(_CHILDREN.where(LOG.c.parent.in_(some)))
        new = [row for one in below.mappings() if (row := _row_of(dict(one.items()))).seq not in found]
    return [found[seq] for seq in sorted(found)]


_SHOWN = [LOG.c[field.name] for field in fields(LogRow)]
_CHILDREN = select(*_SHOWN).where(LOG.c.kind == "call")
_PARENTS_AT_ONCE = 500
"""Calls in one query for the calls that they made."""


def _apply_filter(connection: Connection, query: Any, wanted: LogFilter) -> Any:
    if wanted.after:
        query = query.where(LOG.c.seq > wanted.after)
    for name in ("kind", "run_id", "tool", "status", "parent", *WHOSE):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(LOG.c[name] == value)
    for column, compare, value in (
        (LOG.c.at, operator.ge, wanted.since),
        (LOG.c.at, operator.lt, wanted.until),
        (LOG.c.seq, operator.lt, wanted.before),
        (LOG.c.duration_s, operator.ge, wanted.min_duration_s),
    ):
        if value is not None:
            query = query.where(compare(column, value))
    return query if wanted.text is None else query.where(contains(connection, wanted.text))


def _row_of(found: dict[Any, Any]) -> LogRow:
    whose: dict[str, Any] = {name: found[name] or "" for name in WHOSE}
    return LogRow(**{**found, **whose, "entry": json.loads(found["entry"])})
