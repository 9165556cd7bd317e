"""Attacks between a request and its execution, each beside an honest call that gets through."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.invocation.world import World, outcome
from toolwire.definition.from_function import from_function
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.condition import Condition
from toolwire.permission.policy import Policy, Rule
from toolwire.testing.ledger import MemoryLedger
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import ToolResult

Made = Callable[[ApprovalRequest], Any]


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Paying:
    """A tool that asks, and the arguments that it was really called with."""

    def __init__(self, world: World) -> None:
        self.paid: list[dict[str, Any]] = []
        self.world = world

        def pay(amount: int, to: str = "Ada", notes: list[str] | None = None) -> str:
            """Pays."""
            self.paid.append({"amount": amount, "to": to, "notes": notes})
            return "paid"

        self.entry = world.add(pay, permission="confirm")


@pytest.fixture
def paying(world: World) -> Paying:
    return Paying(world)


class Truthy:
    def __bool__(self) -> bool:
        return True

    verdict = "approve"
    request_id = ""


def raises(error: BaseException) -> Made:
    def made(_: ApprovalRequest) -> Any:
        raise error

    return made


def forged(**fields: Any) -> Made:
    """A decision that was made without its own checks."""

    def made(request: ApprovalRequest) -> Any:
        decision = Decision(verdict="approve", request_id=request.id)
        for name, value in fields.items():
            object.__setattr__(decision, name, value)
        return decision

    return made


NO_DECISIONS: dict[str, Made] = {
    repr(value): lambda _, value=value: value
    for value in [
        *(None, True, False, 1, 0, 1.0, "yes", "y", "approve", "approved", b"approve", "", (), [], {}, set[str]()),
        *({"verdict": "approve"}, {"approve": True}, ["approve"], ("approve",), [True], {1: "approve"}),
    ]
}
NO_DECISIONS |= {
    "an object that is true": lambda _: Truthy(),
    "the class": lambda _: Decision,
    "a function": lambda _: lambda: Decision(verdict="approve"),
    "the request": lambda request: request,
    "a list of one": lambda _: [Decision(verdict="approve")],
    "an exception": lambda _: DecisionRefused("expired", "late"),
    "another request's id": lambda _: Decision(verdict="approve", request_id="a_" + "0" * 32),
    "the call's id": lambda request: Decision(verdict="approve", request_id=request.call_id),
    "an id in capitals": lambda request: Decision(verdict="approve", request_id=request.id.upper()),
    "an id with a space": lambda request: Decision(verdict="approve", request_id=f"{request.id} "),
    "part of the id": lambda request: Decision(verdict="approve", request_id=request.id[:-1]),
    "another digest": lambda _: Decision(verdict="approve", seen_arguments_digest="sha256:" + "0" * 64),
    "part of the digest": lambda request: Decision(
        verdict="approve", seen_arguments_digest=request.arguments_digest[:-1]
    ),
    "a forged verdict": forged(verdict="yes"),
    "no verdict": forged(verdict=None),
    "a list of verdicts": forged(verdict=["approve"]),
    "a number for an id": forged(request_id=1),
    "the model": lambda _: Decision(verdict="approve", by=Decider(channel="model")),
    "the model, editing": lambda _: Decision(verdict="edit", arguments={"amount": 1}, by=Decider(channel="model")),
    "the asking agent": lambda _: Decision(verdict="approve", by=Decider(principal="clerk", channel="cli")),
    "a time-out": raises(TimeoutError()),
    "a bug": raises(KeyError("user")),
    "the end of an iteration": raises(StopIteration()),
    "a refusal": raises(DecisionRefused("not_permitted", "no")),
}  # fmt: skip


def as_function(made: Made) -> Any:
    return made


def as_coroutine(made: Made) -> Any:
    async def approver(request: ApprovalRequest) -> Any:
        await asyncio.sleep(0)
        return made(request)

    return approver


CASES = len(NO_DECISIONS) * len(("blocking", "asyncio")) * len(("sync", "async")) * len(("memory", "ledger"))


@pytest.mark.threat(6)
@pytest.mark.parametrize("ledger", ["memory", "ledger"])
@pytest.mark.parametrize("form", [as_function, as_coroutine], ids=["sync", "async"])
@pytest.mark.parametrize("name", NO_DECISIONS)
def test_a_decision_for_another_request_runs_nothing(
    world: World, paying: Paying, name: str, form: Callable[[Made], Any], ledger: str
) -> None:
    world.approver = form(NO_DECISIONS[name])
    world.ledger = MemoryLedger() if ledger == "ledger" else None
    world.caller = Caller(agent="clerk")
    result = world.call("pay", amount=5)
    assert (outcome(result), paying.paid) == ("approval_required", [])
    # The control: the same call, decided by a person.
    world.approver = form(lambda request: Decision(verdict="approve", request_id=request.id))
    world.ledger = MemoryLedger() if ledger == "ledger" else None
    assert (outcome(world.call("pay", amount=5)), len(paying.paid)) == ("success", 1)


@pytest.mark.threat(6)
def test_there_are_at_least_two_hundred_of_them() -> None:
    assert CASES >= 200


@pytest.mark.threat(6)
@pytest.mark.parametrize(
    ("seconds", "ends"),
    [
        (0.0, "success"),
        (REQUEST_LIFE_S, "success"),
        (REQUEST_LIFE_S + 0.001, "approval_expired"),
        (10 * REQUEST_LIFE_S, "approval_expired"),
    ],
)
def test_a_decision_counts_until_its_request_expires(world: World, paying: Paying, seconds: float, ends: str) -> None:
    clock = Clock()
    world.clock = clock

    def late(request: ApprovalRequest) -> Decision:
        assert request.expires_at == clock.now + REQUEST_LIFE_S
        clock.now += seconds
        return Decision(verdict="approve")

    world.approver = late
    assert outcome(world.call("pay", amount=5)) == ends
    assert len(paying.paid) == (ends == "success")


@pytest.mark.threat(6)
def test_a_request_that_expired_while_the_run_was_away_is_not_asked_again(world: World, paying: Paying) -> None:
    clock, asked = Clock(), list[str]()
    world.clock, world.ledger = clock, MemoryLedger()
    world.approver = lambda request: asked.append(request.id)
    world.call("pay", amount=5)
    clock.now += REQUEST_LIFE_S + 1
    world.ledger = MemoryLedger(records=_unsettled(world.ledger))
    world.approver = lambda request: Decision(verdict="approve")
    assert (outcome(world.call("pay", amount=5)), paying.paid) == ("approval_expired", [])


def _unsettled(ledger: Any) -> Any:
    ledger.records.steps.clear()
    ledger.records.ended.clear()
    return ledger.records


@pytest.mark.threat(5)
def test_ten_thousand_parallel_answers_reach_their_own_calls(whole: bool) -> None:
    """Two to sixteen calls at once; answers in any order, some never; each is known by its request's id alone.

    There are ten thousand of them in `make soak`, and two thousand here.
    """
    world = World(driver="asyncio")
    paying, rounds, answered, mixed_up = Paying(world), random.Random(20_261), 0, 0
    while answered < (10_000 if whole else 2_000):
        count = rounds.randint(2, 16)
        waiting: dict[str, tuple[ApprovalRequest, asyncio.Future[Decision | None]]] = {}

        async def approver(request: ApprovalRequest, waiting: Any = waiting, count: int = count) -> Decision | None:
            answer: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
            waiting[request.id] = (request, answer)
            if len(waiting) == count:
                _answer_all(waiting, rounds)
            return await answer

        world.approver = approver
        results = world.batch(*[("pay", {"amount": number}) for number in range(count)])
        mixed_up += sum(outcome(result) != _wanted(number) for number, result in enumerate(results))
        mixed_up += sorted(paid["amount"] for paid in paying.paid) != _paid(count)
        paying.paid.clear()
        answered += count
    world.runtime.close()
    assert mixed_up == 0


def _answer_all(waiting: Mapping[str, Any], order: random.Random) -> None:
    for known in order.sample(list(waiting), len(waiting)):
        request, answer = waiting[known]
        answer.set_result(_answer(request.arguments["amount"], known))


def _answer(amount: int, known: str) -> Decision | None:
    match amount % 4:
        case 0:
            return Decision(verdict="approve", request_id=known)
        case 1:
            return Decision(verdict="deny", request_id=known)
        case 2:
            return Decision(verdict="edit", arguments={"amount": amount + 100}, request_id=known)
        case _:
            return None


def _wanted(number: int) -> str:
    return ("success", "denied", "success", "approval_required")[number % 4]


def _paid(count: int) -> list[int]:
    return sorted(number + 100 * (number % 4 == 2) for number in range(count) if number % 2 == 0)


@pytest.mark.threat(5)
def test_the_count_of_mix_ups_is_one_that_can_be_more_than_none(world: World, paying: Paying) -> None:
    """The control: answers by place in line instead of by request."""
    waiting: list[asyncio.Future[Decision | None]] = []

    async def approver(request: ApprovalRequest) -> Decision | None:
        waiting.insert(0, asyncio.get_running_loop().create_future())
        mine = waiting[0]
        if len(waiting) == 4:
            for number, answer in enumerate(waiting):
                answer.set_result(_answer(number, ""))
        return await mine

    world.approver = approver
    results = world.batch(*[("pay", {"amount": number}) for number in range(4)])
    assert [outcome(result) for result in results] != [_wanted(number) for number in range(4)]


ACCOUNT = {"iban": "DE-1", "limits": [10]}


class Transferring:
    """A tool with a bound parameter, which is a container of the host's."""

    def __init__(self, world: World) -> None:
        self.used: list[Any] = []
        self.state = {"account": {"iban": "DE-1", "limits": [10]}, "unit": "EUR"}
        self.rows = [{"amount": 1}]

        def transfer(amount: int, rows: list[dict[str, int]], account: dict[str, Any], unit: str) -> str:
            """Transfers."""
            self.used.append((amount, rows, dict(account), unit))
            return "done"

        self.tool = from_function(transfer)
        self.tool.bindings.state = self.state
        self.tool.bindings.bind("account")
        self.tool.bindings.bind("unit")
        self.entry = world.add(self.tool, permission="confirm")
        self.call = ToolCall("transfer", {"amount": 5, "rows": self.rows}, id="r_1")


