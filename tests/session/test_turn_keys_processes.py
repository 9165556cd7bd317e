"""Several processes that get the same message at once: one of them runs its turn."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.forks import forked
from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.patience import PATIENCE_S
from toolwire import DecisionRefused, Reply, Session, Store, ToolCall

MANY = 4
"""Processes at once."""


def work(url: str, folder: str, pipe: Connection) -> None:
    """A process that makes the turn when it is told to."""

    def pay(amount: int) -> int:
        """Pays."""
        with (Path(folder) / "paid").open("a") as paid:
            paid.write(f"{amount}\n")
        return amount

    with Store.open(url) as store:
        session = Session([pay], protocol="openai", store=store, conversation="c-1")
        pipe.send("ready")
        assert pipe.poll(PATIENCE_S)
        try:
            told = session.run_turn(Reply(calls=(ToolCall("pay", {"amount": 5}),)), key="m-1").results[0].text
        except DecisionRefused as refused:
            told = refused.code
        pipe.send(told)


def test_one_of_many_processes_runs_the_turn(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    opened()
    pipes, processes = list[Connection](), list[BaseProcess]()
    for _ in range(MANY):
        here, there = multiprocessing.Pipe()
        processes.append(forked(work, url, str(tmp_path), there))
        there.close()
        pipes.append(here)
    for pipe in pipes:
        assert pipe.poll(PATIENCE_S)
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    said = [pipe.recv() for pipe in pipes if pipe.poll(PATIENCE_S)]
    for process in processes:
        # Each closes its store, and writes until then.
        process.join(PATIENCE_S)
    assert (tmp_path / "paid").read_text() == "5\n"
    assert len(said) == MANY
    assert "5" in said
    assert {*said} <= {"5", "run_busy", "conversation_busy"}
