"""Runs on record: running a turn for the first time, or again after a decision, in any process."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol, cast

from toolwire.catalogue.entry import Entry
from toolwire.facade.driving import awaited
from toolwire.invocation.aside import beside, is_large
from toolwire.invocation.authorize import with_edits
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.ports import Ledger
from toolwire.invocation.record import is_divergence
from toolwire.invocation.scope import Run, Scope, read_again
from toolwire.invocation.validate import validate
from toolwire.journal.run import RUN_LIFE_S, RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.deciding import narrowed
from toolwire.sandbox.answers import replay_engine
from toolwire.session.kept_reply import kept, read
from toolwire.session.wire import read_decisions, read_suspended
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller, Reply, ToolCall
from toolwire.vocabulary.results import Pending, ToolResult
from toolwire.vocabulary.run_step import step_of


class KeptRun(Ledger, Protocol):
    """The ledger of a run, with the run itself."""

    start: RunStart

    @property
    def asked(self) -> frozenset[str]:
        """Ids of the calls that a person was asked about in an earlier pass."""
        ...

    @property
    def outcome(self) -> Sequence[ToolResult] | None:
        """The results of a finished run; None while it is unfinished."""
        ...

    def finish(self, results: Sequence[ToolResult]) -> Future[None]: ...
    def suspend(self) -> Future[SuspendedRun]: ...
    def release(self) -> Future[None]: ...


class Standing(Protocol):
    """The current state of a run."""

    @property
    def status(self) -> RunStatus: ...
    @property
    def rev(self) -> int: ...
    @property
    def caller(self) -> Caller: ...


class RunStore(Protocol):
    """The store of runs."""

    def start(self, run: RunStart) -> Future[Any]: ...
    def reopen(self, run_id: str) -> Future[Any]: ...
    @property
    def wire_key(self) -> bytes: ...
    def run(self, run_id: str) -> Standing: ...
    def pending(self, run_id: str | None = None) -> list[ApprovalRequest]: ...
    def request(self, request_id: str) -> tuple[ApprovalRequest, Decision | None]: ...
    def remembered(self, run_id: str | None = None) -> list[tuple[ApprovalRequest, Decision]]: ...
    def decide(self, request_id: str, decision: Decision) -> Decision: ...


class Passes:
    """Makes passes over the runs of one session."""

    def __init__(self, store: RunStore, scope: Callable[[], Scope], protocol: str) -> None:
        """`scope` returns the session's present scope."""
        self.store = store
        self._scope = scope
        self._protocol = protocol

    async def start(self, run_id: str, reply: Reply, run: Run) -> Sequence[ToolResult] | SuspendedRun:
        """Records and runs a new run. Returns its results, or the suspended run."""
        ports = awaited(self._scope()).ports
        is_big = any(is_large(call.arguments) for call in reply.calls)
        started = await beside(ports, is_big, lambda: self._started(run_id, reply, run))
        return await self._pass(await ports.arrived(started), reply, run)

    def _started(self, run_id: str, reply: Reply, run: Run) -> Future[Any]:
        """Records a new run. The future gives its ledger."""
        now = time.time()
        names = {call.name for call in reply.calls}
        scope = self._scope()
        entries = [entry for entry in scope.catalogue if entry.name in names]
        start = RunStart(
            run_id=run_id,
            reply=kept(reply),
            protocol=self._protocol,
            caller=scope.caller,
            tools={entry.name: entry.tool.digest for entry in entries},
            policy_digest=scope.policy.digest,
            taints=tuple(sorted(run.taints)),
            engine=replay_engine,
            created_at=now,
            expires_at=now + RUN_LIFE_S,
        )
        return self.store.start(start)

    async def again(self, run_id: str) -> tuple[Reply, Sequence[ToolResult] | SuspendedRun, Run]:
        """Runs a recorded run again, and returns its reply, its results or suspended form, and its state.

        A finished run is not run again; its recorded results are returned.

        Raises:
            DecisionRefused: The run is unknown, too old or held by another process, or it diverged from its record.
                Nothing was run, except that other calls of the reply may have run before a program diverged.
        """
        ports = awaited(self._scope()).ports
        ledger = cast("KeptRun", await ports.arrived(self.store.reopen(run_id)))
        reply, run = read(ledger.start.reply), Run(ledger.start.taints)
        if ledger.outcome is not None:
            self._read_again(ledger, reply, run)
            await ports.arrived(ledger.release())
            return reply, ledger.outcome, run
        if ledger.start.engine != replay_engine and any(call.name == CODE_EXECUTION for call in reply.calls):
            await ports.arrived(ledger.release())
            raise DecisionRefused("divergence", _other_engine(ledger.start.engine))
        await self._compare(ledger, reply)
        return reply, await self._pass(ledger, reply, run), run

    def _read_again(self, ledger: KeptRun, reply: Reply, run: Run) -> None:
        """Adds the labels of a finished run's results, because the model reads them once more."""
        scope = replace(self._scope(), run=run)
        for call, result in zip(run_calls(ledger.run_id, reply), ledger.outcome or (), strict=True):
            read_again(call.name, result, scope)
            for step, inner in ledger.recorded(call.id):
                read_again(step.tool, inner, scope)

    async def _compare(self, ledger: KeptRun, reply: Reply) -> None:
        """Refuses a reply that differs from the recorded one.

        This happens before its calls run, since they run in parallel.
        """
        known = [ledger.recall(step_of(call)) for call in run_calls(ledger.run_id, reply)]
        for result in known:
            if isinstance(result, ToolResult) and is_divergence(result):
                await awaited(self._scope()).ports.arrived(ledger.release())
                raise DecisionRefused("divergence", result.error or "the run did not follow its record")

    async def _pass(self, ledger: KeptRun, reply: Reply, run: Run) -> Sequence[ToolResult] | SuspendedRun:
        scope = replace(
            awaited(self._scope()),
            run_id=ledger.run_id,
            run=run,
            ledger=ledger,
            can_suspend=True,
            secret_key=self._secret_key,
        )
        run.asked = ledger.asked
        try:
            outcomes = await invoke_all(run_calls(ledger.run_id, reply), scope)
            results = [outcome for outcome in outcomes if not isinstance(outcome, Pending)]
            for result in results:
                if is_divergence(result):
                    raise DecisionRefused("divergence", result.error or "the run did not follow its record")
            if len(results) < len(outcomes) and run.stopped is None:
                return await scope.ports.arrived(ledger.suspend())
            results = [_stopped(outcome, run) if isinstance(outcome, Pending) else outcome for outcome in outcomes]
            await scope.ports.arrived(ledger.finish(results))
            scope.policy.forget(ledger.run_id)
            return results
        finally:
            await scope.ports.arrived(ledger.release())

    def named(self, run: str | SuspendedRun) -> str:
        """Returns the id of a run. A portable form must agree with the run's current state.

        Raises:
            DecisionRefused: The run is unknown or belongs to another principal, or the text was changed or describes an
                earlier revision.
        """
        if isinstance(run, SuspendedRun) or not run.lstrip().startswith("{"):
            run_id = run.run_id if isinstance(run, SuspendedRun) else run
            if self.store.run(run_id).caller.principal != self._scope().caller.principal:
                raise DecisionRefused("not_permitted", "this run is another principal's")
            return run_id
        view = read_suspended(run, self.store.wire_key, principal=self._scope().caller.principal)
        now = self.store.run(view.run_id)
        # A finished run only returns its record, so an old revision does no harm.
        if now.status in ("running", "suspended") and now.rev != view.rev:
            raise DecisionRefused(
                "stale_rev", f"this describes run {view.run_id!r} at revision {view.rev}, and it is now at {now.rev}"
            )
        return view.run_id

    def restore_rules(self, run_id: str | None = None) -> None:
        """Restores the rules that people chose to keep: those of the workspace, and those of this run and its session.

        A rule is restored only if this session's policy accepts its decider.
        """
        policy = self._scope().policy
        for request, decision in self.store.remembered():
            rule = decision.remember
            if rule is None or not (rule.scope == "workspace" or request.run_id == run_id):
                continue
            if policy.refuses(decision, request) is None:
                policy.restore(narrowed(rule, request))

    def decide(self, run_id: str, decisions: Iterable[Decision]) -> None:
        """Records decisions, after checking all of them.

        Raises:
            DecisionRefused: A decision is not valid; `code` gives the reason. If a check failed, none was recorded. If
                the store refused one, the decisions before it stay recorded.
        """
        given = list(decisions)
        waiting = {request.id for request in self.store.pending(run_id)}
        for decision in given:
            request, _ = self.store.request(decision.request_id)
            if request.run_id != run_id:
                raise DecisionRefused(
                    "unknown_request",
                    f"run {run_id!r} has no request {decision.request_id!r}",
                    request_id=decision.request_id,
                )
            if request.id in waiting:
                self._look_at(request, decision)
        for decision in given:
            try:
                self.store.decide(decision.request_id, decision)
            except DecisionRefused as refused:
                # Two workers may hand in the same decision; it is still one decision.
                if refused.decided is None or not _is_same(refused.decided, decision):
                    raise

    def _look_at(self, request: ApprovalRequest, decision: Decision) -> None:
        entry = self._scope().catalogue.find(request.tool)
        if entry is not None and entry.tool.digest != request.tool_digest:
            raise DecisionRefused(
                "tool_changed",
                f"{request.tool!r} is not the tool that was shown: ask again",
                request_id=request.id,
            )
        reason = self._scope().policy.refuses(decision, request)
        if reason is not None:
            raise DecisionRefused("not_permitted", reason, request_id=request.id)
        # The call of a removed tool ends as `unknown_tool`, whatever the decision is.
        if decision.verdict != "edit" or entry is None:
            return
        problem = self._problem_of(request, entry, decision)
        if problem is not None:
            raise DecisionRefused("invalid_edit", problem, request_id=request.id)

    @property
    def _secret_key(self) -> bytes:
        """Key that hashes the secrets among arguments.

        It is the same in every process with this store, and in no other.
        """
        return hmac.digest(self.store.wire_key, b"toolwire secrets 1", "sha256")

    def _problem_of(self, request: ApprovalRequest, entry: Entry, decision: Decision) -> str | None:
        """Returns the reason why an edited call would not run. The path itself answers, with the facts of the run.

        None without a reason.
        """
        run = Run(request.taints)
        scope = replace(self._scope(), run_id=request.run_id, run=run, secret_key=self._secret_key)
        arguments = request.given or request.arguments
        call = ToolCall(request.tool, arguments, id=request.call_id, parent=request.parent)
        shown = validate(call, entry, scope.states)
        edited = shown if isinstance(shown, ToolResult) else with_edits(shown, decision, scope)
        return edited.error if isinstance(edited, ToolResult) else None