def other(*_: Any, **__: Any) -> str:
    return "something else"


CHANGES: dict[str, tuple[Callable[[Transferring, ApprovalRequest], Any], bool]] = {
    "nothing": (lambda _, __: None, True),
    "the model's own list": (lambda it, _: it.rows[0].update(amount=999), True),
    "the list grows": (lambda it, _: it.rows.append({"amount": 999}), True),
    "what was shown": (lambda _, request: cast("Any", request.arguments).update(amount=999), True),
    "what was shown, deep": (lambda _, request: request.arguments["rows"][0].update(amount=999), True),
    "a number in the state": (lambda it, _: it.state.update(unit="BTC"), True),
    "the bound container": (lambda it, _: cast("Any", it.state["account"]).update(iban="XX-9"), False),
    "deep in the bound container": (lambda it, _: cast("Any", it.state["account"])["limits"].append(999), False),
    "a binding": (lambda it, _: it.tool.bindings.unbind("unit"), False),
    "one more binding": (lambda it, _: it.tool.bindings.bind("amount", "account", default=999), False),
    "the function": (lambda it, _: setattr(it.tool, "function", other), False),
    "the whole tool": (lambda it, _: setattr(it.entry, "tool", from_function(other, name="transfer")), False),
}


@pytest.mark.threat(4)
@pytest.mark.parametrize(
    "decision",
    [
        Decision(verdict="approve"),
        Decision(verdict="edit", arguments={"amount": 5, "rows": [{"amount": 1}]}),
    ],
    ids=["approved", "edited"],
)
@pytest.mark.parametrize("name", CHANGES)
def test_a_tool_changed_during_an_approval_does_not_run(world: World, name: str, decision: Decision) -> None:
    change, runs = CHANGES[name]
    transferring = Transferring(world)

    def approve(request: ApprovalRequest) -> Decision:
        change(transferring, request)
        return decision

    world.approver = approve
    result = world.make(transferring.call)
    as_shown = (5, [{"amount": 1}], ACCOUNT, "EUR")
    # An edited call is validated again, which reads the state again.
    runs = runs and (decision.verdict, name) != ("edit", "a number in the state")
    assert (outcome(result), transferring.used) == (("success", [as_shown]) if runs else ("approval_mismatch", []))


