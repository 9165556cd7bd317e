"""The log of calls in a store: written behind the calls, read back as the same entries."""

from __future__ import annotations

import datetime
import time
from typing import Any

from toolwire.journal.events import call_event, call_row, request_event
from toolwire.journal.history import LogFilter
from toolwire.journal.log import Ended, ExecutionLog, LogEntry, check_limit, entry_of, row_of, seconds_of
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.errors import ConfigurationError

PRUNE_EVERY_S = 3600.0
"""Seconds between two looks at what is too old to be kept."""

_DAY_S = 86_400.0


class DurableLog(ExecutionLog):
    """An observer that writes every call to a store. It lags behind the calls, and loses none when the process ends in
    good order. When the store cannot keep up, calls are slowed down."""

    def __init__(self, store: Store, *, keep_days: float | None = None, keep_entries: int | None = None) -> None:
        """`keep_days` and `keep_entries` bound what is kept; the oldest goes first. None: everything stays."""
        super().__init__(0)
        for name, value in (("keep_days", keep_days), ("keep_entries", keep_entries)):
            if value is not None and value <= 0:
                raise ConfigurationError(f"{name}={value!r}: give a number above 0, or None to keep everything")
        self.store = store
        """Where it is written."""
        self._keep_s = None if keep_days is None else keep_days * _DAY_S
        self._keep_entries = keep_entries
        self._prune_at = time.monotonic()

    def ended(self, record: Ended, /) -> None:
        """Takes one call down; durable soon after."""
        self.store.tell(call_event(row_of(record)))
        self._prune_when_due()

    def asked(self, request: ApprovalRequest, /) -> None:
        """Takes a request down, unless the ledger of its run has."""
        self.store.tell({**request_event(request), "is_once": True})

    def get_entries(
        self,
        invocation_id: str | None = None,
        tool_name: str | None = None,
        status: str | None = None,
        since: datetime.datetime | float | None = None,
        limit: int | None = None,
    ) -> list[LogEntry]:
        """Calls that ended, newest first, redacted; filters as in the log in memory. What was told of before is in."""
        check_limit(limit)
        wanted = LogFilter(
            kind="call",
            run_id=invocation_id,
            tool=tool_name,
            status=status,
            since=None if since is None else seconds_of(since),
        )
        found = self.store.log(wanted, limit=limit, newest_first=True)
        return [entry_of(call_row(row.subject, row.run_id, row.tool, row.at, row.status, row.entry)) for row in found]

    def __len__(self) -> int:
        return self.store.log_length(LogFilter(kind="call"))

    def clear(self) -> None:
        """Not for a log that others rely on: `Store.prune` drops what is old and says so in the chain."""
        raise ConfigurationError("a durable log cannot be cleared: bound it with keep_days or keep_entries")

    def _prune_when_due(self) -> None:
        if (self._keep_s is None and self._keep_entries is None) or time.monotonic() < self._prune_at:
            return
        self._prune_at = time.monotonic() + PRUNE_EVERY_S
        before = None if self._keep_s is None else time.time() - self._keep_s
        self.store.prune_later(before=before, keep=self._keep_entries)


def durable_log(store: str | Store, *, keep_days: float | None, keep_entries: int | None) -> DurableLog:
    """The log in that store, or in the one at that URL."""
    opened: Any = Store.open(store) if isinstance(store, str) else store
    return DurableLog(opened, keep_days=keep_days, keep_entries=keep_entries)
