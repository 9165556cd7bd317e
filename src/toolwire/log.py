"""Reads and checks the log of a `Store`. See `docs/approvals.md`."""

from toolwire.journal.chain import LogCheck
from toolwire.journal.history import LogFilter, LogRow

__all__ = [
    "LogCheck",
    "LogFilter",
    "LogRow",
]
