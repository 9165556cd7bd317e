"""The clock of a database. Leases, due times and expiry go by it, so that machines with other clocks agree on them."""

from __future__ import annotations

import time

from sqlalchemy import Connection

from toolwire.vocabulary.machine.system import uptime_s

SLOW_S = 1.0
"""Seconds of a measurement that does not replace an earlier one: its error may be half of that time."""


class ServerClock:
    """Returns the seconds since the epoch on the machine of the database. Thread-safe.

    A server's clock is measured now and then, and this machine's time since then is added: reading it asks no server,
    and a jump of the clock of this machine does not move it. Processes that share a SQLite file share their machine's
    clock, which needs no measuring.
    """

    def __init__(self) -> None:
        self._ahead_s: float | None = None
        """Seconds by which the server's clock is ahead of `uptime_s`; None if the database has no server."""

    def __call__(self) -> float:
        return time.time() if self._ahead_s is None else uptime_s() + self._ahead_s

    def measure(self, connection: Connection) -> None:
        """Reads the server's clock. The error is at most half the time that the statement takes."""
        if connection.dialect.name != "postgresql":
            return
        asked_at = uptime_s()
        found: float = connection.exec_driver_sql(_CLOCK).scalar_one()
        answered_at = uptime_s()
        if self._ahead_s is None or answered_at - asked_at <= SLOW_S:
            self._ahead_s = found - (asked_at + answered_at) / 2


_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
