"""Every exception of ours."""

from __future__ import annotations

import pytest

from toolwire.vocabulary.errors import (
    BindingError,
    ConfigurationError,
    DefinitionError,
    ForDeveloper,
    ForOperator,
    RegistrationError,
    SandboxUnavailable,
    ToolwireError,
    Unrepresentable,
)
from toolwire.vocabulary.results import CallFailed, ToolResult

TREE = {
    ToolwireError: (Exception,),
    ForDeveloper: (ToolwireError,),
    DefinitionError: (ForDeveloper, TypeError),
    BindingError: (ForDeveloper, ValueError),
    RegistrationError: (ForDeveloper, ValueError),
    ConfigurationError: (ForDeveloper, ValueError),
    ForOperator: (ToolwireError,),
    SandboxUnavailable: (ForOperator,),
    CallFailed: (ToolwireError,),
    Unrepresentable: (ToolwireError, TypeError),
}


def test_the_tree_is_split_by_who_must_act() -> None:
    assert {kind: kind.__bases__ for kind in TREE} == TREE


def test_a_missing_sandbox_says_what_was_seen_and_what_brings_it() -> None:
    error = SandboxUnavailable("no sandbox here", report={"fork": "refused"}, how_to_fix="allow fork")
    assert (str(error), error.report, error.how_to_fix) == (
        "no sandbox here\nallow fork",
        {"fork": "refused"},
        "allow fork",
    )


def test_a_failed_call_carries_its_result() -> None:
    result = ToolResult.failed("denied", "'pay' may not be run.")
    error = CallFailed(result)
    assert (str(error), error.result) == ("'pay' may not be run.", result)


@pytest.mark.parametrize(
    ("path", "text"),
    [("", "a lock cannot be written as JSON"), (".a[0].b", "a lock cannot be written as JSON at a[0].b")],
)
def test_an_unrepresentable_value_is_named_with_its_place(path: str, text: str) -> None:
    error = Unrepresentable("a lock", path=path)
    assert (str(error), error.what, error.path) == (text, "a lock", path)
