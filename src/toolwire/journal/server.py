"""PostgreSQL over a network that may fail or hang: every wait for the server has a limit."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cache
from typing import Any

CONNECT_LIMIT_S = 10
"""Seconds allowed for connecting; libpq takes whole seconds only. A handshake takes three round trips."""

STATEMENT_LIMIT_S = 20.0
"""Seconds after which the server cancels a statement, lock waits included.

A record takes about a thousandth of that.
"""

SILENCE_LIMIT_S = 25.0
"""Seconds without a byte from the server during a statement. It exceeds `STATEMENT_LIMIT_S`, so the server gives up
first.
"""


def connect_arguments(given: Any) -> dict[str, Any]:
    """Returns the arguments for a new connection. Values in the URL's query (`given`) take precedence."""
    limit_ms = int(STATEMENT_LIMIT_S * 1000)
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_LIMIT_S,
        # Ends the wait for data that the other end does not acknowledge. `SILENCE_LIMIT_S` ends every other wait.
        "tcp_user_timeout": limit_ms,
    }
    arguments = {name: value for name, value in arguments.items() if name not in given}
    # If a setting occurs twice, the server uses the last one.
    arguments["options"] = f"-c statement_timeout={limit_ms} {given.get('options', '')}".rstrip()
    return arguments


def connect(dialect: Any, _: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Handler for SQLAlchemy's `do_connect`: opens a connection whose statements fail when the server stays silent."""
    return _limited(dialect.loaded_dbapi).connect(*arguments, **named)


@cache
def _limited(psycopg: Any) -> Any:
    class Limited(psycopg.Connection):
        def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
            return psycopg.Connection.wait(self, _answered(self, gen), *more, **named)

    def _answered(connection: Any, operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Wraps the operation. Each turn sends it the socket's readiness, or 0 if nothing arrived for a while."""
        heard_at, ready = time.monotonic(), None
        while True:
            try:
                wanted = operation.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield wanted
            if ready:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENCE_LIMIT_S:
                operation.close()
                # A late reply must not be read as the reply to another statement.
                connection.close()
                raise psycopg.OperationalError(f"the server did not answer within {SILENCE_LIMIT_S:g} s")

    return Limited