CAPPED = Rule(effect="deny", tool="pay", when=[Condition(path="/arguments/amount", op=">", value=100)])


EDITS: dict[str, tuple[dict[str, Any], str]] = {
    "smaller": ({"amount": 4}, "success"),
    "converted": ({"amount": "4"}, "success"),
    "the same": ({"amount": 5}, "success"),
    "wider, within the rules": ({"amount": 100, "to": "Eve"}, "success"),
    "wider than the rules": ({"amount": 101}, "denied"),
    "wider by a text": ({"amount": "101"}, "denied"),
    "no number": ({"amount": "much"}, "invalid_arguments"),
    "nothing": ({}, "invalid_arguments"),
    "an unknown argument": ({"amount": 1, "as_root": True}, "invalid_arguments"),
    "a wrong list": ({"amount": 1, "notes": ["a", 1]}, "invalid_arguments"),
    "an object": ({"amount": 1, "to": {"$t": "bytes", "v": "AA=="}}, "invalid_arguments"),
    "what is not JSON": ({"amount": 1, "to": object()}, "invalid_arguments"),
}


@pytest.mark.threat(7)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_valid_and_allowed_or_does_not_run(world: World, paying: Paying, name: str) -> None:
    arguments, ends = EDITS[name]
    world.policy = Policy([CAPPED])
    world.approver = lambda _: Decision(verdict="edit", arguments=arguments, by=Decider(principal="ada", channel="cli"))
    result = world.call("pay", amount=5)
    assert outcome(result) == ends
    assert len(paying.paid) == (ends == "success")
    assert result.metadata["approval"]["verdict"] == "edit"


