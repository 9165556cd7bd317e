"""This version resumes the runs that earlier versions of toolwire saved."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.session.saved import FOLDERS, KEY, PROGRAMS, REPLIES, Counter
from tests.session.test_suspended import decided
from tests.session.test_wire import signed
from toolwire import Turn
from toolwire.journal.database.schema import REVISIONS
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.ledger.forms import FORM
from toolwire.journal.store import Store
from toolwire.permission.approval import Decision, DecisionRefused
from toolwire.sandbox.answers import replay_engine
from toolwire.vocabulary.calls import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The outcome of a saved run when all its waiting calls are approved."""

    texts: tuple[str, ...]
    paid: tuple[int, ...]
    asked: tuple[str, ...] = ()
    is_stale: bool = False
    """Whether it changed after its portable form was written."""


OUTCOMES: dict[str, End] = {
    "one request": End(texts=("paid 5 to shop", "3"), paid=(5,)),
    "several requests": End(
        texts=("paid 5 to shop", "paid 6 to shop", "paid 7 to shop", "3"),
        paid=(5, 6, 7),
    ),
    "partly decided": End(texts=("paid 1 to shop", "paid 2 to shop", "3"), paid=(1,)),
    "approved": End(texts=("paid 8 to shop",), paid=(8,), is_stale=True),
    "edited": End(texts=("paid 50 to shop",), paid=(50,), is_stale=True),
    "denied": End(
        texts=("'pay' may not be run: too much.\nDo not call it again; find another way or tell the user.",),
        paid=(),
        is_stale=True,
    ),
    "finished": End(texts=("paid 3 to shop",), paid=()),
    # The call is in doubt: the person who approves it again was told that it may have run.
    "crashed": End(texts=("paid 9 to shop",), paid=(9,)),
    "a program": End(
        texts=("tea paid 3 to shop\nbread paid 5 to shop\noranges paid 7 to shop\n15",),
        paid=(5, 7),
        asked=("oranges",),
    ),
    "a program with parallel calls": End(texts=("['paid 1 to shop', 'paid 2 to shop', 3] True\n",), paid=(1, 2)),
}
TESTED: dict[str, dict[str, End]] = {
    "0001": OUTCOMES,
    "0004": OUTCOMES,
    "0005": OUTCOMES,
    "0007": OUTCOMES,
    "0008": OUTCOMES,
    "0009": OUTCOMES,
    "0010": OUTCOMES,
    "0011": OUTCOMES,
    "0012": OUTCOMES,
    "0013": OUTCOMES,
    "0014": OUTCOMES,
    "0015": OUTCOMES,
}
"""The outcomes of each schema. No schema since the first has changed one."""
EVERY = [(version, name) for version in sorted(TESTED) for name in TESTED[version]]
OTHER_ENGINE = (
    "the run's program was recorded on {recorded!r} and this is {replay_engine!r}: it would not replay the same way. "
    "Resume it with the same runner, and the same version of Python and toolwire."
)


def index(version: str) -> Mapping[str, Any]:
    return json.loads((FOLDERS / version / "runs.json").read_text("utf-8"))


@contextmanager
def opened(version: str, folder: Path, change: Callable[[sqlite3.Connection], object] | None = None) -> Iterator[Store]:
    """A copy of the saved store; opening it migrates its schema to this version."""
    path = folder / "runs.db"
    path.write_bytes(gzip.decompress((FOLDERS / version / "runs.db.gz").read_bytes()))
    if change is not None:
        with closing(sqlite3.connect(path)) as database, database:
            change(database)
    with Store.open(f"sqlite:///{path}", key=KEY) as store:
        yield store


async def to_the_end(counter: Counter, store: Store, name: str, run: str, run_id: str) -> Turn:
    """The turn after everything was approved, by sessions that are new."""
    turn = await counter.session(store, name).resume(run)
    while turn.suspended is not None:
        turn = await counter.session(store, name).resume(run_id, decided(turn.suspended.pending, "approve"))
    return turn


@pytest.mark.threat(19)
@pytest.mark.parametrize("is_portable", [False, True], ids=["by id", "by its portable form"])
@pytest.mark.parametrize(("version", "name"), EVERY)
async def test_a_saved_run_is_gone_on_with(tmp_path: Path, version: str, name: str, is_portable: bool) -> None:
    saved, end, counter = index(version), TESTED[version][name], Counter()
    run_id, portable = saved["runs"][name]["run_id"], saved["runs"][name]["portable"]
    with opened(version, tmp_path) as store:
        if is_portable and end.is_stale:
            with pytest.raises(DecisionRefused) as refused:
                await counter.session(store, name).resume(portable)
            assert (refused.value.code, counter.paid) == ("stale_rev", [])
            return
        run = portable if is_portable and portable is not None else run_id
        if name in PROGRAMS and saved["engine"] != replay_engine:
            with pytest.raises(DecisionRefused) as refused:
                await counter.session(store, name).resume(run)
            assert str(refused.value) == OTHER_ENGINE.format(recorded=saved["engine"], replay_engine=replay_engine)
            assert (refused.value.code, counter.paid) == ("divergence", [])
            return
        turn = await to_the_end(counter, store, name, run, run_id)
        texts = tuple(result.text for result in turn.results)
        assert (texts, tuple(sorted(counter.paid)), tuple(counter.asked)) == (end.texts, end.paid, end.asked)
        again = await counter.session(store, name).resume(run_id)
        assert (again.messages, tuple(sorted(counter.paid))) == (turn.messages, end.paid)
        assert store.verify().is_whole


