"""Runs on record: running a turn for the first time, or again after a decision, in any process."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol, cast

from toolwire.facade.built_in.kept_variables import KeptVariables, TurnVariables
from toolwire.facade.built_in.program_entry import engine_of_programs
from toolwire.facade.driving import async_ports, async_scope
from toolwire.facade.toolkits.kept_groups import GroupStore, KeptGroups
from toolwire.invocation.batch import invoke_turn
from toolwire.invocation.ports.offload import is_large_value, offload_if
from toolwire.invocation.ports.ports import Ledger
from toolwire.invocation.record import is_divergence, not_run, read_below
from toolwire.invocation.scope import Run, Scope, read_again
from toolwire.journal.kept_reply import reply_form, reply_of
from toolwire.journal.run import RUN_LIFE_S, ConversationChanged, RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.deciding import narrow_rule
from toolwire.session.runs.decision_check import check_decision
from toolwire.session.runs.wire import GivenDecisions, decisions_of, read_suspended
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller, Reply, ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import Pending, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, step_of
from toolwire.vocabulary.variables import VariablesChange


class KeptRun(Ledger, Protocol):
    """The ledger of a run, with the run itself."""

    start: RunStart

    @property
    def approval_call_ids(self) -> frozenset[str]:
        """Ids of the calls that a person was asked about in an earlier pass."""
        ...

    @property
    def outcome(self) -> Sequence[ToolResult] | None:
        """The results of a finished run; None while it is unfinished."""
        ...

    @property
    def urls(self) -> Sequence[str]:
        """URLs that stood whole in results which the conversation had read when the run was opened."""
        ...

    def finish(
        self,
        results: Sequence[ToolResult],
        taints: Iterable[Label] = (),
        urls: Iterable[str] = (),
        variables: VariablesChange | None = None,
    ) -> Future[None]: ...
    def suspend(self, taints: Iterable[Label] = (), urls: Iterable[str] = ()) -> Future[SuspendedRun | None]: ...
    def watch_stop(self, interrupt: Callable[[str], object]) -> str | None: ...
    def release(self) -> Future[None]: ...


class Standing(Protocol):
    """The current state of a run."""

    @property
    def status(self) -> RunStatus: ...
    @property
    def rev(self) -> int: ...
    @property
    def caller(self) -> Caller: ...


class RunStore(GroupStore, Protocol):
    """The store of runs, such as a `Store`, whose methods say what each does."""

    def start(self, run: RunStart) -> Future[Any]: ...
    def reopen(self, run_id: str) -> Future[Any]: ...
    @property
    def wire_key(self) -> bytes: ...
    def run(self, run_id: str) -> Standing: ...
    def pending(self, run_id: str | None = None) -> list[ApprovalRequest]: ...
    def request(self, request_id: str) -> tuple[ApprovalRequest, Decision | None]: ...
    def decisions_with_rules(
        self, *run_ids: str, caller: Caller | None = None
    ) -> list[tuple[ApprovalRequest, Decision]]: ...
    def decide(self, request_id: str, decision: Decision) -> Decision: ...
    def clock(self) -> float: ...


class Runs:
    """Starts and resumes the runs of one session."""

    def __init__(
        self,
        store: RunStore,
        scope: Callable[[], Scope],
        protocol: str,
        new_run: Callable[[Iterable[Label]], Run],
        variables: KeptVariables | None = None,
        groups: KeptGroups | None = None,
    ) -> None:
        """`scope` returns the session's present scope, and `new_run` the state of a turn with these labels."""
        self.store = store
        self.groups = groups or KeptGroups(store)
        self._variables = variables or KeptVariables("en", is_on=False)
        self._scope = scope
        self._protocol = protocol
        self._new_run = new_run
        self._restored = set[tuple[str, str]]()
        """The principals, with their tenants, whose rules for the workspace were restored."""

    def with_scope(self, scope: Scope) -> Runs:
        """Returns these runs for one turn, with its scope."""
        mine = Runs(self.store, lambda: scope, self._protocol, self._new_run, self._variables, self.groups)
        mine._restored = self._restored
        return mine

    async def restore_rules_once(self) -> None:
        """Restores the caller's rules for the workspace, unless an earlier turn has."""
        caller = self._scope().caller
        if (caller.principal, caller.tenant) not in self._restored:
            await asyncio.to_thread(self.restore_rules)

    async def prepare_resume(self, run: str | SuspendedRun, decisions: GivenDecisions | None) -> str:
        """Records the decisions on a run and restores its rules. Returns the run's id.

        Raises:
            DecisionRefused: The run or a decision is not valid.
        """
        # The store waits for a disk, which would block the event loop.
        run_id = await asyncio.to_thread(self.run_id_of, run)
        if decisions is not None:
            await asyncio.to_thread(self.decide, run_id, decisions_of(run_id, decisions))
        await asyncio.to_thread(self.restore_rules, run_id)
        return run_id

    async def start(self, run_id: str, reply: Reply, run: Run) -> Sequence[ToolResult] | SuspendedRun:
        """Records and runs a new run. Returns its results, or the suspended run."""
        self.groups.switch_on(self._scope())
        ports, is_changed = async_ports(self._scope()), False
        is_big = any(is_large_value(call.arguments) for call in reply.calls)
        while True:
            started = await offload_if(ports, is_big, lambda: self._open(run_id, reply, run))
            ledger = cast("KeptRun", await ports.wait_for(started))
            try:
                if is_changed and (recorded := ledger.record_start()) is not None:
                    await ports.wait_for(recorded)
                # Another process may have read more in this conversation.
                run.read(frozenset(ledger.start.taints))
                run.saw(ledger.urls)
                return await self._pass(ledger, reply, run)
            except ConversationChanged:
                # Nothing has run. This time the start is on record before the calls are judged.
                is_changed = True

    def _open(self, run_id: str, reply: Reply, run: Run) -> Future[Any]:
        """Opens a new run. The future gives its ledger."""
        return self.store.start(self._run_start(run_id, reply, run.taints))

    def submit(self, run_id: str, reply: Reply, taints: Iterable[Label], priority: int) -> Future[None]:
        """Records a run that a worker begins.

        Raises:
            ConfigurationError: The store hands nothing to workers.
        """
        submit = getattr(self.store, "submit", None)
        if submit is None:
            raise ConfigurationError(
                "submit: this store keeps no run for workers: write Store.open('postgresql://...')"
            )
        return submit(self._run_start(run_id, reply, taints), priority=priority)

    def _run_start(self, run_id: str, reply: Reply, taints: Iterable[Label]) -> RunStart:
        now = self.store.clock()
        scope = self._scope()
        called = [scope.catalogue.find(name) for name in dict.fromkeys(call.name for call in reply.calls)]
        return RunStart(
            run_id=run_id,
            reply=reply_form(reply),
            protocol=self._protocol,
            caller=scope.caller,
            conversation=scope.conversation,
            tools={entry.name: entry.tool.digest for entry in called if entry is not None},
            policy_digest=scope.policy.digest,
            taints=tuple(sorted(taints)),
            engine=engine_of_programs(scope),
            created_at=now,
            expires_at=now + RUN_LIFE_S,
            variables=self._variables.of(scope.caller),
        )

    def taints(self) -> frozenset[Label]:
        """Returns the labels of the data that the conversation has read in any process. Waits for the store."""
        scope, read = self._scope(), getattr(self.store, "taints", None)
        return frozenset() if read is None or not scope.conversation else read(scope.conversation, caller=scope.caller)

    async def has(self, run_id: str) -> bool:
        """Returns whether the run is on record.

        Raises:
            DecisionRefused: `not_permitted`: the run is another principal's.
        """
        find = getattr(self.store, "has_run", None)
        # Most keys are new, and a look at the whole run takes ten times as long.
        if find is not None and not await async_ports(self._scope()).wait_for(find(run_id)):
            return False
        try:
            await asyncio.to_thread(self.run_id_of, run_id)
        except DecisionRefused as refused:
            if refused.code != "unknown_run":
                raise
            return False
        return True

    async def run_again(
        self, run_id: str, expected: Reply | None = None
    ) -> tuple[Reply, Sequence[ToolResult] | SuspendedRun, Run]:
        """Runs a recorded run again, and returns its reply, its results or suspended form, and its state.

        A finished run is not run again; its recorded results are returned. With `expected`, a run of another reply
        diverges.

        Raises:
            DecisionRefused: The run is unknown, too old or held by another process, or it diverged from its record.
                Nothing was run, except that other calls of the reply may have run before a program diverged.
            ConfigurationError: The run holds a program, and the session runs none. Nothing was run.
        """
        ports = async_ports(self._scope())
        ledger = cast("KeptRun", await ports.wait_for(self.store.reopen(run_id)))
        try:
            await self.groups.read_later(self._scope(), ledger.start.conversation)
            if expected is not None and reply_form(expected) != ledger.start.reply:
                raise DecisionRefused(
                    "divergence", f"another reply has run with this key, as {run_id!r}: give each reply its own key"
                )
            reply, run = reply_of(ledger.start.reply), self._new_run(ledger.start.taints)
            run.saw(ledger.urls)
            if ledger.outcome is None:
                self._compare(ledger, reply)
            else:
                self._read_again(ledger, reply, run)
        except BaseException:
            await ports.wait_for(ledger.release())
            raise
        if ledger.outcome is None:
            return reply, await self._pass(ledger, reply, run), run
        await ports.wait_for(ledger.release())
        return reply, ledger.outcome, run

    def _read_again(self, ledger: KeptRun, reply: Reply, run: Run) -> None:
        """Adds the labels of a finished run's results, because the model reads them once more, and restores its end."""
        scope = replace(self._scope(), run=run, ledger=ledger)
        for call, result in zip(run_calls(ledger.run_id, reply), ledger.outcome or (), strict=True):
            read_again(call.name, result, scope, call.arguments)
            if run.end is not None:
                run.end.recall(call, result, scope)
            read_below(call.id, scope.tools.find(call.name), scope)

    def _compare(self, ledger: KeptRun, reply: Reply) -> None:
        """Refuses a run that this session cannot replay, or that differs from its record.

        This happens before its calls run, since they run in parallel.
        """
        has_program, engine = any(call.name == CODE_EXECUTION for call in reply.calls), ledger.start.engine
        if has_program and engine != (here := engine_of_programs(self._scope())):
            raise DecisionRefused(
                "divergence",
                f"the run's program was recorded on {engine!r} and this is {here!r}: it would not replay the same way. "
                "Resume it with the same runner, and the same version of Python and toolwire.",
            )
        known = [ledger.recall(step_of(call)) for call in run_calls(ledger.run_id, reply)]
        _refuse_divergence([result for result in known if isinstance(result, ToolResult)])
        if has_program and self._scope().tools.find(CODE_EXECUTION) is None:
            raise ConfigurationError(
                f"the run {ledger.run_id!r} holds a program, and this session runs none: write "
                "Session(..., programs=True)"
            )

    async def _pass(self, ledger: KeptRun, reply: Reply, run: Run) -> Sequence[ToolResult] | SuspendedRun:
        start = ledger.start
        shared = None if start.variables is None else TurnVariables(start.variables, self._variables.language)
        scope = async_scope(
            self._scope(),
            run_id=ledger.run_id,
            run=run,
            end=run.end,
            variables=shared,
            ledger=ledger,
            pages=ledger.pages,
            can_suspend=True,
            secret_key=self._secret_key,
        )
        calls = run_calls(ledger.run_id, reply)
        run.asked, run.open_calls = ledger.approval_call_ids, len(calls)
        run.stopped = ledger.watch_stop(run.interrupt) or run.stopped
        try:
            outcomes = await invoke_turn(calls, scope, run, is_sequence=reply.is_sequence)
            results = [outcome for outcome in outcomes if not isinstance(outcome, Pending)]
            _refuse_divergence(results)
            await self.groups.keep(scope, start.conversation)
            if len(results) < len(outcomes) and run.stopped is None:
                suspended = await scope.ports.wait_for(ledger.suspend(run.taints, run.urls))
                if suspended is not None:
                    return suspended
            results = [
                _result_at_stop(outcome, run, ledger) if isinstance(outcome, Pending) else outcome
                for outcome in outcomes
            ]
            changed = None if shared is None else shared.joined_change
            await scope.ports.wait_for(ledger.finish(results, run.taints, run.urls, changed))
            if changed is not None and not start.caller.principal:
                self._variables.keep(start.caller, changed)
            scope.policy.forget(ledger.run_id)
            return results
        finally:
            try:
                # Records the end of the last call too, if the end of the turn has not.
                await scope.ports.wait_for(ledger.release())
                await scope.ports.unless_stopped(run.tell_last(), run.under_way)
            finally:
                run.break_off_last()

    def run_id_of(self, run: str | SuspendedRun) -> str:
        """Returns the id of a run. A portable form must agree with the run's current state.

        Raises:
            DecisionRefused: The run is unknown or belongs to another principal, or the text was changed or describes an
                earlier revision.
            ConfigurationError: `run` has another type.
        """
        if not isinstance(cast("object", run), str | SuspendedRun):
            raise ConfigurationError(f"resume({run!r:.80}): give the id of a run, or turn.suspended")
        if isinstance(run, SuspendedRun) or not run.lstrip().startswith("{"):
            run_id = run.run_id if isinstance(run, SuspendedRun) else run
            if self.store.run(run_id).caller.principal != self._scope().caller.principal:
                raise DecisionRefused("not_permitted", "this run is another principal's")
            return run_id
        view = read_suspended(
            run, self.store.wire_key, principal=self._scope().caller.principal, now=self.store.clock()
        )
        now = self.store.run(view.run_id)
        # A finished run only returns its record, so an old revision does no harm.
        if now.status in ("running", "suspended") and now.rev != view.rev:
            raise DecisionRefused(
                "stale_rev", f"this describes run {view.run_id!r} at revision {view.rev}, and it is now at {now.rev}"
            )
        return view.run_id

    def restore_rules(self, *run_ids: str) -> None:
        """Restores the caller's rules that people chose to keep: of the workspace, and of these runs' sessions.

        A rule is restored only if this session's policy accepts its decider. It waits for the store.
        """
        policy, caller = self._scope().policy, self._scope().caller
        for request, decision in self.store.decisions_with_rules(*run_ids, caller=caller):
            rule = decision.remember
            if rule is None or not (rule.scope == "workspace" or request.run_id in run_ids):
                continue
            if policy.refuses(decision, request) is None:
                policy.restore(narrow_rule(rule, request))
        self._restored.add((caller.principal, caller.tenant))

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
                check_decision(request, decision, self._scope(), self._secret_key)
        for decision in given:
            try:
                self.store.decide(decision.request_id, decision)
            except DecisionRefused as refused:
                # Two workers may hand in the same decision; it is still one decision.
                if refused.decided is None or not _is_same(refused.decided, decision):
                    raise

    @property
    def _secret_key(self) -> bytes:
        """Key that hashes the secrets among arguments.

        It is the same in every process with this store, and in no other.
        """
        return hmac.digest(self.store.wire_key, b"toolwire secrets 1", "sha256")


