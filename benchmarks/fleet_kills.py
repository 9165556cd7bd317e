"""Kills workers and runners of a fleet at random: no run is lost, and nothing is paid twice.

Run: python -m benchmarks.fleet_kills [seeds] [kills] [runs]. The suite runs a short form of it
(`tests/fleet/test_faults.py`). Each worker is on a host of its own, so that only its lease tells whether it lives.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.quick import Constants
from tests.fleet.runners import Authority, Identity, RunnerProcess
from tests.fleet.till import EFFECTS_FILE, SLOW_S, doubled, effects_in, reply, session
from tests.fleet.workers import WorkerProcess
from tests.journal.postgres import running

from benchmarks.kills import in_child
from toolwire import Decision
from toolwire.fleet import ProcrastinateQueue
from toolwire.journal.store import Store

SEEDS, KILLS, RUNS = 5, 20, 100
WORKERS, RUNNERS = 3, 2
APPROVED = 10
"""Runs that need an approval."""
PAUSE_S = 0.5
"""Most seconds from an effect to a kill."""
LIMIT_S = 120.0
"""Seconds after the last kill in which each run must end, or ask a person."""
KEY = bytes(32)
APP = "tests.fleet.till:session_for"
_CONTROL_SLOW_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one seed does. The tools take `slow_s` each; `constants` are those of the fleet to be changed."""

    runs: int = RUNS
    kills: int = KILLS
    approved: int = APPROVED
    concurrency: int = 3
    slow_s: float = 0.5
    constants: Constants | None = None


@dataclass(frozen=True, kw_only=True)
class Toll:
    """The result of the kills of one seed."""

    kills: int
    runs: int
    lost: int
    """Runs that neither ended nor ask a person because their call is in doubt."""
    doubled: int
    """Second payments, and second keys of what was sent."""
    missing: int
    """Calls that a run says it has made, and that had no effect."""
    doubts: int
    """Runs that ask a person whether a call that may have run shall run again."""
    failed: int
    """Programs whose process was lost during a call, so that they ended with an error."""
    is_whole: bool
    """The log is whole."""
    seconds: float

    @property
    def is_good(self) -> bool:
        return self.is_whole and not (self.lost or self.doubled or self.missing)


class Fleet:
    """Workers and runners. One that is killed is started again at once, as by a supervisor."""

    def __init__(self, url: str, folder: Path, effects: Path, plan: Plan) -> None:
        self._url, self._folder, self._plan = url, folder, plan
        authority = Authority(folder, "ours")
        self._runner, self._worker, self._ca = authority.identity("runner"), authority.identity("worker"), authority.ca
        self._environment = {**os.environ, EFFECTS_FILE: str(effects), SLOW_S: str(plan.slow_s)}
        self._started = 0
        # Starting a runner waits until it listens, and the kills go on meanwhile.
        self._threads = ThreadPoolExecutor()
        self._runners = [self._threads.submit(self._start_runner, "127.0.0.1:0") for _ in range(RUNNERS)]
        self._addresses = [runner.result().address for runner in self._runners]
        self._workers = [self._start_worker() for _ in range(WORKERS)]

    def kill(self, place: int) -> None:
        """Kills one of the processes, and starts it again."""
        if place < WORKERS:
            self._workers[place].kill()
            self._workers[place] = self._start_worker()
        else:
            at = place - WORKERS
            self._runners[at].result().kill()
            self._runners[at] = self._threads.submit(self._start_runner, self._addresses[at])

    def close(self) -> None:
        """Kills all of them."""
        for process in (*self._workers, *(runner.result() for runner in self._runners)):
            process.kill()
        self._threads.shutdown()

    def _start_runner(self, address: str) -> RunnerProcess:
        options = [*_identity(self._runner), "--client-ca", str(self._ca)]
        return RunnerProcess(self._next_file(), "--listen", address, *options)

    def _start_worker(self) -> WorkerProcess:
        runners = [text for address in self._addresses for text in ("--runner", address)]
        options = [*_identity(self._worker), "--ca", str(self._ca), "--trust", "kernel+namespaces"]
        concurrency = ("--concurrency", str(self._plan.concurrency))
        return WorkerProcess(
            self._url, (*runners, *options, *concurrency), self._environment, self._next_file(),
            app=APP, is_host=True, constants=self._plan.constants,
        )  # fmt: skip

    def _next_file(self) -> Path:
        self._started += 1
        return self._folder / f"said{self._started}"


def _identity(identity: Identity) -> list[str]:
    return ["--cert", str(identity.cert), "--key", str(identity.key)]


