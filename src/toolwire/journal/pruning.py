"""Prunes the log in slices. Each slice is its own transaction, so other records are written in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, delete, select

from toolwire.journal.database.locks import LOG_PRUNING, lock_in_order
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG
from toolwire.journal.log.chain import write_rows
from toolwire.journal.log.heads import before_first, chain_of, keep_head, last_rows, lock_head
from toolwire.journal.log.text_search import unindex


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """The rows of one chain of the log that a prune considers."""

    last: int
    """The last row at the first slice. Later rows are not considered."""
    by_number: int
    """The last row that goes by its number, at whatever time it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRequest:
    """Selects the rows to drop: the oldest rows of each chain, up to the first that neither `before` nor `keep` drops.

    Attributes:
        before: Drops rows older than this time, in seconds since the epoch.
        keep: Drops all rows but this many, counted at the first slice. Each chain keeps as many of its last rows as it
            has among the newest rows of the log.
        chains: The chains that are left, by number; None before the first slice.
    """

    before: float | None = None
    keep: int | None = None
    chains: Mapping[int, ChainEnd] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneSlice:
    """The outcome of one transaction."""

    dropped: int
    """Number of rows dropped."""
    rest: PruneRequest | None
    """The work that is left; None when the prune is complete."""


def prune_slice(connection: Connection, sealer: Sealer, wanted: PruneRequest, *, at_once: int) -> PruneSlice:
    """Drops at most `at_once` of the rows of one chain, inside the caller's transaction. It locks `LOG_PRUNING`."""
    # It changes the heads of chains that other processes write.
    lock_in_order(connection, [LOG_PRUNING])
    write_rows(connection)
    chains = _chain_ends(connection, wanted.keep) if wanted.chains is None else wanted.chains
    if not chains:
        return PruneSlice(dropped=0, rest=None)
    chain, end = next(iter(chains.items()))
    head = lock_head(connection, sealer, chain).head

    def is_dropped(row: Any) -> bool:
        return row.seq <= end.by_number or (wanted.before is not None and row.at < wanted.before)

    query = select(LOG.c.seq, LOG.c.at, LOG.c.hash).where(LOG.c.seq > head.pruned, LOG.c.seq <= end.last)
    rows = connection.execute(query.order_by(LOG.c.seq).limit(at_once)).all()
    # Times need not increase with `seq`: the slice ends at the first row that stays.
    going = list(takewhile(is_dropped, rows))
    if going:
        last, latest = going[-1], max(row.at for row in going)
        unindex(connection, last.seq)
        connection.execute(delete(LOG).where(LOG.c.seq > before_first(chain), LOG.c.seq <= last.seq))
        pruned_at = max(head.pruned_at, latest)
        keep_head(connection, sealer, replace(head, pruned=last.seq, pruned_hash=last.hash, pruned_at=pruned_at))
    if len(going) < at_once:
        chains = {other: end for other, end in chains.items() if other != chain}
    return PruneSlice(dropped=len(going), rest=replace(wanted, chains=chains) if chains else None)


def _chain_ends(connection: Connection, keep: int | None) -> dict[int, ChainEnd]:
    ends = last_rows(connection)
    if keep is None:
        return {chain: ChainEnd(last=last, by_number=0) for chain, last in ends.items()}
    newest = connection.execute(select(LOG.c.seq).order_by(LOG.c.at.desc(), LOG.c.seq.desc()).limit(keep)).scalars()
    stays = Counter(map(chain_of, newest))
    return {chain: ChainEnd(last=last, by_number=last - stays[chain]) for chain, last in ends.items()}
