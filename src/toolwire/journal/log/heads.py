"""The heads of the log's chains: where each chain ends and begins, signed, one row of `meta` each.

The log has a chain for each process that writes it at the same time. The rows of chain n are numbered from
n * `CHAIN_ROWS` + 1 without gaps, so a number says which chain its row is of, and the two ends of a chain how many rows
it has. Chain 0 is the first one. Its head names every other chain, with the number of its last row when a process last
took it: so a chain that was removed, or put back to an earlier state, is missed.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, func, select, text

from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG, META

HEAD = "log_head"
GENESIS = "0" * 64

CHAIN_BITS = 40
CHAIN_ROWS = 1 << CHAIN_BITS
"""Rows that a chain can have: a million rows a second for twelve days. 8,191 such chains fit a number of JSON."""


def chain_of(seq: int) -> int:
    """Returns the number of the chain that a row belongs to."""
    return (seq - 1) >> CHAIN_BITS if seq > 0 else 0


def before_first(chain: int) -> int:
    """Returns the number before that of the chain's first row."""
    return chain << CHAIN_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The two ends of a chain."""

    chain: int = 0
    """Number of the chain."""
    seq: int = 0
    """Number of the last row."""
    hash: str = GENESIS
    """Hash of the last row."""
    pruned: int = 0
    """Number of the last pruned row; the chain begins after it."""
    pruned_hash: str = GENESIS
    """Hash of the last pruned row."""
    is_broken: bool = False
    """True once the signature did not match. Later appends do not repair it."""
    pruned_at: float = 0.0
    """The latest time of a pruned row, in seconds since the epoch; 0.0 if an older toolwire pruned, or none did."""
    owner: str = ""
    """The opening of the store that appends to the chain; empty if none does, and for chain 0."""
    chains: Mapping[str, int] = field(default_factory=dict[str, int])
    """In the head of chain 0: the other chains, each with the number of its last row when it was last taken."""

    @property
    def rows(self) -> int:
        """Number of rows that the log has of the chain."""
        return self.seq - self.pruned


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHead:
    """A head as it is in the database."""

    head: Head
    value: bytes | None
    """The signed text; None if the head is missing."""


def new_head(chain: int) -> Head:
    """Returns the head of a chain without rows."""
    return Head(chain=chain, seq=before_first(chain), pruned=before_first(chain))


def first_head_row(sealer: Sealer) -> dict[str, Any]:
    """Returns the row of `meta` for an empty log."""
    return {"name": HEAD, "value": sign_head(sealer, Head())}


def read_head(connection: Connection, sealer: Sealer, chain: int = 0) -> StoredHead:
    """Returns the head of a chain, without a lock."""
    value = connection.execute(select(META.c.value).where(META.c.name == head_name(chain))).scalar()
    return StoredHead(head=_parse_head(sealer, chain, value), value=value)


def read_heads(connection: Connection, sealer: Sealer) -> dict[int, Head]:
    """Returns the heads of all chains that have one, by their numbers; chain 0 always."""
    # "0" follows "/".
    others = (META.c.name > f"{HEAD}/") & (META.c.name < f"{HEAD}0")
    found = connection.execute(select(META.c.name, META.c.value).where((META.c.name == HEAD) | others)).all()
    values = {row.name: row.value for row in found}
    numbers = {int(number) for name in values if (number := name.removeprefix(f"{HEAD}/")).isdecimal()}
    return {chain: _parse_head(sealer, chain, values.get(head_name(chain))) for chain in sorted({0, *numbers})}


def lock_head(connection: Connection, sealer: Sealer, chain: int = 0, *, is_patient: bool = True) -> StoredHead:
    """Returns the head of a chain and locks it until the end of the transaction.

    Without `is_patient` a head that another transaction has locked is returned as missing.
    """
    query = _READ
    if connection.dialect.name != "sqlite":
        query = f"{_READ} FOR UPDATE" if is_patient else f"{_READ} FOR UPDATE SKIP LOCKED"
    row = run_statement(connection, query, head_name(chain)).fetchone()
    value = None if row is None else row[0]
    head = _parse_head(sealer, chain, value)
    if not head.is_broken:
        return StoredHead(head=head, value=value)
    in_chain = (LOG.c.seq > before_first(chain)) & (LOG.c.seq <= before_first(chain + 1))
    last = connection.execute(select(func.max(LOG.c.seq)).where(in_chain)).scalar() or 0
    return StoredHead(head=replace(head, seq=max(head.seq, last)), value=value)


def replace_head(connection: Connection, sealer: Sealer, before: bytes, head: Head) -> bytes | None:
    """Signs the head and writes it, if the one in the store is still `before`. Returns its text; None if not."""
    value = sign_head(sealer, head)
    changed = run_statement(connection, _REPLACE, value, head_name(head.chain), before).rowcount
    return value if changed else None


def keep_head(connection: Connection, sealer: Sealer, head: Head) -> bytes:
    """Signs the head and replaces the one in the store, which the caller has locked. Returns its text."""
    value = sign_head(sealer, head)
    run_statement(connection, _WRITE, head_name(head.chain), value)
    return value


def sign_head(sealer: Sealer, head: Head) -> bytes:
    """Returns the head as the text that `meta` holds."""
    form = {name: getattr(head, name) for name in _FIRST}
    return json.dumps({**form, **_later_fields(head), "mac": _mac(sealer, head).hex()}).encode()


def last_rows(connection: Connection) -> dict[int, int]:
    """Returns the number of the last row of each chain that has rows, without a look at the heads."""
    found = connection.execute(_LAST_ROWS).scalars()
    return {chain_of(seq): seq for seq in found if seq is not None}


_READ = "SELECT value FROM meta WHERE name = ?"
_WRITE = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_REPLACE = "UPDATE meta SET value = ? WHERE name = ? AND value = ?"

# One look-up in the primary key for each chain.
_LAST_ROWS = text(
    f"""
    WITH RECURSIVE ends(seq) AS (
        SELECT (SELECT max(seq) FROM log)
        UNION ALL
        SELECT (SELECT max(log.seq) FROM log WHERE log.seq <= ((ends.seq - 1) >> {CHAIN_BITS}) << {CHAIN_BITS})
        FROM ends WHERE ends.seq IS NOT NULL
    )
    SELECT seq FROM ends
    """  # noqa: S608 - a constant
)

_FIRST = ("seq", "hash", "pruned", "pruned_hash", "is_broken")
"""The fields that the head of the first schema has."""


def head_name(chain: int) -> str:
    """Returns the name of the row of `meta` that holds the head of a chain."""
    return f"{HEAD}/{chain}" if chain else HEAD


def _later_fields(head: Head) -> dict[str, Any]:
    """Returns the later fields that are set. Without them a head is signed as in the first schema."""
    found: dict[str, Any] = {"pruned_at": head.pruned_at, "owner": head.owner, "chains": dict(head.chains)}
    return {name: value for name, value in found.items() if value}


def _parse_head(sealer: Sealer, chain: int, value: bytes | None) -> Head:
    try:
        form = json.loads(value or b"")
        signature = bytes.fromhex(form.pop("mac"))
        head = Head(chain=chain, **form)
    except (ValueError, TypeError, LookupError):
        return replace(new_head(chain), is_broken=True)
    return head if hmac.compare_digest(signature, _mac(sealer, head)) else replace(head, is_broken=True)


def _mac(sealer: Sealer, head: Head) -> bytes:
    parts = [head_name(head.chain), str(head.seq), head.hash, str(head.pruned), head.pruned_hash, str(head.is_broken)]
    later = _later_fields(head)
    return sealer.mac(*parts, *([json.dumps(later, sort_keys=True)] if later else []))