def run_calls(run_id: str, reply: Reply) -> list[ToolCall]:
    """Returns the reply's calls with ids of the run. A model may repeat an id, but a run must not."""
    return [
        ToolCall(call.name, call.arguments, id=f"{run_id}/{ordinal}", raw_text=call.raw_text)
        for ordinal, call in enumerate(reply.calls, 1)
    ]


def provider_ids(run_id: str, reply: Reply) -> dict[str, str]:
    """Returns the provider's call ids by our ids. A text protocol's calls have none."""
    return {f"{run_id}/{ordinal}": call.id for ordinal, call in enumerate(reply.calls, 1) if call.id}


def _refuse_divergence(results: Iterable[ToolResult]) -> None:
    for result in results:
        if is_divergence(result):
            raise DecisionRefused("divergence", result.error or "the run did not follow its record")


def _is_same(first: Decision, second: Decision) -> bool:
    return (first.verdict, first.arguments, first.answer) == (second.verdict, second.arguments, second.answer)


def _result_at_stop(outcome: Pending, run: Run, ledger: Ledger) -> ToolResult:
    """Returns the result of a call that waited when its run was stopped. A tool that asks has begun."""
    known = ledger.recall(step_of(outcome.call))
    return not_run(outcome.call, run.stopped or "", known if isinstance(known, InDoubtStep) else None)