@pytest.mark.threat(19)
@pytest.mark.parametrize("version", sorted(TESTED))
async def test_a_saved_program_is_refused_by_another_engine(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, counter = index(version), Counter()
    monkeypatch.setattr("toolwire.session.runs.resume.engine_of_programs", lambda scope: "cpython-9.9/1")
    with opened(version, tmp_path) as store:
        for name in sorted(PROGRAMS & TESTED[version].keys()):
            with pytest.raises(DecisionRefused) as refused:
                await counter.session(store, name).resume(saved["runs"][name]["portable"])
            assert refused.value.code == "divergence"
            assert str(refused.value) == OTHER_ENGINE.format(recorded=saved["engine"], replay_engine="cpython-9.9/1")
    assert (counter.paid, counter.asked) == ([], [])


@pytest.mark.threat(19)
@pytest.mark.parametrize("version", sorted(TESTED))
async def test_a_crashed_run_says_that_its_call_may_have_run(tmp_path: Path, version: str) -> None:
    counter = Counter()
    with opened(version, tmp_path) as store:
        turn = await counter.session(store, "crashed").resume(index(version)["runs"]["crashed"]["run_id"])
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    assert (counter.paid, request.attempt) == ([], 2)
    assert request.reasons[0].startswith("this may already have run: attempt 1 began ")


@pytest.mark.threat(19)
@pytest.mark.parametrize("version", sorted(TESTED))
def test_the_conversations_of_a_saved_store_are_held_by_nobody(tmp_path: Path, version: str) -> None:
    with opened(version, tmp_path) as store:
        known = [(one.conversation, one.caller) for one in store.conversations()]
        assert bool(known) is (version > "0001")
        leases = [store.hold_conversation(name, caller=caller).result() for name, caller in [*known, ("new", Caller())]]
        with pytest.raises(DecisionRefused, match="is held by a run of process"):
            store.hold_conversation("new", caller=Caller()).result()
        for lease in leases:
            lease.release().result()
        assert store.verify().is_whole


@pytest.mark.threat(19)
def test_every_schema_that_was_released_has_its_saved_runs_and_they_are_tested() -> None:
    folders = {folder.name: folder for folder in FOLDERS.iterdir()}
    # For a new revision run python -m tests.session.write_saved, and put the outcomes of its runs into TESTED.
    assert set(folders) == set(REVISIONS) == set(TESTED)
    for version, folder in folders.items():
        assert sorted(file.name for file in folder.iterdir()) == ["runs.db.gz", "runs.json"]
        assert set(index(version)["runs"]) == set(TESTED[version])
    assert set(TESTED[REVISIONS[-1]]) == set(REPLIES)


# -- stores of a newer toolwire ---------------------------------------------------------------------------------------


@pytest.mark.threat(19)
def test_a_store_of_a_newer_schema_is_not_opened(tmp_path: Path) -> None:
    def change(database: sqlite3.Connection) -> None:
        database.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(DecisionRefused) as refused, opened(REVISIONS[-1], tmp_path, change):
        pass
    assert refused.value.code == "schema_too_new"
    assert str(refused.value) == (
        f"a newer toolwire wrote the store (its schema is 9999, ours {REVISIONS[-1]}): upgrade toolwire"
    )


@pytest.mark.threat(19)
@pytest.mark.parametrize(
    ("table", "column", "place"),
    [("runs", "start", ("start",)), ("requests", "request", None), ("steps", "ended", ("ended",))],
)
async def test_a_newer_form_in_the_store_is_refused_before_anything_runs(
    tmp_path: Path, table: str, column: str, place: tuple[str, ...] | None
) -> None:
    run_id, sealer = index(REVISIONS[-1])["runs"]["one request"]["run_id"], Sealer(KEY)

    def change(database: sqlite3.Connection) -> None:
        key = "run_id" if table == "runs" else "request_id" if table == "requests" else "key"
        row = f"SELECT {key}, {column} FROM {table} WHERE run_id = ? AND {column} IS NOT NULL"
        ((name, sealed),) = database.execute(row, (run_id,)).fetchall()
        where = (table, run_id) if table == "runs" else (table, run_id, name)
        form = json.loads(sealer.open(sealed, *where, *(place or ())))
        newer = sealer.seal(json.dumps({**form, "form": FORM + 1}).encode(), *where, *(place or ()))
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (newer, name))

    counter = Counter()
    with opened(REVISIONS[-1], tmp_path, change) as store:
        with pytest.raises(DecisionRefused) as refused:
            await counter.session(store, "one request", approver=lambda _: Decision(verdict="approve")).resume(run_id)
        assert (refused.value.code, str(refused.value), counter.paid) == (
            "schema_too_new",
            "it was written by a newer toolwire: upgrade toolwire",
            [],
        )


@pytest.mark.threat(19)
@pytest.mark.parametrize("version", ["1.1", "2.0"])
async def test_a_newer_portable_form_is_refused_before_anything_runs(tmp_path: Path, version: str) -> None:
    saved, counter = index(REVISIONS[-1])["runs"]["one request"], Counter()
    with opened(REVISIONS[-1], tmp_path) as store:
        newer = signed({**json.loads(saved["portable"]), "v": version}, store.wire_key)
        with pytest.raises(DecisionRefused) as refused:
            await counter.session(store, "one request").resume(
                newer, decided(store.pending(saved["run_id"]), "approve")
            )
    assert (refused.value.code, counter.paid) == ("schema_too_new", [])
