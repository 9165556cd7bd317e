"""Asking a person: the request, the decision, and who can be asked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from toolwire.permission.rule import Rule
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.effects import Effect, Label
from toolwire.vocabulary.errors import ConfigurationError, ToolwireError

Answer = Literal["approve", "edit", "deny", "stop_run"]
ANSWERS: tuple[str, ...] = get_args(Answer)

REQUEST_LIFE_S = 7 * 86_400.0
"""Seconds that a request waits: a week, so that one asked on a Friday outlives a holiday. After that it is refused."""

RefusalCode = Literal[
    "stale_rev",
    "bad_mac",
    "expired",
    "unknown_request",
    "unknown_run",
    "already_decided",
    "approval_mismatch",
    "tool_changed",
    "not_permitted",
    "invalid_edit",
    "divergence",
    "schema_too_new",
    "run_busy",
    "malformed",
]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class DecisionRefused(ToolwireError):
    """A decision, or a saved run, that does not count. Nothing was run for it; `code` says why."""

    def __init__(
        self, code: RefusalCode, message: str, *, request_id: str = "", decided: Decision | None = None
    ) -> None:
        super().__init__(message)
        self.code: RefusalCode = code
        self.request_id = request_id
        """The request it was for; empty when it was for none."""
        self.decided = decided
        """With `already_decided`: the decision that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One call that waits for a person."""

    id: str
    """The request's id: 128 random bits, so that nobody guesses another's."""
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
    run_id: str = ""
    """The run the call belongs to."""
    parent: str = ""
    """The id of the call whose program makes this one; empty at the top."""
    attempt: int = 1
    """Which attempt at the call; above 1 it may have run already, and `reasons` say so."""
    tool_digest: str = ""
    """`sha256:` of the tool's name, description and schemas as they were when it was asked."""
    arguments_digest: str = ""
    """`sha256:` of `arguments`: what a decision is for."""
    bound_digest: str = ""
    """`sha256:` of what the host fills in, which nobody is shown; empty when there is nothing of the kind."""
    given: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """What the model wrote, as plain JSON, where it differs from `arguments`; else empty."""
    effects: tuple[Effect, ...] = ()
    """What the tool says it does."""
    taints: tuple[Label, ...] = ()
    """What the run has read so far."""
    arguments_schema: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """JSON schema of the arguments, by which an edit is checked."""
    created_at: float = 0.0
    """Seconds since the epoch."""
    expires_at: float = 0.0
    """Seconds since the epoch after which no decision counts; 0: never."""


def _check_text(record: Decider | Decision, name: str) -> None:
    value = getattr(record, name)
    if not isinstance(value, str):
        raise ConfigurationError(f"{type(record).__name__}({name}={value!r:.80}): write text, {name}='...'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who decided, and through what.

    Raises:
        ConfigurationError: a field is not text.
    """

    principal: str = ""
    """The person or service; empty when nobody said."""
    channel: str = ""
    """Through what: `console`, `cli`, `callback`, `model`, or a name of your own."""
    authn: str = ""
    """How they proved who they are; empty when they did not."""

    def __post_init__(self) -> None:
        for name in ("principal", "channel", "authn"):
            _check_text(self, name)


SOMEBODY = Decider()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person said.

    Raises:
        ConfigurationError: an unknown verdict, an edit without arguments, or a field of another type.
    """

    verdict: Answer
    """approve: run it as shown; edit: run it with `arguments`; deny: do not run it; stop_run: run nothing more."""
    arguments: Mapping[str, Any] | None = None
    """With edit: the arguments to run instead. They are validated and judged like the model's own."""
    reason: str = ""
    """With deny: what the model is told."""
    request_id: str = ""
    """The request it answers; filled in when an approver answers what it was asked."""
    remember: Rule | None = None
    """A rule to keep for calls like it; never wider than what was shown."""
    by: Decider = SOMEBODY
    """Who decided."""
    at: float = 0.0
    """Seconds since the epoch; filled in when it is taken down."""
    seen_arguments_digest: str = ""
    """The request's `arguments_digest` as the person saw it; a decision for other arguments is refused."""

    def __post_init__(self) -> None:
        if self.verdict not in ANSWERS:
            raise ConfigurationError(f"Decision(verdict={self.verdict!r}): write one of {', '.join(ANSWERS)}")
        if self.verdict == "edit" and self.arguments is None:
            raise ConfigurationError("Decision(verdict='edit'): give the arguments to run instead, arguments={...}")
        if self.arguments is not None and not isinstance(cast("object", self.arguments), Mapping):
            raise ConfigurationError(f"Decision(arguments={self.arguments!r:.80}): write arguments={{'name': value}}")
        for name in ("reason", "request_id", "seen_arguments_digest"):
            _check_text(self, name)
        if not isinstance(cast("object", self.by), Decider):
            raise ConfigurationError(f"Decision(by={self.by!r:.80}): write {_decider_for(self.by)}")
        if self.remember is not None and not isinstance(cast("object", self.remember), Rule):
            raise ConfigurationError(f"Decision(remember={self.remember!r:.80}): write remember=rule_for(request)")
        if isinstance(cast("object", self.at), bool) or not isinstance(cast("object", self.at), int | float):
            raise ConfigurationError(f"Decision(at={self.at!r:.80}): write seconds since the epoch, at=time.time()")


Approver = Callable[[ApprovalRequest], Decision | Awaitable[Decision | None] | None]
"""Who is asked. None: not now; a session with a store then suspends the run, anywhere else the call is not run."""


def refuse_wrong_approver(approver: object) -> None:
    """Does nothing for None and for a callable that takes one request.

    Raises:
        ConfigurationError: the object cannot be asked. The message says what to write instead.
    """
    if approver is None:
        return
    if isinstance(approver, type):
        raise ConfigurationError(f"approver={approver.__name__} is a class: give an instance, {approver.__name__}(...)")
    if not callable(approver):
        raise ConfigurationError(
            f"approver={approver!r:.80} cannot be asked: give a function that takes an ApprovalRequest and returns a "
            "Decision, or console_approver. To run calls unasked, write permission='auto' or a rule with effect='auto'"
        )
    try:
        signature = inspect.signature(approver)
    except (ValueError, TypeError):
        # Some callables written in C have no signature to look at.
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise ConfigurationError(
            f"approver={approver!r:.80} cannot take one request ({error}): write def approver(request)"
        ) from error


def _decider_for(by: object) -> str:
    """The `by=` that its author most likely meant."""
    return f"by=Decider(principal={by!r:.80})" if isinstance(by, str) else "by=Decider(principal='...')"
