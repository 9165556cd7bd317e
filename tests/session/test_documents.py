"""Large documents are written in parts, beside other records, and count as one once they are whole."""

from __future__ import annotations

import base64
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, select, text

from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.journal.world import done
from tests.patience import PATIENCE_S
from toolwire import Store
from toolwire.journal.database.tables import DOCUMENT_PARTS
from toolwire.journal.ledger import documents, parts
from toolwire.journal.ledger.parts import ABANDONED_S, DELETED_AT_ONCE, PART_BYTES
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import DocumentChanged, StoreUnavailable

SLACK = 1.01
"""A transaction writes the seal, the names and the times beside the document."""


@pytest.fixture
def kept(opened: Callable[[], Store]) -> Iterator[Store]:
    with opened() as store:
        yield store


def large(mark: str, parts: int = 5) -> dict[str, Any]:
    """A document of that many parts."""
    return {"messages": [mark * 1_000] * (parts * PART_BYTES // 1_000 // len(mark) - 50)}


def noise(parts: int = 5) -> dict[str, Any]:
    """A document of as many parts that cannot be compressed by much."""
    written = base64.b64encode(random.Random(parts).randbytes(parts * PART_BYTES * 3 // 4)).decode()
    return {"messages": [written[place : place + 1_000] for place in range(0, len(written) - 50_000, 1_000)]}


def stored_parts(store: Store) -> int:
    return store._database.read(
        lambda connection: connection.execute(select(func.count(DOCUMENT_PARTS.c.number))).scalar_one()
    )


def change(store: Store, statement: str) -> int:
    """Changes the database behind the store's back."""
    return done(store._database.run(lambda connection: connection.execute(text(statement)).rowcount))


class Watch:
    """The bytes that each transaction of the store's writer carries, and records that are written beside them."""

    def __init__(self, store: Store) -> None:
        self.carried: list[int] = [0]
        self.beside: list[Future[int]] = []
        self._store = store
        engine = store._database._engine
        event.listen(engine, "before_cursor_execute", self._executes)

    def _executes(self, connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if not statement.startswith(("INSERT", "UPDATE")) or "document" not in statement:
            return
        values = parameters.values() if isinstance(parameters, dict) else parameters
        # SQLAlchemy wraps bytes for the driver.
        plain = [getattr(value, "obj", value) for value in values]
        self.carried.append(sum(len(value) for value in plain if isinstance(value, bytes)))
        place = len(self.carried)
        # Another record comes while this part is being written.
        self.beside.append(self._store._database.run(lambda _: len(self.carried) - place))


@pytest.mark.parametrize("parts", [1, 6])
def test_other_records_are_written_between_the_parts_of_a_document(kept: Store, parts: int) -> None:
    watch = Watch(kept)
    kept.save_document("c-17", noise(parts), version=0)
    assert len(watch.carried) - 1 == (1 if parts == 1 else parts + 1)
    assert PART_BYTES / 2 < max(watch.carried) <= PART_BYTES * SLACK
    # Each record waited for the part before it, and at most for the one after.
    assert all(done(waited) <= 1 for waited in watch.beside)


def test_a_document_in_one_piece_would_hold_up_every_record(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without parts one transaction carries all."""
    monkeypatch.setattr("toolwire.journal.ledger.parts.PART_BYTES", 10 * PART_BYTES)
    watch = Watch(kept)
    kept.save_document("c-17", noise(), version=0)
    # Compression takes a quarter of this text away.
    assert max(watch.carried) > 3 * PART_BYTES


@pytest.mark.parametrize("size", [PART_BYTES - 2, PART_BYTES - 1, 3 * PART_BYTES - 2, 3 * PART_BYTES - 1])
def test_a_document_of_whole_parts_and_one_byte_more_comes_back(kept: Store, size: int) -> None:
    for version, value in enumerate(["ö" + "x" * (size - 2), "y" * size, "", "z" * size]):
        assert kept.save_document("c-17", value, version=version) == version + 1
        assert kept.document("c-17").value == value
        # The parts of the document before are gone.
        length = len(value.encode()) + 2
        assert stored_parts(kept) == (0 if length <= PART_BYTES else -(-length // PART_BYTES))


def test_of_large_documents_that_are_saved_at_once_one_is_kept_whole(kept: Store) -> None:
    kept.save_document("c-17", large("a"), version=0)
    start = threading.Barrier(4)

    def save(mark: str) -> bool:
        start.wait(PATIENCE_S)
        try:
            return kept.save_document("c-17", large(mark), version=1) == 2
        except DocumentChanged:
            return False

    with ThreadPoolExecutor(4) as pool:
        won = dict(zip("bcde", pool.map(save, "bcde"), strict=True))
    assert list(won.values()).count(True) == 1
    found = kept.document("c-17")
    assert (found.version, won[found.value["messages"][0][0]]) == (2, True)
    assert stored_parts(kept) == 5


def test_a_save_that_cannot_count_writes_no_part(kept: Store) -> None:
    ann, bob = Caller(principal="ann"), Caller(principal="bob")
    kept.save_document("c-17", "small", version=0, caller=ann)
    watch = Watch(kept)
    with pytest.raises(DecisionRefused, match="another principal's"):
        kept.save_document("c-17", large("a"), version=1, caller=bob)
    with pytest.raises(DocumentChanged, match="is at version 1, not 4"):
        kept.save_document("c-17", large("a"), version=4, caller=ann)
    assert (watch.carried, kept.document("c-17").value) == ([0], "small")


class Lost(Exception):
    """The process was lost."""


@pytest.mark.parametrize("age_s", [0.0, 2 * ABANDONED_S])
@pytest.mark.parametrize("breaks_at", ["write_part", "save_document"])
def test_a_save_that_breaks_off_leaves_the_document_before_and_its_parts_are_deleted_a_day_later(
    kept: Store, monkeypatch: pytest.MonkeyPatch, breaks_at: str, age_s: float
) -> None:
    kept.save_document("c-17", large("a"), version=0)
    place = parts if breaks_at == "write_part" else documents
    whole, calls = getattr(place, breaks_at), 0

    def breaks(connection: Connection, *given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == (3 if breaks_at == "write_part" else 1):
            raise Lost
        return whole(connection, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(place, breaks_at, breaks)
        with pytest.raises(Lost):
            kept.save_document("c-17", large("b"), version=1)
    left = stored_parts(kept)
    assert left == 5 + (2 if breaks_at == "write_part" else 5)
    assert kept.document("c-17").value == large("a")
    change(kept, f"UPDATE document_parts SET written_at = written_at - {age_s}")
    kept.save_document("c-18", large("c"), version=0)
    assert stored_parts(kept) == (10 if age_s else left + 5)
    # Those of a document stay, however old they are.
    assert [kept.document(name).value for name in ("c-17", "c-18")] == [large("a"), large("c")]


def test_a_save_whose_old_parts_cannot_be_deleted_is_a_save(
    kept: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept.save_document("c-17", large("a"), version=0)

    def fails(*_: Any) -> int:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(parts, "delete_parts", fails)
        assert kept.save_document("c-17", large("b"), version=1) == 2
    assert "could not be deleted; a later save deletes them" in caplog.text
    assert kept.document("c-17").value == large("b")
    assert stored_parts(kept) == 10
    change(kept, f"UPDATE document_parts SET written_at = written_at - {2 * ABANDONED_S}")
    kept.save_document("c-17", large("c"), version=2)
    assert stored_parts(kept) == 5


OTHER = "SELECT data FROM document_parts WHERE conversation = 'c-17'"
THEIRS = "SELECT data FROM document_parts AS other WHERE other.conversation = 'c-18'"


@pytest.mark.threat(19)
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM document_parts WHERE number = 4",
        "DELETE FROM document_parts WHERE number = 1",
        f"UPDATE document_parts SET data = ({OTHER} AND number = 0) WHERE conversation = 'c-17' AND number = 1",
        f"UPDATE document_parts SET data = ({THEIRS} AND other.number = document_parts.number)",
        "UPDATE documents SET parts_of = (SELECT parts_of FROM documents WHERE conversation = 'c-18')",
        "UPDATE documents SET parts_of = ''",
        "SELECT 1",
    ],
    ids=["the last part", "a part", "moved", "another document's", "other parts", "no parts", "control"],
)
def test_parts_that_were_moved_or_removed_are_not_read(kept: Store, statement: str) -> None:
    for name in ("c-17", "c-18"):
        kept.save_document(name, large(name), version=0)
    change(kept, statement)
    if statement == "SELECT 1":
        assert kept.document("c-17").value == large("c-17")
        return
    with pytest.raises(DecisionRefused) as refused:
        kept.document("c-17")
    assert refused.value.code == "bad_mac"


def test_deleting_a_large_document_holds_up_no_record_for_long(kept: Store) -> None:
    kept.save_document("c-17", large("a"), version=0)
    before = kept._database.writer.commits
    kept.save_document("c-17", "small", version=1)
    # One for the document, one for each slice of the old parts, and one that finds no more.
    assert kept._database.writer.commits - before == 1 + -(-5 // DELETED_AT_ONCE) + 1
