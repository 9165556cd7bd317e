"""Reads the durable log: rows by filter, and their number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from toolwire.journal.database.tables import LOG
from toolwire.journal.log.chain import clear_text
from toolwire.vocabulary.html_table import html_table

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
    """

    after: int = 0
    kind: RowKind | None = None
    run_id: str | None = None
    tool: str | None = None
    status: str | None = None
    since: float | None = None


def rows(
    connection: Connection, wanted: LogFilter, *, limit: int | None = None, newest_first: bool = False
) -> list[LogRow]:
    """Returns the rows that match. Every value is a parameter of the query, never part of its text."""
    query = _narrowed(select(LOG), wanted).order_by(LOG.c.seq.desc() if newest_first else LOG.c.seq)
    found = connection.execute(query if limit is None else query.limit(limit)).mappings()
    return [_row(dict(row.items())) for row in found]


def count(connection: Connection, wanted: LogFilter) -> int:
    """Returns the number of rows that match."""
    return connection.execute(_narrowed(select(func.count()).select_from(LOG), wanted)).scalar_one()


def _narrowed(query: Any, wanted: LogFilter) -> Any:
    if wanted.after:
        query = query.where(LOG.c.seq > wanted.after)
    for name in ("kind", "run_id", "tool", "status"):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(LOG.c[name] == clear_text(value))
    return query if wanted.since is None else query.where(LOG.c.at >= wanted.since)


def _row(found: dict[Any, Any]) -> LogRow:
    return LogRow(**{**found, "entry": json.loads(found["entry"])})
