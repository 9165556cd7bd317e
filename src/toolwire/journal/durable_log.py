"""The log of calls in a store: written after each call, read back as the same entries as the log in memory."""

from __future__ import annotations

import datetime
from typing import Any

from toolwire.journal.log.events import call_event, call_row, request_event
from toolwire.journal.log.memory_log import EndedCall, ExecutionLog, LogEntry, check_limit, entry_of, row_of, seconds_of
from toolwire.journal.log.rows import LogFilter
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.errors import ConfigurationError


class DurableLog(ExecutionLog):
    """An observer that writes every call to a store.

    It lags behind the calls, and a normal exit of the process loses none of them. If the store cannot keep up, calls
    slow down.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(0)
        self.store = store
        """The store that holds the log."""

    def ended(self, record: EndedCall, /) -> None:
        """Records one call. It becomes durable soon after.

        The row of a recorded run's call was written with the call's end. A call from the record of its run is logged
        if the process that ran it died before it wrote the row, as those of earlier versions could.
        """
        if record.log_url != self.store.url:
            event = call_event(row_of(record), record.conversation, record.caller)
            self.store.tell({**event, "is_once": True} if record.is_from_record else event)

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
        raise ConfigurationError(
            "a durable log cannot be cleared: bound it with Store.open(url, retention=Retention(log_days=365))"
        )


def durable_log(store: str | Store) -> DurableLog:
    """Returns the log in a store, given the store or its URL."""
    opened: Any = Store.open(store) if isinstance(store, str) else store
    return DurableLog(opened)
