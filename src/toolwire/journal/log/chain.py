"""The hash chain of the log, which reveals changes: each row's hash covers the row before, and the head is signed.

It cannot detect that the whole database was restored to an earlier state.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, cast

from sqlalchemy import Connection, exists, func, select

from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.gathering import gathered
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG, META, clear_text
from toolwire.journal.log.redaction import redact

HEAD = "log_head"
GENESIS = "0" * 64
_READ_AT_ONCE = 1000
ROWS_AT_ONCE = 16
"""Rows in one statement: a turn of one call has two, and each number of rows is a statement that the driver keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The two ends of the chain."""

    seq: int = 0
    """Number of the last row."""
    hash: str = GENESIS
    """Hash of the last row."""
    pruned: int = 0
    """Number of the last pruned row; the log begins after it."""
    pruned_hash: str = GENESIS
    """Hash of the last pruned row."""
    is_broken: bool = False
    """True once the signature did not match. Later appends do not repair it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheck:
    """The result of `Store.verify`.

    Attributes:
        rows: Number of rows that were intact before the check ended.
        bad_seq: The first row that was changed, is missing or was put in; None if the chain is intact.
        problem: A description of that fault; empty if the chain is intact.
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


class LogRows:
    """The kind of record that is appended to the chain."""

    rank = 9

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends the rows in order.

        A row with `is_once` is skipped if the log has a row of the same kind, subject and status.
        """
        new = gathered(connection, LogEnd)
        for row in rows:
            if not row.get("is_once") or not (new.has(row) or _is_there(connection, row)):
                new.append(self._sealer, [row])


