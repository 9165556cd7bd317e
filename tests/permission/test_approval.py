"""What a person can say."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.permission.approval import Decision
from toolwire.vocabulary.errors import ConfigurationError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"verdict": "yes"}, "Decision(verdict='yes'): write one of approve, edit, deny, stop_run"),
        ({"verdict": None}, "Decision(verdict=None): write one of approve, edit, deny, stop_run"),
        ({"verdict": "edit"}, "Decision(verdict='edit'): give the arguments to run instead, arguments={...}"),
    ],
)
def test_a_decision_that_is_none_is_refused_where_it_is_made(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Decision(**given)
    assert str(caught.value) == message


def test_an_edit_to_no_arguments_at_all_is_one() -> None:
    assert Decision(verdict="edit", arguments={}).arguments == {}
