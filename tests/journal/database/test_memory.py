"""Stores in memory: the same rules, and no file."""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.journal.world import done, started, step
from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, calls
from toolwire import ConfigurationError, Retention, Store, StoreUnavailable, ToolRegistry, ToolResult
from toolwire.journal.retention import DAYS_MOST


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_store_in_memory_keeps_runs_approvals_and_the_log_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Store.open("memory:") as store:
        till = Till()
        turn = await till.session(store).turn(calls(("pay", {"amount": 5}), ("price", {"thing": "tea"})))
        assert [request.id for request in store.pending()] == [request.id for request in waiting(turn)]
        assert turn.suspended is not None
        after = await till.session(store).resume(turn.suspended, decided(waiting(turn), "approve"))
        assert [result.text for result in after.results] == ["paid 5 to shop", "3"]
        assert (till.paid, till.asked, store.verify().is_whole) == ([5], ["tea"], True)
        assert store.log_length() > 0
        sealed = store._database.read(lambda connection: connection.execute(text("SELECT outcome FROM runs")).scalar())
        assert isinstance(sealed, bytes)
        assert b"paid" not in sealed
        assert store.retain(Retention(runs_days=1e-9)).runs == 1
        assert store.compact() >= 0
    assert names_in(tmp_path) == []
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.runs()


def test_each_opening_is_a_store_of_its_own() -> None:
    with Store.open("memory:") as one, Store.open("memory:") as other:
        done(started(one).release())
        assert (len(one.runs()), len(other.runs()), one.url == other.url) == (1, 0, False)
        other.close()
        # A registry that ends takes the stores of its runtime with it; one in memory would be lost.
        ToolRegistry().close()
        assert len(one.runs()) == 1


async def test_many_threads_take_turns_at_a_store_in_memory() -> None:
    with Store.open("memory:") as store:

        def work() -> None:
            ledger = started(store)
            done(ledger.settle(step(), ToolResult(True, "a")))
            assert len(store.runs()) >= 1
            done(ledger.finish(()))
            assert store.run(ledger.run_id).steps == 1

        await asyncio.gather(*(asyncio.to_thread(work) for _ in range(20)))
        assert ({run.status for run in store.runs()}, store.verify().is_whole) == ({"finished"}, True)


def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    with Store.open("memory:") as store:
        done(started(store).release())
        said = tmp_path / "said"
        child = os.fork()
        if child == 0:
            try:
                store.runs()
            except StoreUnavailable as error:
                with Store.open("memory:") as own:
                    said.write_text(f"{error} {len(own.runs())}")
            finally:
                store.close()
                os._exit(0)
        os.waitpid(child, 0)
        assert said.read_text() == (
            f"the store {store.url} is in the memory of process {os.getpid()}, from which this one was forked: write "
            "Store.open('memory:') here, or open a file 0"
        )
        assert len(store.runs()) == 1


def test_other_urls_of_memory_name_the_right_one() -> None:
    for url in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(ConfigurationError, match="memory:"):
            Store.open(url)


def test_the_size_of_a_store_in_memory_is_that_of_its_pages() -> None:
    with Store.open("memory:") as store:
        before = store.size()
        store.save_document("c", "x" * 100_000 + secrets.token_hex(50_000), version=0)
        assert 50_000 < store.size() - before < 1_000_000


@pytest.mark.parametrize("given", [30, {"runs_days": 3}, "runs=1"])
def test_a_retention_of_another_type_is_refused_before_a_store_is_made(tmp_path: Path, given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"write retention=Retention\(runs_days=30\)"):
        Store.open(f"sqlite:///{tmp_path}/runs.db", retention=given)
    assert names_in(tmp_path) == []
    with Store.open("memory:") as store, pytest.raises(ConfigurationError, match="write retention=Retention"):
        store.retain(given)


def test_the_longest_retention_is_named() -> None:
    assert Retention(log_days=DAYS_MOST).log_days == DAYS_MOST
    with pytest.raises(ConfigurationError, match="above 0 and at most 1,000,000"):
        Retention(log_days=10**400)
