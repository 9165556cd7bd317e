"""The rules of a policy by tool, and the verdicts that depend on the tool alone."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.definition.tool import Permission
from toolwire.permission.rule import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a policy on one call.

    Attributes:
        effect: auto: run the call. confirm: ask a person. deny: do not run it.
        reasons: The rules that led to it, or the tool's own permission.
    """

    effect: Permission
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolRules:
    """The rules for one tool."""

    always: tuple[Rule, ...]
    """Rules that apply to each of its calls."""
    sometimes: tuple[Rule, ...]
    """Rules that depend on the call."""


class RuleIndex:
    """An index of rules by tool, with the verdicts that depend only on the tool. A change of the rules replaces it."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.verdicts: dict[tuple[str, Permission], Verdict] = {}
        self.settled: dict[tuple[str, Permission], Verdict] = {}
        """The verdicts that no call can change, because no rule for the tool depends on the call."""
        self._tools: dict[str, _ToolRules] = {}

    def of(self, tool: str) -> _ToolRules:
        """Returns the rules for the tool."""
        found = self._tools.get(tool)
        if found is None:
            fitting = [rule for rule in self.rules if rule.fits(tool)]
            found = self._tools[tool] = _ToolRules(
                always=tuple(rule for rule in fitting if not rule.looks_at_calls),
                sometimes=tuple(rule for rule in fitting if rule.looks_at_calls),
            )
        return found
