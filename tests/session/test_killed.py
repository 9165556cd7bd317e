"""Killed at every moment, a run goes on: nothing paid is paid twice, nothing lost is lost in silence."""

from __future__ import annotations

import multiprocessing
import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.journal.postgres import Server
from tests.patience import PATIENCE_S
from tests.session.killed import DOUBT, MADE, Attempt, damage, go, happened, resume_all, resumed, suspended

SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload(["tests.session.killed"])
RUNS = 12


class Died(Exception):
    """The process was killed; `said` holds its messages until then."""

    def __init__(self, said: list[Any]) -> None:
        super().__init__(said)
        self.said = said


def lives(attempt: Attempt) -> list[Any]:
    """The messages of a process that makes the attempt."""
    here, there = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=go, args=(attempt, there))
    process.start()
    there.close()
    said: list[Any] = []
    while here.poll(PATIENCE_S):
        try:
            said.append(here.recv())
        except EOFError:
            break
    process.join(PATIENCE_S)
    if process.exitcode == -9:
        raise Died(said)
    assert process.exitcode == 0
    return said


def dies(attempt: Attempt) -> str:
    """The id of the run that it was in when it was killed; empty when it had none, or came to its end alive."""
    try:
        lives(attempt)
    except Died as died:
        return died.said[0] if died.said else ""
    return ""


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, int]:
    """The number of moments in an undisturbed run: of calls, and of a program."""
    found: dict[bool, int] = {}
    for is_program in (False, True):
        folder = tmp_path_factory.mktemp("whole")
        attempt = Attempt(url=f"sqlite:///{folder}/runs.db", effects=str(folder / "effects"), is_program=is_program)
        _, end = lives(attempt)
        found[is_program] = end["moments"]
    return found


@pytest.mark.threat(16)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("is_program", [False, True], ids=["calls", "program"])
def test_a_run_that_is_killed_at_any_moment_goes_on(
    tmp_path: Path, moments: dict[bool, int], is_program: bool, whole: bool
) -> None:
    doubts = kills = 0
    # A plain call has eight moments: three at `begin`, two around its effect, three at `settle`. A stride of five
    # reaches each of them. A program's moments are the same, and each costs three processes and a sandbox.
    step = 1 if whole else 6 if is_program else 5
    for moment in range(1, moments[is_program] + 1, step):
        effects = tmp_path / f"effects{moment}"
        attempt = Attempt(
            url=f"sqlite:///{tmp_path}/runs.db", effects=str(effects), dies_at=moment, is_program=is_program
        )
        run_id = dies(attempt)
        kills += 1
        if not run_id:
            continue
        # Killed a second time, at another moment, while the run is resumed.
        again = replace(attempt, run_id=run_id, dies_at=moment % 7 + 1)
        try:
            end = lives(again)[-1]
        except Died:
            kills += 1
            end = lives(replace(again, dies_at=0))[-1]
        found = damage(happened(effects), end, is_program=is_program)
        assert (found.lost, found.hidden, found.doubled) == (0, 0, 0)
        doubts += found.doubts
        # Only a tool whose owner cannot look is ever in doubt.
        unclear = [tool for (tool, _), text in zip(MADE, end["texts"], strict=False) if DOUBT in text]
        assert is_program or set(unclear) <= {"pay"}
    assert kills >= (80 if is_program else 100) // step
    # Some of these moments lie between an effect and its record: there must have been something to be in doubt of.
    assert doubts >= 1 + (not is_program)


@pytest.mark.threat(16)
def test_a_naive_run_that_is_killed_pays_twice(tmp_path: Path) -> None:
    """The control: without a ledger a process that starts again does everything again."""
    effects = tmp_path / "effects"
    attempt = Attempt(url=f"sqlite:///{tmp_path}/a.db", effects=str(effects), dies_at=0)
    lives(attempt)
    lives(replace(attempt, url=f"sqlite:///{tmp_path}/b.db"))
    done = Counter((effect["tool"], effect["amount"]) for effect in happened(effects))
    assert done["pay", 3] == 2


@pytest.mark.threat(1)
@pytest.mark.threat(18)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_eight_processes_that_resume_the_same_runs_pay_each_once(
    tmp_path: Path, where: str, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    if where == "postgresql":
        server: Server = request.getfixturevalue("server")
        name = f"t{secrets.token_hex(6)}"
        server.create(name)
        url = server.url(name)
    attempt = Attempt(url=url, effects=str(tmp_path / "effects"))
    run_ids = suspended(attempt, RUNS)
    pipes = [SPAWN.Pipe(duplex=False) for _ in range(8)]
    processes = [SPAWN.Process(target=resume_all, args=(attempt, run_ids, there)) for _, there in pipes]
    for process in processes:
        process.start()
    told: list[list[str]] = [here.recv() for here, _ in pipes if here.poll(PATIENCE_S)]
    for process in processes:
        process.join(PATIENCE_S)
    paid = Counter(effect["amount"] for effect in happened(tmp_path / "effects"))
    assert paid == Counter(range(RUNS))
    # The second process got the recorded turn, or the error that another process holds the run.
    assert len(told) == len(pipes)
    assert {outcome for one in told for outcome in one} <= {"paid", "run_busy"}
    assert all(any(one[place] == "paid" for one in told) for place in range(RUNS))


@pytest.mark.threat(18)
def test_without_one_record_eight_workers_pay_eight_times(tmp_path: Path) -> None:
    """The control: the same decision handed to eight independent stores."""
    for place in range(8):
        attempt = Attempt(url=f"sqlite:///{tmp_path}/{place}.db", effects=str(tmp_path / "effects"))
        resumed(attempt, suspended(attempt, 1))
    assert Counter(effect["amount"] for effect in happened(tmp_path / "effects")) == Counter({0: 8})
