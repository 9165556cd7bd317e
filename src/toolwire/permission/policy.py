"""A set of rules, and its verdict on a call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast, get_args

from toolwire.definition.tool import Permission
from toolwire.permission.approval import Answer, ApprovalRequest, Decider, Decision
from toolwire.permission.check import Described, RuleProblem, problems
from toolwire.permission.deciding import too_wide, undecidable
from toolwire.permission.rule import STRICTNESS, Rule, Subject, gate_reason, rule_of
from toolwire.permission.rule_index import RuleIndex, Verdict
from toolwire.vocabulary.effects import Effect
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.values import digest, plain_value

__all__ = ["STRICTNESS", "Policy", "Rule", "Subject", "Verdict"]

RUN_RULES_LIMIT = 1_000
"""Maximum number of remembered auto rules for single runs.

The oldest are dropped, and their calls need approval again.
"""


class Policy:
    """A set of rules. Their order never matters: among the rules that apply to a call, the strictest counts.

    If none applies, the tool's own permission counts. A rule may lift a tool's `confirm` but never its `deny`. It
    never lifts the guard on runs that have read both private and untrusted data. Thread-safe.
    """

    def __init__(
        self,
        rules: Iterable[Rule | Mapping[str, Any]] = (),
        *,
        defaults: Mapping[str, Permission] | None = None,
        approvers: Mapping[str, Iterable[str]] | None = None,
        on_remember: Callable[[Rule], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Creates a policy from `Rule`s or dicts with their fields.

        `defaults` maps tool names to permissions that replace the tools' own.

        `approvers` maps effects to principals. Only they may approve calls of tools with that effect, or of tools
        without declared effects; `"*"` covers every call. `on_remember` receives each rule that a person chose to keep,
        so that the host can save it. `clock` returns seconds since the epoch.

        Raises:
            ConfigurationError: A rule, permission or effect is invalid.
        """
        self._rules = tuple(_load_rule(given, f"rule {number}") for number, given in enumerate(rules, 1))
        self._defaults: dict[str, Permission] = dict(defaults or {})
        self._approvers: dict[str, frozenset[str]] = _approvers(approvers or {})
        for name, effect in self._defaults.items():
            if effect not in STRICTNESS:
                raise ConfigurationError(
                    f"permissions={{{name!r}: {effect!r}}}: write one of {', '.join(get_args(Permission))}"
                )
        self._on_remember = on_remember
        self.clock = clock
        self._lock = threading.Lock()
        self._remembered: tuple[Rule, ...] = ()
        self._parent: Policy | None = None
        self._parent_index: RuleIndex | None = None
        self._index = RuleIndex(self._rules)
        self._digested: tuple[tuple[Rule, ...], dict[str, Permission], dict[str, frozenset[str]], str] | None = None
        """The rules, permissions and approvers whose digest was asked for last, and the digest."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The loaded rules. For a policy of a session, those of the policy on which `for_session` was called."""
        return self._rules if self._parent is None else self._parent.rules

    @property
    def defaults(self) -> dict[str, Permission]:
        """The permissions by tool name that replace the tools' own."""
        return self._defaults if self._parent is None else {**self._parent.defaults, **self._defaults}

    @property
    def approvers(self) -> dict[str, frozenset[str]]:
        """The principals who alone may approve, by effect."""
        return self._approvers if self._parent is None else self._parent.approvers

    # -- judging ------------------------------------------------------------------------------------------------

    def constant_verdict(self, tool: str, own: Permission) -> Verdict | None:
        """Returns the verdict on every call of `tool` in runs that have read nothing.

        `own` is the tool's own permission. Returns None if the verdict may depend on the call; then use `judge` with a
        subject.
        """
        index = self._index if self._parent is None else self.index()
        verdict = index.settled.get((tool, own))
        if verdict is None and not index.of(tool).sometimes:
            verdict = index.settled[tool, own] = self._verdict_of_name(index, tool, own)
        return verdict

    def judge(self, tool: str, own: Permission, subject: Subject | None = None, *, was_asked: bool = False) -> Verdict:
        """Returns the verdict on a call of `tool`, whose own permission is `own`.

        Without a subject, rules that depend on the call are ignored: a denial then holds for every call. `was_asked`
        means that a person was asked about this call before. Only a rule that a person chose to keep then lets it run
        without another request.
        """
        index = self._index if self._parent is None else self.index()
        if subject is None:
            return self._verdict_of_name(index, tool, own)
        of_tool, now = index.of(tool), self.clock()
        hits = [rule for rule in of_tool.sometimes if rule.hits(subject, now)]
        verdict = self._decide(tool, own, (*of_tool.always, *hits)) if hits else None
        verdict = _apply_gate(verdict or self._verdict_of_name(index, tool, own), subject)
        if was_asked and verdict.effect == "auto" and not self._is_remembered((*of_tool.always, *hits)):
            return Verdict(effect="confirm", reasons=(f"a person was asked about this call of {tool!r} before",))
        return verdict

    def _is_remembered(self, hits: tuple[Rule, ...]) -> bool:
        kept = {id(rule) for rule in self.rules_of_decisions}
        return any(id(rule) in kept for rule in hits)

    def own(self, tool: str, own: Permission) -> Permission:
        """Returns the permission that counts if no rule applies: this policy's own for the tool, or else the tool's."""
        parent = self._parent
        return self._defaults.get(tool, own if parent is None else parent.own(tool, own))

    def rules_about(self, tool: str) -> tuple[Rule, ...]:
        """Returns the rules for the tool regardless of the call, including remembered ones."""
        return tuple(rule for rule in self.index().rules if rule.fits(tool))

    def _verdict_of_name(self, index: RuleIndex, tool: str, own: Permission) -> Verdict:
        verdict = index.verdicts.get((tool, own))
        if verdict is None:
            verdict = index.verdicts[tool, own] = self._decide(tool, own, index.of(tool).always)
        return verdict

    def _decide(self, tool: str, own: Permission, hits: tuple[Rule, ...]) -> Verdict:
        own = self.own(tool, own)
        if own == "deny" or not hits:
            return Verdict(effect=own, reasons=(f"the permission of {tool!r} is {own}",))
        strictest = max(hits, key=lambda rule: STRICTNESS[rule.effect]).effect
        return Verdict(effect=strictest, reasons=tuple(_reason(rule) for rule in hits if rule.effect == strictest))

    def index(self) -> RuleIndex:
        """Returns the current rules, including those of the parent policy."""
        parent = self._parent
        if parent is None:
            return self._index
        if parent.index() is not self._parent_index:
            with self._lock:
                theirs = parent.index()
                # The index first: a reader that sees the parent's new index must find its rules here.
                is_own = bool(self._remembered or self._defaults)
                # Without rules or permissions of its own, each verdict is the parent's, which may be there already.
                self._index = RuleIndex((*theirs.rules, *self._remembered)) if is_own else theirs
                self._parent_index = theirs
        return self._index

    # -- people -------------------------------------------------------------------------------------------------

    def may_decide(self, by: Decider, request: ApprovalRequest, verdict: Answer = "approve") -> str | None:
        """Returns why `by` may not answer this request; None if allowed.

        Anyone except the asking agent may deny. A model may approve only if `approvers` names it.
        """
        return undecidable(by, request, verdict, self.approvers)

    def refuses(self, decision: Decision, request: ApprovalRequest) -> str | None:
        """Returns why the decision cannot count, or None: its author may not decide, or its rule is too wide."""
        return self.may_decide(decision.by, request, decision.verdict) or too_wide(decision, request)

    # -- remembering --------------------------------------------------------------------------------------------

    @property
    def rules_of_decisions(self) -> tuple[Rule, ...]:
        """The rules that people chose to keep and that have not expired, oldest first."""
        now = self.clock()
        theirs = () if self._parent is None else self._parent.rules_of_decisions
        return (*theirs, *(rule for rule in self._remembered if not _is_over(rule, now)))

    def remember(self, rule: Rule) -> None:
        """Adds a rule at once, also for running calls. It replaces a rule with the same id.

        A rule of scope workspace goes to the policy on which `for_session` was called.

        Raises:
            ConfigurationError: The rule has scope run but no run id.
        """
        if rule.scope == "run" and not rule.run_id:
            raise ConfigurationError(f"{rule}: scope='run' needs the run_id of the run")
        if rule.scope == "workspace" and self._parent is not None:
            self._parent.remember(rule)
            return
        self.restore(rule)
        if self._on_remember is not None:
            self._on_remember(rule)

    def restore(self, rule: Rule) -> None:
        """Adds a rule that was kept before, to this policy only and without calling `on_remember`."""
        with self._lock:
            now = self.clock()
            kept = [old for old in self._remembered if not (rule.id and old.id == rule.id) and not _is_over(old, now)]
            self._remembered = _limit_run_rules((*kept, rule))
            self._index = RuleIndex((*self._rules_at_load(), *self._remembered))

    def forget(self, run_id: str) -> None:
        """Drops the rules that were kept for a run, because the run is over."""
        with self._lock:
            if not any(rule.run_id == run_id for rule in self._remembered):
                return
            self._remembered = tuple(rule for rule in self._remembered if rule.run_id != run_id)
            self._index = RuleIndex((*self._rules_at_load(), *self._remembered))

    def _rules_at_load(self) -> tuple[Rule, ...]:
        return self._rules if self._parent_index is None else self._parent_index.rules

    # -- others like it -----------------------------------------------------------------------------------------

    def for_session(self, defaults: Mapping[str, Permission] | None = None) -> Policy:
        """Returns a policy for one session: these rules, live, and the rules remembered for that session and its runs.

        `defaults` are added to this policy's own and take precedence.
        """
        made = Policy(defaults=defaults, on_remember=self._on_remember, clock=self.clock)
        made._parent = self
        return made

    def replace(self, other: Policy) -> None:
        """Replaces the rules, permissions and approvers by those of another policy, also for sessions that exist.

        It counts from the next call on. Remembered rules stay.
        """
        with self._lock:
            # The index last: a verdict that is kept in it must not rest on the permissions before.
            self._defaults, self._approvers = dict(other.defaults), dict(other.approvers)
            self._rules = other.rules
            self._index = RuleIndex((*other.index().rules, *self._remembered))

    def merge_with(self, other: Policy) -> Policy:
        """Returns a policy with the rules of both.

        If both set a permission for a tool, the stricter counts. If both name approvers for an effect, only approvers
        in both lists may approve.
        """
        defaults: dict[str, Permission] = {**self.defaults, **other.defaults}
        for name in self.defaults.keys() & other.defaults.keys():
            defaults[name] = max(self.defaults[name], other.defaults[name], key=STRICTNESS.__getitem__)
        approvers = {**self.approvers, **other.approvers}
        for effect in self.approvers.keys() & other.approvers.keys():
            approvers[effect] = self.approvers[effect] & other.approvers[effect]
        return Policy(
            (*self.index().rules, *other.index().rules),
            defaults=defaults,
            approvers=approvers,
            on_remember=self._on_remember or other._on_remember,
            clock=self.clock,
        )

    # -- looking at it ------------------------------------------------------------------------------------------

    def check(self, tools: Mapping[str, Described], *, is_whole: bool = True) -> list[RuleProblem]:
        """Returns the problems of the rules for the given tools, above all rules that can never apply.

        With `is_whole=False` more tools exist than are given, and only rules that name a given tool are checked.
        """
        return problems(self.rules, tools, now=self.clock(), is_whole=is_whole, defaults=self.defaults)

    @property
    def digest(self) -> str:
        """`sha256:` of the loaded rules, permissions and approvers. Remembered rules do not change it."""
        if self._parent is not None and not self._defaults:
            return self._parent.digest
        rules, defaults, approvers = self.rules, self.defaults, self.approvers
        last = self._digested
        # Each stored turn asks for it, and a digest of hundreds of rules takes milliseconds.
        if last is None or last[0] is not rules or last[1:3] != (defaults, approvers):
            of_rules = sorted(digest(plain_value(_as_data(rule))) for rule in rules)
            of_approvers = {effect: sorted(names) for effect, names in approvers.items()}
            last = self._digested = (rules, defaults, approvers, digest([of_rules, defaults, of_approvers]))
        return last[3]


