"""Long results in the store. A model reads on in them in any later turn of the conversation, also after a restart."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from toolwire.journal.database.locks import KEPT, lock_in_order
from toolwire.journal.database.tables import KEPT_RESULTS
from toolwire.journal.database.work import RecordFuture, Work
from toolwire.journal.ledger.forms import encode_form, plain_form, read_form, read_plain
from toolwire.journal.ledger.leases import LeaseLost
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.run import RunStart
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.kept_text import KeptText
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes, utf8_text

KEPT_LIMIT_BYTES = 256 * 1024 * 1024
"""Bytes of long results that a store keeps: about 8,000 results of 32 KiB, and little beside the disk of a server."""

KEPT_LIMIT = 200
"""Number of long results that a conversation keeps: more than a model returns to."""

ROW_BYTES = 4_096
"""Bytes that a result counts at least: a page of a database file. So 65,536 results fit, and adding them up is fast."""

_DROPPED_AT_ONCE = 500
"""Results dropped per statement: databases limit the number of values in one."""

_ID_BYTES = 16
_ID = re.compile(rf"[0-9a-f]{{{2 * _ID_BYTES}}}")
_TEXT = b"\n"
"""Separates the form from the text. The form is JSON in one line."""


class KeptResults:
    """The long results of one run's conversation. It implements `vocabulary.kept_text.Spill`.

    A run without a conversation reads its own results only.
    """

    def __init__(
        self,
        database: Database,
        start: RunStart,
        touch: Callable[[Connection], None],
        run: Callable[..., Future[Any]],
    ) -> None:
        """`run` queues a job of the run, with what answers if the database refused it, and names of what it locks."""
        self._database = database
        self._start = start
        self._touch = touch
        """Renews the lease of the run, and raises `LeaseLost` if another process took the run."""
        self._run = run

    def keep(self, kept: KeptText, caller: Caller, /) -> Future[str | None]:
        """Keeps a text until its run is forgotten, or until newer results need the room.

        The id is None if the text alone exceeds `KEPT_LIMIT_BYTES`, or if another process took the run over.
        """
        new_id = secrets.token_hex(_ID_BYTES)
        sealed = self._database.sealer.seal(_encode_text(kept, caller), *self._place(self._start.run_id, new_id))
        if len(sealed) > KEPT_LIMIT_BYTES:
            future = RecordFuture[str | None]()
            future.set_result(None)
            return future

        def job(connection: Connection) -> str | None:
            self._touch(connection)
            # One transaction at a time counts and drops results, in all processes.
            lock_in_order(connection, [KEPT])
            connection.execute(
                insert(KEPT_RESULTS).values(
                    result_id=new_id,
                    run_id=self._start.run_id,
                    conversation=self._start.conversation,
                    read_at=self._database.clock(),
                    bytes=max(len(sealed), ROW_BYTES),
                    result=sealed,
                )
            )
            _make_room(connection, self._ours(), new_id)
            return new_id

        return self._run(job, _ignore_lost_lease, KEPT)

    def find(self, id: str, caller: Caller, /) -> KeptText | None:
        """Returns the text; None if it was dropped, or belongs to another conversation or caller.

        Raises:
            DecisionRefused: `bad_mac`: the text was changed in the database.
        """
        if not _ID.fullmatch(id):
            return None
        columns = select(KEPT_RESULTS.c.run_id, KEPT_RESULTS.c.result)
        query = columns.where(KEPT_RESULTS.c.result_id == id, self._ours())
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None:
            return None
        kept, owner = _decode_text(self._database.sealer.open(row.result, *self._place(row.run_id, id)))
        if owner != caller:
            return None
        job = partial(_has_read, result_id=id, now=self._database.clock())
        self._database.put(Work(future=None, job=job, locks=(KEPT,)))
        return kept

    def _ours(self) -> ColumnElement[bool]:
        if self._start.conversation:
            return KEPT_RESULTS.c.conversation == self._start.conversation
        return KEPT_RESULTS.c.run_id == self._start.run_id

    def _place(self, run_id: str, id: str) -> tuple[str, ...]:
        return "kept_results", self._start.conversation, run_id, id


def _has_read(connection: Connection, result_id: str, now: float) -> None:
    # It may wait for a transaction that drops results.
    lock_in_order(connection, [KEPT])
    row = update(KEPT_RESULTS).where(KEPT_RESULTS.c.result_id == result_id)
    connection.execute(row.values(read_at=now))


def _make_room(connection: Connection, ours: ColumnElement[bool], new_id: str) -> None:
    """Drops the least recently read results over the limits. The new one stays."""
    kept, others = KEPT_RESULTS.c, KEPT_RESULTS.c.result_id != new_id
    newest = select(kept.result_id).where(ours, others).order_by(kept.read_at.desc(), kept.result_id)
    connection.execute(delete(KEPT_RESULTS).where(kept.result_id.in_(newest.offset(KEPT_LIMIT - 1))))
    excess = int(connection.execute(select(func.sum(kept.bytes))).scalar_one()) - KEPT_LIMIT_BYTES
    oldest = select(kept.result_id, kept.bytes).where(others).order_by(kept.read_at, kept.result_id)
    while excess > 0:
        dropped: list[str] = []
        for row in connection.execute(oldest.limit(_DROPPED_AT_ONCE)).all():
            if excess > 0:
                dropped.append(row.result_id)
                excess -= row.bytes
        if not dropped:
            return
        connection.execute(delete(KEPT_RESULTS).where(kept.result_id.in_(dropped)))


def _ignore_lost_lease(_: Connection, error: Exception) -> None:
    """The result is then cut. Its call ends as a call of a run that was taken over."""
    if not isinstance(error, LeaseLost):
        raise error


def _encode_text(kept: KeptText, caller: Caller) -> bytes:
    form = {"page_bytes": kept.page_bytes, "labels": sorted(kept.labels), "caller": plain_form(caller)}
    return encode_form(form) + _TEXT + utf8_bytes(kept.text)


def _decode_text(data: bytes) -> tuple[KeptText, Caller]:
    head, _, text = data.partition(_TEXT)

    def make_text(form: dict[str, Any]) -> tuple[KeptText, Caller]:
        kept = KeptText(
            text=utf8_text(text),
            page_bytes=form["page_bytes"],
            labels=frozenset(form["labels"]),
        )
        return kept, read_plain(Caller, form["caller"])

    return read_form(head, make_text)
