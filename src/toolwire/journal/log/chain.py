"""The hash chains of the log, which reveal changes: each row's hash covers the row before, and each head is signed.

They cannot detect that the whole database was restored to an earlier state.

In PostgreSQL each open store appends to a chain of its own, so that processes do not wait for each other. A chain is
taken with the first row, never for reading, and used again when its process has ended. SQLite has one writer at a time
anyway: two processes wrote as many runs a second with a chain for each as with one. So all append to chain 0 there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from operator import itemgetter
from typing import Any, Protocol, cast

from sqlalchemy import Connection, func, select

from toolwire.journal.database.driver import insert_rows, run_statement
from toolwire.journal.database.gathering import find_part
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG, clear_text
from toolwire.journal.log.heads import (
    Head,
    chain_of,
    keep_head,
    lock_head,
    new_head,
    read_heads,
    replace_head,
)
from toolwire.journal.log.redaction import redact

CHAIN = "toolwire_chain"
"""The execution option of an engine that holds the `Chain` of its store."""


class ChainHolder(Protocol):
    """The opening of a store, as the holder of a chain."""

    @property
    def name(self) -> str:
        """The text that names it in a head."""
        ...

    def hold(self, connection: Connection) -> None:
        """Records that it is alive, inside the caller's transaction, and goes on to do so."""
        ...

    def is_alive(self, connection: Connection, name: str) -> bool:
        """True if the holder of that name may still be at work."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastHead:
    """The head that this opening wrote last. If its transaction was rolled back, the store has another."""

    head: Head
    value: bytes


class Chain:
    """Appends rows to the chain of one open store. Used by one thread at a time."""

    def __init__(self, sealer: Sealer, holder: ChainHolder | None = None) -> None:
        """Without a holder it appends to chain 0, as all others do."""
        self._sealer = sealer
        self._holder = holder
        self._number: int | None = None if holder is not None else 0
        self._last: _LastHead | None = None

    def append(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends the rows, inside the caller's transaction."""
        drafts = [_draft(row) for row in rows]
        if (last := self._last) is not None:
            head, written = _link(last.head, drafts)
            value = replace_head(connection, self._sealer, last.value, head)
            if value is not None:
                self._last = _LastHead(head=head, value=value)
                _insert_rows(connection, written)
                return
        # The first rows, or another process wrote this head, or a transaction of this process was rolled back.
        head, written = _link(self._lock(connection), drafts)
        self._last = _LastHead(head=head, value=keep_head(connection, self._sealer, head))
        _insert_rows(connection, written)

    def release(self, connection: Connection) -> None:
        """Frees the chain for another process."""
        if self._holder is None or self._number is None:
            return
        stored = lock_head(connection, self._sealer, self._number)
        if self._is_held(stored.head):
            keep_head(connection, self._sealer, replace(stored.head, owner=""))
        self._number = self._last = None

    @property
    def is_held(self) -> bool:
        """True if this opening has a chain of its own."""
        return self._holder is not None and self._number is not None

    def _lock(self, connection: Connection) -> Head:
        if self._number is not None:
            stored = lock_head(connection, self._sealer, self._number)
            # A transaction that took the chain may have been rolled back.
            is_there = self._holder is None or stored.value is not None
            if is_there and (stored.head.is_broken or self._is_held(stored.head)):
                return stored.head
        return self._take(connection)

    def _is_held(self, head: Head) -> bool:
        return self._holder is None or head.owner == self._holder.name

    def _take(self, connection: Connection) -> Head:
        """Takes a free chain or begins one. The head of chain 0, which names it, lets one process do so at a time."""
        assert self._holder is not None
        first = lock_head(connection, self._sealer).head
        head = replace(self._find_free(connection, first), owner=self._holder.name)
        self._holder.hold(connection)
        keep_head(connection, self._sealer, head)
        chains = {**first.chains, str(head.chain): head.seq}
        keep_head(connection, self._sealer, replace(first, chains=chains))
        self._number = head.chain
        return head

    def _find_free(self, connection: Connection, first: Head) -> Head:
        assert self._holder is not None
        heads = read_heads(connection, self._sealer)
        for number, head in heads.items():
            if not number or head.is_broken or (head.owner and self._holder.is_alive(connection, head.owner)):
                continue
            # The last transaction of a holder that died may still be under way at the server, or rows are pruned.
            if lock_head(connection, self._sealer, number, is_patient=False).head == head:
                return head
        last = connection.execute(select(func.max(LOG.c.seq))).scalar() or 0
        return new_head(max(*heads, *map(int, first.chains), chain_of(last)) + 1)


