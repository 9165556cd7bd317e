"""The unit of work for a store's writer, and how its future is resolved."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from toolwire.journal.answers import Answer, Turn, wake
from toolwire.vocabulary.errors import StoreUnavailable

_rank = attrgetter("rank")
_LOG = logging.getLogger("toolwire.store")


class Kind(Protocol):
    """A kind of record; rows of one kind are written together. Within a batch, kinds with a lower rank are written
    first.
    """

    @property
    def rank(self) -> int: ...
    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> object: ...


@dataclass(slots=True, kw_only=True)
class Work:
    """One thing to write. It is written completely or not at all, whatever happens to the rest of its transaction."""

    future: Answer[Any] | None
    """Resolved after the commit; None if no caller waits."""
    job: Callable[[Connection], Any] | None = None
    """Writes the work and returns its answer. It may run twice; the first attempt is then rolled back."""
    records: Sequence[tuple[Kind, Mapping[str, Any]]] = ()
    """For work without a job: rows that need no query first."""
    answer: Any = None
    """The value for the future; a job sets it to its return value."""
    otherwise: Callable[[Connection, Exception], Any] | None = None
    """Returns the answer after a refusal, in a transaction of its own. If None, the future raises."""
    failed: Callable[[Exception], Any] | None = None
    """Returns the answer after a failure of the database. If None, the future raises."""


def write(connection: Connection, batch: Sequence[Work]) -> None:
    """Writes the batch in the order given and keeps the answer of each work."""
    rows: dict[Kind, list[Mapping[str, Any]]] = {}
    for work in batch:
        for kind, row in work.records:
            rows.setdefault(kind, []).append(row)
        if work.job is not None:
            _write_rows(connection, rows)
            work.answer = work.job(connection)
    _write_rows(connection, rows)


def answer(batch: Sequence[Work]) -> None:
    """Resolves all futures, then wakes their threads one after the other, so that no thread takes the interpreter
    early.
    """
    turns: deque[Turn] = deque()
    for work in batch:
        if work.future is not None:
            work.future.round = turns
            _set(work.future, work.answer)
    wake(turns)


def fail(work: Work, error: Exception, store: str) -> None:
    """Tells the caller that the work was not written to the store with that URL. Logs an error if no caller waits."""
    if isinstance(error, DBAPIError):
        unavailable = StoreUnavailable(f"the store {store} could not be written: {error.orig}")
        unavailable.__cause__ = error
        error = unavailable
    if work.future is None:
        _LOG.error("a record could not be written to the store %s", store, exc_info=error)
    elif not work.future.set_running_or_notify_cancel():
        return
    elif work.failed is not None and isinstance(error, StoreUnavailable):
        work.future.set_result(work.failed(error))
    else:
        work.future.set_exception(error)


def _set(future: Future[Any], value: Any) -> None:
    try:
        future.set_result(value)
    except InvalidStateError:
        # The future was cancelled. This call also notifies the other waiters.
        future.set_running_or_notify_cancel()


def _write_rows(connection: Connection, rows: dict[Kind, list[Mapping[str, Any]]]) -> None:
    for kind in sorted(rows, key=_rank):
        kind.write(connection, rows.pop(kind))
