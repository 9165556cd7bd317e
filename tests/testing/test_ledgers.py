"""The kit for ledgers passes correct ones, and names the fault of a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.journal.world import run_start
from tests.patience import PATIENCE_S
from tests.testing.kits.ledgers import LEDGER_CHECKS, MakeLedger, check_ledger
from toolwire import Store
from toolwire.invocation.ports.ports import Ledger
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.testing import PortFails
from toolwire.testing.ledger import MemoryLedger, Records
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step


def in_memory(kind: type[MemoryLedger] = MemoryLedger) -> Callable[[], Ledger]:
    records = Records()
    return lambda: kind("r_1", records)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.delenv("TOOLWIRE_KEY", raising=False)
    store = Store.open(f"sqlite:///{tmp_path}/runs.db")
    yield store
    store.close()


@pytest.fixture
def real(store: Store) -> MakeLedger:
    def make() -> Callable[[], Ledger]:
        run, opened = run_start(), list[Any]()

        def open_it() -> Ledger:
            if opened:
                opened[-1].release().result(PATIENCE_S)
            opened.append((store.reopen(run.run_id) if opened else store.start(run)).result(PATIENCE_S))
            return opened[-1]

        return open_it

    return make


@pytest.mark.parametrize("check", LEDGER_CHECKS)
def test_the_ledger_in_memory_passes(check: str) -> None:
    LEDGER_CHECKS[check](in_memory)


@pytest.mark.parametrize("check", LEDGER_CHECKS)
def test_the_ledger_of_the_store_passes(check: str, real: MakeLedger) -> None:
    LEDGER_CHECKS[check](real)


def test_all_checks_are_run_at_once(real: MakeLedger) -> None:
    check_ledger(in_memory)
    check_ledger(real)


# -- wrong ones --------------------------------------------------------------------------------------------------


class Forgets(MemoryLedger):
    """Loses everything with its process."""

    def __init__(self, run_id: str, records: Records) -> None:
        super().__init__(run_id)


class AllowsTwoDecisions(MemoryLedger):
    """Takes every decision for the one that counts."""

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        asked = self.records.requests.get(request.id)
        if asked is not None:
            asked.decision = None
        return super().decide(request, decision)


class BeginsTwice(MemoryLedger):
    """Does not look whether a step runs."""

    def begin(self, start: Start) -> Future[float | ToolResult]:
        self._running.clear()
        return super().begin(start)


class IgnoresDigests(MemoryLedger):
    """Gives the result of whatever had the key."""

    def recall(self, step: Step) -> ToolResult | InDoubtStep | None:
        kept = self.records.steps.get(step.key)
        return super().recall(step if kept is None else replace(step, digest=kept.step.digest))


class UsesApprovalsAgain(MemoryLedger):
    """One approval, any number of steps."""

    def begin(self, start: Start) -> Future[float | ToolResult]:
        return super().begin(replace(start, request_id=""))


class TakesUnaskedDecisions(MemoryLedger):
    """Lets anything be decided."""

    def decide(self, request: ApprovalRequest, decision: Decision) -> Future[Decision]:
        self.ask(request)
        return super().decide(request, decision)


class DropsNotes(MemoryLedger):
    """Keeps the last note only."""

    def note(self, parent: str, entry: Any) -> None:
        self.records.notes.pop(parent, None)
        super().note(parent, entry)


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (
            Forgets,
            [
                "remembers how a step ended",
                "doubts what never ended",
                "an interrupted step is in doubt",
                "another digest has no result",
                "a composite began the first time",
                "asks once",
                "the first decision counts",
                "an approval is used once",
                "what ended is given in its order",
                "notes are kept in order",
            ],
        ),
        (AllowsTwoDecisions, ["the first decision counts", "one of many decisions counts"]),
        (BeginsTwice, ["a step is not begun twice at once"]),
        (IgnoresDigests, ["another digest has no result"]),
        (UsesApprovalsAgain, ["an approval is used once"]),
        (TakesUnaskedDecisions, ["what was never asked cannot be decided"]),
        (DropsNotes, ["notes are kept in order"]),
    ],
)
def test_a_wrong_ledger_is_told_by_what_it_does(kind: type[MemoryLedger], broken: list[str]) -> None:
    with pytest.raises(PortFails) as failed:
        check_ledger(lambda: in_memory(kind))
    assert [line.partition(": ")[0] for line in str(failed.value).splitlines()] == broken


def test_an_exception_is_a_failure_of_its_check() -> None:
    def make() -> Callable[[], Ledger]:
        raise OSError("no disk")

    with pytest.raises(PortFails) as failed:
        check_ledger(make)
    assert str(failed.value).splitlines()[0] == "knows nothing new: it raised OSError('no disk')"