def run_calls(run_id: str, reply: Reply) -> list[ToolCall]:
    """Returns the reply's calls with ids of the run. A model may repeat an id, but a run must not."""
    return [
        ToolCall(call.name, call.arguments, id=f"{run_id}/{ordinal}", raw_text=call.raw_text)
        for ordinal, call in enumerate(reply.calls, 1)
    ]


def decisions_of(
    run_id: str, given: str | Mapping[str, Any] | Iterable[Decision | Mapping[str, Any]]
) -> list[Decision]:
    """Returns decisions from any of the accepted forms.

    Raises:
        DecisionRefused: `malformed`, or `unknown_run` if the decisions are for another run.
    """
    if isinstance(given, str | Mapping):
        read = read_decisions(cast("str | Mapping[str, Any]", given))
        if read.run_id not in ("", run_id):
            raise DecisionRefused("unknown_run", f"the decisions are for run {read.run_id!r}, not {run_id!r}")
        return list(read.items)
    items = list(given)
    plain = [item for item in items if not isinstance(item, Decision)]
    rest = iter(read_decisions(plain).items if plain else ())
    return [item if isinstance(item, Decision) else next(rest) for item in items]


def given_ids(run_id: str, reply: Reply) -> dict[str, str]:
    """Returns the provider's call ids by our ids. A text protocol's calls have none."""
    return {f"{run_id}/{ordinal}": call.id for ordinal, call in enumerate(reply.calls, 1) if call.id}


def _other_engine(engine: str) -> str:
    return (
        f"the run's program was recorded on {engine!r} and this is {replay_engine!r}: it would not replay the same "
        "way. Resume it with the same version of Python and toolwire."
    )


def _is_same(first: Decision, second: Decision) -> bool:
    return (first.verdict, first.arguments) == (second.verdict, second.arguments)


def _stopped(outcome: Pending, run: Run) -> ToolResult:
    return ToolResult.failed(
        "interrupted",
        f"{outcome.call.name!r} was not run: {run.stopped}.",
        hint="Make no more calls; tell the user.",
        call=outcome.call,
    )
