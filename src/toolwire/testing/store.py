"""A store in memory. Its runs outlive a session, but not the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from toolwire.journal.run import RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.deciding import ALLOWING, check_authority
from toolwire.permission.seen_urls import with_urls
from toolwire.testing.ledger import MemoryLedger, Records, done
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest
from toolwire.vocabulary.variables import VariablesChange, drop_oldest, with_change


class MemoryRun(MemoryLedger):
    """The ledger of one run of a `MemoryStore`."""

    def __init__(
        self, start: RunStart, has_read: set[Label], has_seen: dict[str, None], variables: dict[str, str]
    ) -> None:
        super().__init__(start.run_id, Records())
        self.start = start
        self.has_read = has_read
        """Labels of the data that the run's conversation has read."""
        self.has_seen = has_seen
        """URLs that stood whole in results which the run's conversation has read."""
        self.variables = variables
        """Variables that the conversation's programs for this caller share."""
        self.status: RunStatus = "running"
        self.rev = 0
        self.is_leased = False
        self.outcome: Sequence[ToolResult] | None = None

    @property
    def caller(self) -> Caller:
        """The caller for which the run is made."""
        return self.start.caller

    @property
    def approval_call_ids(self) -> frozenset[str]:
        """Ids of the calls that a person was asked about."""
        requests = [asked.request for asked in self.records.requests.values()]
        return frozenset(request.call_id for request in requests if request.kind == "approval")

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs that the conversation has read so far."""
        return tuple(self.has_seen)

    def pending(self) -> tuple[ApprovalRequest, ...]:
        """Returns the requests that wait for a decision; none once the run has finished."""
        if self.status == "finished":
            return ()
        undecided = [asked.request for asked in self.records.requests.values() if asked.decision is None]
        return tuple(request for request in undecided if not _is_late(request))

    @done
    def finish(
        self,
        results: Sequence[ToolResult],
        taints: Iterable[Label] = (),
        urls: Iterable[str] = (),
        variables: VariablesChange | None = None,
    ) -> None:
        """Records the results of the run."""
        self.outcome, self.status = tuple(results), "finished"
        self._has_read(taints, urls)
        if variables is not None and self.caller.principal:
            kept = with_change(self.variables, variables)
            drop_oldest(kept)
            self.variables.clear()
            self.variables.update(kept)

    @done
    def suspend(self, taints: Iterable[Label] = (), urls: Iterable[str] = ()) -> SuspendedRun:
        """Suspends the run and returns its state with the pending requests."""
        self.status, self.rev = "suspended", self.rev + 1
        self._has_read(taints, urls)
        return SuspendedRun(
            start=self.start,
            rev=self.rev,
            head=len(self.records.ended),
            root=digest(self.records.ended),
            pending=self.pending(),
            key=MemoryStore.wire_key,
        )

    def _has_read(self, taints: Iterable[Label], urls: Iterable[str]) -> None:
        self.has_read.update(taints)
        kept = with_urls(self.has_seen, urls)
        self.has_seen.clear()
        self.has_seen.update(kept)

    def watch_stop(self, interrupt: Callable[[str], object]) -> str | None:  # noqa: ARG002 - nothing stops it
        """Returns None: no other process can stop the run."""
        return None

    @done
    def release(self) -> None:
        """Releases the run for another worker."""
        self.is_leased = False


class MemoryStore:
    """A store that keeps runs in memory as long as the object exists: `Session(tools, store=MemoryStore())`."""

    def __init__(self) -> None:
        self.kept: dict[str, MemoryRun] = {}
        self._conversations: dict[str, tuple[Caller, set[Label], dict[str, None]]] = {}
        self._groups: dict[str, frozenset[str]] = {}
        self._variables: dict[tuple[str, Caller], dict[str, str]] = {}

    @done
    def start(self, run: RunStart) -> MemoryRun:
        """Returns the ledger of a new run, which has read what its conversation has read.

        The future raises `DecisionRefused`: `not_permitted` if the conversation is another principal's, or `run_busy`
        if the run was started before.
        """
        if run.run_id in self.kept:
            raise DecisionRefused("run_busy", f"run {run.run_id!r} was started before")
        _, has_read, has_seen = self._conversation_of(run.conversation or run.run_id, run.caller)
        has_read.update(run.taints)
        variables = self._variables.setdefault((run.conversation or run.run_id, run.caller), {})
        start = replace(run, taints=tuple(sorted(has_read)))
        if run.variables is not None and run.caller.principal:
            start = replace(start, variables=dict(variables))
        self.kept[run.run_id] = MemoryRun(start, has_read, has_seen, variables)
        return self._lease_run(run.run_id)

    @done
    def reopen(self, run_id: str) -> MemoryRun:
        """Returns the ledger of an existing run. The future raises `DecisionRefused` if the run is unknown or busy."""
        return self._lease_run(run_id)

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

    def clock(self) -> float:
        """Returns the seconds since the epoch by which requests and runs expire."""
        return time.time()

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
            check_authority(asked, decision)
        filled = replace(decision, request_id=request_id, at=decision.at or self.clock())
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

    def decisions_with_rules(
        self, *run_ids: str, caller: Caller | None = None
    ) -> list[tuple[ApprovalRequest, Decision]]:
        """Returns the decisions that carry a rule, with their requests: of these runs, or without any of all runs.

        With `caller`, they are those of these runs, and those for the workspace of the caller's principal and tenant.
        """
        found = [
            (run.run_id, asked.request, asked.decision, asked.decision.remember)
            for run in self.kept.values()
            for asked in run.records.requests.values()
            if asked.decision is not None
            and asked.decision.remember is not None
            and (asked.is_used or asked.decision.verdict not in ALLOWING)
        ]
        return [
            (request, decision)
            for run_id, request, decision, rule in found
            if run_id in run_ids
            or (caller is None and not run_ids)
            or (caller is not None and rule.scope == "workspace" and _is_of(request.caller, caller))
        ]

    def active_groups(self, conversation: str, *, caller: Caller) -> frozenset[str]:
        """Returns the tool groups that were active at the end of the conversation's last turn."""
        owner = self._conversations.get(conversation, (caller, set(), {}))[0]
        return self._groups.get(conversation, frozenset()) if _is_of(owner, caller) else frozenset()

    @done
    def keep_groups(self, conversation: str, groups: Iterable[str], *, caller: Caller) -> None:
        """Records the active tool groups of a conversation.

        The future raises `DecisionRefused` (`not_permitted`) if the conversation is another principal's.
        """
        self._conversation_of(conversation, caller)
        self._groups[conversation] = frozenset(groups)

    def _conversation_of(self, name: str, caller: Caller) -> tuple[Caller, set[Label], dict[str, None]]:
        """Returns a conversation. A new one belongs to the caller."""
        found = self._conversations.setdefault(name, (caller, set(), {}))
        if not _is_of(found[0], caller):
            raise DecisionRefused("not_permitted", f"conversation {name!r} is another principal's")
        return found

    def _lease_run(self, run_id: str) -> MemoryRun:
        run = self.run(run_id)
        if run.is_leased:
            raise DecisionRefused("run_busy", f"another caller works on run {run_id!r}")
        run.is_leased = True
        if run.outcome is None:
            run.start = replace(run.start, taints=tuple(sorted(run.has_read)))
        run.restart()
        return run


def _is_of(one: Caller, caller: Caller) -> bool:
    return (one.principal, one.tenant) == (caller.principal, caller.tenant)


def _is_late(request: ApprovalRequest) -> bool:
    return bool(request.expires_at) and time.time() > request.expires_at
