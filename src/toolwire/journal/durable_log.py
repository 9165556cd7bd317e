"""The log of calls in a store: written after each call, read back as the same entries as the log in memory."""

from __future__ import annotations

import datetime
import time
from typing import Any

from toolwire.journal.log.events import call_event, call_row, request_event
from toolwire.journal.log.memory_log import EndedCall, ExecutionLog, LogEntry, check_limit, entry_of, row_of, seconds_of
from toolwire.journal.log.rows import LogFilter
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.errors import ConfigurationError

PRUNE_EVERY_S = 3600.0
"""Seconds between two prunes of rows that are too old."""

_DAY_S = 86_400.0


class DurableLog(ExecutionLog):
    """An observer that writes every call to a store.

    It lags behind the calls, and a normal exit of the process loses none of them. If the store cannot keep up, calls
    slow down.
    """

    def __init__(self, store: Store, *, keep_days: float | None = None, keep_entries: int | None = None) -> None:
        """`keep_days` and `keep_entries` limit the log; the oldest rows are dropped first. None sets no limit.

        Raises:
            ConfigurationError: A limit is not above 0.
        """
        super().__init__(0)
        for name, value in (("keep_days", keep_days), ("keep_entries", keep_entries)):
            if value is not None and value <= 0:
                raise ConfigurationError(f"{name}={value!r}: give a number above 0, or None to keep everything")
        self.store = store
        """The store that holds the log."""
        self._keep_s = None if keep_days is None else keep_days * _DAY_S
        self._keep_entries = keep_entries
        self._prune_at = time.monotonic()

    def ended(self, record: EndedCall, /) -> None:
        """Records one call. It becomes durable soon after.

        The row of a recorded run's call was written with the call's end. A call from the record of its run is logged
        if the process that ran it died before it wrote the row, as those of earlier versions could.
        """
        if record.log_url != self.store.url:
            event = call_event(row_of(record), record.conversation, record.caller)
            self.store.tell({**event, "is_once": True} if record.is_from_record else event)
        self._prune_when_due()

    def asked(self, request: ApprovalRequest, _invocation_id: str, /) -> None:
        """Records a request, unless the ledger of its run already recorded it."""
        self.store.tell({**request_event(request), "is_once": True})

    def get_entries(
        self,
        invocation_id: str | None = None,
        tool_name: str | None = None,
        status: str | None = None,
        since: datetime.datetime | float | None = None,
        limit: int | None = None,
    ) -> list[LogEntry]:
        """Returns ended calls, newest first and redacted. The filters are those of the log in memory.

        Calls that this process recorded before are included.

        Raises:
            ConfigurationError: `limit` is below 0.
        """
        check_limit(limit)
        wanted = LogFilter(
            kind="call",
            run_id=invocation_id,
            tool=tool_name,
            status=status,
            since=None if since is None else seconds_of(since),
        )
        found = self.store.log(wanted, limit=limit, newest_first=True)
        page = found
        while page.more and limit is None:
            page = self.store.log(wanted, newest_first=True, before=page.cursor)
            found += page
        return [entry_of(call_row(row.subject, row.run_id, row.tool, row.at, row.status, row.entry)) for row in found]

    def __len__(self) -> int:
        return self.store.log_length(LogFilter(kind="call"))

    def clear(self) -> None:
        """Refuses: others rely on a durable log. `Store.prune` drops old rows and records that in the chain.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("a durable log cannot be cleared: bound it with keep_days or keep_entries")

    def _prune_when_due(self) -> None:
        if (self._keep_s is None and self._keep_entries is None) or time.monotonic() < self._prune_at:
            return
        self._prune_at = time.monotonic() + PRUNE_EVERY_S
        before = None if self._keep_s is None else time.time() - self._keep_s
        self.store.prune_later(before=before, keep=self._keep_entries)


def durable_log(store: str | Store, *, keep_days: float | None, keep_entries: int | None) -> DurableLog:
    """Returns the log in a store, given the store or its URL."""
    opened: Any = Store.open(store) if isinstance(store, str) else store
    return DurableLog(opened, keep_days=keep_days, keep_entries=keep_entries)
