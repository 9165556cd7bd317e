"""The ledger's part of the path: asked before a call starts, told how it ended, believed afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from tests.invocation.world import World, outcome
from toolwire.catalogue.entry import Entry
from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Validated, canonical
from toolwire.invocation import validate
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.invocation.scope import Run
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.permission.condition import Condition
from toolwire.permission.policy import Rule
from toolwire.testing.ledger import MemoryLedger, Records
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Idempotency, Label
from toolwire.vocabulary.results import Pending, ToolResult
from toolwire.vocabulary.run_step import Step

KEY = "r_1:r_1:"


class Crash(BaseException):
    """The process dies here, as far as a test can have it."""


class DyingLedger(MemoryLedger):
    """Crashes in place of the last record of a step."""

    def settle(self, step: Step, result: ToolResult, record: Any = None) -> Any:
        raise Crash


@dataclass
class Shop:
    """Tools that count, and the ledger's records over restarts."""

    world: World
    records: Records = field(default_factory=Records)
    sent: list[int] = field(default_factory=list[int])

    def send(self, amount: int) -> str:
        self.sent.append(amount)
        return f"sent {amount}"

    def open(self, ledger: type[MemoryLedger] = MemoryLedger) -> MemoryLedger:
        """The ledger, as a process that has just started would find it."""
        self.world.ledger = found = ledger("r_1", self.records)
        return found

    def offer(self, *, permission: Any = "auto", **options: Any) -> Entry:
        return self.world.add(from_function(self.send, **options), permission=permission)

    def crash(self) -> None:
        """Makes the call, whose effect happens and whose end is lost."""
        self.open(DyingLedger)
        with pytest.raises(Crash):
            self.world.call("send", amount=5)
        self.open()


@pytest.fixture
def shop(world: World) -> Shop:
    return Shop(world)


def approves(_: ApprovalRequest) -> Decision:
    return Decision(verdict="approve")


def test_a_call_is_begun_before_it_runs_and_settled_after(shop: Shop) -> None:
    ledger = shop.open()
    seen: list[tuple[str, str]] = []
    shop.world.add(lambda amount: seen.extend(ledger.story), name="send")
    shop.world.call("send", amount=5)
    assert (seen, ledger.story) == ([("begin", "r_1")], [("begin", "r_1"), ("settle", "r_1")])


def test_a_person_is_asked_after_the_request_is_on_record_and_before_the_call_begins(shop: Shop) -> None:
    ledger, shown = shop.open(), list[list[tuple[str, str]]]()

    def approve(request: ApprovalRequest) -> Decision:
        shown.append(list(ledger.story))
        return approves(request)

    shop.world.approver = approve
    shop.offer(permission="confirm")
    assert shop.world.call("send", amount=5).text == "sent 5"
    assert shown == [[("ask", "r_1")]]
    assert ledger.story == [("ask", "r_1"), ("decide", "r_1"), ("begin", "r_1"), ("settle", "r_1")]


def test_a_finished_call_does_not_run_again(shop: Shop) -> None:
    shop.open()
    shop.offer()
    first = shop.world.call("send", amount=5)
    ledger = shop.open()
    assert (shop.world.call("send", amount=5).text, first.text) == ("sent 5", "sent 5")
    assert (shop.sent, ledger.story) == ([5], [])


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [("send", {"amount": "much"}, "invalid_arguments"), ("nothing", {}, "unknown_tool"), ("never", {}, "denied")],
)
def test_a_call_that_did_not_run_is_on_record_too(shop: Shop, name: str, arguments: Any, kind: str) -> None:
    shop.open()
    shop.offer()
    shop.world.add(lambda: None, name="never", permission="deny")
    first = shop.world.call(name, **arguments)
    shop.open().story.clear()
    again = shop.world.call(name, **arguments)
    assert (outcome(first), outcome(again), again.text) == (kind, kind, first.text)


def test_reading_is_not_announced_because_it_may_be_done_twice(shop: Shop) -> None:
    ledger = shop.open()
    shop.offer(idempotent="natural", effects=["read"])
    shop.world.call("send", amount=5)
    assert ledger.story == [("settle", "r_1")]


def test_a_lost_call_is_reported_and_not_run_again(shop: Shop) -> None:
    shop.offer()
    shop.crash()
    result = shop.world.call("send", amount=5)
    assert (outcome(result), shop.sent) == ("unknown_outcome", [5])
    assert result.error == ("'send' began before, and its end is not on record; it was not run again: no answer came.")


@pytest.mark.parametrize("idempotent", ["key", "natural"])
def test_a_lost_call_that_may_be_made_twice_is(shop: Shop, idempotent: Idempotency) -> None:
    shop.offer(idempotent=idempotent)
    shop.crash()
    assert (shop.world.call("send", amount=5).text, shop.sent) == ("sent 5", [5, 5])


