"""What a store takes and how it is made smaller, on the command line."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from tests.cli.command_line import Ended, run_here
from tests.journal.world import done, started, step
from toolwire import Store, ToolResult
from toolwire.journal.database.tables import RUNS

KEEP = ("--retention", "runs=30,results=7,log=365")


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A store with two runs, one of which ended 40 days ago."""
    path = f"{tmp_path}/s.db"
    with Store.open(f"sqlite:///{path}") as store:
        ids = [_run(store) for _ in range(2)]
        change = update(RUNS).where(RUNS.c.run_id == ids[0]).values(updated_at=RUNS.c.updated_at - 40 * 86_400)
        done(store._database.run(lambda connection: connection.execute(change)))
    return path


def _run(store: Store) -> str:
    ledger = started(store)
    done(ledger.settle(step(), ToolResult(True, secrets.token_hex(100_000))))
    done(ledger.finish(()))
    return ledger.run_id


def command(db: str, *words: str) -> Ended:
    return run_here("store", *words, "--store", db)


def test_the_size_is_told_by_kind_with_what_would_be_freed(db: str) -> None:
    ended = command(db, "size")
    rows = dict(re.split(r"\s{2,}", line) for line in ended.stdout.splitlines())
    assert rows.keys() >= {"KIND", "runs", "calls", "log", "approvals", "free", "all"}
    numbers = {kind: int(number.replace(",", "")) for kind, number in rows.items() if kind != "KIND"}
    assert numbers.pop("all") == sum(numbers.values()) == Path(db).stat().st_size
    found = json.loads(command(db, "size", *KEEP, "--json").stdout)
    assert found["kinds"]["calls"] == numbers["calls"]
    assert (found["prune"]["runs"], found["prune"]["results"], found["prune"]["log_rows"]) == (1, 1, 0)
    assert found["prune"]["bytes"] > 0
    assert "`toolwire store prune` would delete 1 run, the whole results of 1 run," in command(db, "size", *KEEP).stderr


def test_a_prune_says_what_it_deletes_and_a_dry_run_deletes_nothing(db: str) -> None:
    would = command(db, "prune", *KEEP, "--dry-run")
    assert re.fullmatch(
        r"would delete 1 run, the whole results of 1 run, 0 long results, 0 rows of the log: [\d,]+ bytes\n",
        would.stdout,
    )
    with Store.open(f"sqlite:///{db}") as store:
        assert len(store.runs()) == 2
    report: dict[str, Any] = json.loads(command(db, "prune", *KEEP, "--json").stdout)
    # The results of the run went with it.
    assert (report["runs"], report["results"], report["log_rows"]) == (1, 0, 0)
    with Store.open(f"sqlite:///{db}") as store:
        assert (len(store.runs()), store.verify().is_whole) == (1, True)
    assert command(db, "prune", *KEEP).stdout == (
        "deleted 0 runs, the whole results of 0 runs, 0 long results, 0 rows of the log: 0 bytes\n"
    )


def test_a_compacted_store_is_smaller(db: str) -> None:
    command(db, "prune", "--retention", "runs=1,log=0.0000001")
    before = Path(db).stat().st_size
    would = json.loads(command(db, "compact", "--dry-run", "--json").stdout)["bytes"]
    assert Path(db).stat().st_size == before
    ended = command(db, "compact")
    assert re.fullmatch(r"returned [\d,]+ bytes to the disk\n", ended.stdout)
    assert before - Path(db).stat().st_size >= would > 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("prune",), "nothing says how long the store keeps what has ended"),
        (("prune", "--retention", "days=3"), "--retention: 'days=3' is not a part of one"),
        (("prune", "--retention", "runs=a"), "--retention: 'runs=a' is not a part of one"),
        (("prune", "--retention", "runs=1,runs=2"), "--retention: runs has two numbers of days\nWrite runs once.\n"),
        (("size", "--retention", "runs=0"), "Retention(runs_days=0.0): give a number of days above 0"),
    ],
)
def test_a_wrong_retention_is_named(db: str, words: tuple[str, ...], why: str) -> None:
    ended = command(db, *words)
    assert (ended.code, ended.stdout) == (2, "")
    assert why in ended.stderr


def test_an_empty_file_is_no_store_and_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    ended = command(str(path), "size")
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"toolwire: there is no store at sqlite:///{path}\n"
        "Name another one, or make it: `toolwire run` and Store.open(url) do.\n"
    )
    assert path.stat().st_size == 0


def test_a_store_in_memory_is_not_for_a_command() -> None:
    ended = command("memory:", "size")
    assert ended.code == 2
    assert ended.stderr.startswith("toolwire: memory: is a store inside one program\n")
