"""The durable log as it is read: its rows, filtered and followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from toolwire.journal.chain import clear_text
from toolwire.journal.tables import LOG

RowKind = Literal["call", "request", "decision", "run"]
"""call: one that ended; request: a person was asked; decision: somebody decided; run: one began, waited, went on or
ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One row of the durable log, redacted."""

    seq: int
    """Its place, from 1, without gaps."""
    at: float
    """Seconds since the epoch: when the call began, or when the rest happened."""
    kind: RowKind
    """What happened."""
    run_id: str
    """The run it belongs to."""
    subject: str
    """The id of the call, of the request, or of the run."""
    tool: str
    """The tool's name; empty for a run."""
    status: str
    """How it went: `success` or a kind of failure; `asked`; a verdict; or how the run stands."""
    entry: Mapping[str, Any]
    """Everything else about it."""
    hash: str
    """`sha256` over the row before and this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which rows are wanted: all that fit whatever is given."""

    after: int = 0
    """Only rows after this one."""
    kind: RowKind | None = None
    run_id: str | None = None
    tool: str | None = None
    status: str | None = None
    since: float | None = None
    """Only rows of this time or later."""


def rows(
    connection: Connection, wanted: LogFilter, *, limit: int | None = None, newest_first: bool = False
) -> list[LogRow]:
    """The rows that fit. Every value is a parameter of the query, never a part of its text."""
    query = _narrowed(select(LOG), wanted).order_by(LOG.c.seq.desc() if newest_first else LOG.c.seq)
    found = connection.execute(query if limit is None else query.limit(limit)).mappings()
    return [_row(dict(row.items())) for row in found]


def count(connection: Connection, wanted: LogFilter) -> int:
    """How many rows fit."""
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
