"""Kills processes that write to one store: every record that was answered is still there afterwards.

Run: python -m benchmarks.kills [kills] [url]. The suite runs a short form of it.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.run import RunStart
from toolwire.journal.store import Store
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step, step_of
from toolwire.vocabulary.values import digest

KILLS = 1_000
ACKS_LIMIT = 60
_PATIENCE_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Toll:
    """The result of a number of kills."""

    kills: int
    acked: int
    """Records that were answered before the kill."""
    lost: int
    """Answered records that are missing."""
    doubtful: int
    """Steps that were begun and whose end is unknown: each is reported as in doubt."""


def kill_loop(url: str, kills: int, *, seed: int, is_patient: bool = True) -> Toll:
    """Kills a number of writers. One that is not patient answers before the store has: the control, which loses."""
    chance, acked, lost, doubtful = random.Random(seed), 0, 0, 0
    for number in range(kills):
        run_id = f"r_{seed}_{number}_{int(is_patient)}"
        reading, writing = os.pipe()
        child = in_child(lambda run_id=run_id, to=writing: _write(url, run_id, to, is_patient=is_patient))
        os.close(writing)
        lines = _killed_after(child, reading, chance.randint(1, ACKS_LIMIT))
        with Store.open(url) as store:
            found = _look(store, run_id, lines)
            acked, lost, doubtful = acked + len(lines), lost + found[0], doubtful + found[1]
    return Toll(kills=kills, acked=acked, lost=lost, doubtful=doubtful)


def contend(url: str, processes: int, writes: int) -> list[int]:
    """The exit codes of processes that write at once; 0 is success."""
    children = [in_child(lambda: _write_some(url, f"r_{os.getpid()}", writes)) for _ in range(processes)]
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def in_child(work: Callable[[], None]) -> int:
    """Forks a process that does that and ends."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
        os._exit(1)


def begun(store: Store, run_id: str) -> RunLedger:
    """A new run whose start is on record."""
    run = RunStart(run_id=run_id, reply={}, protocol="", created_at=time.time())
    ledger = store.start(run).result(_PATIENCE_S)
    if (recorded := ledger.record_start()) is not None:
        recorded.result(_PATIENCE_S)
    return ledger


def step_number(number: int) -> Step:
    """One of the steps of such a run."""
    return step_of(ToolCall("pay", {"amount": number}, id=str(number)))


def start_of(step: Step) -> Start:
    """The record that is written before the step."""
    return Start(
        step=step,
        arguments={"amount": 1},
        arguments_digest=digest({}),
        tool_digest="",
        idempotent="no",
        is_composite=False,
    )


def _write(url: str, run_id: str, to: int, *, is_patient: bool) -> None:
    store = Store.open(url)
    ledger = begun(store, run_id)
    os.write(to, b"run 0\n")
    for number in itertools.count():
        step = step_number(number)
        for word, future in (("begun", ledger.begin(start_of(step))), ("ended", None)):
            answer = future or ledger.settle(step, ToolResult(True, {"paid": number}))
            if is_patient:
                answer.result(_PATIENCE_S)
            os.write(to, f"{word} {number}\n".encode())


def _write_some(url: str, run_id: str, writes: int) -> None:
    with Store.open(url) as store:
        ledger = begun(store, run_id)
        for number in range(writes):
            step = step_number(number)
            assert isinstance(ledger.begin(start_of(step)).result(_PATIENCE_S), float)
            ledger.settle(step, ToolResult(True, number)).result(_PATIENCE_S)
        ledger.finish([]).result(_PATIENCE_S)


def _killed_after(child: int, reading: int, acks: int) -> list[str]:
    said = b""
    while said.count(b"\n") < acks:
        more = os.read(reading, 65_536)
        if not more:
            break
        said += more
    os.kill(child, signal.SIGKILL)
    while more := os.read(reading, 65_536):
        said += more
    os.close(reading)
    os.waitpid(child, 0)
    return said.decode().splitlines()


def _look(store: Store, run_id: str, lines: list[str]) -> tuple[int, int]:
    """How many of the records that were answered are lost, and how many steps are in doubt."""
    if not any(run.run_id == run_id for run in store.runs(limit=5)):
        return len(lines), 0
    ledger = store.reopen(run_id).result(_PATIENCE_S)
    lost = doubtful = 0
    for line in lines:
        word, _, number = line.partition(" ")
        known = ledger.recall(step_number(int(number))) if word != "run" else None
        if word == "begun":
            lost += known is None
            doubtful += isinstance(known, InDoubtStep)
        elif word == "ended":
            lost += not isinstance(known, ToolResult) or known.data != {"paid": int(number)}
    ledger.release().result(_PATIENCE_S)
    return lost, doubtful


def main() -> int:
    """Many kills; 1 when a record was lost."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(time.time())
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[2] if len(sys.argv) > 2 else f"sqlite:///{Path(folder)}/runs.db"
        toll = kill_loop(url, kills, seed=seed)
        with Store.open(url) as store:
            check = store.verify()
    print(f"{toll} (seed {seed}); the log: {check}")
    return 1 if toll.lost or not check.is_whole else 0


if __name__ == "__main__":
    sys.exit(main())