def kill_fleet(url: str, folder: Path, plan: Plan, seed: int) -> Toll:
    """Submits runs to a new fleet, kills its processes at random, and returns what became of the runs."""
    chance, effects, began = random.Random(seed), folder / "effects", time.monotonic()
    ProcrastinateQueue().migrate(url)
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(url, key=KEY, queue=ProcrastinateQueue()))
        fleet = Fleet(url, folder, effects, plan)
        stack.callback(fleet.close)
        jobs = {
            session(number, store).run_submit(reply(number, approved=plan.approved)): number
            for number in range(plan.runs)
        }
        for number in range(plan.kills):
            # By what is done and not by the clock: on a busy machine a worker may take long to start.
            share = (number + chance.random()) / plan.kills
            _until_done(store, jobs, time.monotonic() + LIMIT_S, effects=(effects, int(share * 2 * plan.runs)))
            time.sleep(chance.uniform(0, PAUSE_S))
            fleet.kill(chance.randrange(WORKERS + RUNNERS))
        lost = _until_done(store, jobs, time.monotonic() + LIMIT_S)
        fleet.close()
        return _toll(store, jobs, lost, effects, plan, time.monotonic() - began)


def _until_done(store: Store, jobs: Collection[str], until: float, effects: tuple[Path, int] | None = None) -> set[str]:
    """Approves what is asked for, until all runs are done, or so many effects, or that time. Returns those left."""
    while True:
        requests = store.pending()
        for request in requests:
            if request.attempt == 1:
                store.decide(request.id, Decision(verdict="approve"))
        doubtful = {request.run_id for request in requests if request.attempt > 1}
        runs = {run.run_id: run.status for run in store.runs(limit=len(jobs))}
        left = {run_id for run_id in jobs if runs[run_id] != "finished" and run_id not in doubtful}
        is_enough = effects is not None and len(effects_in(effects[0])) > effects[1]
        if not left or is_enough or time.monotonic() > until:
            return left
        time.sleep(0.1)


def _toll(store: Store, jobs: dict[str, int], lost: set[str], effects: Path, plan: Plan, seconds: float) -> Toll:
    done = effects_in(effects)
    had = {(effect["tool"], effect["number"]) for effect in done}
    doubts = failed = missing = 0
    for run_id, number in jobs.items():
        run = store.run(run_id)
        if run.status != "finished":
            doubts += run_id not in lost
            continue
        results = session(number, store).run_wait(run_id, timeout_s=LIMIT_S).results
        if all(result.success for result in results):
            names = ["send", "pay", *(["wire"] if number < plan.approved else [])]
            missing += sum((name, number) not in had for name in names)
        else:
            failed += 1
    return Toll(
        kills=plan.kills, runs=plan.runs, lost=len(lost), doubled=doubled(done), missing=missing, doubts=doubts,
        failed=failed, is_whole=store.verify().is_whole, seconds=round(seconds, 1),
    )  # fmt: skip


def kill_without_store(effects: Path, plan: Plan, seed: int) -> int:
    """The control: the same jobs without a store, begun anew when their process dies. Returns what was doubled."""
    chance = random.Random(seed)
    for number in range(plan.kills):
        before = len(effects_in(effects))
        child = in_child(lambda number=number: _do(number, effects))
        until = time.monotonic() + LIMIT_S
        while len(effects_in(effects)) == before and time.monotonic() < until:
            time.sleep(0.01)
        # The first effect is what was sent; some of them have paid when they are killed, and some have not.
        time.sleep(chance.uniform(0, 2 * _CONTROL_SLOW_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.waitpid(in_child(lambda number=number: _do(number, effects)), 0)
    return doubled(effects_in(effects))


def _do(number: int, effects: Path) -> None:
    os.environ |= {EFFECTS_FILE: str(effects), SLOW_S: str(_CONTROL_SLOW_S)}
    # Programs would need a sandbox in each of these processes, so all of them are calls.
    session(2 * number, None).run_turn(reply(2 * number, approved=0))


def main() -> int:
    """Several seeds, and the control; 1 if a run was lost or something was paid twice."""
    given = [int(text) for text in sys.argv[1:]]
    seeds, kills, runs = (*given, *(SEEDS, KILLS, RUNS)[len(given) :])
    plan, is_bad = Plan(kills=kills, runs=runs), False
    os.environ["TOOLWIRE_KEY"] = KEY.hex()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        # Before any thread is there: it forks.
        control = kill_without_store(folder / "control", plan, seed=0)
        print(f"the same jobs without a store: {control} doubled by {plan.kills} kills", flush=True)
        # The server runs as another user, which may not read this folder.
        with running(Path(f"{folder}-server"), folder / "users") as server:
            for seed in range(seeds):
                server.create(f"seed{seed}", is_new=True)
                below = folder / f"seed{seed}"
                below.mkdir()
                toll = kill_fleet(server.url(f"seed{seed}"), below, plan, seed)
                print(f"{toll} (seed {seed})", flush=True)
                is_bad = is_bad or not toll.is_good
    return int(is_bad or not control)


if __name__ == "__main__":
    sys.exit(main())