class LogEnd:
    """The end of the log in one transaction: the head is read once, and the new rows are written with it once."""

    def __init__(self) -> None:
        self._rows: list[Mapping[str, Any]] = []
        self._head: Head | None = None
        self._sealer: Sealer | None = None

    def has(self, row: Mapping[str, Any]) -> bool:
        """True if a row of the same kind, subject and status is among the new ones."""
        return any(all(one[name] == row[name] for name in _SAME) for one in self._rows)

    def append(self, sealer: Sealer, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends rows."""
        self._rows += rows
        self._sealer = sealer

    def lock(self, connection: Connection, sealer: Sealer) -> Head:
        """Returns the head before the new rows, and locks it until the end of the transaction."""
        if self._head is None:
            self._head = _read_locked(connection, sealer)
        return self._head

    def keep(self, sealer: Sealer, head: Head) -> None:
        """Replaces the head before the new rows."""
        self._head, self._sealer = head, sealer

    def write_rows(self, connection: Connection) -> None:
        """Writes the rows so far. The head goes on behind them."""
        rows, self._rows = self._rows, []
        if not rows or self._sealer is None:
            return
        head = self.lock(connection, self._sealer)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            values: list[Any] = []
            for row in rows[start : start + ROWS_AT_ONCE]:
                entry = redact(row["entry"])
                columns = {
                    "seq": head.seq + 1,
                    "at": float(row["at"]),
                    "kind": row["kind"],
                    **{name: clear_text(str(redact(row[name]))) for name in ("run_id", "subject", "tool", "status")},
                    "entry": json.dumps(entry, sort_keys=True, separators=(",", ":")),
                    **{name: _clear_name(row.get(name, "")) for name in WHOSE},
                }
                head = replace(head, seq=columns["seq"], hash=_hash(head.hash, columns))
                values += (*columns.values(), head.hash, *column_values(row["kind"], entry).values())
            run_statement(connection, _insert(len(values) // len(_WRITTEN)), *values)
        self._head = head

    def write(self, connection: Connection) -> None:
        """Writes the rows, and the head if it was changed."""
        self.write_rows(connection)
        if self._sealer is not None and self._head is not None:
            _write_head(connection, self._sealer, self._head)


def append(connection: Connection, sealer: Sealer, rows: Sequence[Mapping[str, Any]]) -> None:
    """Appends rows to the chain, at the end of the writer's transaction. The writing thread redacts them."""
    gathered(connection, LogEnd).append(sealer, rows)


def begin_chain(sealer: Sealer) -> dict[str, Any]:
    """Returns the row of `meta` that holds the head of an empty log."""
    return {"name": HEAD, "value": _sign_head(sealer, Head())}


def verify(connection: Connection, sealer: Sealer) -> LogCheck:
    """Checks the whole log."""
    head = read_head(connection, sealer)
    query = select(LOG).order_by(LOG.c.seq).execution_options(yield_per=_READ_AT_ONCE)
    with connection.execute(query) as found:
        return _check_rows(head, (dict(row.items()) for row in found.mappings()))


def _check_rows(head: Head, found: Iterable[Mapping[Any, Any]]) -> LogCheck:
    expected, before, rows = head.pruned + 1, head.pruned_hash, 0
    for row in found:
        if row["seq"] != expected:
            is_missing = row["seq"] > expected
            return _bad(rows, min(expected, row["seq"]), "it is missing" if is_missing else "it was put in")
        before = _hash(before, row)
        if row["hash"] != before:
            return _bad(rows, expected, "it was changed or moved")
        entry = entry_of(row["entry"])
        if entry is None:
            return _bad(rows, expected, "its entry is not JSON")
        if any(row[name] != value for name, value in column_values(row["kind"], entry).items()):
            return _bad(rows, expected, "its parent or its duration was changed")
        rows, expected = rows + 1, expected + 1
    if expected <= head.seq:
        return _bad(rows, expected, "it is missing, and so are all entries after it")
    if expected > head.seq + 1 or before != head.hash or head.is_broken:
        return _bad(rows, min(expected - 1, head.seq + 1), "the end of the log is not the one that was signed")
    return LogCheck(rows=rows, bad_seq=None, problem="")


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


_SAME = ("kind", "subject", "status")


@lru_cache(1_000)
def _clear_name(name: str) -> str:
    """Returns the name of a conversation or caller as the log keeps it. Many rows carry the same names."""
    return clear_text(str(redact(name)))


WHOSE = ("conversation", "principal", "agent", "tenant")
_FIRST_COLUMNS = ("seq", "at", "kind", "run_id", "subject", "tool", "status", "entry")
_COLUMNS = (*_FIRST_COLUMNS, *WHOSE)
_WRITTEN = (*_COLUMNS, "hash", "parent", "duration_s")


def _hash(before: str, columns: Mapping[str, Any]) -> str:
    # A row of the first schema has no value in these columns. If some are removed from a later row, its hash changes.
    is_first = all(columns[name] is None for name in WHOSE)
    row = json.dumps([columns[name] for name in (_FIRST_COLUMNS if is_first else _COLUMNS)], separators=(",", ":"))
    return sha256(f"{before}\n{row}".encode()).hexdigest()


def _is_among(rows: Iterable[Mapping[str, Any]], row: Mapping[str, Any]) -> bool:
    return any(all(one[name] == row[name] for name in _SAME) for one in rows)


def _is_there(connection: Connection, row: Mapping[str, Any]) -> bool:
    same = exists().where(*(LOG.c[name] == str(redact(row[name])) for name in _SAME))
    return bool(connection.execute(select(same)).scalar())


def read_head(connection: Connection, sealer: Sealer) -> Head:
    """Returns the head, without a lock."""
    return _parse_head(sealer, connection.execute(select(META.c.value).where(META.c.name == HEAD)).scalar())


def lock_head(connection: Connection, sealer: Sealer) -> Head:
    """Returns the head and locks it until the end of the writer's transaction."""
    return gathered(connection, LogEnd).lock(connection, sealer)


def lock_end(connection: Connection, sealer: Sealer) -> Head:
    """Returns the head behind all rows of the log, those of this transaction too, and locks it as `lock_head`."""
    gathered(connection, LogEnd).write_rows(connection)
    return lock_head(connection, sealer)


def keep_head(connection: Connection, sealer: Sealer, head: Head) -> None:
    """Replaces the head, at the end of the writer's transaction."""
    gathered(connection, LogEnd).keep(sealer, head)


def _read_locked(connection: Connection, sealer: Sealer) -> Head:
    query = _LOCK_HEAD if connection.dialect.name == "postgresql" else _READ_HEAD
    row = run_statement(connection, query, HEAD).fetchone()
    head = _parse_head(sealer, None if row is None else row[0])
    if not head.is_broken:
        return head
    last = connection.execute(select(func.max(LOG.c.seq))).scalar() or 0
    return replace(head, seq=max(head.seq, last))


def _write_head(connection: Connection, sealer: Sealer, head: Head) -> None:
    """Signs the head and replaces the one in the store."""
    run_statement(connection, _WRITE_HEAD, HEAD, _sign_head(sealer, head))


_READ_HEAD = "SELECT value FROM meta WHERE name = ?"
_LOCK_HEAD = f"{_READ_HEAD} FOR UPDATE"
_WRITE_HEAD = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


@cache
def _insert(count: int) -> str:
    """Returns the statement that inserts so many rows."""
    row = f"({', '.join('?' * len(_WRITTEN))})"
    return f"INSERT INTO log ({', '.join(_WRITTEN)}) VALUES {', '.join([row] * count)}"  # noqa: S608 - names and marks only


def _parse_head(sealer: Sealer, value: bytes | None) -> Head:
    try:
        form = json.loads(value or b"")
        signature = bytes.fromhex(form.pop("mac"))
        head = Head(**form)
    except (ValueError, TypeError, LookupError):
        return Head(is_broken=True)
    return head if hmac.compare_digest(signature, _mac(sealer, head)) else replace(head, is_broken=True)


def _sign_head(sealer: Sealer, head: Head) -> bytes:
    form = {name: getattr(head, name) for name in ("seq", "hash", "pruned", "pruned_hash", "is_broken")}
    return json.dumps({**form, "mac": _mac(sealer, head).hex()}).encode()


def _mac(sealer: Sealer, head: Head) -> bytes:
    return sealer.mac(HEAD, str(head.seq), head.hash, str(head.pruned), head.pruned_hash, str(head.is_broken))


def _bad(rows: int, seq: int, problem: str) -> LogCheck:
    return LogCheck(rows=rows, bad_seq=seq, problem=problem)
