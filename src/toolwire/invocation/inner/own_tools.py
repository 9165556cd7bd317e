"""The calls of a tool that has tools of its own: another catalogue, below the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from toolwire.invocation.scope import Scope
from toolwire.permission.joined_policy import JoinedPolicy
from toolwire.permission.policy import Policy
from toolwire.vocabulary.errors import ConfigurationError

USING_DEPTH_LIMIT = 5
"""Maximum number of catalogues below each other. A tool that uses its own registry would never end."""

T = TypeVar("T")


def below(parent: Callable[[], Scope], tools: Any, agent: str | None = None) -> Callable[[], Scope]:
    """Returns a function that gives the present scope of calls of `tools`, below calls of the scope `parent`.

    The run, labels, secrets' key and tracer are the parent's. So is the caller, but for the name of its `agent`. The
    earlier deadline counts. Both policies judge each call, and a rule that a person keeps counts for both.

    Raises:
        ConfigurationError: `tools` is not a registry or a toolkit, it is too deep, or `agent` is not text.
    """
    # Only the facade knows the classes that users hold; each of them has its present scope.
    if not isinstance(getattr(tools, "_call_scope", None), Scope):
        raise ConfigurationError(f"context.using({tools!r:.80}): give a registry or a toolkit")
    if agent is not None and not isinstance(cast("object", agent), str):
        raise ConfigurationError(f"context.using(..., agent={agent!r:.80}): write the name of an agent")
    depth = parent().depth + 1
    if depth > USING_DEPTH_LIMIT:
        raise ConfigurationError(
            f"context.using(...): {USING_DEPTH_LIMIT} catalogues are below each other already. "
            "Write context.call(...) here, or give this tool a registry without the tool that leads back to it."
        )

    joined: tuple[Policy, Policy, JoinedPolicy] | None = None

    def scope() -> Scope:
        nonlocal joined
        over, own = parent(), tools._call_scope  # noqa: SLF001
        if joined is None or joined[0] is not over.policy or joined[1] is not own.policy:
            # Rules that a person keeps for one session must not count for other users of the registry.
            child = own.policy.for_session()
            for rule in over.policy.rules_of_decisions:
                child.restore(rule)
            joined = (over.policy, own.policy, JoinedPolicy(over.policy, child, over.caller))
        return replace(
            over,
            caller=over.caller if agent is None else replace(over.caller, agent=agent),
            catalogue=own.catalogue,
            policy=joined[2],
            approver=over.approver or own.approver,
            middleware=_both(over.middleware, own.middleware),
            observers=_both(over.observers, own.observers),
            watchers=_both(over.watchers, own.watchers),
            states=own.states,
            visible=own.visible,
            groups=own.groups,
            deadline=min((one for one in (over.deadline, own.deadline) if one is not None), default=None),
            depth=depth,
            end=own.end,
            variables=own.variables,
            agent_run=own.agent_run or over.agent_run,
        )

    return scope


def _both(parents: tuple[T, ...], childs: tuple[T, ...]) -> tuple[T, ...]:
    return (*parents, *(one for one in childs if not any(one is other for other in parents)))
