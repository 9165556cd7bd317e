"""A store in memory. Its runs outlive a session, but not the process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from toolwire.journal.run import RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.deciding import ALLOWING, check
from toolwire.testing.futures import done
from toolwire.testing.ledger import MemoryLedger, Records
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest


class MemoryRun(MemoryLedger):
    """The ledger of one run of a `MemoryStore`."""

    def __init__(self, start: RunStart) -> None:
        super().__init__(start.run_id, Records())
        self.start = start
        self.status: RunStatus = "running"
        self.rev = 0
        self.is_leased = False
        self.outcome: Sequence[ToolResult] | None = None

    @property
    def caller(self) -> Caller:
        """The caller for which the run is made."""
        return self.start.caller

    @property
    def asked(self) -> frozenset[str]:
        """Ids of the calls that a person was asked about."""
        return frozenset(asked.request.call_id for asked in self.records.requests.values())

    def pending(self) -> tuple[ApprovalRequest, ...]:
        """Returns the requests that wait for a decision."""
        undecided = [asked.request for asked in self.records.requests.values() if asked.decision is None]
        return tuple(request for request in undecided if not _is_late(request))

    def finish(self, results: Sequence[ToolResult]) -> Future[None]:
        """Records the results of the run."""
        self.outcome, self.status = tuple(results), "finished"
        return done(lambda: None)

    def suspend(self) -> Future[SuspendedRun]:
        """Suspends the run and returns its state with the pending requests."""
        self.status, self.rev = "suspended", self.rev + 1
        root = digest(self.records.ended)
        view = SuspendedRun(
            start=self.start,
            rev=self.rev,
            head=len(self.records.ended),
            root=root,
            pending=self.pending(),
            key=MemoryStore.wire_key,
        )
        return done(lambda: view)

    def release(self) -> Future[None]:
        """Releases the run for another worker."""
        self.is_leased = False
        return done(lambda: None)


class MemoryStore:
    """A store that keeps runs as long as the object exists."""

    def __init__(self) -> None:
        self.kept: dict[str, MemoryRun] = {}

    def start(self, run: RunStart) -> Future[MemoryRun]:
        """Returns the ledger of a new run."""
        self.kept[run.run_id] = MemoryRun(run)
        return self.reopen(run.run_id)

    def reopen(self, run_id: str) -> Future[MemoryRun]:
        """Returns the ledger of an existing run. The future raises `DecisionRefused` if the run is unknown or busy."""
        return done(lambda: self._taken(run_id))

    wire_key = bytes(32)
    """The key that signs portable forms. It is public and protects nothing."""

    def run(self, run_id: str) -> MemoryRun:
        """Returns one run.

        Raises:
            DecisionRefused: `unknown_run`.
        """
        if run_id not in self.kept:
            raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
        return self.kept[run_id]

    def pending(self, run_id: str | None = None) -> list[ApprovalRequest]:
        """Returns the requests that wait for a decision; None selects all runs."""
        return [one for run in self.kept.values() if run_id in (None, run.run_id) for one in run.pending()]

    def decide(self, request_id: str, decision: Decision) -> Decision:
        """Records a decision. The first one counts.

        Raises:
            DecisionRefused: The request is unknown, decided or expired, or the decision does not fit it.
        """
        asked, decided = self.request(request_id)
        if decided is None:
            if _is_late(asked):
                raise DecisionRefused("expired", f"request {request_id} is no longer waiting", request_id=request_id)
            check(asked, decision)
        filled = replace(decision, request_id=request_id, at=decision.at or time.time())
        return self.kept[asked.run_id].decide(asked, filled).result()

    def request(self, request_id: str) -> tuple[ApprovalRequest, Decision | None]:
        """Returns a request, with its decision if it has one.

        Raises:
            DecisionRefused: `unknown_request`.
        """
        for run in self.kept.values():
            if request_id in run.records.requests:
                asked = run.records.requests[request_id]
                return asked.request, asked.decision
        raise DecisionRefused("unknown_request", f"there is no request {request_id!r}", request_id=request_id)

    def remembered(self, run_id: str | None = None) -> list[tuple[ApprovalRequest, Decision]]:
        """Returns the decisions that carry a rule, with their requests; None selects all runs."""
        return [
            (asked.request, asked.decision)
            for run in self.kept.values()
            if run_id in (None, run.run_id)
            for asked in run.records.requests.values()
            if asked.decision is not None
            and asked.decision.remember is not None
            and (asked.is_used or asked.decision.verdict not in ALLOWING)
        ]

    def _taken(self, run_id: str) -> MemoryRun:
        run = self.run(run_id)
        if run.is_leased:
            raise DecisionRefused("run_busy", f"another caller works on run {run_id!r}")
        run.is_leased = True
        run.restart()
        return run


def _is_late(request: ApprovalRequest) -> bool:
    return bool(request.expires_at) and time.time() > request.expires_at
