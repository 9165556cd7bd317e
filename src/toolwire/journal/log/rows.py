"""Reads the durable log: rows by filter, in pages by time, and their number."""

from __future__ import annotations

import heapq
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from sqlalchemy import Connection, and_, func, or_, select, tuple_

from toolwire.journal.database.tables import HAS_PARENT, IS_ASKED, LOG, clear_text
from toolwire.journal.log.chain import WHOSE, column_values
from toolwire.journal.log.cursor import Cursor, Ends
from toolwire.journal.log.heads import before_first, chain_of, last_rows
from toolwire.journal.log.text_search import contains, find_share
from toolwire.journal.page import Page, check_moment, check_text
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.html_display import html_table

RowKind = Literal["call", "request", "decision", "run"]
"""call: a call ended. request: a person was asked. decision: a request was decided. run: a run started, was suspended,
resumed, diverged or ended.
"""

ROWS_LISTED = 1_000
"""Default number of rows in a list: more than a person looks through, and a few megabytes at most as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One row of the durable log, redacted.

    Attributes:
        seq: Number of the row, unique in the store. It rises without gaps within a chain of the log, and does not say
            which of two rows came first.
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
        cursor: Where a list or a follower goes on after this row, as a text without a meaning of its own: for
            `Store.log(after=)`, `before=` and `Store.follow(after=)`, in any process.
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
    cursor: str = field(default="", compare=False)

    def _repr_html_(self) -> str:
        """Returns the row as an HTML table, which notebooks show. All texts are escaped."""
        return html_table([(name, getattr(self, name)) for name in _NAMES])


class LogPage(Page[LogRow]):
    """Rows of the log. The list says if rows are left out.

    Attributes:
        more: True if the limit left rows out.
        cursor: That of the last row, for the next page. Empty for an empty page.
        searched: The part of the log in which a text was looked for, from 0.0 to 1.0. It is below 1.0 while the log's
            first index of texts is made; in PostgreSQL it then says how far the index is.
    """

    __slots__ = ("searched",)

    def __init__(self, items: Sequence[LogRow] = (), *, more: bool = False, searched: float = 1.0) -> None:
        super().__init__(items, more=more, cursor=items[-1].cursor if items else "")
        self.searched = searched


_TEXTS = ("run_id", "tool", "status", "conversation", "principal", "agent", "tenant", "parent", "text")
"""The fields of a filter that are texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Selects rows of the durable log. A row must match every field that is set; None sets no condition.

    Attributes:
        kind: Only rows of this kind.
        run_id: Only rows of this run.
        tool: Only rows of this tool.
        status: Only rows with this status.
        since: Only rows of this time or later, in seconds since the epoch.
        conversation: Only rows of this conversation.
        principal: Only rows of this principal.
        agent: Only rows of this agent.
        tenant: Only rows of this tenant.
        until: Only rows before this time, in seconds since the epoch.
        parent: Only calls that this call made: a program, or a tool through its context.
        min_duration_s: Only calls that took at least so many seconds.
        text: Only rows whose entry contains this text: arguments, results, errors, reasons. The case of the letters A
            to Z is ignored. See `Store.log` for its cost.

    Raises:
        ConfigurationError: `kind` is none, a time is no number of seconds, or another field is not text.
    """

    kind: RowKind | None = None
    run_id: str | None = None
    tool: str | None = None
    status: str | None = None
    since: float | None = None
    conversation: str | None = None
    principal: str | None = None
    agent: str | None = None
    tenant: str | None = None
    until: float | None = None
    parent: str | None = None
    min_duration_s: float | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        check_moment("since", self.since)
        check_moment("until", self.until)
        for name in _TEXTS:
            check_text("LogFilter", name, getattr(self, name), "'...'")
        if self.kind is not None and self.kind not in get_args(RowKind):
            kinds = ", ".join(map(repr, get_args(RowKind)))
            raise ConfigurationError(f"LogFilter(kind={self.kind!r:.80}): write one of {kinds}")

    def matches(self, row: LogRow) -> bool:
        """True if the row has all that is set."""
        columns = column_values(row.kind, row.entry)
        took: float | None = columns["duration_s"]
        names = ((getattr(self, name), getattr(row, name)) for name in ("kind", "run_id", "tool", "status", *WHOSE))
        return (
            all(wanted is None or clear_text(str(wanted)) == name for wanted, name in names)
            and (self.parent is None or clear_text(self.parent) == columns["parent"])
            and (self.since is None or row.at >= self.since)
            and (self.until is None or row.at < self.until)
            and (self.min_duration_s is None or (took is not None and took >= self.min_duration_s))
            and (self.text is None or json.dumps(self.text)[1:-1].lower() in _entry_text(row).lower())
        )


def page(
    connection: Connection,
    wanted: LogFilter,
    *,
    limit: int | None,
    newest_first: bool,
    after: Cursor | None,
    before: Cursor | None,
) -> LogPage:
    """Returns the rows that match, by time. Every value is a parameter of the query, never part of its text.

    The connection sees one state of the database, so that the cursors know which rows there were.
    """
    ends = last_rows(connection)
    query = _apply_filter(connection, select(*_SHOWN), wanted)
    if after is not None:
        query = query.where(tuple_(*after.place) < _PLACE)
    if before is not None:
        query = query.where(tuple_(*before.place) > _PLACE)
    query = query.order_by(LOG.c.at.desc(), LOG.c.seq.desc()) if newest_first else query.order_by(LOG.c.at, LOG.c.seq)
    found = connection.execute(query if limit is None else query.limit(limit + 1)).mappings().all()
    rows = [_row_of(row, end=ends) for row in found[:limit]]
    searched = 1.0 if wanted.text is None else find_share(connection, wanted.text)
    return LogPage(rows, more=len(rows) < len(found), searched=searched)


def unseen(connection: Connection, seen: Cursor, wanted: LogFilter, limit: int) -> list[LogRow]:
    """Returns the next rows up to `seen.end` that its reader has not seen, by time."""
    # A list may have many rows left, which the index of times has in order. Few rows came since a follower's row.
    number = LOG.c.seq if seen.begin else LOG.c.seq + 0
    ranges = [_between(number, chain, seen.begin, seq) for chain, seq in seen.end.items()]
    if not ranges:
        return []
    query = _apply_filter(connection, select(*_SHOWN), wanted)
    query = query.where(or_(*ranges), tuple_(*seen.place) < _PLACE).order_by(LOG.c.at, LOG.c.seq).limit(limit)
    return [_row_of(row, begin=seen.begin, end=seen.end) for row in connection.execute(query).mappings()]


def newer(connection: Connection, begin: Ends, limit: int) -> list[LogRow]:
    """Returns rows after `begin`, at most `limit` of each chain, those of a chain in its order."""
    chains: list[Sequence[Mapping[Any, Any]]] = []
    for chain, last in last_rows(connection).items():
        if last > begin.get(chain, 0):
            query = select(*_SHOWN).where(_between(LOG.c.seq, chain, begin, last)).order_by(LOG.c.seq).limit(limit)
            chains.append([dict(row) for row in connection.execute(query).mappings()])
    rows: list[LogRow] = []
    for found in heapq.merge(*chains, key=operator.itemgetter("at")):
        begin = {**begin, chain_of(found["seq"]): found["seq"]}
        rows.append(_row_of(found, begin=begin))
    return rows


def count(connection: Connection, wanted: LogFilter) -> int:
    """Returns the number of rows that match."""
    return connection.execute(_apply_filter(connection, select(func.count()).select_from(LOG), wanted)).scalar_one()


def tree(connection: Connection, run_id: str) -> list[LogRow]:
    """Returns the rows of a run and of all calls that its programs made, by time."""
    ends = last_rows(connection)
    own = select(*_SHOWN).where(LOG.c.run_id == run_id)
    found = {row["seq"]: row for row in connection.execute(own).mappings()}
    parents = [row["subject"] for row in found.values() if row["kind"] == "call"]
    # The parent may not have ended: while a program waits, only the calls that it made have rows. "0" follows "/".
    below = _CHILDREN.where(LOG.c.parent > f"{run_id}/", LOG.c.parent < f"{run_id}0")
    while True:
        new = [row for row in connection.execute(below).mappings() if row["seq"] not in found]
        found.update((row["seq"], row) for row in new)
        parents += [row["subject"] for row in new]
        some, parents = parents[:_PARENTS_AT_ONCE], parents[_PARENTS_AT_ONCE:]
        if not some:
            rows = [_row_of(row, end=ends) for row in found.values()]
            return sorted(rows, key=operator.attrgetter("at", "seq"))
        below = _CHILDREN.where(LOG.c.parent.in_(some))


_NAMES = [one.name for one in fields(LogRow) if one.name != "cursor"]
_SHOWN = [LOG.c[name] for name in _NAMES]
_PLACE = tuple_(LOG.c.at, LOG.c.seq)
_CHILDREN = select(*_SHOWN).where(HAS_PARENT)
_PARENTS_AT_ONCE = 500
"""Calls in one query for the calls that they made."""


def _between(number: Any, chain: int, begin: Ends, last: int) -> Any:
    return and_(number > begin.get(chain, before_first(chain)), number <= last)


def _apply_filter(connection: Connection, query: Any, wanted: LogFilter) -> Any:
    for name in ("kind", "run_id", "tool", "status", "parent", *WHOSE):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(LOG.c[name] == value)
    if wanted.kind in ("request", "decision"):
        query = query.where(IS_ASKED)
    if wanted.parent:
        query = query.where(HAS_PARENT)
    for column, compare, value in (
        (LOG.c.at, operator.ge, wanted.since),
        (LOG.c.at, operator.lt, wanted.until),
        (LOG.c.duration_s, operator.ge, wanted.min_duration_s),
    ):
        if value is not None:
            query = query.where(compare(column, value))
    return query if wanted.text is None else query.where(contains(connection, wanted.text))


def _row_of(found: Mapping[Any, Any], *, begin: Ends | None = None, end: Ends | None = None) -> LogRow:
    row: dict[str, Any] = dict(found)
    cursor = Cursor(place=(row["at"], row["seq"]), begin=begin or {}, end=end or {})
    whose: dict[str, Any] = {name: row[name] or "" for name in WHOSE}
    row |= {**whose, "entry": json.loads(row["entry"]), "cursor": str(cursor)}
    return LogRow(**row)


def _entry_text(row: LogRow) -> str:
    return json.dumps(row.entry, sort_keys=True, separators=(",", ":"))
