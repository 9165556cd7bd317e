"""Hints of complaints: each value that a message names is accepted when it is written as the message says."""

from __future__ import annotations

import ast
import copy
import datetime as dt
import json
import re
from decimal import Decimal
from enum import Enum
from itertools import product
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from toolwire.definition.arguments.proposals import UNSHOWN_LIMIT, add_proposals
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.shape import ArgumentProblem, Invalid
from toolwire.definition.tool import Tool


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: str


class Span(Enum):
    DAY = dt.timedelta(days=1)
    PAIR = (1, 2)
    PRICE = Decimal("1.5")
    TEXT = b"hi"
    DATE = dt.date(2026, 1, 1)
    WORD = "day"


Pet: Any = Annotated[Cat | Dog, Field(discriminator="kind")]
Positive: Any = Annotated[int, Field(ge=1)]


def refuse_short(text: str) -> str:
    if len(text) < 5:
        raise ValueError("too short")
    return text


def rejected(text: str) -> str:
    if len(text) < 5:
        raise KeyError(text)
    return text


TYPES: list[Any] = [
    *(int, str, bool, list[str], list[int], list[list[str]], list[Any], dict[str, int], set[str], tuple[str, str]),
    *(list[str] | None, int | None, dict[str, int] | None, list[Literal["a", "b"]] | None, Span | None, Pet | None),
    *(
        Positive | None,
        Annotated[list[str], Field(min_length=2)],
        list[Span],
        dict[str, list[str]],
    ),
    *(list[Annotated[str, Field(min_length=5)]], list[Annotated[str, AfterValidator(refuse_short)]], list[bytes]),
    *(list[Annotated[str, AfterValidator(rejected)]], list[dt.date], Span, Pet, list[Pet], Cat | Dog, Cat | list[str]),
    *(Literal["a", 1, None], Literal["x" * 200], list[str] | int, dt.date | None, Decimal),
]
VALUES: list[Any] = [
    *("null", "None", "none", "NULL", "nil", " undefined ", "", "a", "a, b", "a,b", "]", "x" * 100, "x" * 101),
    *("2026-01-01", "P1D", "PAIR", 0, 1.5, True, None, [], ["a"], ["a", "b"], [1, 2], ["null"], [None], {}, [{}]),
    *({"kind": "bird"}, {"kind": "Cat", "lives": 1}, {"lives": 1}, {"kind": "cat"}, {"kind": None}, {"kind": ["cat"]}),
    *([{"kind": "bird"}], {"a": "null"}, {"a": {"b": "null"}}, "x" * 199 + "y", [["null"]], {"a": "b"}),
]


def function_tool(annotation: Any, *, is_optional: bool) -> Tool:
    def take(it: Any) -> None: ...

    def take_or_not(it: Any = 7) -> None: ...

    function = take_or_not if is_optional else take
    function.__annotations__["it"] = annotation
    return from_function(function)


def replaced(arguments: Any, place: list[str | int], value: Any) -> Any:
    changed = copy.deepcopy(arguments)
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return changed


def place_of(path: str) -> list[str | int]:
    return [int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)]


def problems_at(tool: Tool, arguments: Any, path: str) -> list[str]:
    found = tool.validate(arguments)
    problems = found.problems if isinstance(found, Invalid) else ()
    return [problem.message for problem in problems if problem.path.startswith(path)]


def without(arguments: Any, place: list[str | int]) -> Any:
    changed = copy.deepcopy(arguments)
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    del holder[place[-1]]
    return changed


CHOICES = re.compile(
    r"'[^']*' (?:must be one of (.*), not .*|must be ('[^']*'), not .*|is missing: give one of (.*))\."
)


def check_hint(tool: Tool, arguments: Any, problem: ArgumentProblem) -> None:
    place, message = place_of(problem.path), problem.message
    must = re.fullmatch(r"'[^']*' must be (?P<wanted>.*), not (?P<given>.*?)(: [a-z].*)?\.", message)
    if must is not None:
        assert must["given"] not in must["wanted"].removeprefix("one of ").split(", "), message
    if written := re.search(r": write (.*)\.$", message):
        for form in written[1].removesuffix(" if it is one item").split(", or "):
            changed = replaced(arguments, place, json.loads(form))
            assert problems_at(tool, changed, problem.path) == [], message
    if ": leave it out" in message:
        assert problems_at(tool, without(arguments, place), problem.path) == [], message
    listed = CHOICES.fullmatch(message)
    text = "" if listed is None else next(filter(None, listed.groups()))
    for choice in [] if not text or " or " in text else ast.literal_eval(f"[{text}]"):
        if "..." not in str(choice):
            assert problems_at(tool, replaced(arguments, place, choice), problem.path) == [], message


