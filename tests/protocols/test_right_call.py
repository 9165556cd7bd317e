"""The arguments of a right form: right values stay, and blanks stand where a value is missing or wrong."""

from __future__ import annotations

from json import JSONDecodeError
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import AfterValidator, BaseModel

from toolwire.definition.arguments.problems import COMPLAINT_PROBLEMS_LIMIT
from toolwire.definition.from_function import tool_of
from toolwire.definition.from_schema import from_schema
from toolwire.protocols.right_call import Expression, RightCall, json_form, load_with_blanks


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class Cash(BaseModel):
    kind: Literal["cash"]
    coins: int


class Line(TypedDict):
    name: str
    count: int


def pay(
    amount: float,
    way: Card | Cash | None = None,
    lines: list[Line] | None = None,
    note: str | int = "",
    more: Any = None,
) -> None:
    """Pays."""


def shown(given: dict[str, Any], function: Any = pay, **options: Any) -> str | None:
    right = RightCall.of(tool_of(function), given, **options)
    return None if right is None else json_form(dict(right.arguments))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, '{"amount": <number>}'),
        ({"more": [1], "amount": 1}, '{"amount": 1, "more": [1]}'),
        ({"amount": 1, "note": []}, '{"amount": 1, "note": <string or integer>}'),
        # A right value of a union may be of another option, so that no field of the given one is right for sure.
        ({"amount": 1, "way": {"kind": "cash", "coins": "many"}}, '{"amount": 1, "way": <object>}'),
        ({"amount": 1, "way": {"kind": "gold", "coins": 1}}, '{"amount": 1, "way": <object>}'),
        (
            {"amount": 1, "lines": [{"name": "nut", "count": 1}, {"name": "bolt"}, {"name": 3, "count": 1}]},
            (
                '{"amount": 1, "lines": [{"name": "nut", "count": 1}, {"name": "bolt", "count": <integer>}, '
                '{"name": <string>, "count": 1}]}'
            ),
        ),
        ({"amount": 1, "lines": "nut"}, '{"amount": 1, "lines": <array>}'),
        ({"params": '{"amount": 2, "way": null}'}, '{"amount": 2, "way": null}'),
        # A parameter that takes no object stands for the wrapper; what no parameter takes is left out.
        ({"note": {"amount": 1, "more": 2, "zzz": 3}}, '{"amount": 1, "more": 2}'),
        ({"note": {"zzz": 3}}, '{"amount": <number>, "note": <string or integer>}'),
        # Two objects hold parameters: which one is meant is not known.
        ({"a": {"amount": 1}, "b": {"amount": 2}}, '{"amount": <number>}'),
    ],
)
def test_right_values_stay_and_blanks_stand_for_the_others(given: dict[str, Any], expected: str) -> None:
    assert shown(given) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{"amount": <integer>, "note": "\\"<string>"}', '{"amount": <number>, "note": "\\"<string>"}'),
        ('{"amount": 1, "lines": [{"name": <string>, "count": 2}]}', None),
        ('{"amount": 1, "way": <object>, "more": <value>}', None),
        ('{"amount": 1, "more": <string or array>, "zzz": <value>}', '{"amount": 1, "more": <value>}'),
    ],
)
def test_blanks_that_a_model_copied_are_blanks_again(written: str, expected: str | None) -> None:
    assert shown(load_with_blanks(written)) == (expected or written)


@pytest.mark.parametrize("written", ['{"amount": <a b>}', '{"amount": <number>', '{"amount": "<number>}', "<", ""])
def test_what_is_not_json_for_more_than_blanks_is_not_read(written: str) -> None:
    with pytest.raises(JSONDecodeError):
        load_with_blanks(written)


def test_blanks_are_found_in_linear_time() -> None:
    with pytest.raises(JSONDecodeError):
        load_with_blanks('\\"' * 200_000)


@pytest.mark.parametrize("count", [COMPLAINT_PROBLEMS_LIMIT, COMPLAINT_PROBLEMS_LIMIT + 1])
def test_if_not_all_problems_are_known_every_value_is_a_blank(count: int) -> None:
    tool = from_schema(
        name="fill",
        description="",
        input_schema={
            "type": "object",
            "properties": {
                "right": {"type": "string"},
                **{f"n{number}": {"type": "integer"} for number in range(count)},
            },
        },
    )
    right = RightCall.of(tool, {"right": "x", **{f"n{number}": "y" for number in range(count)}})
    assert right is not None
    assert (json_form(right.arguments["right"]) == '"x"') is (count == COMPLAINT_PROBLEMS_LIMIT)
    assert json_form([value for name, value in right.arguments.items() if name != "right"]).count("<integer>") == count


def test_a_problem_of_the_whole_call_has_no_form() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert RightCall.of(from_schema(name="either", description="", input_schema=schema), {}) is None


def test_a_check_of_a_type_that_raises_has_no_form() -> None:
    def odd(value: str) -> str:
        raise RuntimeError(value)

    def tell(text: Annotated[str, AfterValidator(odd)]) -> None:
        """Tells."""

    assert shown({"text": "x"}, tell) is None


def test_an_expression_stays_unless_its_value_was_wrong() -> None:
    given = {"amount": Expression("rows[0]"), "note": Expression("text")}
    assert shown({}, wrong=["amount"]) == '{"amount": <number>}'
    right = RightCall.of(tool_of(pay), given, wrong=["note"])
    assert right is not None
    assert {name: str(value) for name, value in right.arguments.items()} == {
        "amount": "rows[0]",
        "note": "<string or integer>",
    }


@pytest.mark.parametrize("value", [object(), float("nan")])
def test_a_value_that_json_cannot_hold_has_no_form(value: object) -> None:
    assert (shown({"more": [1]}), shown({"more": [value]})) == ('{"amount": <number>, "more": [1]}', None)