def test_the_approval_of_a_lost_keyed_call_still_counts(shop: Shop) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Decision:
        asked.append(request)
        return approves(request)

    shop.world.approver = approve
    shop.offer(permission="confirm", idempotent="key")
    shop.crash()
    assert (shop.world.call("send", amount=5).text, shop.sent, len(asked)) == ("sent 5", [5, 5], 1)


def test_the_approval_of_a_lost_call_is_used_up(shop: Shop) -> None:
    asked: list[int] = []

    def approve(request: ApprovalRequest) -> Decision | None:
        asked.append(request.attempt)
        return approves(request) if request.attempt == 1 else None

    shop.world.approver = approve
    shop.offer(permission="confirm")
    shop.crash()
    assert (outcome(shop.world.call("send", amount=5)), shop.sent, asked) == ("unknown_outcome", [5], [1, 2])


def test_a_tool_that_is_keyed_only_today_was_not_sent_with_its_key(shop: Shop) -> None:
    entry = shop.offer()
    shop.crash()
    entry.tool = from_function(shop.send, idempotent="key")
    assert (outcome(shop.world.call("send", amount=5)), shop.sent) == ("unknown_outcome", [5])


async def _later(value: object) -> object:
    return value


@pytest.mark.parametrize("gives", [lambda value: value, _later], ids=["value", "awaitable"])
@pytest.mark.parametrize(
    ("found", "text", "sent"),
    [
        ("done", "It was done already; its result is not on record.", [5]),
        ("not_done", "sent 5", [5, 5]),
        ("unknown", None, [5]),
        ("yes", None, [5]),
        (True, None, [5]),
    ],
)
def test_its_owner_may_know_how_a_lost_call_ended(
    shop: Shop, found: object, text: str | None, sent: Iterable[int], gives: Callable[[object], object | Awaitable[Any]]
) -> None:
    keys: list[str] = []

    def reconcile(key: str) -> object:
        keys.append(key)
        return gives(found)

    shop.offer(reconcile=reconcile)
    shop.crash()
    result = shop.world.call("send", amount=5)
    assert (result.text if result.success else None, shop.sent) == (text, sent)
    assert [key.startswith(KEY) and len(key) == len(KEY) + 16 for key in keys] == [True]


