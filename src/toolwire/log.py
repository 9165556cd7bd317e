"""Reads and checks the log of a `Store`. See `docs/approvals.md`."""

from toolwire.journal.log.checking import LogCheck
from toolwire.journal.log.following import Follow
from toolwire.journal.log.rows import LogFilter, LogPage, LogRow
from toolwire.journal.log.stats import CallStats
from toolwire.journal.run import RecordedCall

__all__ = [
    "CallStats",
    "Follow",
    "LogCheck",
    "LogFilter",
    "LogPage",
    "LogRow",
    "RecordedCall",
]
