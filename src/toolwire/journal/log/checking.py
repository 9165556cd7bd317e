"""Checks the chains of the log, side by side and in slices. Each slice is a short read, so nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG
from toolwire.journal.log.chain import column_values, entry_of, row_hash
from toolwire.journal.log.heads import Head, before_first, last_rows, read_head, read_heads

T = TypeVar("T")
Read = Callable[[Callable[[Connection], T]], T]
"""Runs a job on one state of the database."""

CHECKED_AT_ONCE = 1_000
"""Rows of a slice: about 15 ms, and at most a few megabytes of memory."""


_COLUMNS = tuple(column.name for column in LOG.c)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheck:
    """The result of `Store.verify`.

    Attributes:
        rows: Number of rows that were intact before the check ended.
        bad_seq: The first row that was changed, is missing or was put in; None if the log is intact.
        problem: A description of that fault; empty if the log is intact.
        missing: Runs and steps that the log mentions and the store no longer has, at most 100.
        unlogged: Runs and steps of the store that the log does not mention, at most 100. The log was cut there.
    """

    rows: int
    bad_seq: int | None
    problem: str
    missing: tuple[str, ...] = ()
    unlogged: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True if the log is intact, and log and store have the same runs and steps."""
        return self.bad_seq is None and not self.missing and not self.unlogged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    seq: int
    problem: str


class _ChainCheck:
    """The check of one chain: the rows up to `_seq` are intact."""

    def __init__(self, sealer: Sealer, chain: int) -> None:
        self._sealer = sealer
        self._chain = chain
        self._seq: int | None = None
        self._hash = ""
        self.rows = 0
        """Number of rows that are intact."""
        self.is_over = False

    def check_slice(self, connection: Connection) -> _Fault | None:
        """Checks the next rows, and at the last of them the head. Returns the first fault."""
        head = read_head(connection, self._sealer, self._chain).head
        # At first all rows are looked at, so that one before the first row is found.
        after = before_first(self._chain) if self._seq is None else self._seq
        if self._seq is None or self._seq < head.pruned:
            # Rows that were pruned since the last slice are not checked any more.
            after = after if self._seq is None else head.pruned
            self._seq, self._hash = head.pruned, head.pruned_hash
        query = select(LOG).where(LOG.c.seq > after, LOG.c.seq <= before_first(self._chain + 1))
        found = connection.execute(query.order_by(LOG.c.seq).limit(CHECKED_AT_ONCE)).all()
        for row in found:
            if (fault := self._check_row(dict(zip(_COLUMNS, row, strict=True)))) is not None:
                return fault
        if len(found) < CHECKED_AT_ONCE:
            self.is_over = True
            return self._check_end(head)
        return None

    def _check_row(self, row: Mapping[str, Any]) -> _Fault | None:
        assert self._seq is not None
        expected = self._seq + 1
        if row["seq"] != expected:
            is_missing = row["seq"] > expected
            return _Fault(seq=min(expected, row["seq"]), problem="it is missing" if is_missing else "it was put in")
        own = row_hash(self._hash, row)
        if row["hash"] != own:
            return _Fault(seq=expected, problem="it was changed or moved")
        entry = entry_of(row["entry"])
        if entry is None:
            return _Fault(seq=expected, problem="its entry is not JSON")
        if any(row[name] != value for name, value in column_values(row["kind"], entry).items()):
            return _Fault(seq=expected, problem="its parent or its duration was changed")
        self._seq, self._hash = expected, own
        self.rows += 1
        return None

    def _check_end(self, head: Head) -> _Fault | None:
        assert self._seq is not None
        if self._seq < head.seq:
            return _Fault(seq=self._seq + 1, problem="it is missing, and so are all entries after it")
        if self._seq > head.seq or self._hash != head.hash or head.is_broken:
            end = "the end of the log" if not self._chain else f"the end of chain {self._chain} of the log"
            return _Fault(seq=min(self._seq, head.seq + 1), problem=f"{end} is not the one that was signed")
        return None


def check_chains(read: Read[Any], sealer: Sealer, report: Callable[[int, int], object]) -> LogCheck:
    """Checks all rows that the log has when their slice is read.

    `report` is called after each slice, with the rows checked so far and the rows in all when the check began.
    """

    def look(connection: Connection) -> tuple[dict[int, Head], dict[int, int]]:
        return read_heads(connection, sealer), last_rows(connection)

    heads, ends = read(look)
    total = sum(head.rows for head in heads.values())
    fault = _check_names(heads, ends)
    checks = [_ChainCheck(sealer, chain) for chain in sorted({*heads, *ends})]
    while fault is None and (open_checks := [check for check in checks if not check.is_over]):
        for check in open_checks:
            fault = fault or read(check.check_slice)
        report(sum(check.rows for check in checks), total)
    rows = sum(check.rows for check in checks)
    if fault is None:
        return LogCheck(rows=rows, bad_seq=None, problem="")
    return LogCheck(rows=rows, bad_seq=fault.seq, problem=fault.problem)


def _check_names(heads: Mapping[int, Head], ends: Mapping[int, int]) -> _Fault | None:
    """Compares the chains with those that the head of chain 0 names. A broken head of chain 0 names none reliably."""
    first = heads[0]
    if first.is_broken:
        return None
    for name, least in first.chains.items():
        chain = int(name)
        if chain not in heads:
            seq = before_first(chain) + 1
            return _Fault(seq=seq, problem=f"the end of chain {chain} of the log is missing, or the whole chain")
        head = heads[chain]
        if not head.is_broken and head.seq < least:
            return _Fault(seq=head.seq + 1, problem=f"chain {chain} of the log was put back to an earlier state")
    for chain in sorted({*heads, *ends} - {0}):
        if str(chain) not in first.chains:
            return _Fault(seq=before_first(chain) + 1, problem=f"chain {chain} of the log was put in")
    return None