class LogRows:
    """The kind of record that is appended to the chain."""

    rank = 9

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends the rows in order.

        A row with `is_once` is skipped if the log has a row of the same run, kind, subject and status.
        """
        new = find_part(connection, LogEnd)
        for row in rows:
            if not row.get("is_once") or not (new.has(row) or _is_there(connection, row)):
                new.append(self._sealer, [row])


class LogEnd:
    """The new rows of one transaction. They are appended just before its commit, so no other lock is taken after."""

    def __init__(self) -> None:
        self._rows: list[Mapping[str, Any]] = []
        self._sealer: Sealer | None = None

    def has(self, row: Mapping[str, Any]) -> bool:
        """True if a row of the same run, kind, subject and status is among the new ones."""
        return any(all(one[name] == row[name] for name in _SAME) for one in self._rows)

    def append(self, sealer: Sealer, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends rows."""
        self._rows += rows
        self._sealer = sealer

    def write(self, connection: Connection) -> None:
        """Writes the rows so far."""
        rows, self._rows = self._rows, []
        if rows and self._sealer is not None:
            chain = connection.get_execution_options().get(CHAIN)
            (chain if isinstance(chain, Chain) else Chain(self._sealer)).append(connection, rows)


def append(connection: Connection, sealer: Sealer, rows: Sequence[Mapping[str, Any]]) -> None:
    """Appends rows to the chain of the connection's store, at the end of the writer's transaction."""
    find_part(connection, LogEnd).append(sealer, rows)


def write_rows(connection: Connection) -> None:
    """Writes the new rows of the writer's transaction before its end."""
    find_part(connection, LogEnd).write(connection)


def _draft(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of a row but its number and its hash."""
    entry = redact(row["entry"])
    return {
        "at": float(row["at"]),
        "kind": row["kind"],
        **{name: _clear_name(str(row[name])) for name in ("run_id", "subject", "tool", "status")},
        "entry": json.dumps(entry, sort_keys=True, separators=(",", ":")),
        **{name: _clear_name(row.get(name, "")) for name in WHOSE},
        **column_values(row["kind"], entry),
    }


def _link(head: Head, drafts: Sequence[Mapping[str, Any]]) -> tuple[Head, list[dict[str, Any]]]:
    """Numbers the rows after the head, and returns the new head with them."""
    written: list[dict[str, Any]] = []
    last = head.hash
    for seq, draft in enumerate(drafts, head.seq + 1):
        columns = {"seq": seq, **draft}
        last = row_hash(last, columns)
        written.append({**columns, "hash": last})
    return replace(head, seq=head.seq + len(written), hash=last), written


def _insert_rows(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    insert_rows(connection, "log", _WRITTEN, [_written_values(row) for row in rows])


def entry_of(written: str) -> Mapping[str, Any] | None:
    """Returns the entry of a row; None if another text stands in its place."""
    try:
        found: object = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


def column_values(kind: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the values of a call's entry that are columns as well, for searches."""
    if kind != "call":
        return {"parent": "", "duration_s": None}
    parent, took = entry.get("parent"), entry.get("duration_s")
    return {
        "parent": clear_text(parent) if isinstance(parent, str) else "",
        "duration_s": float(took) if isinstance(took, int | float) else None,
    }


_SAME = ("run_id", "kind", "subject", "status")
_FIND_SAME = f"SELECT 1 FROM log WHERE {' AND '.join(f'{name} = ?' for name in _SAME)} LIMIT 1"  # noqa: S608


@lru_cache(1_000)
def _clear_name(name: str) -> str:
    """Returns a name or an id as the log keeps it. Many rows carry the same ones."""
    return clear_text(str(redact(name)))


WHOSE = ("conversation", "principal", "agent", "tenant")
_FIRST_COLUMNS = ("seq", "at", "kind", "run_id", "subject", "tool", "status", "entry")
_COLUMNS = (*_FIRST_COLUMNS, *WHOSE)
_WRITTEN = (*_COLUMNS, "hash", "parent", "duration_s")
_written_values = itemgetter(*_WRITTEN)
_hashed_values = itemgetter(*_COLUMNS)


_OF_FIRST_SCHEMA = (None,) * len(WHOSE)
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def row_hash(before: str, columns: Mapping[str, Any]) -> str:
    """Returns the hash of a row, which covers the hash of the row before."""
    values = _hashed_values(columns)
    # A row of the first schema has no value in these columns. If some are removed from a later row, its hash changes.
    if values[len(_FIRST_COLUMNS) :] == _OF_FIRST_SCHEMA:
        values = values[: len(_FIRST_COLUMNS)]
    row = _ENCODER.encode(values)
    return sha256(f"{before}\n{row}".encode()).hexdigest()


def _is_there(connection: Connection, row: Mapping[str, Any]) -> bool:
    same = (_clear_name(str(row[name])) for name in _SAME)
    return run_statement(connection, _FIND_SAME, *same).fetchone() is not None