def _load_rule(given: Rule | Mapping[str, Any], place: str) -> Rule:
    rule = rule_of(given, place)
    if rule.scope == "run" and not rule.run_id:
        raise ConfigurationError(f"{rule.source or place}: scope='run' is for rules that are made while a run goes on")
    return rule


def _approvers(given: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    known = (*get_args(Effect), "*")
    for effect, names in given.items():
        if effect not in known:
            raise ConfigurationError(f"approvers={{{effect!r}: ...}}: write one of {', '.join(known)}")
        if isinstance(names, str) or not all(isinstance(cast("object", name), str) and name for name in names):
            raise ConfigurationError(f"approvers={{{effect!r}: {names!r}}}: write a list of principals")
    return {effect: frozenset(names) for effect, names in given.items()}


def _apply_gate(verdict: Verdict, subject: Subject) -> Verdict:
    reason = gate_reason(subject)
    if not reason or verdict.effect == "deny":
        return verdict
    others = verdict.reasons if verdict.effect == "confirm" else ()
    return Verdict(effect="confirm", reasons=(*others, reason))


def _reason(rule: Rule) -> str:
    return str(rule) + (f": {rule.note}" if rule.note else "")


def _is_over(rule: Rule, now: float) -> bool:
    return rule.ends_at is not None and rule.ends_at <= now


def _limit_run_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    of_runs = [rule for rule in rules if rule.scope == "run" and rule.effect == "auto"]
    too_many = {id(rule) for rule in of_runs[: max(0, len(of_runs) - RUN_RULES_LIMIT)]}
    return tuple(rule for rule in rules if id(rule) not in too_many) if too_many else rules


def _as_data(rule: Rule) -> list[Any]:
    conditions = [[condition.path, condition.op, condition.value] for condition in rule.conditions]
    # A rule for all principals has the data that it has always had: runs on record have the digest.
    whose = [] if rule.principal is None and rule.tenant is None else [rule.principal, rule.tenant]
    return [
        rule.effect,
        rule.tool,
        conditions,
        rule.scope,
        rule.run_id,
        rule.agent,
        rule.ends_at,
        rule.tool_digest,
        *whose,
    ]
