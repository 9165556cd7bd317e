"""The calls that a model makes."""

from __future__ import annotations

import pytest

from toolwire.vocabulary.calls import Problem, Reply, ToolCall


def test_params_are_another_name_for_arguments() -> None:
    call = ToolCall("search", params={"q": "x"}, id="r_1", parent="r_0", raw_text="<search/>")
    assert call == ToolCall("search", {"q": "x"}, id="r_1", parent="r_0", raw_text="<search/>")
    assert (call.params, ToolCall("search").arguments) == ({"q": "x"}, {})


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(TypeError) as caught:
        ToolCall("search", {}, params={})
    assert str(caught.value) == "give `arguments` or `params`, not both: they are two names of the same value"


@pytest.mark.parametrize(
    ("problems", "refused"),
    [
        ((), False),
        ((Problem(message="a fence", repaired=True),), False),
        ((Problem(message="a fence", repaired=True), Problem(message="no TOML", repaired=False)), True),
    ],
)
def test_a_reply_is_refused_by_a_problem_that_was_not_repaired(problems: tuple[Problem, ...], refused: bool) -> None:
    assert Reply(problems=problems).is_refused is refused
