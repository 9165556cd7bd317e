"""Conversion of raw arguments to the values that will run, or to a list of all problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.definition.binding import States
from toolwire.definition.shape import ArgumentProblem, Invalid
from toolwire.definition.tool import Validated, canonical
from toolwire.invocation.fold import raised
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import ToolCall, WrittenArguments
from toolwire.vocabulary.errors import BoundValueError, DefinitionError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.text import kept_text
from toolwire.vocabulary.values import digest


class Prepared:
    """A call after validation, exactly as it will run."""

    __slots__ = (
        *("_canonical", "_digest", "approval", "asked", "attempt", "call", "entry"),
        *("idempotency_key", "request_id", "validated"),
    )

    def __init__(self, call: ToolCall, entry: Entry, validated: Validated) -> None:
        self.call = call
        self.entry = entry
        self.validated = validated
        self.request_id = ""
        """The approved request that allows the call; empty if no approval was needed."""
        self.asked = call
        """The call as the model made it. It differs from `call` if a person edited the arguments."""
        self.approval: Mapping[str, Any] | None = None
        """The facts about the decision for observers; None if no approval was needed."""
        self.attempt = 1
        """The number of this attempt. Above 1, an earlier attempt began and its outcome is unknown."""
        self.idempotency_key = ""
        """The recorded key of the arguments, before any middleware changed them. Empty without a record."""
        self._canonical: Mapping[str, Any] | None = None
        self._digest = ""

    def canonical(self, scope: Scope) -> Mapping[str, Any]:
        """Returns the arguments in the form that rules, people, remembered rules and the cache compare.

        The form is made once, so host code must get a copy of it.

        Raises:
            Unrepresentable: JSON cannot hold a value, or would change it.
        """
        if self._canonical is None:
            self._canonical = canonical(self.validated, scope.secret_key)
        return self._canonical

    def canonical_digest(self, scope: Scope) -> str:
        """Returns the digest of the canonical form.

        Raises:
            Unrepresentable: JSON cannot hold a value, or would change it.
        """
        if not self._digest:
            self._digest = digest(self.canonical(scope))
        return self._digest

    def look_again(self) -> None:
        """Discards the canonical form, because the values may have changed since it was made."""
        self._canonical, self._digest = None, ""


def validate(call: ToolCall, entry: Entry, states: States) -> Prepared | ToolResult:
    """Returns the call with its arguments as real objects, and with defaults and bound values filled in.

    Bound values are looked up in `states` before the tool's own state.
    """
    arguments = call.arguments
    try:
        if isinstance(arguments, WrittenArguments):
            arguments = arguments.read_by(entry.tool.input_schema)
        try:
            own = _own(arguments)
        except RecursionError:
            return refuse(call, entry, _TOO_DEEP)
        validated = entry.tool.validate(own, states)
    except DefinitionError as error:
        return _cannot_run(call, entry, str(error))
    except BoundValueError:
        # A mistake of the host is raised to it; no model can mend it.
        raise
    except Exception as error:  # noqa: BLE001 - validators and checks of a tool are its author's code
        return raised(call, error)
    if isinstance(validated, Invalid):
        return refuse(call, entry, validated)
    return Prepared(call, entry, validated)


_TOO_DEEP = Invalid(
    problems=(
        ArgumentProblem(
            path="", kind="invalid", message="The arguments have too many levels of lists and objects: give fewer."
        ),
    )
)


def _own(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copies the arguments' containers for the tool.

    If the tool changes a list, the model's call must not change, because the log and later readers rely on it.
    """
    for value in arguments.values():
        if type(value) in _CONTAINERS:
            return {name: _copied(value) for name, value in arguments.items()}
    return arguments


def _copied(value: Any) -> Any:
    kind = cast("object", type(value))
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if kind is list else value


_CONTAINERS = frozenset({dict, list})


def refuse(call: ToolCall, entry: Entry, invalid: Invalid) -> ToolResult:
    """Returns a failed result: all problems for the model, or a missing bound value for the operator."""
    missing_state = [problem for problem in invalid.problems if problem.kind == "no_state"]
    if missing_state:
        return _cannot_run(call, entry, *(problem.message for problem in missing_state))
    return ToolResult.failed(
        "invalid_arguments",
        _complaint(entry, invalid),
        hint=_expected(entry),
        path=invalid.problems[0].path,
        data={
            "problems": [
                {"path": problem.path, "kind": problem.kind, "message": problem.message} for problem in invalid.problems
            ]
        },
        call=call,
    )


def _complaint(entry: Entry, invalid: Invalid) -> str:
    """Returns the message of a tool's own check unchanged, or all problems as a list."""
    first = invalid.problems[0]
    if first.kind == "refused":
        return first.message
    lines = "\n".join(f"- {line}" for line in invalid.lines)
    return f"The arguments of {entry.name!r} are wrong:\n{lines}"


def _cannot_run(call: ToolCall, entry: Entry, *problems: str) -> ToolResult:
    return ToolResult.failed(
        "unavailable",
        f"{entry.name!r} cannot run: {' '.join(problems)}",
        hint="The owner of the tool has to fix this; the arguments were not the cause.",
        data={"problems": list(problems)},
        call=call,
    )


def _expected(entry: Entry) -> str:
    visible = entry.tool.visible_parameters
    if not visible:
        return f"Call {entry.name!r} again without arguments."
    wanted = ", ".join(
        f"{parameter.name} ({'required' if parameter.required else 'optional'})" for parameter in visible
    )
    told = kept_text(wanted, _EXPECTED_LIMIT_BYTES)
    more = "" if told is wanted else f" ... ({len(visible)} parameters in all)"
    return f"Correct them and call {entry.name!r} again. It takes: {told}{more}."


_EXPECTED_LIMIT_BYTES = 600
"""Maximum number of bytes of parameter names in a hint. It is the rest of `COMPLAINT_LIMIT_BYTES`."""
