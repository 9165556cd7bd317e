"""The log of calls, in memory or in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.journal.log import ExecutionLog
    from toolwire.journal.store import Store


class Logging:
    """The log of the calls that are made here."""

    def _kept_log(self) -> ExecutionLog | None:
        """Returns the log; None before there is one."""
        raise NotImplementedError

    def _keep_log(self, log: ExecutionLog) -> None:
        """Starts to send every call to the log."""
        raise NotImplementedError

    def enable_logging(
        self, *, store: str | Store | None = None, keep_days: float | None = None, keep_entries: int | None = None
    ) -> ExecutionLog:
        """Starts the log of calls and returns it; a second call returns the same one.

        Without `store` the log is in memory: the last 10,000 calls, or as many of them as fit into 64 MB. With one (a
        `Store`, or its URL) the log outlives the process and is redacted; `keep_days` and `keep_entries` bound it.

        Raises:
            ConfigurationError: another log is enabled already; or the URL or a bound is not valid.
            StoreUnavailable: the store cannot be used.
        """
        from toolwire.journal.log import ExecutionLog

        log = self._kept_log()
        if log is not None:
            if store is not None and type(log) is ExecutionLog:
                raise ConfigurationError("the log is in memory already: give the store when you enable it first")
            return log
        if store is None:
            if keep_days is not None or keep_entries is not None:
                raise ConfigurationError("keep_days and keep_entries bound a log in a store: give store=... as well")
            log = ExecutionLog()
        else:
            from toolwire.journal.durable_log import durable_log

            log = durable_log(store, keep_days=keep_days, keep_entries=keep_entries)
        self._keep_log(log)
        return log

    def get_execution_log(self) -> ExecutionLog | None:
        """Returns the log; None before `enable_logging()`."""
        return self._kept_log()