@pytest.mark.threat(7)
def test_the_record_says_who_changed_what(world: World, paying: Paying) -> None:
    clock = Clock()
    world.clock = clock
    edit = {"amount": 4, "notes": ["less"]}
    world.approver = lambda _: Decision(verdict="edit", arguments=edit, by=Decider(principal="ada", channel="cli"))
    result = world.call("pay", amount=5, to="Eve")
    (record,) = world.recording.records
    approval = dict(record.result.metadata["approval"])
    assert approval.pop("request_id").startswith("a_")
    assert approval == {
        "verdict": "edit",
        "principal": "ada",
        "channel": "cli",
        "authn": "",
        "decided_at": clock.now,
        "changed": {
            "amount": {"before": 5, "after": 4},
            "to": {"before": "Eve", "after": "Ada"},
            "notes": {"before": None, "after": ["less"]},
        },
    }
    assert record.call.arguments == {"amount": 5, "to": "Eve"}
    assert result.call is not None
    assert result.call.arguments == edit


@pytest.mark.parametrize("verdict", ["approve", "deny", "stop_run"])
def test_the_record_says_who_decided(world: World, paying: Paying, verdict: Any) -> None:
    world.approver = lambda _: Decision(verdict=verdict)
    world.call("pay", amount=5)
    approval = world.recording.records[0].result.metadata["approval"]
    assert (approval["verdict"], approval["channel"]) == (verdict, "callback")