class Post:
    """An owner that keeps each key beside its effect and looks for it later."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def send(self, amount: int, context: CallContext) -> str:
        self.kept.append(context.idempotency_key)
        return f"sent {amount}"

    def find(self, key: str) -> str:
        return "done" if key in self.kept else "not_done"


@pytest.mark.threat(16)
@pytest.mark.parametrize("idempotent", ["no", "key"])
def test_an_owner_that_looks_for_the_key_finds_the_lost_call(shop: Shop, idempotent: Idempotency) -> None:
    post = Post()
    shop.world.add(from_function(post.send, idempotent=idempotent, reconcile=post.find), permission="auto")
    shop.crash()
    result = shop.world.call("send", amount=5)
    assert result.text == "It was done already; its result is not on record."
    assert len(post.kept) == 1
    # The control: without the tool's record the owner says that nothing happened, and the call runs.
    post.kept.clear()
    shop.open()
    assert shop.world.make(ToolCall("send", {"amount": 5}, id="r_2")).text == "sent 5"
    assert len(post.kept) == 1


@pytest.mark.threat(16)
def test_the_owner_is_asked_with_the_key_that_the_tool_got_from_behind_a_middleware(shop: Shop) -> None:
    async def doubles(call: PreparedCall, call_next: CallNext) -> ToolResult:
        return await call_next(call.with_arguments({"amount": call.arguments["amount"] * 2}))

    post = Post()
    shop.world.middleware = (colourless(doubles),)
    shop.world.add(from_function(post.send, reconcile=post.find), permission="auto")
    shop.crash()
    assert shop.world.call("send", amount=5).metadata == {"reconciled": True}
    assert len(post.kept) == 1


def test_an_owner_that_cannot_say_leaves_a_keyed_call_to_its_key(shop: Shop) -> None:
    keys: list[str] = []

    def send(amount: int, context: CallContext) -> str:
        keys.append(context.idempotency_key)
        return f"sent {amount}"

    shop.world.add(from_function(send, idempotent="key", reconcile=lambda key: "unknown"), permission="auto")
    shop.crash()
    assert shop.world.call("send", amount=5).text == "sent 5"
    assert (len(keys), len(set(keys))) == (2, 1)


@pytest.mark.threat(16)
def test_an_owner_that_looks_only_today_cannot_say_that_it_was_not_done(shop: Shop) -> None:
    entry = shop.offer()
    shop.crash()
    entry.tool = from_function(shop.send, reconcile=lambda key: "not_done")
    assert (outcome(shop.world.call("send", amount=5)), shop.sent) == ("unknown_outcome", [5])


def test_an_owner_who_does_not_know_lets_nothing_run(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    def reconcile(key: str) -> str:
        raise ConnectionError(key)

    shop.offer(reconcile=reconcile)
    shop.crash()
    assert (outcome(shop.world.call("send", amount=5)), shop.sent) == ("unknown_outcome", [5])
    (record,) = [record for record in caplog.records if record.name == "toolwire.ledger"]
    assert record.getMessage().startswith("reconcile of 'send' failed on key r_1:r_1:")
    assert record.exc_info is not None


def test_a_lost_call_that_is_denied_today_is_not_asked_about(shop: Shop) -> None:
    entry = shop.offer()
    shop.crash()
    entry.permission = "deny"
    shop.world.approver = approves
    assert (outcome(shop.world.call("send", amount=5)), shop.sent) == ("denied", [5])


def test_a_call_of_a_stopped_run_that_began_before_may_have_run(shop: Shop) -> None:
    shop.offer()
    shop.crash()
    shop.world.run = Run()
    shop.world.run.stopped = "enough"
    assert (outcome(shop.world.call("send", amount=5)), shop.sent) == ("unknown_outcome", [5])


def test_a_recorded_result_of_a_stopped_run_comes_back(shop: Shop) -> None:
    shop.offer()
    shop.open()
    shop.world.call("send", amount=5)
    shop.open()
    shop.world.run = Run()
    shop.world.run.stopped = "enough"
    assert (shop.world.call("send", amount=5).text, shop.sent) == ("sent 5", [5])


def test_a_call_that_cannot_be_recorded_does_not_run(shop: Shop) -> None:
    used: list[Any] = []

    def use(thing: Any) -> None:
        """Uses."""
        used.append(thing)

    shop.world.add(use)
    shop.open()
    result = shop.world.call("use", thing=object())
    reason = "a value of type object cannot be written as JSON at thing"
    assert (result.error, used) == (f"The arguments of 'use' cannot be recorded: {reason}.", [])


def test_a_person_may_have_a_lost_call_run_again(shop: Shop) -> None:
    reasons: list[str] = []

    def approve(request: ApprovalRequest) -> Decision:
        reasons.append(request.reasons[0].partition(" began ")[0])
        return approves(request)

    shop.offer()
    shop.crash()
    shop.world.approver = approve
    assert (shop.world.call("send", amount=5).text, shop.sent) == ("sent 5", [5, 5])
    assert reasons == ["this may already have run: attempt 1"]


def test_a_run_that_goes_another_way_is_stopped_for_good(shop: Shop) -> None:
    shop.open()
    shop.offer()
    shop.world.call("send", amount=5)
    shop.open()
    other = [shop.world.call("send", amount=6), shop.world.call("send", amount=5)]
    new = shop.world.make(ToolCall("send", {"amount": 7}, id="r_2"))
    assert [outcome(result) for result in (*other, new)] == ["divergence"] * 3
    assert shop.sent == [5]


def test_a_call_that_waits_is_neither_begun_nor_settled(shop: Shop) -> None:
    shop.world.can_suspend = True
    ledger = shop.open()
    shop.offer(permission="confirm")
    call = ToolCall("send", {"amount": 5}, id="r_1")
    waits = [shop.world.come_to(call), shop.world.come_to(call)]
    request_ids = tuple(shop.records.requests)
    assert waits == [Pending(call=call, request_ids=request_ids)] * 2
    assert (ledger.story, shop.sent, len(request_ids)) == ([("ask", "r_1")] * 2, [], 1)
    assert shop.world.recording.records == []


def test_an_approval_does_not_run_a_changed_call(shop: Shop) -> None:
    shop.world.can_suspend = True
    shop.open()
    entry = shop.offer(permission="confirm")
    call = ToolCall("send", {"amount": 5}, id="r_1")
    shop.world.come_to(call)
    (asked,) = shop.records.requests.values()
    asked.decision = Decision(verdict="approve", request_id=asked.request.id)

    def send(amount: int, fee: int = 100) -> str:
        return shop.send(amount + fee)

    entry.tool = from_function(send)
    shop.open()
    assert (outcome(shop.world.make(call)), shop.sent) == ("approval_mismatch", [])


def test_a_value_that_the_host_fills_in_counts_as_approved_too(shop: Shop) -> None:
    shop.world.can_suspend = True
    shop.open()

    def send(amount: int, account: str) -> str:
        shop.sent.append(amount)
        return account

    tool = from_function(send)
    tool.bindings.bind("account", default="mine")
    shop.world.add(tool, permission="confirm")
    call = ToolCall("send", {"amount": 5}, id="r_1")
    shop.world.come_to(call)
    (asked,) = shop.records.requests.values()
    asked.decision = Decision(verdict="approve", request_id=asked.request.id)
    tool.bindings.bind("account", default="yours")
    shop.open()
    assert (outcome(shop.world.make(call)), shop.sent) == ("approval_mismatch", [])


def test_taints_of_a_run_survive_a_restart(shop: Shop) -> None:
    labels: list[Label] = ["private"]
    shop.offer(labels=labels)
    runs = [Run(), Run()]
    for run in runs:
        shop.open()
        shop.world.run = run
        shop.world.call("send", amount=5)
    assert [run.taints for run in runs] == [frozenset(labels)] * 2
    assert shop.sent == [5]


def test_nothing_more_of_a_stopped_run_starts(shop: Shop) -> None:
    shop.world.run = Run()
    shop.world.approver = lambda _: Decision(verdict="stop_run", reason="enough")
    shop.open()
    shop.offer(permission="confirm")
    first = shop.world.call("send", amount=5)
    second = shop.world.make(ToolCall("send", {"amount": 5}, id="r_2"))
    assert (first.error, second.error) == ("'send' may not be run: enough.", "'send' was not run: enough.")
    assert shop.sent == []


def test_a_keyed_tool_is_sent_with_the_same_key_again(shop: Shop) -> None:
    keys: list[str] = []

    def send(amount: int, context: CallContext) -> str:
        keys.append(context.idempotency_key)
        return f"sent {amount}"

    shop.world.add(from_function(send, idempotent="key"))
    shop.crash()
    shop.world.call("send", amount=5)
    shop.world.make(ToolCall("send", {"amount": 5}, id="r_2"))
    first, again, other = keys
    assert (first == again, first == other, first.startswith(KEY)) == (True, False, True)


def _count_canonical_forms(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    def counted(validated: Validated, key: bytes) -> dict[str, Any]:
        made.append(None)
        return canonical(validated, key)

    made: list[None] = []
    monkeypatch.setattr(validate, "canonical", counted)
    return made


def _note(texts: list[str], where: Path) -> int:
    """Takes large arguments, one of them of a type that JSON lacks."""
    return len(texts)


LARGE = {"texts": ["x" * 100] * 1_000, "where": "/notes"}


def test_the_canonical_form_of_a_call_that_is_judged_and_recorded_is_made_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    @colourless
    async def look(call: PreparedCall, call_next: CallNext) -> ToolResult:
        seen.append(len(call.arguments["texts"]))
        return await call_next(call)

    made = _count_canonical_forms(monkeypatch)
    shop.open()
    shop.world.rules = [
        Rule(effect="deny", tool="_note", when=[Condition(path="/arguments/where", op="==", value="x")])
    ]
    shop.world.middleware = (look,)
    shop.world.add(from_function(_note))
    assert shop.world.call("_note", **LARGE).data == 1_000
    assert (seen, len(made)) == ([1_000], 1)


def test_the_canonical_form_is_made_again_after_a_person_was_asked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _count_canonical_forms(monkeypatch)
    shop.open()
    shop.world.approver = lambda request: Decision(verdict="approve")
    shop.world.add(from_function(_note), permission="confirm")
    assert shop.world.call("_note", **LARGE).data == 1_000
    # Once to show it, once when the answer came, and once to begin: the values may have changed in between.
    assert len(made) == 3


def test_a_middleware_that_changes_what_it_is_given_changes_neither_the_call_nor_its_record(shop: Shop) -> None:
    @colourless
    async def spoil(call: PreparedCall, call_next: CallNext) -> ToolResult:
        call.arguments["texts"].append("more")
        result = await call_next(call)
        kept.append(call.prepared.canonical(call.scope)["texts"])
        return result

    kept: list[list[str]] = []
    shop.open()
    shop.world.middleware = (spoil,)
    shop.world.add(from_function(_note))
    assert shop.world.call("_note", texts=["a"], where="/notes").data == 1
    assert kept == [["a"]]


@pytest.mark.parametrize(("amount", "expected"), [(5, "success"), (5_000, "approval_mismatch")])
def test_an_argument_that_is_changed_while_a_person_thinks_does_not_run(shop: Shop, amount: int, expected: str) -> None:
    def take(order: dict[str, int]) -> int:
        """Takes an object that the host holds as well."""
        taken.append(order["amount"])
        return 1

    def approve(_: ApprovalRequest) -> Decision:
        order["amount"] = amount
        return Decision(verdict="approve")

    taken: list[int] = []
    order = {"amount": 5}
    take.__annotations__["order"] = Annotated[dict[str, int], AfterValidator(lambda _: order)]
    shop.open()
    shop.world.approver = approve
    shop.world.add(from_function(take), permission="confirm")
    assert outcome(shop.world.call("take", order={"amount": 5})) == expected
    assert taken == [5] * (expected == "success")
