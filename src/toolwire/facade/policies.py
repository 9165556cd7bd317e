"""A policy from whatever a user gives as one, and what it says of a call."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.entry import Entry
from toolwire.permission.policy import Policy, Rule
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.facade.setup import Setup
    from toolwire.permission.explain import Explanation

PolicySource = Policy | str | Path | Iterable[Rule | Mapping[str, Any]]
"""A policy, the path of a policy file, or rules."""


def policy_of(given: PolicySource) -> Policy:
    """The policy that it is or holds.

    Raises:
        ConfigurationError: the file cannot be read, or a rule is none.
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, str | Path):
        from toolwire.permission.policy_file import load_policy

        return load_policy(given)
    return Policy(given)


def refuse_wrong_rules(policy: Policy, entries: Iterable[Entry], *, is_whole: bool = True) -> None:
    """Does nothing if each rule can do for these tools what it says; with `is_whole=False` there are more of them.

    Raises:
        ConfigurationError: one that cannot; the message names it and says what to write instead.
    """
    if policy.rules:
        wrong = policy.check({entry.name: entry.tool for entry in entries}, is_whole=is_whole)
        if wrong:
            raise ConfigurationError("\n".join(map(str, wrong)))


def explained(entry: Entry, arguments: Mapping[str, Any], setup: Setup) -> Explanation:
    """What the policy says of a call of this tool, and why.

    Raises:
        ConfigurationError: the arguments are wrong.
    """
    from toolwire.catalogue.catalogue import Catalogue
    from toolwire.invocation.authorize import subject_of
    from toolwire.invocation.scope import Prepared
    from toolwire.invocation.validate import validate
    from toolwire.permission.explain import explain

    prepared = validate(ToolCall(entry.name, arguments), entry)
    if not isinstance(prepared, Prepared):
        raise ConfigurationError(prepared.error or "the arguments are wrong")
    subject = subject_of(prepared, setup.scope(Catalogue()))
    own = entry.permission or entry.tool.permission
    return explain(setup.policy, entry.name, own, subject, now=time.time())
