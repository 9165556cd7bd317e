"""Opening a store: where it may lie, its schema, its key, its file."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from benchmarks.kills import in_child
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from tests.journal.world import done, started
from tests.patience import PATIENCE_S
from tests.runtime.subprocesses import output_of
from toolwire import ConfigurationError, ToolRegistry
from toolwire.journal.database import location
from toolwire.journal.database.schema import MIGRATIONS, REVISIONS
from toolwire.journal.database.tables import METADATA
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.errors import StoreUnavailable


@pytest.mark.parametrize(
    "url",
    [
        "",
        "runs.db",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://h/d",
        "sqlite://host/x",
        "file:x",
        "sqlite:///x?mode=ro",
    ],
)
def test_an_unsuitable_store_location_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write sqlite:///file\.db or postgresql://user@host/database"):
        Store.open(url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqlite://runs.db", "'runs.db' is a host, and SQLite has none: a file stands after three slashes"),
        ("sqlite:///runs.db?mode=ro", "the URL of an SQLite store has no settings, and 'mode' is one"),
        ("sqlite:///runs.db?timeout=5", "the URL of an SQLite store has no settings, and 'timeout' is one"),
        ("sqlite:///x?mode=memory", "a store in memory is lost with its process, and has a URL of its own, memory:"),
    ],
)
def test_what_is_wrong_with_the_url_of_a_file_is_named(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"{why}: write sqlite:///file.db")):
        Store.open(url)


def test_an_unusable_store_raises_store_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.db").write_text("no database" * 200)
    for path in ("text.db", "missing/runs.db"):
        with pytest.raises(StoreUnavailable):
            Store.open(f"sqlite:///{tmp_path}/{path}")
    with pytest.raises(StoreUnavailable):
        Store.open(f"postgresql://tests@/x?host={tmp_path}")
    monkeypatch.setattr(location, "_MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text(f"dev / ext4 rw 0 0\nhost:/x {tmp_path} nfs4 rw 0 0\n")
    with pytest.raises(StoreUnavailable, match="network file system"):
        Store.open(f"sqlite:///{tmp_path}/runs.db")


def test_the_file_and_its_key_are_its_owners_alone(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        started(store)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("runs.db", "runs.db-wal", "runs.db-shm", "runs.db.key"), 0o600)


def test_every_connection_writes_through_and_waits(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        names = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys", "journal_size_limit")

        def settings(connection: Any) -> list[Any]:
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

        expected = ["wal", 2, 10_000, 1, 8 * 1024 * 1024]
        assert store._database.read(settings) == done(store._database.run(settings)) == expected
        strict = store._database.read(
            lambda connection: connection.execute(
                text("SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict ORDER BY name")
            ).all()
        )
    assert strict == [("alembic_version",), ("sqlite_schema",), ("sqlite_temp_schema",)]


@pytest.mark.usefixtures("is_new")
def test_migrations_make_the_tables_that_queries_name(store: Store) -> None:
    def differences(connection: Any) -> Any:
        return compare_metadata(MigrationContext.configure(connection), METADATA)

    assert store._database.read(differences) == []


def test_the_revisions_that_are_known_are_those_that_are_shipped() -> None:
    shipped = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]
    assert tuple(reversed(shipped)) == REVISIONS


NEWER = text("UPDATE alembic_version SET version_num = '9999'")


def test_a_newer_schema_is_not_touched(url: str) -> None:
    with Store.open(url) as store:
        done(store._database.run(lambda connection: connection.execute(NEWER)))
    with pytest.raises(DecisionRefused) as refused:
        Store.open(url)
    assert refused.value.code == "schema_too_new"


@pytest.mark.usefixtures("is_new")
def test_processes_that_open_a_new_store_at_once_make_it_once(url: str) -> None:
    def use() -> None:
        with Store.open(url) as mine:
            started(mine, f"r_{os.getpid()}")

    children = [in_child(use) for _ in range(4)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    with Store.open(url) as store:
        assert len(store.runs()) == 4
        assert store.verify().rows == 4


def test_one_process_has_one_writer_for_a_database(url: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(lambda _: Store.open(url), range(8)))
    assert len({id(store._database) for store in stores}) == 1
    for store in stores[:-1]:
        store.close()
    started(stores[-1])
    stores[-1].close()


def test_a_store_is_read_with_its_own_key_only(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOLWIRE_KEY", "ab" * 32)
    with Store.open(url) as store:
        started(store, "r_1")
    monkeypatch.setenv("TOOLWIRE_KEY", "cd" * 32)
    with pytest.raises(StoreUnavailable, match="another key"):
        Store.open(url)
    monkeypatch.setenv("TOOLWIRE_KEY", "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=")
    with Store.open(url) as store:
        assert [run.run_id for run in store.runs()] == ["r_1"]
    with Store.open(url, key=bytes.fromhex("ab" * 32)) as store:
        assert len(store.runs()) == 1
    monkeypatch.delenv("TOOLWIRE_KEY")
    with pytest.raises(StoreUnavailable, match="a key that is not here"):
        Store.open(url)
    for wrong in ("short", "zz" * 32):
        monkeypatch.setenv("TOOLWIRE_KEY", wrong)
        with pytest.raises(ConfigurationError):
            Store.open(url)
    with pytest.raises(ConfigurationError):
        Store.open(url, key=b"short")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLWIRE_KEY", raising=False)
    url = f"sqlite:///{tmp_path}/runs.db"
    Store.open(url).close()
    (tmp_path / "runs.db.key").chmod(0o644)
    with pytest.raises(StoreUnavailable, match="chmod 600"):
        Store.open(url)


@pytest.mark.threat(2)
def test_a_run_changed_in_the_database_is_not_continued(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store.open(url) as store:
        for run_id in ("r_1", "r_2"):
            done(started(store, run_id).release())
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        sealed = connection.execute("SELECT start FROM runs WHERE run_id = 'r_1'").fetchone()[0]
    changes = [bytes([*sealed[:at], sealed[at] ^ 1, *sealed[at + 1 :]]) for at in range(len(sealed))]
    assert len(changes) >= 200
    with Store.open(url) as store:
        database = store._database
        change = text("UPDATE runs SET start = :start WHERE run_id = :run_id")
        # Cut, moved from another run, and each byte changed.
        for run_id, start in [("r_1", sealed[:-1]), ("r_1", b""), ("r_2", sealed), *(("r_1", one) for one in changes)]:
            database.run(lambda c, run_id=run_id, start=start: c.execute(change, {"start": start, "run_id": run_id}))
            with pytest.raises(DecisionRefused) as refused:
                done(store.reopen(run_id))
            assert refused.value.code == "bad_mac"
        # The control: put back, it opens.
        database.run(lambda c: c.execute(change, {"start": sealed, "run_id": "r_1"}))
        assert done(store.reopen("r_1")).run_id == "r_1"


def test_a_session_without_a_store_loads_no_database_library() -> None:
    code = (
        "import sys; from toolwire import ToolRegistry, Session; ToolRegistry().enable_logging();"
        "print({'sqlalchemy', 'alembic', 'cryptography', 'sqlite3'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert run.stdout == "set()\n"
    assert ToolRegistry().get_execution_log() is None


def test_opening_a_store_that_is_up_to_date_loads_no_migrations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    Store.open(url).close()
    code = f"import sys; from toolwire import Store; Store.open({url!r}).close(); print('alembic' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert run.stdout == "False\n"


def test_a_runtime_that_closes_takes_the_store_along_and_it_comes_back(opened: Callable[[], Store]) -> None:
    store = opened()
    with ToolRegistry() as registry:
        registry.enable_logging(store=store)
    assert store.runs() == []


def test_a_store_is_not_opened_again_once_the_interpreter_ends(tmp_path: Path) -> None:
    script = f"""
    import atexit
    import threading

    def use():
        for action in (store.runs, lambda: store.start(start), lambda: Store.open(store.url).runs(), lambda: None):
            try:
                action()
                yield "ran"
            except StoreUnavailable as error:
                yield str(error).removeprefix(f"the store {{store.url}} ")

    def late():
        before = threading.active_count()
        print(*use(), sep="\\n")
        print("closed:", store.close())
        print("threads:", threading.active_count() - before)

    # Handlers run in reverse order: this one after the end of everything shared.
    atexit.register(late)
    from tests.journal.world import run_start
    from toolwire.journal.store import Store
    from toolwire.vocabulary.errors import StoreUnavailable

    # The control: a handler that runs before the end.
    atexit.register(lambda: print(*use(), sep=" "))
    store, start = Store.open("sqlite:///{tmp_path}/runs.db"), run_start("r_1")
    """
    refused = "was closed: the interpreter is ending"
    assert output_of(script).splitlines() == [
        "ran ran ran ran",
        *[refused] * 3,
        "ran",
        "closed: None",
        "threads: 0",
    ]


def test_closing_a_store_that_a_forked_child_never_used_opens_nothing_there(tmp_path: Path) -> None:
    script = f"""
    import os
    from toolwire.journal.store import Store
    from toolwire.runtime.runtime import default_runtime

    store = Store.open("sqlite:///{tmp_path}/runs.db")
    if (child := os.fork()) == 0:
        store.close()
        os._exit(0 if default_runtime().find(store._part) is None else 1)
    print(os.waitpid(child, 0)[1], store.runs())
    store.close()
    """
    assert output_of(script) == "0 []\n"


def test_no_connection_makes_a_file_in_the_place_of_one_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "runs #1?.db"
    with Store.open(f"sqlite:///{str(path).replace('?', '%3F')}") as store:
        place = Path(str(store._database._engine.url.database))
        store._database._engine.dispose()
        moved = place.rename(tmp_path / "moved.db")
        with pytest.raises(OperationalError, match="unable to open database file"):
            store._database._engine.connect()
        assert not place.exists()
        # The control: it is used on when it is back.
        moved.rename(place)
        assert store.runs() == []
