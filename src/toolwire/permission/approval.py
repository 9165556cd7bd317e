"""Approval by a person: the request, the decision, and the approver interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from toolwire.definition.signature import inspect_signature
from toolwire.permission.rule import Rule
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.effects import Effect, Label
from toolwire.vocabulary.errors import ConfigurationError, ToolwireError

Answer = Literal["approve", "edit", "deny", "stop_run", "answer"]
ANSWERS: tuple[str, ...] = get_args(Answer)
RequestKind = Literal["approval", "question"]
VERDICTS: Mapping[RequestKind, tuple[Answer, ...]] = MappingProxyType(
    {"approval": ("approve", "edit", "deny", "stop_run"), "question": ("answer", "deny", "stop_run")}
)
"""The verdicts that fit each kind of request."""

REQUEST_LIFE_S = 7 * 86_400.0
"""Seconds that a request waits for a decision: one week, so that a request from a Friday outlives a holiday. After that
it expires.
"""

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
    "invalid_answer",
    "divergence",
    "schema_too_new",
    "run_busy",
    "run_ended",
    "parked",
    "unknown_rule",
    "conversation_busy",
    "malformed",
]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class DecisionRefused(ToolwireError):
    """A decision or a saved run was refused. Nothing was run for it.

    Attributes:
        code: The reason for the refusal.
        request_id: The request that was decided; empty if the refusal concerns a run.
        decided: With `already_decided`, the decision that counts; else None.
    """

    def __init__(
        self, code: RefusalCode, message: str, *, request_id: str = "", decided: Decision | None = None
    ) -> None:
        super().__init__(message)
        self.code: RefusalCode = code
        self.request_id = request_id
        self.decided = decided


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One call that waits for a person: for an approval, or for the answer to a question of its tool.

    Attributes:
        id: The id of the request: 128 random bits, so that it cannot be guessed.
        kind: `approval` or `question`. A question never lets anything run.
        question: The text of the question; empty for an approval.
        name: The name of the question that its tool chose (`InputRequired`); else empty.
        answer_schema: JSON schema of the answer; empty for an approval.
        call_id: The id of the call. For a question, the id of the call that asks, `?` and the number of the question.
        tool: The name of the tool.
        arguments: The exact arguments that will run, as plain JSON, with defaults and conversions applied. Empty for
            a question.
        reasons: The rules and guards that require a decision. For a question of an MCP server, `untrusted:` and the
            name of the server.
        caller: The caller for which the call is made.
        run_id: The run of the call.
        parent: The id of the call that makes this one: a program, or a tool through its context. Empty for a top-level
            call.
        attempt: Number of the attempt at the call, from 1. Above 1 the call may have run already, and `reasons` says
            so.
        tool_digest: `sha256:` of the tool's name, description and schemas at the time of the request.
        arguments_digest: `sha256:` of `arguments`, or of the question with its schema. A decision is valid only for
            this value.
        bound_digest: `sha256:` of the values that the host fills in and no person sees; empty without such values.
        given: The model's own arguments as plain JSON if they differ from `arguments`; else empty.
        effects: The effects that the tool declares.
        taints: Labels of the data that the run has read so far.
        arguments_schema: JSON schema of the arguments. An edit is checked against it.
        created_at: Time of the request, in seconds since the epoch.
        expires_at: Time after which a decision is refused, in seconds since the epoch; 0 means never.
        depth: Number of catalogues above the call's own (`CallContext.using`). Above 0, the session lacks the tool.
        approvers: The principals who may approve, by effect, as the policy of the call named them at the request.
            Another author's decision to run the call is refused as `not_permitted`, and the request waits on.
        damaged: What is wrong with the record of the request, if a list of the store cannot read it; else empty. Of a
            damaged request only the ids, the times, and maybe the tool and the caller are known, and nobody can verify
            them. It cannot be decided.
    """

    id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    reasons: tuple[str, ...]
    kind: RequestKind = "approval"
    question: str = ""
    name: str = ""
    answer_schema: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    caller: Caller = NOBODY
    run_id: str = ""
    parent: str = ""
    attempt: int = 1
    tool_digest: str = ""
    arguments_digest: str = ""
    bound_digest: str = ""
    given: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    effects: tuple[Effect, ...] = ()
    taints: tuple[Label, ...] = ()
    arguments_schema: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    created_at: float = 0.0
    expires_at: float = 0.0
    depth: int = 0
    approvers: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    damaged: str = ""


