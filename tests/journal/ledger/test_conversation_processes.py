"""One process at a time holds a conversation, and one that dies leaves it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from benchmarks.kills import in_child

from tests.forks import forked
from tests.journal.ledger.conversation_holds import MANY, busy, hold, refusal
from tests.journal.world import done
from tests.patience import PATIENCE_S
from toolwire import Store, StoreUnavailable
from toolwire.permission.approval import DecisionRefused


def hold_until_asked(url: str, pipe: Connection) -> None:
    """A process that holds the conversation until it is told to release it."""
    with Store.open(url) as store:
        lease = hold(store)
        pipe.send(os.getpid())
        assert pipe.poll(PATIENCE_S)
        assert pipe.recv() == "release"
        done(lease.release())
        pipe.send("released")
        assert pipe.poll(PATIENCE_S)


@pytest.fixture
def holder(url: str, store: Store) -> Iterator[tuple[BaseProcess, Any]]:
    """A process that holds the conversation."""
    assert store.runs() == []
    here, there = multiprocessing.Pipe()
    process = forked(hold_until_asked, url, there)
    there.close()
    assert here.poll(PATIENCE_S)
    assert here.recv() == process.pid
    yield process, here
    process.kill()
    process.join()


def test_another_process_that_holds_is_named_and_its_release_frees(
    store: Store, holder: tuple[BaseProcess, Any]
) -> None:
    process, pipe = holder
    assert process.pid is not None
    assert refusal(store) == busy(process.pid)
    pipe.send("release")
    assert pipe.poll(PATIENCE_S)
    assert pipe.recv() == "released"
    done(hold(store).release())
    assert process.is_alive()


@pytest.mark.threat(19)
def test_a_holder_that_was_killed_is_taken_over_at_once(store: Store, holder: tuple[BaseProcess, Any]) -> None:
    process, _ = holder
    assert process.pid is not None
    assert refusal(store) == busy(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE_S)
    lease = hold(store)
    assert refusal(store) == busy(os.getpid())
    done(lease.release())


def attempt_to_hold(url: str, pipe: Connection) -> None:
    """A process that tries once, and keeps what it got until all have tried."""
    with Store.open(url) as store:
        pipe.send("ready")
        assert pipe.poll(PATIENCE_S)
        pipe.recv()
        try:
            lease = hold(store)
            pipe.send(lease.conversation)
        except DecisionRefused as refused:
            pipe.send(refused.code)
        assert pipe.poll(PATIENCE_S)


@pytest.mark.timeout(180)
def test_of_many_processes_exactly_one_holds(url: str, store: Store) -> None:
    assert store.conversations() == []
    pipes = [multiprocessing.Pipe() for _ in range(MANY)]
    processes = [forked(attempt_to_hold, url, there) for _, there in pipes]
    try:
        assert all(here.poll(PATIENCE_S) and here.recv() == "ready" for here, _ in pipes)
        for here, _ in pipes:
            here.send("go")
        assert all(here.poll(PATIENCE_S) for here, _ in pipes)
        assert sorted(here.recv() for here, _ in pipes) == ["c-17", *["conversation_busy"] * (MANY - 1)]
    finally:
        for process in processes:
            process.kill()
            process.join()


def test_a_forked_child_holds_nothing_of_its_parent_and_frees_nothing(url: str, store: Store) -> None:
    lease, parent = hold(store), os.getpid()

    def child() -> None:
        with Store.open(url) as mine:
            assert refusal(mine) == busy(parent)
            with pytest.raises(StoreUnavailable, match="was closed"):
                done(lease.release())
            hold(mine, "c-18")

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(child), 0)[1]) == 0
    assert refusal(store) == busy(parent)
    # The child has ended, and took its own along.
    done(hold(store, "c-18").release())
    done(lease.release())
