"""PostgreSQL over a network that may fail or hang: every wait for the server has a limit."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cache
from typing import Any

CONNECT_LIMIT_S = 10
"""Whole seconds until a connection stands: a handshake takes three round trips."""

STATEMENT_LIMIT_S = 20.0
"""Seconds after which the server ends a statement: a thousand times as long as a record takes, locks included."""

SILENCE_LIMIT_S = 25.0
"""Seconds without a byte from the server in a statement: more than the server itself allows the statement."""


def connect_arguments(given: Any) -> dict[str, Any]:
    """The arguments of a new connection. What the URL says for itself (`given`, its query) counts instead."""
    limit_ms = int(STATEMENT_LIMIT_S * 1000)
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_LIMIT_S,
        # For data that the other end does not acknowledge; elsewhere the silence limit is what ends the wait.
        "tcp_user_timeout": limit_ms,
    }
    arguments = {name: value for name, value in arguments.items() if name not in given}
    # Of two settings of one name the server takes the last.
    arguments["options"] = f"-c statement_timeout={limit_ms} {given.get('options', '')}".rstrip()
    return arguments


def connect(dialect: Any, _: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """SQLAlchemy's `do_connect`: a connection whose statements end when the server falls silent."""
    return _limited(dialect.loaded_dbapi).connect(*arguments, **named)


@cache
def _limited(psycopg: Any) -> Any:
    class Limited(psycopg.Connection):
        def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
            return psycopg.Connection.wait(self, _answered(self, gen), *more, **named)

    def _answered(connection: Any, operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same operation. Each turn tells it what the socket is ready for, or 0 when nothing came for a while."""
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
                # Nothing that arrives later may be taken for the answer to another statement.
                connection.close()
                raise psycopg.OperationalError(f"the server did not answer within {SILENCE_LIMIT_S:g} s")

    return Limited
