"""Two policies that both count, for calls of a tool that has tools of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolwire.definition.tool import Permission
from toolwire.permission.approval import Answer, ApprovalRequest, Decider
from toolwire.permission.check import Described, RuleProblem
from toolwire.permission.policy import STRICTNESS, Policy, Rule, Subject, Verdict
from toolwire.permission.rule_index import RuleIndex
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.values import digest


class JoinedPolicy(Policy):
    """Both policies judge each call, and the stricter verdict counts. Rules that either remembers count at once."""

    def __init__(self, parent: Policy, child: Policy, caller: Caller | None = None) -> None:
        """Joins two policies. Neither is copied. `caller` is the parent's, to which the parent's denials go on to
        apply if the child's calls have another one.
        """
        # The merged approvers and defaults are for readers; the two policies themselves decide.
        merged = Policy.merge_with(parent, child)
        super().__init__(defaults=merged.defaults, approvers=merged.approvers, clock=parent.clock)
        self.parent = parent
        self.child = child
        self.caller = caller

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The loaded rules of both."""
        return (*self.parent.rules, *self.child.rules)

    def constant_verdict(self, tool: str, own: Permission) -> Verdict | None:
        """Returns the stricter verdict on every call of `tool`, or None if either may depend on the call."""
        first, second = self.parent.constant_verdict(tool, own), self.child.constant_verdict(tool, own)
        return None if first is None or second is None else _stricter(first, second)

    def judge(self, tool: str, own: Permission, subject: Subject | None = None, *, was_asked: bool = False) -> Verdict:
        """Returns the stricter of the two verdicts, with the reasons of both if they agree."""
        verdict = _stricter(
            self.parent.judge(tool, own, subject, was_asked=was_asked),
            self.child.judge(tool, own, subject, was_asked=was_asked),
        )
        if subject is None or self.caller in (None, subject.caller):
            return verdict
        above = self.parent.judge(tool, own, replace(subject, caller=self.caller), was_asked=was_asked)
        return above if above.effect == "deny" else verdict

    def own(self, tool: str, own: Permission) -> Permission:
        """Returns the stricter permission of the two for the tool."""
        return max(self.parent.own(tool, own), self.child.own(tool, own), key=STRICTNESS.__getitem__)

    def index(self) -> RuleIndex:
        """Returns the current rules of both."""
        return RuleIndex((*self.parent.index().rules, *self.child.index().rules))

    def may_decide(self, by: Decider, request: ApprovalRequest, verdict: Answer = "approve") -> str | None:
        """Returns why `by` may not answer this request by one of the policies; None if both allow it."""
        above = request if self.caller is None else replace(request, caller=self.caller)
        return (
            self.parent.may_decide(by, request, verdict)
            or self.parent.may_decide(by, above, verdict)
            or self.child.may_decide(by, request, verdict)
        )

    @property
    def rules_of_decisions(self) -> tuple[Rule, ...]:
        """The rules that people chose to keep, of both."""
        return (*self.parent.rules_of_decisions, *self.child.rules_of_decisions)

    def remember(self, rule: Rule) -> None:
        """Adds a rule to both, because a call that either asks about is asked about again."""
        self.parent.remember(rule)
        self.child.remember(rule)

    def restore(self, rule: Rule) -> None:
        """Adds a rule that was kept before to both."""
        self.parent.restore(rule)
        self.child.restore(rule)

    def forget(self, run_id: str) -> None:
        """Drops the rules that were kept for a run from both."""
        self.parent.forget(run_id)
        self.child.forget(run_id)

    def for_session(self, defaults: Mapping[str, Permission] | None = None) -> Policy:
        """Returns a policy for one session. `defaults` replace those of the child, never those of the parent."""
        return JoinedPolicy(self.parent, self.child.for_session(defaults), self.caller)

    def merge_with(self, other: Policy) -> Policy:
        """Returns a policy that is as strict as each of the three."""
        return JoinedPolicy(self, other)

    def check(self, tools: Mapping[str, Described], *, is_whole: bool = True) -> list[RuleProblem]:
        """Returns the problems of the child's rules; the parent's are about other tools."""
        return self.child.check(tools, is_whole=is_whole)

    @property
    def digest(self) -> str:
        """`sha256:` of both digests."""
        both: list[Any] = [self.parent.digest, self.child.digest]
        return digest(both)


def _stricter(first: Verdict, second: Verdict) -> Verdict:
    if first.effect == second.effect:
        return Verdict(effect=first.effect, reasons=tuple(dict.fromkeys((*first.reasons, *second.reasons))))
    return max(first, second, key=lambda verdict: STRICTNESS[verdict.effect])
