"""A turn on record: gone through once, or again after a person decided, in whatever process."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, cast

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import canonical
from toolwire.facade.setup import Setup
from toolwire.invocation.aside import beside, is_large
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.ports import Ledger
from toolwire.invocation.record import is_divergence
from toolwire.invocation.scope import Run, read_again
from toolwire.invocation.validate import validate
from toolwire.journal.run import RUN_LIFE_S, RunStart, RunStatus, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.deciding import narrowed
from toolwire.permission.policy import Subject
from toolwire.sandbox.answers import replay_engine
from toolwire.session.kept_reply import kept, read
from toolwire.session.wire import read_decisions, read_suspended
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller, Reply, ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.pending import Pending
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.steps import step_of


class KeptRun(Ledger, Protocol):
    """The ledger of a run, with the run itself."""

    start: RunStart

    @property
    def asked(self) -> frozenset[str]:
        """Ids of the calls that a person was asked about before."""
        ...

    @property
    def outcome(self) -> Sequence[ToolResult] | None:
        """The results of a run that is finished; None while it is not."""
        ...

    def finish(self, results: Sequence[ToolResult]) -> Future[None]: ...
    def suspend(self) -> Future[SuspendedRun]: ...
    def release(self) -> Future[None]: ...


class Standing(Protocol):
    """How a run stands."""

    @property
    def status(self) -> RunStatus: ...
    @property
    def rev(self) -> int: ...
    @property
    def caller(self) -> Caller: ...


class RunStore(Protocol):
    """Where runs are kept."""

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
    """Goes through the runs of one session."""

    def __init__(self, store: RunStore, catalogue: Catalogue, setup: Setup, protocol: str) -> None:
        self.store = store
        self._catalogue = catalogue
        self.setup = setup
        self._protocol = protocol

    async def start(self, run_id: str, reply: Reply, run: Run) -> Sequence[ToolResult] | SuspendedRun:
        """What a new run comes to."""
        ports = self.setup.loop_scope(self._catalogue).ports
        is_big = any(is_large(call.arguments) for call in reply.calls)
        started = await beside(ports, is_big, lambda: self._started(run_id, reply, run))
        return await self._pass(await ports.arrived(started), reply, run)

    def _started(self, run_id: str, reply: Reply, run: Run) -> Future[Any]:
        """The ledger of a new run."""
        now = time.time()
        names = {call.name for call in reply.calls}
        entries = [entry for entry in self._catalogue if entry.name in names]
        start = RunStart(
            run_id=run_id,
            reply=kept(reply),
            protocol=self._protocol,
            caller=self.setup.caller,
            tools={entry.name: entry.tool.digest for entry in entries},
            policy_digest=self.setup.policy.digest,
            taints=tuple(sorted(run.taints)),
            engine=replay_engine,
            created_at=now,
            expires_at=now + RUN_LIFE_S,
        )
        return self.store.start(start)

    async def again(self, run_id: str) -> tuple[Reply, Sequence[ToolResult] | SuspendedRun, Run]:
        """What a run on record comes to now; one that is finished is not gone through again.

        Raises:
            DecisionRefused: there is no such run here, somebody else is at it, it is too old, or it went another way
                than its record: then nothing was run.
        """
        ports = self.setup.loop_scope(self._catalogue).ports
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
        """Adds the labels of a finished run's results: the model reads them once more."""
        scope = self.setup.loop_scope(self._catalogue)
        scope.run = run
        for call, result in zip(run_calls(ledger.run_id, reply), ledger.outcome or (), strict=True):
            read_again(call.name, result, scope)
            for step, inner in ledger.recorded(call.id):
                read_again(step.tool, inner, scope)

    async def _compare(self, ledger: KeptRun, reply: Reply) -> None:
        """Refuses a reply that is not the recorded one before any call of it runs: they run side by side."""
        known = [ledger.recall(step_of(call)) for call in run_calls(ledger.run_id, reply)]
        for result in known:
            if isinstance(result, ToolResult) and is_divergence(result):
                await self.setup.loop_scope(self._catalogue).ports.arrived(ledger.release())
                raise DecisionRefused("divergence", result.error or "the run went another way than its record")

    async def _pass(self, ledger: KeptRun, reply: Reply, run: Run) -> Sequence[ToolResult] | SuspendedRun:
        scope = self.setup.loop_scope(self._catalogue, run_id=ledger.run_id)
        scope.run, scope.ledger, scope.can_suspend = run, ledger, True
        scope.secret_key = self._secret_key
        run.asked = ledger.asked
        try:
            outcomes = await invoke_all(run_calls(ledger.run_id, reply), scope)
            results = [outcome for outcome in outcomes if not isinstance(outcome, Pending)]
            for result in results:
                if is_divergence(result):
                    raise DecisionRefused("divergence", result.error or "the run went another way than its record")
            if len(results) < len(outcomes) and run.stopped is None:
                return await scope.ports.arrived(ledger.suspend())
            results = [_stopped(outcome, run) if isinstance(outcome, Pending) else outcome for outcome in outcomes]
            await scope.ports.arrived(ledger.finish(results))
            self.setup.policy.forget(ledger.run_id)
            return results
        finally:
            await scope.ports.arrived(ledger.release())

    def named(self, run: str | SuspendedRun) -> str:
        """The id of the run that is meant; what a portable form says of it must be how it stands.

        Raises:
            DecisionRefused: there is no such run, it is another principal's, or the text was changed or is of an
                earlier revision.
        """
        if isinstance(run, SuspendedRun) or not run.lstrip().startswith("{"):
            run_id = run.run_id if isinstance(run, SuspendedRun) else run
            if self.store.run(run_id).caller.principal != self.setup.caller.principal:
                raise DecisionRefused("not_permitted", "this run is another principal's")
            return run_id
        view = read_suspended(run, self.store.wire_key, principal=self.setup.caller.principal)
        now = self.store.run(view.run_id)
        # How a run ended is told again to whoever asks: nothing is run for it.
        if now.status in ("running", "suspended") and now.rev != view.rev:
            raise DecisionRefused(
                "stale_rev", f"this is how run {view.run_id!r} stood at {view.rev}, and it stands at {now.rev}"
            )
        return view.run_id

    def restore_rules(self, run_id: str | None = None) -> None:
        """Puts the rules into force that people chose to keep: for good, and those of the run and its session.

        Who decided must be somebody whom this session's policy lets decide.
        """
        policy = self.setup.policy
        for request, decision in self.store.remembered():
            rule = decision.remember
            if rule is None or not (rule.scope == "workspace" or request.run_id == run_id):
                continue
            if policy.refuses(decision, request) is None:
                policy.restore(narrowed(rule, request))

    def decide(self, run_id: str, decisions: Iterable[Decision]) -> None:
        """Takes decisions down, all of them looked at before the first is.

        Raises:
            DecisionRefused: one of them does not count; `code` says why. Those before it do.
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
                # A decision may be handed in twice, by two workers say: it is still the one decision.
                if refused.decided is None or not _is_same(refused.decided, decision):
                    raise

    def _look_at(self, request: ApprovalRequest, decision: Decision) -> None:
        entry = self._catalogue.find(request.tool)
        if entry is not None and entry.tool.digest != request.tool_digest:
            raise DecisionRefused(
                "tool_changed",
                f"{request.tool!r} is not the tool that was shown: ask again",
                request_id=request.id,
            )
        reason = self.setup.policy.refuses(decision, request)
        if reason is not None:
            raise DecisionRefused("not_permitted", reason, request_id=request.id)
        # The call of a tool that was removed ends as `unknown_tool`, whatever was decided.
        if decision.verdict != "edit" or entry is None:
            return
        call = ToolCall(request.tool, decision.arguments, id=request.call_id)
        problem = self._problem_of(call, entry)
        if problem is not None:
            raise DecisionRefused("invalid_edit", problem, request_id=request.id)

    @property
    def _secret_key(self) -> bytes:
        """Hashes the secrets among arguments: the same in every process that has the store, and in no other."""
        return hmac.digest(self.store.wire_key, b"toolwire secrets 1", "sha256")

    def _problem_of(self, call: ToolCall, entry: Entry) -> str | None:
        """What is wrong with an edited call: it does not fit, or a rule denies it."""
        prepared = validate(call, entry, self.setup.states)
        if isinstance(prepared, ToolResult):
            return prepared.error
        try:
            arguments = canonical(prepared.validated, self._secret_key)
        except Unrepresentable as error:
            return str(error)
        subject = Subject(
            arguments=arguments,
            caller=self.setup.caller,
            run_id="",
            effects=entry.tool.effects.kinds,
            taints=frozenset(),
        )
        verdict = self.setup.policy.judge(entry.name, entry.permission or entry.tool.permission, subject)
        return "; ".join(verdict.reasons) if verdict.effect == "deny" else None


def run_calls(run_id: str, reply: Reply) -> list[ToolCall]:
    """The reply's calls under ids of the run: a model may use one twice, and a run may not."""
    return [
        ToolCall(call.name, call.arguments, id=f"{run_id}/{ordinal}", raw_text=call.raw_text)
        for ordinal, call in enumerate(reply.calls, 1)
    ]


def decisions_of(
    run_id: str, given: str | Mapping[str, Any] | Iterable[Decision | Mapping[str, Any]]
) -> list[Decision]:
    """What was decided, from the forms in which it may be handed in.

    Raises:
        DecisionRefused: `malformed`, or `unknown_run` for the decisions of another run.
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
    """The ids that the provider gave its calls, by those of the run; a text protocol's calls have none."""
    return {f"{run_id}/{ordinal}": call.id for ordinal, call in enumerate(reply.calls, 1) if call.id}


def _other_engine(engine: str) -> str:
    return (
        f"the run's program was recorded on {engine!r} and this is {replay_engine!r}: it would not go the same way. "
        "Resume it with the same version of Python and toolwire."
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
