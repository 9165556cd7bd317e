"""Makes policies from the forms that users give, and checks their rules against tools."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.permission.check import tools_by_path
from toolwire.permission.policy import Policy, Rule
from toolwire.vocabulary.calls import CODE_EXECUTION
from toolwire.vocabulary.errors import ConfigurationError

_LOG = logging.getLogger("toolwire.permission")

PolicySource = Policy | str | Path | Iterable[Rule | Mapping[str, Any]]
"""A policy, the path of a policy file, or rules."""


def policy_of(given: PolicySource) -> Policy:
    """Returns the given policy, or makes it from the file or the rules.

    Raises:
        ConfigurationError: the file cannot be read, a rule is not valid, or the value has another type.
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, str | Path):
        from toolwire.permission.policy_file import load_policy

        return load_policy(given)
    if not isinstance(cast("object", given), Iterable):
        raise ConfigurationError(
            f"{given!r:.80} has no rules: give a Policy, the path of a policy file, or a list of rules"
        )
    return Policy(given)


def policy_with_rules(policy: PolicySource | None, rules: Iterable[Rule | Mapping[str, Any]]) -> Policy:
    """Returns the policy with these rules added; without either, one that leaves each tool its own permission."""
    if policy is None:
        return Policy(rules)
    more = tuple(rules)
    return policy_of(policy).merge_with(Policy(more)) if more else policy_of(policy)


def refuse_wrong_rules(
    policy: Policy,
    entries: Iterable[Entry],
    *,
    also: Iterable[Entry] = (),
    is_whole: bool = True,
    came_later: bool = False,
) -> None:
    """Raises if a rule cannot work for these tools; with `is_whole=False` they are only a part of all tools.

    `also` are tools that will be added to them. A rule may also name a request that is passed on to an MCP server, if
    the tools are a catalogue. With `came_later` the rules were there before the tools, such as those of an MCP server.
    A condition that can decide on no value of a parameter's type is then a warning in the log `toolwire.permission`:
    deny and confirm hold, and auto does not.

    Raises:
        ConfigurationError: a rule can never apply as written; the message names it and says what to write instead.
    """
    if policy.rules or policy.defaults:
        tools = {entry.name: entry.tool for entry in (*entries, *also)}
        beside = entries.server_requests if isinstance(entries, Catalogue) else ()
        # Only rules about requests alone are checked with them: other rules may name arguments that requests lack.
        alone = [rule for rule in policy.rules if not any(map(rule.fits, tools))]
        tools |= {one.name: one.tool for one in beside if any(rule.fits(one.name) for rule in alone)}
        found = policy.check(tools, is_whole=is_whole)
        undecidable = [problem for problem in found if came_later and problem.is_undecidable]
        for problem in undecidable:
            does = "lets no call run" if problem.rule and problem.rule.effect == "auto" else "holds back every call"
            _LOG.warning("%s; the rule %s", problem, does)
        wrong = [problem for problem in found if problem not in undecidable]
        if wrong:
            raise ConfigurationError("\n".join(map(str, wrong)))


def refuse_unknown_names(permissions: Iterable[str], catalogue: Catalogue) -> None:
    """Checks that the catalogue has each tool that permissions name, or that a tool there has it below it.

    Raises:
        ConfigurationError: it lacks one.
    """
    missing = [name for name in permissions if name not in catalogue and name != CODE_EXECUTION]
    inner = {path[-1] for path in tools_by_path({one.name: one.tool for one in catalogue})} if missing else set[str]()
    for name in missing:
        if name not in inner:
            near = catalogue.nearest(name)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ConfigurationError(f"permissions name {name!r}, and there is no such tool{hint}")
