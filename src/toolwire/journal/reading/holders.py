"""Which runs a process may still be working on."""

from __future__ import annotations

from typing import Any

from toolwire.journal.ledger.leases import Owner


class Holders:
    """Tells which owners may be alive. Each is looked at once."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._found: dict[tuple[str, float], bool] = {}

    def is_held(self, row: Any) -> bool:
        """True if the owner of a run may be alive. The row has `owner`, `lease_until` and `alive_until`."""
        if not row.owner:
            return False
        key = str(row.owner), max(row.lease_until, row.alive_until or 0.0)
        if key not in self._found:
            self._found[key] = Owner.read(key[0]).is_alive(renewed_until=key[1], now=self._now)
        return self._found[key]
