"""The passes over a run, with a store in memory: what is recorded, what runs, and what comes back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from tests.invocation.alone import entry_of, scope_of
from toolwire.invocation.aside import ASIDE_BYTES
from toolwire.invocation.scope import Run, Scope
from toolwire.journal.run import RUN_LIFE_S, RunStart, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.policy import Policy, Rule
from toolwire.sandbox.answers import replay_engine
from toolwire.session.kept_reply import kept
from toolwire.session.resume import Passes, given_ids, run_calls
from toolwire.session.wire import suspended_to_json
from toolwire.testing.ledger import MemoryLedger, Records
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Step, step_of

EVE = Caller(principal="eve", agent="clerk")
KEY = b"w" * 32
REPLY = Reply(text="so", calls=(ToolCall("pay", {"amount": 5}, id="given", raw_text="pay 5"),))
TWO = Reply(calls=(ToolCall("pay", {"amount": 5}, id="x"), ToolCall("pay", {"amount": 6}, id="x"), ToolCall("other")))
PROGRAM = Reply(calls=(ToolCall("pay", {"amount": 5}), ToolCall(CODE_EXECUTION, {"code": "1"})))


def done(value: Any) -> Future[Any]:
    future = Future[Any]()
    future.set_result(value)
    return future


class Kept(MemoryLedger):
    """The ledger of a run that notes what becomes of the run."""

    def __init__(self, start: RunStart, records: Records | None = None) -> None:
        super().__init__(start.run_id, records)
        self.start = start
        self.asked: frozenset[str] = frozenset()
        self.outcome: Sequence[ToolResult] | None = None
        self.urls: Sequence[str] = ()
        self.ends: list[Any] = []
        self.pages = SimpleNamespace()  # pyright: ignore[reportAttributeAccessIssue]

    def finish(self, results: Sequence[ToolResult], taints: Iterable[str] = (), urls: Iterable[str] = ()) -> Any:
        self.ends.append(("finish", list(results), frozenset(taints), list(urls)))
        return done(None)

    def suspend(self, taints: Iterable[str] = (), urls: Iterable[str] = ()) -> Future[SuspendedRun]:
        self.ends.append(("suspend", frozenset(taints), list(urls)))
        return done("suspended")

    def release(self) -> Future[None]:
        self.ends.append("release")
        return done(None)


@dataclass
class Store:
    """A store of one run."""

    wire_key: bytes = KEY
    opening: Callable[[Kept], object] = lambda ledger: None
    """Changes the ledger that the store gives."""
    reply: Reply = REPLY
    taints: Any = ()
    engine: str = replay_engine
    standing: Any = field(default_factory=lambda: SimpleNamespace(status="suspended", rev=3, caller=EVE))
    requests: dict[str, tuple[ApprovalRequest, Decision | None]] = field(default_factory=dict[str, Any])
    rules: list[tuple[ApprovalRequest, Decision]] = field(default_factory=list[Any])
    decided: list[Any] = field(default_factory=list[Any])
    refusal: DecisionRefused | None = None
    started: list[RunStart] = field(default_factory=list[RunStart])
    ledger: Any = None

    def start(self, run: RunStart) -> Future[Any]:
        self.started.append(run)
        return self._opened(run)

    def reopen(self, run_id: str) -> Future[Any]:
        start = RunStart(run_id=run_id, reply=kept(self.reply), protocol="xml", taints=self.taints, engine=self.engine)
        return self._opened(start)

    def _opened(self, start: RunStart) -> Future[Any]:
        self.ledger = Kept(start)
        self.opening(self.ledger)
        return done(self.ledger)

    def run(self, run_id: str) -> Any:
        self.asked_for = run_id
        return self.standing

    def pending(self, run_id: str | None = None) -> list[ApprovalRequest]:
        return [
            request for request, decision in self.requests.values() if decision is None and request.run_id == run_id
        ]

    def request(self, request_id: str) -> tuple[ApprovalRequest, Decision | None]:
        return self.requests[request_id]

    def remembered(self, run_id: str | None = None) -> list[tuple[ApprovalRequest, Decision]]:
        return self.rules

    def decide(self, request_id: str, decision: Decision) -> Decision:
        self.decided.append((request_id, decision))
        if self.refusal is not None:
            raise self.refusal
        return decision


class End:
    """The end of a turn that is told of recorded calls."""

    name, call_id = "finish", ""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def recall(self, call: ToolCall, result: ToolResult, scope: Any, /) -> None:
        self.told.append((call, result, scope.run, scope.ledger))


class Till:
    """A tool that pays, and the scope in which it was called."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, amount: int) -> str:
        self.paid.append(amount)
        return f"paid {amount}, see https://a.example/{amount}"


