"""Rules: which calls run unasked, which ask a person first, which never run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast, get_args

from toolwire.definition.tool import Permission
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Effect, Label
from toolwire.vocabulary.errors import ConfigurationError

STRICTNESS: Mapping[Permission, int] = {"auto": 0, "confirm": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is to happen to calls of the tools it names.

    Raises:
        ConfigurationError: an unknown effect, or no tool.
    """

    effect: Permission
    """auto: run; confirm: ask first; deny: never run."""
    tool: str
    """A tool's name, or a pattern: `*` for any text, `?` for any character, `[ab]` for one of these."""
    note: str = ""
    """Why, for the person who is asked and for the log."""

    def __post_init__(self) -> None:
        if self.effect not in STRICTNESS:
            raise ConfigurationError(f"Rule(effect={self.effect!r}): write one of {', '.join(get_args(Permission))}")
        if not self.tool or not isinstance(cast("object", self.tool), str):
            raise ConfigurationError(f"Rule(tool={self.tool!r}): write a tool's name, or '*' for all tools")

    def fits(self, tool: str) -> bool:
        """Whether it is about that tool: a name that holds `[` is a name before it is a pattern."""
        return tool == self.tool or fnmatchcase(tool, self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One call as a policy sees it."""

    arguments: Mapping[str, Any]
    """Exactly what will run, as plain JSON."""
    caller: Caller
    """On whose behalf."""
    run_id: str
    """The run it belongs to; empty when it is a run of its own."""
    effects: frozenset[Effect]
    """What the tool says it does."""
    taints: frozenset[Label]
    """What the run has read so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says of one call."""

    effect: Permission
    """What is to happen."""
    reasons: tuple[str, ...]
    """The rules that led to it, or the tool's own default."""


class Policy:
    """Rules in force. Their order never matters: of all that fit, the strictest counts.

    Where none fits, the tool's own permission counts. A rule may lift a tool's `confirm`, never its `deny`.
    """

    def __init__(self, rules: Iterable[Rule] = (), *, defaults: Mapping[str, Permission] | None = None) -> None:
        """`defaults` are permissions by tool name that stand in for the tools' own."""
        self.rules = tuple(rules)
        self.defaults: dict[str, Permission] = dict(defaults or {})
        for name, effect in self.defaults.items():
            if effect not in STRICTNESS:
                raise ConfigurationError(
                    f"permissions={{{name!r}: {effect!r}}}: write one of {', '.join(get_args(Permission))}"
                )
        self._verdicts: dict[tuple[str, Permission], Verdict] = {}

    looks_at_calls = False
    """Whether a verdict may depend on more than the tool's name: then `judge` wants the call as its subject."""

    def judge(self, tool: str, own: Permission, subject: Subject | None = None) -> Verdict:
        """The verdict on a call of `tool`, whose own permission is `own`; without a subject, on any call of it."""
        del subject
        # Rules look at names alone, so that a verdict holds for every call of the tool.
        verdict = self._verdicts.get((tool, own))
        if verdict is None:
            verdict = self._verdicts[tool, own] = self._decide(tool, self.defaults.get(tool, own))
        return verdict

    def _decide(self, tool: str, own: Permission) -> Verdict:
        hits = [rule for rule in self.rules if rule.fits(tool)]
        if own == "deny" or not hits:
            return Verdict(effect=own, reasons=(f"the permission of {tool!r} is {own}",))
        strictest = max(hits, key=lambda rule: STRICTNESS[rule.effect]).effect
        reasons = tuple(_reason(rule) for rule in hits if rule.effect == strictest)
        return Verdict(effect=strictest, reasons=reasons)


def _reason(rule: Rule) -> str:
    return f"rule {rule.effect} {rule.tool!r}" + (f": {rule.note}" if rule.note else "")
