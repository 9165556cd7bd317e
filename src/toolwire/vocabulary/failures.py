"""The kinds of failures: a closed set. Each kind defines the party that must act, and whether a retry helps."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

FailureKind = Literal[
    "unknown_tool",
    "inactive_tool",
    "invalid_arguments",
    "denied",
    "approval_required",
    "approval_expired",
    "approval_mismatch",
    "tool_error",
    "invalid_result",
    "timeout",
    "unknown_outcome",
    "overloaded",
    "unavailable",
    "limit",
    "divergence",
    "interrupted",
    "internal",
]
Actor = Literal["model", "developer", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """The properties of every failure of one kind."""

    actor: Actor
    """The party that can fix it."""
    retry: bool
    """True if the same call, unchanged, may succeed later."""
    hint: str
    """The hint for the model, if the failure has no better one."""


FAILURE_RULES: dict[FailureKind, FailureRule] = {
    "unknown_tool": FailureRule(actor="model", retry=False, hint="Call one of the tools you were given."),
    "inactive_tool": FailureRule(actor="model", retry=False, hint="Activate the tool's group first."),
    "invalid_arguments": FailureRule(actor="model", retry=False, hint="Correct the arguments before the next call."),
    "denied": FailureRule(
        actor="operator", retry=False, hint="Do not call it again; find another way or tell the user."
    ),
    "approval_required": FailureRule(
        actor="operator", retry=False, hint="It did not run. Tell the user that a person has to allow this call."
    ),
    "approval_expired": FailureRule(
        actor="operator", retry=True, hint="It did not run. A new request needs a new call."
    ),
    "approval_mismatch": FailureRule(
        actor="model", retry=True, hint="It did not run. Make the call again as it was approved."
    ),
    "tool_error": FailureRule(
        actor="model", retry=False, hint="Read the error; change the arguments or try another tool."
    ),
    "invalid_result": FailureRule(actor="developer", retry=False, hint="The tool ran, but its result cannot be shown."),
    "timeout": FailureRule(
        actor="model",
        retry=True,
        hint="It began and did not end. Check whether it took effect; then ask for less, or try once more later.",
    ),
    "unknown_outcome": FailureRule(
        actor="operator", retry=False, hint="It may have taken effect. Check that before you repeat the call."
    ),
    "overloaded": FailureRule(actor="operator", retry=True, hint="Too much is running at once. Try again later."),
    "unavailable": FailureRule(
        actor="operator", retry=True, hint="It cannot be reached now. Try again later, or do without."
    ),
    "limit": FailureRule(actor="model", retry=False, hint="Ask for less."),
    "divergence": FailureRule(actor="operator", retry=False, hint="The run was stopped; nothing was done twice."),
    "interrupted": FailureRule(
        actor="operator",
        retry=True,
        hint="It began and did not end. It may have taken effect: check that before you repeat it.",
    ),
    "internal": FailureRule(actor="developer", retry=False, hint="This is a fault of the host, not of your call."),
}


def stop_facts(*, is_started: bool, may_repeat: bool) -> dict[str, bool]:
    """Returns the facts about a call that did not end, for the data of its failure: the same wherever it is read.

    `may_repeat` is True if sending the call again does no harm: it did not begin, or its tool is idempotent by nature.
    """
    return {"is_started": is_started, "is_ended": False, "may_repeat": may_repeat}


def read_stop_facts(data: Mapping[str, Any]) -> dict[str, bool] | None:
    """Returns the `stop_facts` in the data of a failure; None for a failure of another kind."""
    names = stop_facts(is_started=True, may_repeat=False)
    return {name: data[name] for name in names} if names.keys() <= data.keys() else None


REPEATABLE = "It began and did not end. It may be repeated."
"""The hint about a call that did not end, of a tool that is idempotent by nature."""


class _Carrier:
    """Holds attributes that are not fields, so that `asdict`, `==` and `repr` ignore them."""

    __slots__ = ("exception",)

    exception: BaseException | None
    """The tool's own exception, or None. It stays in this process: it is never written, sent or pickled."""


@dataclass(frozen=True, slots=True, init=False)
class Failure(_Carrier):
    """The cause of a failed call, as data.

    Attributes:
        kind: One of a closed set; `FAILURE_RULES` names the party that must act.
        hint: One sentence that lets the model correct its call or stop trying.
        path: The place in the arguments, as `a.b[0]`; empty if the failure concerns the whole call.
        data: Details for a program: all validation errors, the nearest names, the limit.
        exception: The tool's own exception with its traceback, or None. It lives in this process only: a pickled or
            stored failure has none.
    """

    kind: FailureKind
    hint: str
    path: str
    data: dict[str, Any]

    def __init__(
        self,
        *,
        kind: FailureKind,
        hint: str,
        path: str = "",
        data: dict[str, Any] | None = None,
        exception: BaseException | None = None,
    ) -> None:
        values = {"kind": kind, "hint": hint, "path": path, "data": {} if data is None else data}
        for name, value in (*values.items(), ("exception", exception)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Failure, kind=self.kind, hint=self.hint, path=self.path, data=self.data), ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Failure:
        # The class of an exception may not support copying.
        data = copy.deepcopy(self.data, memo)
        return Failure(kind=self.kind, hint=self.hint, path=self.path, data=data, exception=self.exception)

    @property
    def actor(self) -> Actor:
        """The party that can fix it: the model, the developer or the operator."""
        return FAILURE_RULES[self.kind].actor

    @property
    def retry(self) -> bool:
        """True if the same call, unchanged, may succeed later."""
        return FAILURE_RULES[self.kind].retry