def scoped(till: Till | None = None, **more: Any) -> Scope:
    return scope_of((till or Till()).pay, **{"caller": EVE, "options": {"labels": ["private"]}, **more})


def passes_of(store: Store, scope: Scope | None = None, end: Any = None) -> Passes:
    scope = scope or scoped()
    return Passes(store, lambda: scope, "xml", lambda taints: Run(taints, end))  # pyright: ignore


def running(core: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(core)


def paid(amount: int, ordinal: int = 1, **more: Any) -> ToolResult:
    """The result of the call that pays this amount."""
    text = f"paid {amount}, see https://a.example/{amount}"
    return ToolResult(True, text, call=ToolCall("pay", {"amount": amount}, id=f"r_1/{ordinal}", **more))


# -- a new run --


def test_a_new_run_is_recorded_with_everything_it_starts_from() -> None:
    store, scope = Store(), scoped(conversation="c_1", policy=Policy([Rule(effect="deny", tool="x")]))
    began = time.time()
    running(passes_of(store, scope).start("r_1", REPLY, Run(["untrusted", "private"])))
    (start,) = store.started
    assert began <= start.created_at <= time.time()
    assert start == RunStart(
        run_id="r_1",
        reply=kept(REPLY),
        protocol="xml",
        caller=EVE,
        conversation="c_1",
        tools={"pay": entry_of(scope).tool.digest},
        policy_digest=scope.policy.digest,
        taints=("private", "untrusted"),
        engine=replay_engine,
        created_at=start.created_at,
        expires_at=start.created_at + RUN_LIFE_S,
    )


def test_a_new_run_is_recorded_with_the_tools_that_it_calls_alone() -> None:
    store = Store()
    running(passes_of(store, scoped(name="other")).start("r_1", TWO, Run()))
    running(passes_of(store, scoped(name="third")).start("r_1", TWO, Run()))
    assert [list(start.tools) for start in store.started] == [["other"], []]


def test_a_new_run_returns_its_results_and_is_finished_and_released() -> None:
    store, till, run = Store(), Till(), Run()
    assert running(passes_of(store, scoped(till)).start("r_1", REPLY, run)) == [paid(5, raw_text="pay 5")]
    assert till.paid == [5]
    urls = ["https://a.example/5"]
    assert store.ledger.ends == [("finish", [paid(5, raw_text="pay 5")], {"private"}, urls), "release"]


def test_a_new_run_has_read_what_its_conversation_has_read_elsewhere() -> None:
    def opening(ledger: Kept) -> None:
        ledger.start = replace(ledger.start, taints=("untrusted",))
        ledger.urls = ("https://b.example/",)

    run = Run()
    running(passes_of(Store(opening=opening)).start("r_1", REPLY, run))
    assert (run.taints, list(run.urls)) == (
        {"untrusted", "private"},
        ["https://b.example/", "https://a.example/5"],
    )


@pytest.mark.parametrize(("size", "is_large"), [(10, False), (ASIDE_BYTES + 1, True)])
def test_a_large_reply_is_recorded_beside_the_event_loop(size: int, is_large: bool) -> None:
    class Watching(Store):
        def start(self, run: RunStart) -> Future[Any]:
            threads.append(threading.current_thread() is threading.main_thread())
            return super().start(run)

    threads: list[bool] = []
    reply = Reply(calls=(ToolCall("other"), ToolCall("other", {"text": "x" * size})))
    running(passes_of(Watching()).start("r_1", reply, Run()))
    assert threads == [not is_large]


def test_the_calls_of_a_pass_know_the_run_its_ledger_and_the_key_of_the_store() -> None:
    seen: list[Scope] = []

    def opening(ledger: Kept) -> None:
        ledger.asked = frozenset({"r_1/7"})

    class Noting(Policy):
        def settled(self, tool: str, own: Any) -> None:
            return None

        def judge(self, tool: str, own: Any, subject: Any = None, *, was_asked: bool = False) -> Any:
            subjects.append(subject)
            return super().judge(tool, own, subject, was_asked=was_asked)

    async def layer(call: Any, call_next: Any) -> ToolResult:
        seen.append(call.scope)
        return await call_next(call)

    subjects: list[Any] = []
    run, store = Run(), Store(opening=opening)
    running(passes_of(store, scoped(policy=Noting(), middleware=(layer,))).start("r_1", REPLY, run))
    (scope,) = seen
    assert (scope.run_id, scope.run, scope.ledger, scope.pages) == ("r_1", run, store.ledger, store.ledger.pages)
    assert (scope.can_suspend, scope.ports.is_blocking, subjects[0].run_id) == (True, False, "r_1")
    assert run.asked == {"r_1/7"}
    # What a store holds was written with this key.
    assert scope.secret_key.hex() == "338cc71c07aff5014d55caafbb965c67c62ef00df84f859ac6e98f706b5061cc"


# -- a run that waits --


def asks(**more: Any) -> Scope:
    return scoped(permission="confirm", **more)


def test_a_run_with_a_call_that_waits_is_suspended_and_released() -> None:
    store, run = Store(), Run(["untrusted"])
    run.saw(["https://b.example/"])
    assert running(passes_of(store, asks()).start("r_1", TWO, run)) == "suspended"
    assert store.ledger.ends == [("suspend", {"untrusted"}, ["https://b.example/"]), "release"]


def test_a_stopped_run_is_finished_although_a_call_waits() -> None:
    def approver(request: ApprovalRequest) -> Decision | None:
        return Decision(verdict="stop_run", reason="enough") if request.arguments["amount"] == 6 else None

    store = Store()
    found = running(passes_of(store, asks(approver=approver)).start("r_1", TWO, Run()))
    assert found[0] == ToolResult.failed(
        "interrupted",
        "'pay' was not run: enough.",
        hint="Make no more calls; tell the user.",
        data={"is_started": False, "is_ended": False, "may_repeat": True},
        call=ToolCall("pay", {"amount": 5}, id="r_1/1"),
    )
    assert [result.failure.kind for result in found] == ["interrupted", "denied", "unknown_tool"]
    assert [end[0] for end in store.ledger.ends] == ["finish", "r"]


def test_the_rules_of_a_run_are_forgotten_when_it_is_finished_and_not_before() -> None:
    policy = Policy()
    for scope, kept_rules in ((asks(policy=policy), 1), (scoped(policy=policy), 0)):
        policy.restore(Rule(effect="deny", tool="x", scope="run", run_id="r_1"))
        running(passes_of(Store(), scope).start("r_1", REPLY, Run()))
        assert len(policy.remembered) == kept_rules
        policy.forget("r_1")


def test_a_run_is_released_although_it_breaks() -> None:
    class Breaking(Kept):
        def finish(self, *_: Any) -> Any:
            raise OSError("the disk is away")

    class Opening(Store):
        def _opened(self, start: RunStart) -> Future[Any]:
            self.ledger = Breaking(start)
            return done(self.ledger)

    store = Opening()
    with pytest.raises(OSError, match="the disk is away"):
        running(passes_of(store).start("r_1", REPLY, Run()))
    assert store.ledger.ends == ["release"]


# -- a run once more --


def recorded(*calls: ToolCall) -> Callable[[Kept], None]:
    """Puts other calls on record under the ids of the run."""

    def opening(ledger: Kept) -> None:
        for ordinal, call in enumerate(calls, 1):
            step = step_of(replace(call, id=f"r_1/{ordinal}"))
            ledger.settle(step, ToolResult(True, f"recorded {ordinal}", call=call))

    return opening


def test_a_run_is_run_again_from_its_reply() -> None:
    store, till = Store(taints=("untrusted",), opening=lambda ledger: setattr(ledger, "urls", ["u"])), Till()
    reply, results, run = running(passes_of(store, scoped(till)).again("r_1"))
    assert (reply, results, till.paid) == (REPLY, [paid(5, raw_text="pay 5")], [5])
    assert (run.taints, list(run.urls)) == ({"untrusted", "private"}, ["u", "https://a.example/5"])
    assert [end[0] for end in store.ledger.ends] == ["finish", "r"]


def test_a_call_on_record_is_not_run_again() -> None:
    store, till = Store(reply=TWO, opening=recorded(TWO.calls[0])), Till()
    _, results, _ = running(passes_of(store, scoped(till)).again("r_1"))
    assert (results[0].data, till.paid) == ("recorded 1", [6])


def test_a_reply_that_differs_from_the_record_runs_nothing() -> None:
    store, till = Store(reply=TWO, opening=recorded(TWO.calls[0], ToolCall("pay", {"amount": 7}))), Till()
    with pytest.raises(DecisionRefused) as refused:
        running(passes_of(store, scoped(till)).again("r_1"))
    message = "step r_1/2 was 'pay' and is 'pay' with other arguments now: the run was stopped."
    assert (refused.value.code, str(refused.value), till.paid) == ("divergence", message, [])
    assert store.ledger.ends == ["release"]


def test_no_call_runs_before_all_are_compared_with_the_record() -> None:
    def opening(ledger: Kept) -> None:
        ledger.settle(step_of(ToolCall("pay", {"amount": 7}, id="r_1/2")), ToolResult(True, "paid"))

    till = Till()
    with pytest.raises(DecisionRefused):
        running(passes_of(Store(reply=TWO, opening=opening), scoped(till)).again("r_1"))
    assert till.paid == []


def test_a_call_on_record_that_failed_is_no_divergence() -> None:
    def opening(ledger: Kept) -> None:
        ledger.settle(step_of(ToolCall("pay", {"amount": 5}, id="r_1/1")), ToolResult.failed("denied", "no"))

    _, results, _ = running(passes_of(Store(opening=opening)).again("r_1"))
    assert [result.error for result in results] == ["no"]


class Diverging(Kept):
    """A ledger whose program turns out to differ when it runs."""

    error: str | None = "the program went another way"

    def begin(self, start: Any) -> Any:
        return done(replace(ToolResult.failed("divergence", ""), error=self.error))


@pytest.mark.parametrize(
    ("error", "message"),
    [("it went another way", "it went another way"), (None, "the run did not follow its record")],
)
@pytest.mark.parametrize("is_found_first", [False, True])
def test_a_run_that_diverges_is_refused_and_released(error: Any, message: str, is_found_first: bool) -> None:
    class Ledger(Diverging):
        def recall(self, step: Step) -> Any:
            failed = replace(ToolResult.failed("divergence", ""), error=error)
            return failed if is_found_first else super().recall(step)

    class Opening(Store):
        def _opened(self, start: RunStart) -> Future[Any]:
            self.ledger = Ledger(start)
            self.ledger.error = error
            return done(self.ledger)

    store = Opening()
    with pytest.raises(DecisionRefused) as refused:
        running(passes_of(store).again("r_1"))
    assert (refused.value.code, str(refused.value)) == ("divergence", message)
    assert store.ledger.ends == ["release"]


@pytest.mark.parametrize("reply", [REPLY, PROGRAM])
def test_a_program_runs_again_on_its_own_engine_alone(reply: Reply) -> None:
    store, till = Store(reply=reply, engine="cpython-9.9/1"), Till()
    if reply is REPLY:
        running(passes_of(store, scoped(till)).again("r_1"))
        assert till.paid == [5]
        return
    with pytest.raises(DecisionRefused) as refused:
        running(passes_of(store, scoped(till)).again("r_1"))
    assert (refused.value.code, till.paid, store.ledger.ends) == ("divergence", [], ["release"])
    assert str(refused.value) == (
        f"the run's program was recorded on 'cpython-9.9/1' and this is {replay_engine!r}: it would not replay the "
        "same way. Resume it with the same version of Python and toolwire."
    )


def test_a_program_needs_a_session_that_runs_programs() -> None:
    store, till = Store(reply=PROGRAM), Till()
    with pytest.raises(ConfigurationError) as caught:
        running(passes_of(store, scoped(till)).again("r_1"))
    assert str(caught.value) == (
        "the run 'r_1' holds a program, and this session runs none: write Session(..., programs=True)"
    )
    assert (till.paid, store.ledger.ends) == ([], ["release"])


def test_a_program_runs_where_programs_run() -> None:
    def code_execution(code: str) -> str:
        return code

    reply = Reply(calls=(ToolCall(CODE_EXECUTION, {"code": "1"}),))
    scope = scope_of(code_execution, name=CODE_EXECUTION)
    _, (result,), _ = running(passes_of(Store(reply=reply), scope).again("r_1"))
    assert result.data == "1"


# -- a finished run --


def finished(*results: ToolResult, inner: bool = False) -> Callable[[Kept], None]:
    def opening(ledger: Kept) -> None:
        ledger.outcome = results
        ledger.urls = ("https://b.example/",)
        if inner:
            call = ToolCall("pay", {"amount": "https://c.example/"}, id="r_1/1/1", parent="r_1/1")
            ledger.settle(step_of(call), ToolResult(True, ["https://c.example/", "https://d.example/"]))

    return opening


def test_a_finished_run_returns_its_results_and_runs_nothing() -> None:
    result = ToolResult(True, "see https://a.example/")
    store, till = Store(taints=("untrusted",), opening=finished(result)), Till()
    reply, results, run = running(passes_of(store, scoped(till)).again("r_1"))
    assert (reply, results, till.paid, store.ledger.ends) == (REPLY, (result,), [], ["release"])
    assert run.taints == {"untrusted", "private"}
    assert list(run.urls) == ["https://b.example/", "https://a.example/"]


def test_a_url_of_the_calls_own_arguments_is_not_one_that_a_finished_run_has_found() -> None:
    reply = Reply(calls=(ToolCall("pay", {"amount": "https://a.example/"}),))
    store = Store(reply=reply, opening=finished(ToolResult(True, "see https://a.example/")))
    _, _, run = running(passes_of(store).again("r_1"))
    assert list(run.urls) == ["https://b.example/"]


def test_a_finished_run_has_read_the_results_of_its_programs_calls() -> None:
    reply = Reply(calls=(ToolCall(CODE_EXECUTION, {"code": "1"}),))
    store = Store(reply=reply, opening=finished(ToolResult(True, "out"), inner=True))
    _, _, run = running(passes_of(store).again("r_1"))
    assert run.taints == {"private"}
    assert list(run.urls) == ["https://b.example/", "https://d.example/"]


def test_the_end_of_a_finished_run_is_told_of_its_calls() -> None:
    result, end = ToolResult(True, "paid"), End()
    store = Store(opening=finished(result))
    _, _, run = running(passes_of(store, end=end).again("r_1"))
    assert end.told == [(ToolCall("pay", {"amount": 5}, id="r_1/1", raw_text="pay 5"), result, run, store.ledger)]


# -- the run that is meant --


def view(**more: Any) -> SuspendedRun:
    start = RunStart(
        run_id="r_1", reply={}, protocol="", caller=EVE, created_at=time.time(), expires_at=time.time() + 1_000
    )
    return SuspendedRun(**{"start": start, "rev": 3, "head": 1, "root": "sha256:0", "pending": (), "key": KEY, **more})


@pytest.mark.parametrize("run", ["r_1", view()], ids=["id", "object"])
def test_a_run_is_named_by_its_id_or_by_itself(run: Any) -> None:
    store = Store()
    assert passes_of(store).named(run) == "r_1"
    assert store.asked_for == "r_1"
    with pytest.raises(DecisionRefused) as refused:
        passes_of(store, scoped(caller=Caller(principal="mallory"))).named(run)
    assert (refused.value.code, str(refused.value)) == ("not_permitted", "this run is another principal's")


def test_a_run_is_named_by_its_portable_form() -> None:
    store = Store()
    assert passes_of(store).named(f" \n{suspended_to_json(view())}") == "r_1"
    assert store.asked_for == "r_1"


@pytest.mark.parametrize("status", ["running", "suspended", "finished", "stopped", "diverged"])
def test_a_portable_form_of_an_earlier_revision_counts_for_a_run_that_has_ended(status: str) -> None:
    store = Store(standing=SimpleNamespace(status=status, rev=4, caller=EVE))
    if status in ("running", "suspended"):
        with pytest.raises(DecisionRefused) as refused:
            passes_of(store).named(suspended_to_json(view()))
        assert (refused.value.code, str(refused.value)) == (
            "stale_rev",
            "this describes run 'r_1' at revision 3, and it is now at 4",
        )
    else:
        assert passes_of(store).named(suspended_to_json(view())) == "r_1"


def test_a_portable_form_is_verified_with_the_key_and_the_principal() -> None:
    text = suspended_to_json(view())
    with pytest.raises(DecisionRefused) as refused:
        passes_of(Store(wire_key=b"v" * 32)).named(text)
    assert refused.value.code == "bad_mac"
    with pytest.raises(DecisionRefused) as refused:
        passes_of(Store(), scoped(caller=Caller(principal="mallory"))).named(text)
    assert refused.value.code == "not_permitted"


# -- kept rules --


def request(number: int = 1, run_id: str = "r_1", **more: Any) -> ApprovalRequest:
    return ApprovalRequest(
        **{
            "id": f"a_{number}",
            "call_id": f"r_1/{number}",
            "tool": "pay",
            "arguments": {"amount": 5},
            "reasons": (),
            "run_id": run_id,
            "caller": EVE,
            "tool_digest": entry_of(scoped()).tool.digest,
            "arguments_schema": entry_of(scoped()).tool.input_schema,
            **more,
        }
    )


def keeping(scope: Any, run_id: str = "r_1", **more: Any) -> tuple[ApprovalRequest, Decision]:
    rule = Rule(effect="auto", tool="pay", scope=scope)
    return request(run_id=run_id), Decision(verdict="approve", remember=rule, by=Decider(principal="ada"), **more)


def test_the_rules_of_the_workspace_and_of_the_run_are_restored() -> None:
    rules = [
        (request(), Decision(verdict="approve")),
        keeping("workspace", "r_2"),
        keeping("session", "r_2"),
        keeping("session"),
        keeping("run"),
    ]
    policy = Policy()
    rules = [(replace(each, id=f"a_{number}"), decision) for number, (each, decision) in enumerate(rules)]
    passes = passes_of(Store(rules=rules), scoped(policy=policy))
    passes.restore_rules("r_1")
    found = [(rule.id, rule.scope, rule.agent, rule.run_id) for rule in policy.remembered]
    assert found == [
        ("remembered:a_1", "workspace", "clerk", ""),
        ("remembered:a_3", "session", "clerk", ""),
        ("remembered:a_4", "run", "clerk", "r_1"),
    ]


def test_without_a_run_the_rules_of_the_workspace_alone_are_restored() -> None:
    policy = Policy()
    passes_of(Store(rules=[keeping("session"), keeping("workspace")]), scoped(policy=policy)).restore_rules()
    assert [rule.scope for rule in policy.remembered] == ["workspace"]


def test_a_rule_of_a_decider_that_the_policy_does_not_accept_is_not_restored() -> None:
    policy = Policy(approvers={"*": ["bob"]})
    passes_of(Store(rules=[keeping("workspace")]), scoped(policy=policy)).restore_rules()
    assert policy.remembered == ()


# -- decisions --


def storing(*requests: ApprovalRequest, **more: Any) -> Store:
    return Store(requests={each.id: (each, None) for each in requests}, **more)


def deciding(number: int, verdict: Any = "approve", **more: Any) -> Decision:
    return Decision(verdict=verdict, request_id=f"a_{number}", **more)


def test_decisions_are_recorded_in_their_order() -> None:
    store = storing(request(1), request(2))
    given = [deciding(2, "deny"), deciding(1)]
    passes_of(store).decide("r_1", iter(given))
    assert store.decided == [("a_2", given[0]), ("a_1", given[1])]


def test_a_decision_on_another_runs_request_records_nothing() -> None:
    store = storing(request(1), request(2, run_id="r_2"))
    with pytest.raises(DecisionRefused) as refused:
        passes_of(store).decide("r_1", [deciding(1), deciding(2)])
    assert (refused.value.code, str(refused.value), refused.value.request_id) == (
        "unknown_request",
        "run 'r_1' has no request 'a_2'",
        "a_2",
    )
    assert store.decided == []


def test_a_decision_that_is_not_valid_records_nothing() -> None:
    store = storing(request(1), request(2))
    with pytest.raises(DecisionRefused) as refused:
        passes_of(store).decide("r_1", [deciding(1), deciding(2, "edit", arguments={"amount": "much"})])
    assert (refused.value.code, store.decided) == ("invalid_edit", [])


def test_a_request_that_was_decided_is_left_to_the_store() -> None:
    store = storing(request(1))
    store.requests["a_1"] = (request(1), deciding(1))
    decision = deciding(1, "edit", arguments={"amount": "much"})
    passes_of(store).decide("r_1", [decision])
    assert store.decided == [("a_1", decision)]


SAME = deciding(1, "edit", arguments={"amount": 4})


@pytest.mark.parametrize(
    ("first", "is_same"),
    [
        (replace(SAME, at=5.0, reason="by another worker"), True),
        (deciding(1), False),
        (replace(SAME, arguments={"amount": 3}), False),
        (None, False),
    ],
)
def test_a_decision_that_another_worker_has_handed_in_is_still_one_decision(first: Any, is_same: bool) -> None:
    refusal = DecisionRefused("already_decided", "it was decided before", decided=first)
    store = storing(request(1), request(2), refusal=refusal)
    if is_same:
        passes_of(store).decide("r_1", [SAME])
        return
    with pytest.raises(DecisionRefused) as refused:
        passes_of(store).decide("r_1", [SAME, deciding(2)])
    assert (refused.value, len(store.decided)) == (refusal, 1)


@pytest.mark.parametrize(("value", "is_same"), [(1, True), (2, False)])
def test_two_answers_are_the_same_if_their_values_are(value: int, is_same: bool) -> None:
    first = Decision(verdict="answer", answer=value, request_id="a_1")
    question = request(1, kind="question", answer_schema={"type": "integer"})
    store = storing(question, refusal=DecisionRefused("already_decided", "before", decided=first))
    answer = Decision(verdict="answer", answer=1, request_id="a_1")
    if is_same:
        passes_of(store).decide("r_1", [answer])
    else:
        with pytest.raises(DecisionRefused):
            passes_of(store).decide("r_1", [answer])


def test_a_run_is_prepared_with_its_decisions_and_its_rules() -> None:
    policy = Policy()
    store = storing(request(1), rules=[keeping("session"), keeping("session", "r_2")])
    passes = passes_of(store, scoped(policy=policy))
    assert running(passes.prepared(view(), [{"request_id": "a_1", "verdict": "deny"}])) == "r_1"
    assert store.decided == [("a_1", deciding(1, "deny"))]
    assert [rule.id for rule in policy.remembered] == ["remembered:a_1"]
    assert running(passes.prepared("r_1", None)) == "r_1"
    assert len(store.decided) == 1


def test_decisions_for_another_run_are_refused() -> None:
    given = {"v": "1.0", "kind": "decisions", "run_id": "r_1", "rev": 1, "items": []}
    assert running(passes_of(Store()).prepared("r_1", given)) == "r_1"
    given["run_id"] = "r_2"
    with pytest.raises(DecisionRefused) as refused:
        running(passes_of(Store()).prepared("r_1", given))
    assert refused.value.code == "unknown_run"


def test_a_secret_in_an_edit_is_read_with_the_key_of_the_store() -> None:
    def pay(amount: int, token: SecretStr) -> None: ...

    seen: list[Any] = []

    def approver(shown: ApprovalRequest) -> None:
        seen.append(shown)

    reply = Reply(calls=(ToolCall("pay", {"amount": 5, "token": "s-1"}),))
    scope = scope_of(pay, permission="confirm", approver=approver)
    running(passes_of(Store(), scope).start("r_1", reply, Run()))
    (shown,) = seen
    store = storing(shown)
    decision = Decision(
        verdict="edit", arguments={**shown.arguments, "amount": 4}, request_id=shown.id, by=Decider(principal="ada")
    )
    passes_of(store, scope).decide("r_1", [decision])
    assert store.decided == [(shown.id, decision)]


def test_the_passes_of_a_turn_have_its_scope() -> None:
    store, till = Store(), Till()
    turn = passes_of(store, scoped()).over(scoped(till, caller=Caller(principal="bob")))
    running(turn.start("r_1", REPLY, Run()))
    assert (till.paid, store.started[0].caller.principal, store.started[0].protocol) == ([5], "bob", "xml")
    _, _, run = running(turn.again("r_1"))
    assert isinstance(run, Run)


# -- ids --


def test_the_calls_of_a_run_have_ids_of_their_own() -> None:
    assert run_calls("r_1", TWO) == [
        ToolCall("pay", {"amount": 5}, id="r_1/1"),
        ToolCall("pay", {"amount": 6}, id="r_1/2"),
        ToolCall("other", id="r_1/3"),
    ]
    assert run_calls("r_1", REPLY) == [ToolCall("pay", {"amount": 5}, id="r_1/1", raw_text="pay 5")]


def test_the_providers_ids_are_known_by_the_ids_of_the_run() -> None:
    assert given_ids("r_1", TWO) == {"r_1/1": "x", "r_1/2": "x"}
