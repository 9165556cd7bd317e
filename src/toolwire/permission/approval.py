"""Asking a person: the request, the decision, and who can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.errors import ConfigurationError

Answer = Literal["approve", "edit", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One call that waits for a person."""

    id: str
    """The request's id, unique in this process."""
    call_id: str
    """The call's id."""
    tool: str
    """The tool's name."""
    arguments: Mapping[str, Any]
    """Exactly what will run, as plain JSON: after defaults and conversion."""
    reasons: tuple[str, ...]
    """Why it is asked."""
    caller: Caller = NOBODY
    """On whose behalf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person said.

    Raises:
        ConfigurationError: an unknown verdict, or an edit without arguments.
    """

    verdict: Answer
    """approve: run it as shown; edit: run it with `arguments`; deny: do not run it."""
    arguments: Mapping[str, Any] | None = None
    """With edit: the arguments to run instead. They are validated and judged like the model's own."""
    reason: str = ""
    """With deny: what the model is told."""

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Answer):
            raise ConfigurationError(f"Decision(verdict={self.verdict!r}): write one of {', '.join(get_args(Answer))}")
        if self.verdict == "edit" and self.arguments is None:
            raise ConfigurationError("Decision(verdict='edit'): give the arguments to run instead, arguments={...}")


Approver = Callable[[ApprovalRequest], Decision | Awaitable[Decision | None] | None]
"""Who is asked. None means that nobody answered; then, or when it raises, the call is not run."""
