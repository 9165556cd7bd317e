"""What a store is given to write, and how whoever waits for it is answered."""

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
    """A sort of record; many of one are written at once. Of one batch, lower ranks are written first."""

    @property
    def rank(self) -> int: ...
    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> object: ...


@dataclass(slots=True, kw_only=True)
class Work:
    """One thing to write. It is written whole or not at all, whatever becomes of others in its transaction."""

    future: Answer[Any] | None
    """Answered after the commit; None when nobody waits."""
    job: Callable[[Connection], Any] | None = None
    """Writes it and gives the answer. May run twice: the first attempt is then undone."""
    records: Sequence[tuple[Kind, Mapping[str, Any]]] = ()
    """Without a job: rows that need no look at the database first."""
    answer: Any = None
    """What the future gives then; of a job, what it gave."""
    otherwise: Callable[[Connection, Exception], Any] | None = None
    """Gives the answer when it was refused, in a transaction of its own; None: the future raises."""
    failed: Callable[[Exception], Any] | None = None
    """Gives the answer when the database failed; None: the future raises."""


def write(connection: Connection, batch: Sequence[Work]) -> None:
    """Writes all of it, in the order given, and keeps what each is to be answered."""
    rows: dict[Kind, list[Mapping[str, Any]]] = {}
    for work in batch:
        for kind, row in work.records:
            rows.setdefault(kind, []).append(row)
        if work.job is not None:
            _write_rows(connection, rows)
            work.answer = work.job(connection)
    _write_rows(connection, rows)


def answer(batch: Sequence[Work]) -> None:
    """Gives each its answer, and wakes them in turn when all have theirs: nobody takes the interpreter before."""
    turns: deque[Turn] = deque()
    for work in batch:
        if work.future is not None:
            work.future.round = turns
            _set(work.future, work.answer)
    wake(turns)


def fail(work: Work, error: Exception, store: str) -> None:
    """Says that it could not be written to the store of that URL."""
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
        # It was cancelled. Who waits for it among others is told so only here.
        future.set_running_or_notify_cancel()


def _write_rows(connection: Connection, rows: dict[Kind, list[Mapping[str, Any]]]) -> None:
    for kind in sorted(rows, key=_rank):
        kind.write(connection, rows.pop(kind))
