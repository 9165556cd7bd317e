"""The step that asks the policy, alone: what the policy is given, and what it gives."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.invocation.alone import entry_of, ready, scope_of
from toolwire.definition.tool import Tool
from toolwire.invocation.judge import effects_of, is_denied, judged, judged_by_name, subject_of
from toolwire.invocation.scope import Run, Scope
from toolwire.permission.policy import Policy, Rule, Subject, Verdict
from toolwire.permission.rule import STRICTNESS
from toolwire.testing.ledger import MemoryLedger
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Seen
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult

CALLER = Caller(principal="eve", agent="clerk")
BOTH: Any = ("private", "untrusted")
OWN_AUTO = Verdict(effect="auto", reasons=("the permission of 'pay' is auto",))
OWN_CONFIRM = Verdict(effect="confirm", reasons=("the permission of 'pay' is confirm",))
OWN_DENY = Verdict(effect="deny", reasons=("the permission of 'pay' is deny",))


def pay(amount: Any) -> None: ...


def withheld(scope: Scope) -> Scope:
    entry_of(scope).tool.withheld = lambda: ToolResult.failed("unavailable", "an operator took it away")
    return scope


def run_of_two_kinds_of_data() -> Run:
    return Run(taints=BOTH)


def asked_about(*call_ids: str) -> Run:
    run = Run()
    run.asked = frozenset(call_ids)
    return run


@pytest.mark.parametrize("own", STRICTNESS)
def test_the_permission_of_the_entry_counts_without_a_rule(own: Any) -> None:
    scope = scope_of(pay, permission=own)
    expected = {"auto": OWN_AUTO, "confirm": OWN_CONFIRM, "deny": OWN_DENY}[own]
    assert judged(ready(scope, amount=5), scope) == judged_by_name(entry_of(scope), scope.policy) == expected


def test_a_tool_that_is_withheld_is_denied_with_its_refusal() -> None:
    scope = withheld(scope_of(pay))
    refused = Verdict(effect="deny", reasons=("an operator took it away",))
    assert judged(ready(scope, amount=5), scope) == judged_by_name(entry_of(scope), scope.policy) == refused


def test_a_rule_about_the_call_is_judged_by_the_call() -> None:
    rule = Rule(effect="deny", tool="pay", when=[{"path": "/arguments/amount", "op": ">", "value": 100}])
    scope = scope_of(pay, policy=Policy([rule]))
    denied = Verdict(effect="deny", reasons=("rule deny 'pay' when amount > 100",))
    assert judged(ready(scope, amount=100), scope) == OWN_AUTO
    assert judged(ready(scope, amount=101), scope) == denied
    assert judged_by_name(entry_of(scope), scope.policy) == OWN_AUTO


def test_arguments_that_rules_cannot_look_at_are_denied() -> None:
    rule = Rule(effect="auto", tool="pay", when=[{"path": "/arguments/amount", "op": ">", "value": 100}])
    scope = scope_of(pay, policy=Policy([rule]))
    reason = "rules cannot look at these arguments: a value of type object cannot be written as JSON at amount"
    assert judged(ready(scope, amount=object()), scope) == Verdict(effect="deny", reasons=(reason,))


@pytest.mark.parametrize("run", [None, Run()], ids=["no run", "a run that has read nothing"])
def test_a_call_that_no_rule_looks_at_needs_no_canonical_form(run: Run | None) -> None:
    scope = scope_of(pay, run=run)
    assert judged(ready(scope, amount=object()), scope) == OWN_AUTO


def test_a_tool_that_sends_asks_in_a_run_that_has_read_both_kinds_of_data() -> None:
    reason = "this run has read private data and untrusted text, and the tool sends data out"
    scope = scope_of(pay, run=run_of_two_kinds_of_data(), options={"effects": ["send"]})
    assert judged(ready(scope, amount=5), scope) == Verdict(effect="confirm", reasons=(reason,))
    assert judged(ready(scope, amount=5), replace(scope, run=Run(["private"]))) == OWN_AUTO


@pytest.mark.parametrize(("run", "expected"), [(asked_about("r_1"), "confirm"), (asked_about("r_2"), "auto")])
def test_a_call_that_a_person_was_asked_about_before_asks_again(run: Run, expected: str) -> None:
    scope = scope_of(pay, run=run)
    verdict = judged(ready(scope, amount=5), scope)
    again = Verdict(effect="confirm", reasons=("a person was asked about this call of 'pay' before",))
    assert verdict == (again if expected == "confirm" else OWN_AUTO)


def denied_by(*, ends_turn: bool = False, rules: tuple[Rule, ...] = (), **more: Any) -> bool:
    scope = scope_of(pay, **more)
    entry_of(scope).tool.ends_turn = ends_turn
    return is_denied(entry_of(scope), Policy(rules))


def test_a_tool_is_denied_if_no_call_of_it_can_run() -> None:
    sometimes = Rule(effect="deny", tool="pay", when=[{"path": "/arguments/amount", "op": ">", "value": 100}])
    assert denied_by(permission="deny")
    assert denied_by(rules=(Rule(effect="deny", tool="pay"),))
    assert not denied_by(permission="confirm")
    assert not denied_by(rules=(sometimes,))
    assert not denied_by(permission="deny", ends_turn=True)
    assert not denied_by(ends_turn=True)


def test_a_policy_is_given_all_facts_about_the_call() -> None:
    options = {"effects": ["send", "spend"], "effects_of": lambda arguments, seen: ["spend"]}
    scope = scope_of(pay, caller=CALLER, run_id="r_0", run=Run(["private"]), options=options)
    entry_of(scope).tool.is_outside = True
    assert subject_of(ready(scope, amount=5), scope) == Subject(
        arguments={"amount": 5},
        caller=CALLER,
        run_id="r_0",
        effects=frozenset({"spend"}),
        taints=frozenset({"private"}),
        is_outside=True,
        tool_digest=entry_of(scope).tool.digest,
    )


def test_the_run_of_a_call_is_that_of_the_ledger_or_the_call_itself() -> None:
    scope = scope_of(pay)
    assert subject_of(ready(scope, amount=5), scope) == Subject(
        arguments={"amount": 5}, run_id="r_1", tool_digest=entry_of(scope).tool.digest
    )
    recorded = replace(scope, run_id="p_1", ledger=MemoryLedger("r_7"))
    assert subject_of(ready(recorded, amount=5), recorded).run_id == "r_7"


# -- the effects of one call --

Given = Callable[[Mapping[str, Any], Seen], Any]


def effects(given: Given | None, *, run: Run | None = None, amount: Any = 5) -> frozenset[str]:
    options = {"effects": ["read", "send"], **({} if given is None else {"effects_of": given})}
    scope = scope_of(pay, run=run, options=options)
    return frozenset(effects_of(ready(scope, amount=amount), scope))


def test_a_tool_that_does_not_say_more_has_all_its_effects_in_each_call() -> None:
    assert effects(None) == {"read", "send"}
    assert effects(None, amount=object()) == {"read", "send"}


def test_a_part_of_the_declared_effects_may_be_those_of_one_call(caplog: pytest.LogCaptureFixture) -> None:
    assert effects(lambda arguments, seen: ["read"]) == {"read"}
    assert effects(lambda arguments, seen: ["read", "send"]) == {"read", "send"}
    assert caplog.records == []


def test_effects_are_told_from_the_arguments_and_from_the_urls_that_the_run_has_seen() -> None:
    given: list[Any] = []

    def effects_of_call(arguments: Mapping[str, Any], seen: Seen) -> list[str]:
        given.append((arguments, seen))
        return ["read"]

    run = Run()
    run.saw(["https://a.example/"])
    effects(effects_of_call, run=run)
    effects(effects_of_call)
    assert given == [({"amount": 5}, Seen(urls=frozenset({"https://a.example/"}))), ({"amount": 5}, Seen())]


def test_a_host_that_changes_the_arguments_changes_a_copy() -> None:
    scope = scope_of(
        pay,
        options={"effects": ["read"], "effects_of": lambda arguments, seen: arguments["amount"].clear() or ["read"]},
    )
    prepared = ready(scope, amount=[5])
    assert effects_of(prepared, scope) == {"read"}
    assert prepared.canonical(scope) == {"amount": [5]}


def test_arguments_without_a_canonical_form_have_no_effects_of_their_own() -> None:
    with pytest.raises(Unrepresentable):
        effects(lambda arguments, seen: ["read"], amount=object())


def raises(arguments: Mapping[str, Any], seen: Seen) -> Any:
    raise OSError("the host's table is away")


NOT_A_PART = "effects_of of 'pay' gave {}; its declared effects count: give a part of them"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda arguments, seen: [], NOT_A_PART.format("[]")),
        (lambda arguments, seen: ["exec"], NOT_A_PART.format("['exec']")),
        (lambda arguments, seen: ["read", "exec"], NOT_A_PART.format("['read', 'exec']")),
        (lambda arguments, seen: 5, "effects_of of 'pay' failed; its declared effects count"),
        (raises, "effects_of of 'pay' failed; its declared effects count"),
    ],
    ids=["nothing", "another effect", "one more effect", "a number", "an error"],
)
def test_the_declared_effects_count_if_the_host_gives_no_part_of_them(
    given: Given, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert effects(given) == {"read", "send"}
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == ("toolwire.effects", logging.ERROR, message)
    assert (record.exc_info is not None) == ("failed" in message)


def test_the_names_are_those_of_the_registry() -> None:
    """A tool may have another name of its own."""
    scope = scope_of(pay, policy=Policy([Rule(effect="deny", tool="pay")]))
    tool: Tool = entry_of(scope).tool
    tool.name = "own_name"
    assert judged(ready(scope, amount=5), scope).effect == "deny"
    assert judged_by_name(entry_of(scope), scope.policy).effect == "deny"
