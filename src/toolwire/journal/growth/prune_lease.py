"""The right to prune a store: one process at a time, which may die at any moment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from toolwire.journal.database.driver import insert_new
from toolwire.journal.database.tables import META
from toolwire.journal.ledger.leases import Owner, living_holder
from toolwire.vocabulary.errors import StoreUnavailable

PRUNE_LEASE_S = 60.0
"""Seconds without a slice after which a process on another host is taken for dead: as for the lease of a run."""

_NAME = "prune_lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneLease:
    """The lease of one opening of a store. It lies in `meta`, and each slice renews it in its own transaction.

    Each slice is right by itself, in any process. The lease only keeps processes from doing the same work.
    """

    owner: Owner
    shown: str
    """The URL of the store without its password, for messages."""

    def renew(self, connection: Connection, now: float) -> None:
        """Takes or renews the lease.

        Raises:
            StoreUnavailable: Another process prunes the store.
        """
        row = META.c.name == _NAME
        found = connection.execute(select(META.c.value).where(row).with_for_update()).scalar()
        owner, until = _read(found)
        if owner and owner != str(self.owner):
            holder = living_holder(owner, lease_until=until, alive_until=None, now=now)
            if holder:
                raise StoreUnavailable(f"the store {self.shown} is being pruned by {holder}: it needs no second one")
        value = json.dumps({"owner": str(self.owner), "until": now + PRUNE_LEASE_S}).encode()
        if not connection.execute(update(META).where(row).values(value=value)).rowcount:
            connection.execute(insert_new(connection, META).values(name=_NAME, value=value))

    def give_up(self, connection: Connection) -> None:
        """Frees the lease for any process."""
        row = META.c.name == _NAME
        found = connection.execute(select(META.c.value).where(row).with_for_update()).scalar()
        if _read(found)[0] == str(self.owner):
            connection.execute(update(META).where(row).values(value=b"{}"))


def _read(value: bytes | None) -> tuple[str, float]:
    """Returns the owner and the end of a lease. A damaged one is free."""
    try:
        form: Any = json.loads(value or b"{}")
        return (str(form["owner"]), float(form["until"])) if form else ("", 0.0)
    except (ValueError, TypeError, LookupError):
        return "", 0.0
