"""Runs mutants after one collection of the tests. Each mutant is tried in a fork, which imports and collects nothing.

mutmut's own runner starts pytest for each mutant, which takes ten times as long as most mutants live.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from mutmut.configuration import config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd
from mutmut.workers.isolation import ForkRunner, MutantResult
from mutmut.workers.timeout import register_timeout

WAIT_S = 60.0
"""Seconds of the clock after which a mutant that waits for ever is ended. On a busy machine a fork may stand still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mutant with the tests that enter its function. It may use `limit_s` seconds of the processor."""

    name: str
    tests: Sequence[str]
    limit_s: int


class CollectingOnce(ForkRunner):
    """mutmut's runner, but the mutants run when all are known, from within one session of pytest."""

    def __init__(self, children: int) -> None:
        super().__init__(children, PytestRunner())
        self._mutants: list[Mutant] = []
        self._results: Iterator[MutantResult] = iter(())
        self._left = 0

    def has_capacity(self) -> bool:
        return True

    def submit(self, mutant_name: str, tests: list[str], cpu_time_limit: int, estimated_time: float) -> None:
        tests.sort(key=lambda test: state().duration_by_test[test])
        self._mutants.append(Mutant(name=mutant_name, tests=tests, limit_s=cpu_time_limit))

    def signal_work_complete(self) -> None:
        session = _Session(self._mutants, self.max_workers)
        arguments = ["-q", *config().pytest_add_cli_args_test_selection, *config().pytest_add_cli_args]
        with change_cwd("mutants"):
            pytest.main(["--rootdir=.", *arguments], plugins=[session])
        self._results, self._left = iter(session.results), len(session.results)

    def pending_count(self) -> int:
        return self._left

    def wait_for_result(self, timeout: float | None = None) -> MutantResult:
        self._left -= 1
        return next(self._results)


class _Session:
    """The plugin that takes the place of pytest's loop over the tests."""

    def __init__(self, mutants: Sequence[Mutant], children: int) -> None:
        self._mutants = mutants
        self._children = children
        self._running: dict[int, tuple[Mutant, float]] = {}
        self.results: list[MutantResult] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            if len(self._running) >= self._children:
                self._reap()
            self._fork(session, mutant, [items[test] for test in mutant.tests])
        while self._running:
            self._reap()
        return True

    def _fork(self, session: pytest.Session, mutant: Mutant, items: Sequence[pytest.Item]) -> None:
        pid = os.fork()
        if pid:
            register_timeout(pid=pid, timeout_s=WAIT_S + 10 * mutant.limit_s)
            self._running[pid] = mutant, time.monotonic()
            return
        code = 1
        try:
            limit = mutant.limit_s + int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            set_mutant_under_test(mutant.name)
            session.config.pluginmanager.register(_FirstFailure())
            session.config.pluginmanager.unregister(name="terminalreporter")
            _run(items)
            code = 0
        finally:
            os._exit(code)

    def _reap(self) -> None:
        pid, status = os.wait()
        mutant, began = self._running.pop(pid)
        seconds = time.monotonic() - began
        code = os.waitstatus_to_exitcode(status)
        self.results.append(MutantResult(mutant_name=mutant.name, exit_code=code, duration=seconds))


class _FirstFailure:
    """The plugin of a fork. It ends at the first failure, without the report, which takes longer than most tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None:
            os._exit(1)


def _run(items: Sequence[pytest.Item]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
