"""The store's own rows changed behind its back: a run whose rows are not as written does not go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.session.test_suspended import decided
from tests.session.till import Till, calls
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused

KEY = bytes(32)
MADE = [("price", {"thing": "tea"}), ("pay", {"amount": 5}), ("pay", {"amount": 6})]
SEALED = [("runs", "start"), ("steps", "ended"), ("requests", "request"), ("decisions", "decision")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """A closed database with runs that wait; their first payment is decided already."""

    path: Path
    till: Till
    run_ids: list[str]

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def change(self, change: Callable[[sqlite3.Connection], object]) -> None:
        with closing(sqlite3.connect(self.path)) as database, database:
            change(database)

    async def resumed(self, run_id: str) -> str:
        """The code with which resuming the run is refused, or `ran`; all waiting calls are approved."""
        with Store.open(self.url, key=KEY) as store:
            try:
                waiting = store.pending(run_id)
                await self.till.session(store).resume(run_id, decided(waiting, "approve"))
            except DecisionRefused as refused:
                return refused.code
        return "ran"


async def book(folder: Path, *verdicts: str) -> Book:
    till, run_ids = Till(), list[str]()
    with Store.open(f"sqlite:///{folder}/runs.db", key=KEY) as store:
        for verdict in verdicts:
            turn = await till.session(store).turn(calls(*MADE))
            assert turn.suspended is not None
            first = turn.suspended.pending[0]
            (given,) = decided([first], verdict)  # type: ignore[arg-type]
            store.decide(first.id, _decision(given))
            run_ids.append(turn.suspended.run_id)
    return Book(path=folder / "runs.db", till=till, run_ids=run_ids)


def _decision(given: Any) -> Any:
    from toolwire.session.runs.wire import read_decisions

    return read_decisions([given]).items[0]


def rows(database: sqlite3.Connection, table: str, column: str) -> list[tuple[int, bytes, str]]:
    """Row number, sealed value and run, oldest first."""
    run = "(SELECT run_id FROM requests WHERE requests.request_id = decisions.request_id)"
    return database.execute(
        f"SELECT rowid, {column}, {run if table == 'decisions' else 'run_id'} FROM {table}"
        f" WHERE {column} IS NOT NULL ORDER BY rowid"
    ).fetchall()


def put(database: sqlite3.Connection, table: str, column: str, row: int, value: bytes) -> None:
    database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))


def places(value: bytes) -> Iterator[int]:
    """The version, the nonce, the beginning, the middle and the end of a sealed value."""
    yield from (0, 1, 12, 13, len(value) // 2, len(value) - 17, len(value) - 1)


@pytest.mark.threat(2)
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("table", "column"), SEALED, ids=[table for table, _ in SEALED])
async def test_no_flipped_byte_of_a_sealed_row_goes_on(tmp_path: Path, table: str, column: str) -> None:
    kept = await book(tmp_path, "approve")
    (run_id,) = kept.run_ids
    with closing(sqlite3.connect(kept.path)) as database:
        row, value, _ = rows(database, table, column)[0]
    for place in places(value):
        flipped = value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
        kept.change(lambda database, flipped=flipped: put(database, table, column, row, flipped))
        assert await kept.resumed(run_id) == "bad_mac", place
        assert (kept.till.paid, kept.till.asked) == ([], ["tea"])
    # The control: as it was written, it goes on.
    kept.change(lambda database: put(database, table, column, row, value))
    assert await kept.resumed(run_id) == "ran"
    assert (sorted(kept.till.paid), kept.till.asked) == ([5, 6], ["tea"])


def swap(table: str, column: str) -> Callable[[sqlite3.Connection], None]:
    """Puts the first such value of either run into the other's row."""

    def change(database: sqlite3.Connection) -> None:
        found = rows(database, table, column)
        first = found[0]
        second = next(each for each in found if each[2] != first[2])
        put(database, table, column, first[0], second[1])
        put(database, table, column, second[0], first[1])

    return change


@pytest.mark.threat(2)
@pytest.mark.parametrize(("table", "column"), SEALED, ids=[table for table, _ in SEALED])
async def test_no_row_of_another_run_goes_on(tmp_path: Path, table: str, column: str) -> None:
    kept = await book(tmp_path, "deny", "approve")
    kept.change(swap(table, column))
    assert [await kept.resumed(run_id) for run_id in kept.run_ids] == ["bad_mac", "bad_mac"]
    assert kept.till.paid == []


@pytest.mark.threat(2)
async def test_without_the_seal_swapped_decisions_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same swap in a store that seals nothing lets the payment through that was denied."""
    monkeypatch.setattr("toolwire.journal.database.sealing.Sealer._encrypt", lambda self, nonce, data, place: data)
    monkeypatch.setattr("toolwire.journal.database.sealing.Sealer.open", lambda self, sealed, *place: sealed)
    kept = await book(tmp_path, "deny", "approve")

    def change(database: sqlite3.Connection) -> None:
        swap("decisions", "decision")(database)
        database.execute("UPDATE requests SET state = 'approved' WHERE state = 'denied'")

    kept.change(change)
    assert await kept.resumed(kept.run_ids[0]) == "ran"
    assert sorted(kept.till.paid) == [5, 6]


CLEAR = [
    "UPDATE requests SET state = 'approved'",
    "UPDATE requests SET state = 'reserved'",
    "UPDATE requests SET state = 'approved', call_id = call_id || '1'",
    "UPDATE requests SET state = 'done'",
    "UPDATE requests SET expires_at = 0, state = 'approved'",
]


@pytest.mark.threat(3)
@pytest.mark.parametrize("change", CLEAR)
async def test_changed_cleartext_columns_approve_nothing(tmp_path: Path, change: str) -> None:
    kept = await book(tmp_path, "deny")
    kept.change(lambda database: database.execute(change))
    with Store.open(kept.url, key=KEY) as store:
        turn = await kept.till.session(store).resume(kept.run_ids[0])
    assert kept.till.paid == []
    assert turn.suspended is not None or all(
        result.failure is not None for result in turn.results if result.call is not None and result.call.name == "pay"
    )
