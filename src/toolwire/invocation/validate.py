"""Conversion of raw arguments to the values that will run, or to a list of all problems."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.definition.arguments.untaken_nulls import drop_untaken_nulls
from toolwire.definition.binding import States
from toolwire.definition.derived import input_schema_of
from toolwire.definition.shape import ArgumentProblem, Invalid
from toolwire.definition.tool import Tool, Validated, canonical
from toolwire.invocation.fold import failure_of_exception
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import BoundValueError, DefinitionError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.cuts import fit_text
from toolwire.vocabulary.values import digest


class Prepared:
    """A call after validation, exactly as it will run."""

    __slots__ = (
        *("_canonical", "_digest", "approval", "asked", "attempt", "call", "entry"),
        *("idempotency_key", "is_allowed", "is_composite", "numbers", "request_id", "started_at", "validated"),
    )

    def __init__(self, call: ToolCall, entry: Entry, validated: Validated) -> None:
        self.call = call
        self.entry = entry
        self.validated = validated
        self.is_allowed = False
        """True if the policy lets the call run and no person has to be asked."""
        self.started_at = 0.0
        """Start time of the first pass over a recorded call in seconds since the epoch; 0.0 for any other call."""
        self.request_id = ""
        """The approved request that allows the call; empty if no approval was needed."""
        self.asked = call
        """The call as the model made it. It differs from `call` if a person edited it, or if nulls were left out."""
        self.approval: Mapping[str, Any] | None = None
        """The facts about the decision for observers; None if no approval was needed."""
        self.attempt = 1
        """The number of this attempt. Above 1, an earlier attempt began and its outcome is unknown."""
        self.idempotency_key = ""
        """The recorded key of the arguments, before any middleware changed them. Empty without a record."""
        self.is_composite = entry.composite is not None
        """True if the tool consists of calls, or has made calls."""
        self.numbers = count(1)
        """The numbers of the calls that the tool makes. They go on when it is called again."""
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
        try:
            own = _own(arguments)
        except RecursionError:
            return refuse_arguments(call, entry, _TOO_DEEP)
        validated, given = entry.tool.validate(own, states), own
        if isinstance(validated, Invalid):
            given, validated = _without_nulls(own, entry.tool, states, validated)
    except DefinitionError as error:
        return _cannot_run(call, entry, str(error))
    except BoundValueError:
        # A mistake of the host is raised to it; no model can mend it.
        raise
    except Exception as error:  # noqa: BLE001 - validators and checks of a tool are its author's code
        return failure_of_exception(call, error)
    if isinstance(validated, Invalid):
        return refuse_arguments(call, entry, validated)
    if given is own:
        return Prepared(call, entry, validated)
    ran = ToolCall(call.name, given, id=call.id, parent=call.parent, raw_text=call.raw_text)
    prepared = Prepared(ran, entry, validated)
    prepared.asked = call
    return prepared


_TOO_DEEP = Invalid(
    problems=(
        ArgumentProblem(
            path="", kind="invalid", message="The arguments have too many levels of lists and objects: give fewer."
        ),
    )
)


_NULL_ROUNDS = 10
"""Maximum number of checks that look for nulls to leave out. Each one finds those that one complaint lists: ten."""


def _without_nulls(
    arguments: Mapping[str, Any], tool: Tool, states: States, invalid: Invalid
) -> tuple[Mapping[str, Any], Validated | Invalid]:
    """Leaves out each null of what is optional and takes none, since a model writes null for "nothing".

    `arguments` is the tool's own copy: nulls inside its objects and lists are deleted from it. Returns the arguments
    that are left, which are another object if any null was left out, and the result of their check.
    """
    optional = {parameter.name for parameter in tool.visible_parameters if not parameter.required}
    found: Validated | Invalid = invalid
    for _ in range(_NULL_ROUNDS):
        if not isinstance(found, Invalid):
            break
        wrong = {problem.path for problem in found.problems if problem.kind == "invalid"}
        left = {name: value for name, value in arguments.items() if value is not None or name not in wrong & optional}
        is_changed = _drop_inner_nulls(left, tool, wrong)
        if len(left) == len(arguments) and not is_changed:
            break
        arguments, found = left, tool.validate(left, states)
    return arguments, found


def _drop_inner_nulls(arguments: Mapping[str, Any], tool: Tool, wrong: Collection[str]) -> bool:
    """Deletes the nulls inside the arguments of visible parameters, and returns whether there were any."""
    changed = [
        drop_untaken_nulls(value, parameter.schema, input_schema_of(tool), name=parameter.name, wrong=wrong)
        for parameter in tool.visible_parameters
        if type(value := arguments.get(parameter.name)) in _CONTAINERS
    ]
    return any(changed)


def _own(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copies the arguments' containers for the tool.

    If the tool changes a list, the model's call must not change, because the log and later readers rely on it.
    """
    for value in arguments.values():
        if type(value) in _CONTAINERS:
            return {name: _copy_json(value) for name, value in arguments.items()}
    return arguments


def _copy_json(value: Any) -> Any:
    kind = cast("object", type(value))
    if kind is dict:
        return {key: _copy_json(item) for key, item in value.items()}
    return [_copy_json(item) for item in value] if kind is list else value


_CONTAINERS = frozenset({dict, list})


def refuse_arguments(call: ToolCall, entry: Entry, invalid: Invalid) -> ToolResult:
    """Returns a failed result: all problems for the model, or a missing bound value for the operator."""
    missing_state = [problem for problem in invalid.problems if problem.kind == "no_state"]
    if missing_state:
        return _cannot_run(call, entry, *(problem.message for problem in missing_state))
    return ToolResult.failed(
        "invalid_arguments",
        _complaint(entry, invalid),
        hint=_parameters_hint(entry),
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


def _parameters_hint(entry: Entry) -> str:
    visible = entry.tool.visible_parameters
    if not visible:
        return f"Call {entry.name!r} again without arguments."
    wanted = ", ".join(
        f"{parameter.name} ({'required' if parameter.required else 'optional'})" for parameter in visible
    )
    told = fit_text(wanted, _EXPECTED_LIMIT_BYTES)
    more = "" if told is wanted else f" ... ({count_of(len(visible), 'parameter')} in all)"
    return f"Correct them and call {entry.name!r} again. It takes: {told}{more}."


_EXPECTED_LIMIT_BYTES = 600
"""Maximum number of bytes of parameter names in a hint. It is the rest of `COMPLAINT_LIMIT_BYTES`."""
