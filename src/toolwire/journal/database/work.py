"""One unit of work for the store's writer, and the future that its caller waits for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from toolwire.journal.database.locks import lock_in_order
from toolwire.journal.database.store_errors import store_error
from toolwire.runtime.wakes import one_wake_for_each_loop
from toolwire.vocabulary.errors import StoreUnavailable

T = TypeVar("T")

RECORD_LIMIT_S = 120.0
"""Seconds that a thread waits for a record: three times as long as the writer tries a store that another process
holds."""

_rank = attrgetter("rank")
_LOG = logging.getLogger("toolwire.store")


class RecordFuture(Future[T], Generic[T]):
    """The future of a record. It resolves after the commit."""

    shown = ""
    """The store, for messages. The writer sets it when it takes the work."""
    writer: threading.Thread | None = None
    """The thread that resolves it."""

    def result(self, timeout: float | None = None) -> T:
        """As `Future.result`.

        Raises:
            StoreUnavailable: with no timeout given, the record was not written within `RECORD_LIMIT_S`. It may still
                be written. Or the writer's own thread calls this, and would wait for itself.
        """
        if timeout is not None or self.done():
            return super().result(timeout)
        if self.writer is threading.current_thread():
            raise StoreUnavailable("a job of the store waits for another record of the same store")
        try:
            return super().result(RECORD_LIMIT_S)
        except TimeoutError:
            # A job may have raised TimeoutError itself.
            if self.done():
                raise
            raise StoreUnavailable(
                f"the store {self.shown} did not take a record within {RECORD_LIMIT_S:g} s"
            ) from None


class RecordKind(Protocol):
    """A kind of record. All records of one kind in a batch are written together, kinds with a lower rank first."""

    @property
    def rank(self) -> int: ...
    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> object: ...


Rows: TypeAlias = Sequence[tuple[RecordKind, Mapping[str, Any]]]
"""Rows to write, each with its kind."""


@dataclass(slots=True, kw_only=True)
class Work:
    """One thing to write. It is written whole or not at all, also when other work of its transaction fails."""

    future: RecordFuture[Any] | None
    """Resolved after the commit; None when no caller waits."""
    needs: Future[Any] | None = None
    """Other work. If that was refused, so is this, for the same reason."""
    locks: Collection[str] = ()
    """Names of what it locks: see `locks.py`."""
    job: Callable[[Connection], Any] | None = None
    """Writes and returns the answer. The writer may roll it back and run it a second time."""
    records: Rows = ()
    """Without a job: rows that can be written without a look at the database."""
    answer: Any = None
    """The future's result. With a job, the job's return value replaces it."""
    otherwise: Callable[[Connection, Exception], Any] | None = None
    """Returns the answer when the database refused the work. It runs in a transaction of its own. None: the future
    raises."""
    patience_s: float = 0.0
    """Seconds that it waits for work for which a caller waits, to share its transaction; 0: a caller waits for it."""
    failed: Callable[[Exception], Any] | None = None
    """Returns the answer when the database could not be used. None: the future raises."""
    is_caller: bool = False
    """True for the last work of a caller that waits. The writer sets it when it takes the work."""

    @property
    def refusal(self) -> BaseException | None:
        """The reason why the work that this one needs was refused; None if it was not."""
        return self.needs.exception() if self.needs is not None and self.needs.done() else None

    @property
    def is_awaited(self) -> bool:
        """True if a caller waits for it."""
        return self.future is not None and not self.patience_s


def write_batch(connection: Connection, batch: Sequence[Work]) -> None:
    """Writes a batch in the order given, and keeps the answer of each work."""
    names = {name for work in batch for name in work.locks if name}
    if len(names) > 1:
        lock_in_order(connection, names)
    rows: dict[RecordKind, list[Mapping[str, Any]]] = {}
    for work in batch:
        for kind, row in work.records:
            rows.setdefault(kind, []).append(row)
        if work.job is not None:
            _write_rows(connection, rows)
            work.answer = work.job(connection)
    _write_rows(connection, rows)


def resolve_futures(batch: Sequence[Work]) -> None:
    """Resolves the futures of a committed batch. An event loop is woken once for all of its own."""
    with one_wake_for_each_loop():
        for work in batch:
            if work.future is None:
                continue
            try:
                work.future.set_result(work.answer)
            except InvalidStateError:
                # It was cancelled. `concurrent.futures.wait` learns of that here only.
                work.future.set_running_or_notify_cancel()


def fail(work: Work, error: Exception, store: str) -> None:
    """Resolves the future of work that could not be written. `store` is the URL without its password."""
    translated = store_error(error, f"the store {store} could not be written")
    if translated is not error:
        translated.__cause__ = error
        error = translated
    if work.future is None:
        _LOG.error("a record could not be written to the store %s", store, exc_info=error)
    elif not work.future.set_running_or_notify_cancel():
        return
    elif work.failed is not None and isinstance(error, StoreUnavailable):
        work.future.set_result(work.failed(error))
    else:
        work.future.set_exception(error)


def has_succeeded(future: Future[Any]) -> bool:
    """True if the work of the future was written."""
    return future.done() and not future.cancelled() and future.exception() is None


def _write_rows(connection: Connection, rows: dict[RecordKind, list[Mapping[str, Any]]]) -> None:
    for kind in sorted(rows, key=_rank):
        kind.write(connection, rows.pop(kind))