@pytest.mark.parametrize("is_optional", [False, True])
@pytest.mark.parametrize("annotation", TYPES, ids=range(len(TYPES)))
def test_a_value_that_a_message_names_is_accepted(annotation: Any, is_optional: bool) -> None:
    function = function_tool(annotation, is_optional=is_optional)
    schema = from_schema("take", "", copy.deepcopy(function.input_schema))
    for tool, value in product((function, schema), VALUES):
        try:
            found = tool.validate({"it": value})
        except KeyError:
            continue
        for problem in found.problems if isinstance(found, Invalid) else ():
            check_hint(tool, {"it": value}, problem)


def message_of(annotation: Any, value: Any, *, is_optional: bool = False) -> list[str]:
    tool = function_tool(annotation, is_optional=is_optional)
    found = tool.validate({"it": value})
    assert isinstance(found, Invalid)
    by_schema = from_schema("take", "", copy.deepcopy(tool.input_schema)).validate({"it": value})
    assert isinstance(by_schema, Invalid)
    messages = [problem.message for problem in found.problems]
    assert messages == [problem.message for problem in by_schema.problems]
    return messages


@pytest.mark.parametrize("text", ["null", "None", "none", "NULL", "nil", "undefined", " null "])
def test_a_word_for_nothing_is_told_to_be_null_where_null_fits(text: str) -> None:
    expected = [f"'it' must be an array of string or null, not {text!r}: write null."]
    assert message_of(list[str] | None, text) == expected


def test_a_word_for_nothing_is_told_to_be_left_out_where_the_argument_may_be() -> None:
    expected = ["'it' must be an array of integer, not 'null': leave it out."]
    assert message_of(list[int], "null", is_optional=True) == expected
    assert message_of(list[int], "null") == ["'it' must be an array of integer, not 'null'."]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Annotated[list[str], Field(min_length=2)], "'it' must be an array of string (at least 2 items), not 'a'."),
        (
            list[Annotated[str, Field(min_length=5)]],
            "'it' must be an array of string (at least 5 characters), not 'a'.",
        ),
    ],
)
def test_a_list_that_would_be_refused_is_not_told(annotation: Any, message: str) -> None:
    assert message_of(annotation, "a") == [message]


def test_what_a_tools_own_check_of_the_items_refuses_is_not_told() -> None:
    for check in (refuse_short, rejected):
        tool = function_tool(list[Annotated[str, AfterValidator(check)]], is_optional=False)
        found = tool.validate({"it": "a"})
        assert isinstance(found, Invalid)
        assert [problem.message for problem in found.problems] == ["'it' must be an array of string, not 'a'."]


@pytest.mark.parametrize("annotation", [Pet, Pet | None, Cat | Dog])
def test_a_wrong_tag_is_told_the_tags(annotation: Any) -> None:
    assert message_of(annotation, {"kind": "bird", "lives": 1}) == [
        "'it.kind' must be one of 'cat', 'dog', not 'bird'."
    ]
    assert message_of(annotation, {"kind": "cat"}) == ["'it.lives' is missing: give an integer."]


def test_a_missing_tag_is_told_the_tags() -> None:
    assert message_of(Pet, {"lives": 1}) == ["'it.kind' is missing: give one of 'cat', 'dog'."]
    assert message_of(list[Pet], [{"lives": 1}]) == ["'it[0].kind' is missing: give one of 'cat', 'dog'."]


def test_limits_are_told_of_the_type_that_has_them() -> None:
    tool = from_schema("take", "", {"properties": {"it": {"type": ["integer", "null"], "minimum": 1}}})
    found = tool.validate({"it": 0})
    assert isinstance(found, Invalid)
    assert [one.message for one in found.problems] == ["'it' must be an integer (at least 1) or null, not 0."]


def test_a_long_text_that_looks_like_the_listed_one_is_not_said_to_be_another() -> None:
    wanted, given = "x" * 200, "x" * 100 + "y" + "x" * 99
    shown = f"'{'x' * 37}...{'x' * 38}'"
    assert message_of(Literal[wanted], given) == [f"'it' cannot be {shown}: copy one of the listed values whole."]  # type: ignore[valid-type]


def test_a_listed_value_that_another_keyword_refuses_is_told_the_keyword() -> None:
    tool = from_schema("take", "", {"properties": {"it": {"type": "integer", "enum": ["a", "b"]}}})
    found = tool.validate({"it": "a"})
    assert isinstance(found, Invalid)
    assert [one.message for one in found.problems] == ["'it' cannot be 'a': copy one of the listed values whole."]


def test_a_proposal_is_tried_only_beside_few_other_problems() -> None:
    wrong = ArgumentProblem(path="n", kind="invalid", message="It is wrong.", place=("n",), proposals=(1,))
    tried: list[dict[str, Any]] = []

    def read(given: dict[str, Any]) -> dict[str, Any]:
        tried.append(given)
        return given

    def message(more: int) -> str:
        values = add_proposals(Invalid(problems=(wrong,), more=more), {"n": "1"}, read)
        assert isinstance(values, Invalid)
        return values.problems[0].message

    assert message(UNSHOWN_LIMIT) == "It is wrong: write 1."
    assert tried == [{"n": 1}]
    assert message(UNSHOWN_LIMIT + 1) == "It is wrong."
    assert len(tried) == 1
