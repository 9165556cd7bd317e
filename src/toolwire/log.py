"""Reads and checks the log of a `Store`. See `docs/approvals.md`."""

from toolwire.journal.log.chain import LogCheck
from toolwire.journal.log.rows import LogFilter, LogRow

__all__ = [
    "LogCheck",
    "LogFilter",
    "LogRow",
]
