"""The closed set of failure kinds."""

from __future__ import annotations

from typing import get_args

import pytest

from toolwire.vocabulary.failures import FAILURE_RULES, Failure, FailureKind, FailureRule
from toolwire.vocabulary.results import ToolResult


def rule(actor: str, retry: bool, hint: str) -> FailureRule:
    return FailureRule(actor=actor, retry=retry, hint=hint)


RULES: dict[str, FailureRule] = {
    "unknown_tool": rule("model", False, "Call one of the tools you were given."),
    "inactive_tool": rule("model", False, "Activate the tool's group first."),
    "invalid_arguments": rule("model", False, "Correct the arguments before the next call."),
    "denied": rule("operator", False, "Do not call it again; find another way or tell the user."),
    "approval_required": rule("operator", False, "It did not run. Tell the user that a person has to allow this call."),
    "approval_expired": rule("operator", True, "It did not run. A new request needs a new call."),
    "approval_mismatch": rule("model", True, "It did not run. Make the call again as it was approved."),
    "tool_error": rule("model", False, "Read the error; change the arguments or try another tool."),
    "invalid_result": rule("developer", False, "The tool ran, but its result cannot be shown."),
    "timeout": rule(
        "model",
        True,
        "It began and did not end. Check whether it took effect; then ask for less, or try once more later.",
    ),
    "unknown_outcome": rule("operator", False, "It may have taken effect. Check that before you repeat the call."),
    "overloaded": rule("operator", True, "Too much is running at once. Try again later."),
    "unavailable": rule("operator", True, "It cannot be reached now. Try again later, or do without."),
    "limit": rule("model", False, "Ask for less."),
    "divergence": rule("operator", False, "The run was stopped; nothing was done twice."),
    "interrupted": rule(
        "operator", True, "It began and did not end. It may have taken effect: check that before you repeat it."
    ),
    "internal": rule("developer", False, "This is a fault of the host, not of your call."),
}


def test_every_kind_has_its_rule() -> None:
    assert FAILURE_RULES == RULES
    assert set(RULES) == set(get_args(FailureKind))


@pytest.mark.parametrize("kind", RULES)
def test_a_failure_without_a_hint_of_its_own_takes_the_kinds(kind: FailureKind) -> None:
    result = ToolResult.failed(kind, "What happened.")
    assert result.text == f"What happened.\n{RULES[kind].hint}"
    assert (result.failure.actor, result.failure.retry) == (RULES[kind].actor, RULES[kind].retry)


def test_failures_are_equal_whatever_exception_they_came_from() -> None:
    first = Failure(kind="tool_error", hint="h", exception=ValueError())
    assert first == Failure(kind="tool_error", hint="h", exception=KeyError())
    assert "exception" not in repr(first)