class Telling:
    """An observer of requests and ends that notes both in a shared list."""

    def __init__(self, name: str, events: list[tuple[str, str, str]]) -> None:
        self.name = name
        self.events = events

    def asked(self, request: ApprovalRequest, _invocation_id: str, /) -> None:
        self.events.append((self.name, "PERMISSION_REQUEST", request.call_id))

    def ended(self, record: Any, /) -> None:
        self.events.append((self.name, "TOOL_COMPLETE", outcome(record.result)))


OUTCOMES: dict[str, tuple[Made | None, str]] = {
    "approved": (lambda _: Decision(verdict="approve"), "success"),
    "edited": (lambda _: Decision(verdict="edit", arguments={"amount": 1}), "success"),
    "denied": (lambda _: Decision(verdict="deny"), "denied"),
    "stopped": (lambda _: Decision(verdict="stop_run"), "denied"),
    "unanswered": (lambda _: None, "approval_required"),
    "nobody": (None, "approval_required"),
    "broken": (raises(OSError()), "approval_required"),
}


@pytest.mark.requirement("base.permission.request-event", "base.permission.complete-event", "base.permission.flow")
@pytest.mark.parametrize("name", OUTCOMES)
def test_each_observer_is_told_of_the_request_before_the_wait_and_of_the_end_after(
    world: World, paying: Paying, name: str
) -> None:
    events: list[tuple[str, str, str]] = []
    world.observers = (Telling("first", events), Telling("second", events))
    answer, ends = OUTCOMES[name]

    def approver(request: ApprovalRequest) -> Any:
        assert paying.paid == []
        events.append(("approver", "asked", request.call_id))
        return None if answer is None else answer(request)

    world.approver = None if answer is None else approver
    world.call("pay", amount=5)
    waited = [] if answer is None else [("approver", "asked", "r_1")]
    assert events == [
        ("first", "PERMISSION_REQUEST", "r_1"),
        ("second", "PERMISSION_REQUEST", "r_1"),
        *waited,
        ("first", "TOOL_COMPLETE", ends),
        ("second", "TOOL_COMPLETE", ends),
    ]


@pytest.mark.requirement("base.permission.approved")
def test_an_approved_call_runs(world: World, paying: Paying) -> None:
    world.approver = lambda _: Decision(verdict="approve")
    assert (world.call("pay", amount=5).success, len(paying.paid)) == (True, 1)


@pytest.mark.requirement("base.permission.denied")
def test_a_denied_call_says_so_and_does_not_run(world: World, paying: Paying) -> None:
    world.approver = lambda _: Decision(verdict="deny", reason="not today")
    result: ToolResult = world.call("pay", amount=5)
    assert (outcome(result), paying.paid) == ("denied", [])
    assert result.error == "'pay' may not be run: not today."


def test_the_named_decider_is_kept(world: World, paying: Paying) -> None:
    by = Decider(principal="ada", channel="chat", authn="signed")
    world.ledger = ledger = MemoryLedger()
    world.approver = lambda _: Decision(verdict="approve", by=by)
    world.call("pay", amount=5)
    (asked,) = ledger.records.requests.values()
    assert asked.decision == replace(
        Decision(verdict="approve", by=by),
        request_id=asked.request.id,
        at=asked.decision.at if asked.decision else 0.0,
        seen_arguments_digest=asked.request.arguments_digest,
    )


def test_an_edited_call_keeps_the_identity_of_the_models_call(world: World, paying: Paying) -> None:
    world.approver = lambda _: Decision(verdict="edit", arguments={"amount": 4})
    asked = ToolCall("pay", {"amount": 5}, id="r_1", parent="r_0", raw_text="pay 5")
    result = world.make(asked)
    assert result.call == replace(asked, arguments={"amount": 4})


def test_an_edit_that_is_not_valid_tells_the_path_and_names_the_models_call(world: World, paying: Paying) -> None:
    world.approver = lambda _: Decision(verdict="edit", arguments={"amount": 1, "notes": ["a", 1]})
    result = world.call("pay", amount=5)
    assert result.failure is not None
    assert result.failure.path == "notes[1]"
    assert result.call == ToolCall("pay", {"amount": 5}, id="r_1")
