"""One call of a run, as a ledger records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.effects import Idempotency
from toolwire.vocabulary.exact import digest_of_tagged
from toolwire.vocabulary.values import tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call as the model made it. A replay must make the same call, or the run has diverged."""

    key: str
    """The call's id: a path in its run, the same in every replay."""
    parent: str
    """The key of the call that makes this one: a program, or a tool through its context. Empty for a top-level call."""
    tool: str
    """The name under which the tool is called."""
    given: Any
    """The raw arguments, tagged (`values.tag`)."""
    digest: str
    """`sha256:` of tool and arguments. A replay compares it with the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The record that is written before a step runs."""

    step: Step
    arguments: Mapping[str, Any]
    """The exact arguments that will run, as plain JSON."""
    arguments_digest: str
    """`sha256:` of the arguments."""
    tool_digest: str
    """`sha256:` of the tool's name, description and schemas."""
    idempotent: Idempotency
    is_composite: bool
    """True if the only effects of the step are its inner calls: it may be entered again."""
    request_id: str = ""
    """The approved request that the step uses up; empty if the call needed no approval."""
    attempt: int = 1
    """Number of the attempt, from 1. It goes up when a crash hid the outcome of the attempt before."""
    has_key: bool = False
    """True if the tool received the idempotency key, so that its `reconcile` can look for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubtStep:
    """A step that was begun and never ended. It may have taken effect."""

    idempotent: Idempotency
    is_composite: bool
    started_at: float
    """Seconds since the epoch."""
    attempt: int
    """Number of the attempt."""
    idempotency_key: str
    """The idempotency key of the call."""
    has_key: bool = False
    """True if the tool received this key."""
    is_asking: bool = False
    """True if the step came as far as a request whose decision it has not received. It may be entered again."""
    waiting: tuple[str, ...] = ()
    """Ids of the requests below the step that nobody has decided yet."""


def step_of(call: ToolCall) -> Step:
    """Converts a call into a step.

    Raises:
        Unrepresentable: An argument has no written form.
    """
    given = tag(dict(call.arguments))
    return Step(
        key=call.id,
        parent=call.parent,
        tool=call.name,
        given=given,
        digest=digest_of_tagged([call.name, given]),
    )


def idempotency_key(run_id: str, key: str, arguments_digest: str) -> str:
    """Returns the idempotency key of a call.

    It is the same for every attempt, so that the tool can recognise the call.
    """
    return f"{run_id}:{key}:{arguments_digest.removeprefix('sha256:')[:16]}"
