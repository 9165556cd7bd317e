"""The clock of a database. Leases, due times and expiry go by it, so that machines with other clocks agree on them."""

from __future__ import annotations

import time

from sqlalchemy import Connection


class ServerClock:
    """Returns the seconds since the epoch on the machine of the database. Thread-safe.

    A server's clock is measured now and then, and this process's time since then is added: reading it asks no server,
    and a jump of the clock of this machine does not move it. Processes that share a SQLite file share their machine's
    clock, which needs no measuring.
    """

    def __init__(self) -> None:
        self._ahead_s: float | None = None
        """Seconds by which the server's clock is ahead of `time.monotonic`; None if the database has no server."""

    def __call__(self) -> float:
        return time.time() if self._ahead_s is None else time.monotonic() + self._ahead_s

    def measure(self, connection: Connection) -> None:
        """Reads the server's clock. The error is at most half the time that the statement takes."""
        if connection.dialect.name != "postgresql":
            return
        asked = time.monotonic()
        found: float = connection.exec_driver_sql(_CLOCK).scalar_one()
        self._ahead_s = found - (asked + time.monotonic()) / 2


_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