def _check_text(record: Decider | Decision, name: str) -> None:
    value = getattr(record, name)
    if not isinstance(value, str):
        raise ConfigurationError(f"{type(record).__name__}({name}={value!r:.80}): write text, {name}='...'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """The author of a decision, and the channel it came through.

    Attributes:
        principal: The person or service; empty if unknown.
        channel: The channel: `console`, `cli`, `callback`, `model`, or a name of your own.
        authn: The method that authenticated the principal; empty without authentication.

    Raises:
        ConfigurationError: A field is not text.
    """

    principal: str = ""
    channel: str = ""
    authn: str = ""

    def __post_init__(self) -> None:
        for name in ("principal", "channel", "authn"):
            _check_text(self, name)


SOMEBODY = Decider()


def decider_of(given: object, place: str) -> Decider:
    """Returns the author of an act: the `Decider`, or one of the principal with this name.

    Raises:
        ConfigurationError: It is neither.
    """
    if isinstance(given, str) and given:
        return Decider(principal=given)
    if isinstance(given, Decider):
        return given
    raise ConfigurationError(f"{place}(by={given!r:.80}): write by='ada', or {_decider_for(given)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to a request.

    Attributes:
        verdict: approve: run the call as shown. edit: run it with `arguments`. deny: do not run it. stop_run: also end
            the run. answer: give `answer` to a question; deny declines to answer.
        arguments: With edit, the arguments to run instead. They are validated and judged like the model's own.
        answer: With answer, the answer as plain JSON. It is checked against the schema of the question.
        reason: With deny and stop_run, the reason that the model receives.
        request_id: The request that is answered. It is filled in if an approver leaves it empty.
        remember: A rule to keep for similar calls. It is refused if it covers more than the request showed.
        by: The author of the decision.
        at: Time of the decision, in seconds since the epoch. It is filled in when the decision is recorded.
        seen_arguments_digest: The `arguments_digest` that the person saw. A decision for other arguments is refused.

    Raises:
        ConfigurationError: The verdict is unknown, an edit has no arguments, another verdict than answer has an answer,
            or a field has the wrong type.
    """

    verdict: Answer
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    request_id: str = ""
    remember: Rule | None = None
    by: Decider = SOMEBODY
    at: float = 0.0
    seen_arguments_digest: str = ""
    answer: Any = None

    def __post_init__(self) -> None:
        if self.verdict not in ANSWERS:
            raise ConfigurationError(f"Decision(verdict={self.verdict!r}): write one of {', '.join(ANSWERS)}")
        if self.verdict == "edit" and self.arguments is None:
            raise ConfigurationError("Decision(verdict='edit'): give the arguments to run instead, arguments={...}")
        if self.arguments is not None and not isinstance(cast("object", self.arguments), Mapping):
            raise ConfigurationError(f"Decision(arguments={self.arguments!r:.80}): write arguments={{'name': value}}")
        if self.verdict != "answer" and self.answer is not None:
            raise ConfigurationError(f"Decision(verdict={self.verdict!r}, answer=...): write verdict='answer'")
        for name in ("reason", "request_id", "seen_arguments_digest"):
            _check_text(self, name)
        if not isinstance(cast("object", self.by), Decider):
            raise ConfigurationError(f"Decision(by={self.by!r:.80}): write {_decider_for(self.by)}")
        if self.remember is not None and not isinstance(cast("object", self.remember), Rule):
            raise ConfigurationError(f"Decision(remember={self.remember!r:.80}): write remember=rule_for(request)")
        if isinstance(cast("object", self.at), bool) or not isinstance(cast("object", self.at), int | float):
            raise ConfigurationError(f"Decision(at={self.at!r:.80}): write seconds since the epoch, at=time.time()")


Approver = Callable[[ApprovalRequest], Decision | Awaitable[Decision | None] | None]
"""Decides requests. None means "not now": a session with a store suspends the run, otherwise the call does not run."""


def refuse_wrong_approver(approver: object) -> None:
    """Accepts None and a callable that takes one request.

    Raises:
        ConfigurationError: The object is neither. The message says what to write instead.
    """
    if approver is None:
        return
    if isinstance(approver, type):
        raise ConfigurationError(f"approver={approver.__name__} is a class: give an instance, {approver.__name__}(...)")
    if not callable(approver):
        raise ConfigurationError(
            f"approver={approver!r:.80} cannot be asked: give a function that takes an ApprovalRequest and returns a "
            "Decision, or console_approver. To run calls without asking, write permission='auto' or a rule with "
            "effect='auto'"
        )
    try:
        signature = inspect_signature(approver)
    except (ValueError, TypeError):
        # Some callables written in C have no signature.
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise ConfigurationError(
            f"approver={approver!r:.80} cannot take one request ({error}): write def approver(request)"
        ) from error


def _decider_for(by: object) -> str:
    """Returns the `by=` that the author most likely meant."""
    return f"by=Decider(principal={by!r:.80})" if isinstance(by, str) else "by=Decider(principal='...')"
