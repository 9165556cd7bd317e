"""A damaged page of a file is an error with a type."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from benchmarks import fuzz_pages

from tests.journal.world import done, started
from tests.session.saved import KEY
from toolwire import Store, StoreUnavailable
from toolwire.journal.ledger import store_database

STORES = 4


@pytest.mark.threat(75)
def test_whatever_is_read_of_a_damaged_store_has_a_type() -> None:
    assert fuzz_pages.fuzz(STORES, seed=75) > 0


def test_a_damaged_page_of_the_schema_is_told_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    # SQLite names the damaged table in its message, and the driver cannot read the name.
    path.write_bytes(fuzz_pages.saved_store().replace(b"tablestepssteps", b"table\xff\xff\xff\xff\xffsteps"))
    with pytest.raises(StoreUnavailable, match="cannot be used: it holds a damaged value: 'utf-8' codec"):
        Store.open(f"sqlite:///{path}", key=KEY)
    # The control: without the gate it is the driver's.
    monkeypatch.setattr(store_database, "translate_errors", lambda _: nullcontext())
    with pytest.raises(UnicodeDecodeError):
        Store.open(f"sqlite:///{path}", key=KEY)


def test_a_damaged_value_does_not_end_a_read_or_a_write_without_a_type(store: Store) -> None:
    def damage(_: object) -> None:
        b"\xff".decode()

    with pytest.raises(StoreUnavailable) as unavailable:
        store._database.read(damage)
    damaged = "it holds a damaged value: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    assert str(unavailable.value) == f"the store {store.url} could not be read: {damaged}"
    with pytest.raises(StoreUnavailable) as unavailable:
        done(store._database.run(damage))
    assert str(unavailable.value) == f"the store {store.url} could not be written: {damaged}"
    assert isinstance(unavailable.value.__cause__, UnicodeDecodeError)
    # The control: other errors are those of the caller, and the store is used on.
    with pytest.raises(ZeroDivisionError):
        done(store._database.run(lambda _: 1 / 0))
    assert store.run(started(store).run_id).steps == 0
