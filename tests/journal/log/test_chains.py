"""Each open store has a chain of the log of its own in PostgreSQL. All chains together are one log."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.kills import begun, in_child
from sqlalchemy import delete, insert, select, text, update

from tests.journal.database.test_forks import ended, writes
from tests.journal.log.test_durable_log import RECORDS
from tests.journal.world import done, started
from toolwire.journal.database.tables import LOG, META, OWNERS
from toolwire.journal.durable_log import DurableLog
from toolwire.journal.log import chain as chains
from toolwire.journal.log import checking
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import run_event
from toolwire.journal.log.heads import HEAD, Head, before_first, chain_of, head_name, read_head, read_heads, sign_head
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable

ON_A_SERVER = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


def heads_of(store: Store) -> dict[int, Head]:
    database = store._database
    return database.read(lambda connection: read_heads(connection, database.sealer))


def in_another_process(url: str) -> None:
    """Writes a whole run and closes the store."""
    assert ended(in_child(lambda: writes(url))) == 0


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite")


@pytest.mark.threat(62)
@pytest.mark.timeout(120)
def test_processes_that_write_at_once_leave_one_whole_log(store: Store, url: str) -> None:
    children = [in_child(lambda: writes(url)) for _ in range(4)]
    assert [ended(child) for child in children] == [0] * 4
    check = store.verify()
    assert (check.is_whole, check.rows) == (True, 8)
    assert {chain_of(row.seq) for row in store.log()} <= ({0} if is_sqlite(url) else {1, 2, 3, 4})
    assert len({row.seq for row in store.log()}) == 8


def test_a_store_that_is_only_read_takes_no_chain(store: Store) -> None:
    store.log()
    store.verify()
    store.runs()
    store.close()
    with Store.open(store.url) as again:
        assert heads_of(again) == {0: Head()}


@ON_A_SERVER
def test_a_chain_is_used_again_when_its_process_has_ended(store: Store, url: str) -> None:
    in_another_process(url)
    started(store)
    # This process has chain 1 now, so another one begins a chain; so does one that is killed and does not free it.
    in_another_process(url)

    def die() -> None:
        begun(Store.open(url), "r_dead")
        os.kill(os.getpid(), signal.SIGKILL)

    assert ended(in_child(die)) == -signal.SIGKILL
    assert heads_of(store)[2].owner != ""
    in_another_process(url)
    found = heads_of(store)
    assert [number for number, head in found.items() if head.rows] == [1, 2]
    assert (found[1].rows, found[2].rows, found[2].owner) == (3, 5, "")
    # Chain 0 says where each chain was when it was taken last.
    assert found[0].chains == {"1": before_first(1) + 2, "2": before_first(2) + 3}
    assert store.verify().is_whole


@ON_A_SERVER
@pytest.mark.parametrize("moment", ["head", "named"])
def test_a_process_that_is_killed_while_it_takes_a_chain_leaves_a_whole_log(
    store: Store, url: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_another_process(url)
    keep = chains.keep_head

    def die(connection: Any, sealer: Any, head: Head) -> bytes:
        if moment == "named":
            keep(connection, sealer, head)
        if (head.chain == 0) == (moment == "named"):
            os.kill(os.getpid(), signal.SIGKILL)
        return keep(connection, sealer, head)

    with monkeypatch.context() as dying:
        dying.setattr(chains, "keep_head", die)
        assert ended(in_child(lambda: writes(url))) == -signal.SIGKILL
    in_another_process(url)
    assert [number for number, head in heads_of(store).items() if head.rows] == [1]
    check = store.verify()
    assert (check.is_whole, check.rows) == (True, 4)


def test_a_transaction_that_was_rolled_back_moves_no_head(store: Store) -> None:
    ledger, database = started(store), store._database

    def fail(connection: Any) -> None:
        append(connection, database.sealer, [run_event(ledger.start, "resumed")])
        chains.write_rows(connection)
        raise ConfigurationError("no")

    with pytest.raises(ConfigurationError, match="no"):
        done(database.run(fail))
    done(ledger.finish([]))
    assert [row.status for row in store.log()] == ["started", "finished"]
    assert store.verify().is_whole


@ON_A_SERVER
def test_a_chain_that_another_process_took_over_is_left_to_it(store: Store) -> None:
    ledger, database, other = started(store), store._database, "another host - 1 - x"

    def take_over(connection: Any) -> None:
        head = read_head(connection, database.sealer, 1).head
        value = sign_head(database.sealer, replace(head, owner=other))
        connection.execute(update(META).where(META.c.name == head_name(1)).values(value=value))
        connection.execute(insert(OWNERS).values(owner=other, alive_until=time.time() + 60))

    done(database.run(take_over))
    done(ledger.finish([]))
    found = heads_of(store)
    assert {number: head.rows for number, head in found.items()} == {0: 0, 1: 1, 2: 1}
    assert found[1].owner == other
    assert store.verify().is_whole


@pytest.mark.timeout(60)
def test_a_log_that_another_process_prunes_goes_on(store: Store, url: str) -> None:
    log = DurableLog(store)
    for record in RECORDS:
        log.ended(record)
    assert len(store.log()) == 5
    assert ended(in_child(lambda: prune_all_but(url, 2))) == 0
    log.ended(RECORDS[0])
    assert len(store.log()) == 3
    check = store.verify()
    assert (check.is_whole, check.rows) == (True, 3)


def prune_all_but(url: str, rows: int) -> None:
    with Store.open(url) as store:
        assert store.prune(keep=rows) == 3


# -- attacks ---------------------------------------------------------------------------------------------------------


def values_of(connection: Any) -> dict[str, bytes]:
    return {row.name: row.value for row in connection.execute(select(META)).all()}


def in_chain(number: int) -> Any:
    return (LOG.c.seq > before_first(number)) & (LOG.c.seq <= before_first(number + 1))


def write_head(connection: Any, name: str, value: bytes) -> None:
    connection.execute(update(META).where(META.c.name == name).values(value=value))


def remove_chain(connection: Any, _: Any) -> None:
    connection.execute(delete(LOG).where(in_chain(2)))
    connection.execute(delete(META).where(META.c.name == head_name(2)))


def delete_head(connection: Any, _: Any) -> None:
    connection.execute(delete(META).where(META.c.name == head_name(2)))


def put_back(connection: Any, before: Any) -> None:
    write_head(connection, head_name(2), before[head_name(2)])
    connection.execute(delete(LOG).where(LOG.c.seq > before_first(2) + 2))


def move_a_row(connection: Any, _: Any) -> None:
    last = connection.execute(select(LOG.c.seq).where(in_chain(1)).order_by(LOG.c.seq.desc()).limit(1)).scalar_one()
    connection.execute(update(LOG).where(LOG.c.seq == before_first(2) + 1).values(seq=last + 1))


def take_the_head_of_another(connection: Any, _: Any) -> None:
    write_head(connection, head_name(2), values_of(connection)[head_name(1)])


def put_in_a_chain(connection: Any, _: Any) -> None:
    row = connection.execute(select(LOG).where(in_chain(2)).order_by(LOG.c.seq).limit(1)).mappings().one()
    connection.execute(LOG.insert().values({**row, "seq": before_first(7) + 1}))


def forget_a_chain(connection: Any, before: Any) -> None:
    """Chain 0 as it was before it named chain 2."""
    write_head(connection, HEAD, before["first"])


@pytest.mark.threat(62)
@ON_A_SERVER
def test_every_tampering_with_a_chain_is_seen(store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started(store)
    database = store._database
    before = {"first": database.read(values_of)[HEAD]}
    in_another_process(url)
    before |= database.read(values_of) | {"first": before["first"]}
    in_another_process(url)
    in_another_process(url)
    assert store.verify().is_whole
    deeds: list[Callable[[Any, Any], None]] = [
        remove_chain,
        delete_head,
        put_back,
        move_a_row,
        take_the_head_of_another,
        put_in_a_chain,
        forget_a_chain,
    ]
    seen: dict[str, str] = {}
    with database._engine.connect() as connection:
        for deed in deeds:
            with connection.begin() as transaction:
                deed(connection, before)
                check = checking.check_chains(lambda job: job(connection), database.sealer, lambda *_: None)
                seen[deed.__name__] = check.problem
                if deed in (remove_chain, put_back, forget_a_chain):
                    # The control: each chain alone is whole.
                    with monkeypatch.context() as unprotected:
                        unprotected.setattr(checking, "_check_names", lambda *_: None)
                        assert checking.check_chains(
                            lambda job: job(connection), database.sealer, lambda *_: None
                        ).is_whole
                transaction.rollback()
    assert seen == {
        "remove_chain": "the end of chain 2 of the log is missing, or the whole chain",
        "delete_head": "the end of chain 2 of the log is missing, or the whole chain",
        "put_back": "chain 2 of the log was put back to an earlier state",
        "move_a_row": "it was changed or moved",
        "take_the_head_of_another": "it is missing",
        "put_in_a_chain": "chain 7 of the log was put in",
        "forget_a_chain": "chain 2 of the log was put in",
    }
    assert store.verify().is_whole


# -- checking while others write -------------------------------------------------------------------------------------


def test_a_log_that_grows_and_is_pruned_while_it_is_checked_is_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "CHECKED_AT_ONCE", 2)
    log = DurableLog(store)
    for _ in range(2):
        for record in RECORDS:
            log.ended(record)
    reports: list[tuple[int, int]] = []
    free: list[int] = []

    def report(done_rows: int, total: int) -> None:
        reports.append((done_rows, total))
        if len(reports) == 1:
            log.ended(RECORDS[0])
            store.prune(keep=6)
        if store.url.startswith("sqlite"):
            # No reader keeps SQLite from a checkpoint between two slices.
            statement = text("PRAGMA wal_checkpoint(TRUNCATE)")
            with store._database._engine.connect() as connection:
                connection.exec_driver_sql("COMMIT") if connection.in_transaction() else None
                free.append(connection.execute(statement).scalar_one())

    check = store.verify(report=report)
    assert check.is_whole
    assert [total for _, total in reports] == [10] * len(reports)
    assert [done_rows for done_rows, _ in reports] == sorted(done_rows for done_rows, _ in reports)
    # Two rows before the prune, and those that it left.
    assert (check.rows, set(free) <= {0}) == (2 + 6, True)


@ON_A_SERVER
def test_a_process_of_an_older_version_signs_no_head_that_forgets_the_chains(store: Store) -> None:
    started(store)
    database = store._database
    # What an older toolwire writes after its rows: a head with the fields of the first schema.
    older = sign_head(database.sealer, Head(seq=7))
    write = update(META).where(META.c.name == HEAD).values(value=older)
    with pytest.raises(StoreUnavailable, match="a newer toolwire upgraded this store: start this process again"):
        database.run(lambda connection: connection.execute(write) and None).result()
    assert store.verify().is_whole
    database.run(
        lambda connection: connection.exec_driver_sql("DROP TRIGGER meta_keep_chains ON meta") and None
    ).result()
    database.run(lambda connection: connection.execute(write) and None).result()
    assert not store.verify().is_whole
