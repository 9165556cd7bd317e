"""Counts of the logged calls by one of their columns, with their failures and the percentiles of their durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, case, func, select

from toolwire.journal.database.tables import LOG

StatsBy = Literal["tool", "status", "principal", "agent", "conversation"]
"""The column by which calls are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStats:
    """The calls with one value of a column.

    Attributes:
        name: The tool, the status, the principal, the agent or the conversation; empty for calls without one.
        calls: Number of calls that ended.
        failures: Number of them that failed.
        p50_s: Half of the calls took at most so many seconds, waits for a person included.
        p95_s: 95 of 100 calls took at most so many seconds.
    """

    name: str
    calls: int
    failures: int
    p50_s: float
    p95_s: float


def stats(connection: Connection, by: StatsBy, since: float | None) -> list[CallStats]:
    """Returns the counts, the most frequent first, by one query."""
    # Rows of the first schema have NULL as conversation and caller.
    name = func.coalesce(LOG.c[by], "")
    calls = select(
        name.label("name"),
        func.coalesce(LOG.c.duration_s, 0.0).label("took"),
        case((LOG.c.status == "success", 0), else_=1).label("failed"),
        func.row_number().over(partition_by=name, order_by=func.coalesce(LOG.c.duration_s, 0.0)).label("place"),
        func.count().over(partition_by=name).label("count"),
    ).where(LOG.c.kind == "call")
    ranked = (calls if since is None else calls.where(LOG.c.at >= since)).subquery()

    def percentile(percent: int) -> Any:
        # The nearest rank: the first place with so many per cent of the calls at or before it.
        is_there = ranked.c.place * 100 >= ranked.c.count * percent
        return func.min(case((is_there, ranked.c.took)))

    columns = (ranked.c.name, func.count(), func.sum(ranked.c.failed), percentile(50), percentile(95))
    query = select(*columns).group_by(ranked.c.name).order_by(func.count().desc(), ranked.c.name)
    return [
        CallStats(name=row[0], calls=row[1], failures=int(row[2]), p50_s=row[3], p95_s=row[4])
        for row in connection.execute(query)
    ]
