"""One call of a run as a ledger knows it."""

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
    """A call as it was asked for. Asked for again, it must be the same, or the run has gone another way."""

    key: str
    """The call's id: a path in its run, the same each time the run is gone through."""
    parent: str
    """The key of the call whose program makes this one; empty at the top."""
    tool: str
    """The name it is called by."""
    given: Any
    """The arguments as they came, tagged (`values.tag`)."""
    digest: str
    """`sha256:` of tool and arguments: what the record is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is written before a step runs."""

    step: Step
    arguments: Mapping[str, Any]
    """Exactly what will run, as plain JSON."""
    arguments_digest: str
    """`sha256:` of these."""
    tool_digest: str
    """`sha256:` of the tool's name, description and schemas."""
    idempotent: Idempotency
    is_composite: bool
    """Its only effects are its inner calls: it may be entered again."""
    request_id: str = ""
    """The approved request that is used up by this; empty when nobody had to be asked."""
    attempt: int = 1
    """1 the first time; more after a crash hid how the earlier ones ended."""
    has_key: bool = False
    """The tool was given the idempotency key: its `reconcile` can look for it later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A step that was begun and never ended: it may have taken effect."""

    idempotent: Idempotency
    is_composite: bool
    started_at: float
    """Seconds since the epoch."""
    attempt: int
    """Which attempt it was."""
    idempotency_key: str
    """What the call was sent with."""
    has_key: bool = False
    """The tool was given this key."""


def step_of(call: ToolCall) -> Step:
    """The call as a step.

    Raises:
        Unrepresentable: an argument has no written form.
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
    """What a keyed tool is sent with each time the same call is made, so that it can know it again."""
    return f"{run_id}:{key}:{arguments_digest.removeprefix('sha256:')[:16]}"
