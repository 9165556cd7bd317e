"""The model's errors about its arguments: every problem at once, each in one sentence."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import UUID4, BaseModel, ConfigDict, Field

from toolwire.definition.from_function import from_function
from toolwire.definition.shape import ArgumentProblem, Invalid


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    counts: list[int] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


def problems(annotation: Any, value: Any) -> list[tuple[str, str, str]]:
    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    found = from_function(take).validate({"it": value})
    assert isinstance(found, Invalid), found
    return [(problem.path, problem.kind, problem.message) for problem in found.problems]


LONG_TEXT = f"'it' must be an array of string, not '{'x' * 37}...{'x' * 38}'"


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "abc", "'it' must be an integer, not 'abc'."),
        (int, 1.5, "'it' must be an integer, not 1.5."),
        (str, 10, "'it' must be a string, not 10."),
        (bool, "perhaps", "'it' must be a boolean, not 'perhaps'."),
        (list[int], 3, "'it' must be an array of integer, not 3."),
        (list[list[str]], {}, "'it' must be an array of array of string, not {}."),
        (dict[str, int], [], "'it' must be an object, not []."),
        (str, ["a", "b"], "'it' must be one string, not ['a', 'b']: call it once for each of the 2."),
        (int, ["a"], "'it' must be one integer, not ['a']: give it without the list."),
        (
            Row,
            [{}, {}, {}],
            "'it' must be one object with name, counts, not [{}, {}, {}]: call it once for each of the 3.",
        ),
        (int | None, [1, 2], "'it' must be an integer or null, not [1, 2]: call it once for each of the 2."),
        (Literal["a", 1], ["a", 1], "'it' must be one of 'a', 1, not ['a', 1]: call it once for each of the 2."),
        (
            list[str],
            "a, b",
            """'it' must be an array of string, not 'a, b': write ["a", "b"], or ["a, b"] if it is one item.""",
        ),
        (
            list[str],
            "x" * 100,
            f"""'it' must be an array of string, not '{"x" * 37}...{"x" * 38}': write ["{"x" * 100}"].""",
        ),
        (list[str], "x" * 101, f"{LONG_TEXT}."),
        (list[str], "]", "'it' must be an array of string, not ']'."),
        (list[str], '["a"', "'it' must be an array of string, not '[\"a\"'."),
        (
            list[Literal["a", "b"]],
            "a, b",
            """'it' must be an array of one of 'a', 'b', not 'a, b': write ["a", "b"].""",
        ),
        (list[Literal["a", "b"]], "a, c", """'it' must be an array of one of 'a', 'b', not 'a, c'."""),
        (str | dict[str, list[int]], [], "'it' must be a string or an object, not []."),
        (Row, 3, "'it' must be an object with name, counts, not 3."),
        (Colour, "green", "'it' must be one of 'red', 'blue', not 'green'."),
        (Literal["a", 1], "b", "'it' must be one of 'a', 1, not 'b'."),
        (Literal["a"], "b", "'it' must be 'a', not 'b'."),
        (int | None, "x", "'it' must be an integer or null, not 'x'."),
        (int | list[str], "x", "'it' must be an integer or an array of string, not 'x'."),
        (dt.datetime, "soon", "'it' must be a string (date and time in ISO 8601), not 'soon'."),
        (
            Decimal,
            "x",
            "'it' must be a number or a string, not 'x': input should be a valid decimal.",
        ),
        (UUID4, str(UUID(int=5)), f"'it' must be a string, not '{UUID(int=5)}': UUID version 4 expected."),
        (IPv4Address, "x", "'it' must be a string, not 'x': input is not a valid IPv4 address."),
        (tuple[int, str], 3, "'it' must be an array of [integer, string], not 3."),
        (Annotated[int, Field(ge=1, le=5)], 0, "'it' must be an integer (at least 1, at most 5), not 0."),
        (Annotated[str, Field(pattern="^a+$")], "b", "'it' must be a string (matching ^a+$), not 'b'."),
        (Annotated[list[int], Field(min_length=1)], [], "'it' must be an array of integer (at least 1 item), not []."),
        (
            Annotated[Decimal, Field(max_digits=3)],
            "12.345",
            (
                "'it' must be a number or a string, not '12.345': Decimal input should have no more than 3 digits in "
                "total."
            ),
        ),
        (int, "x" * 100, f"'it' must be an integer, not '{'x' * 37}...{'x' * 38}'."),
    ],
)
def test_a_wrong_value_is_told_what_is_expected_and_what_was_given(annotation: Any, value: Any, message: str) -> None:
    assert problems(annotation, value) == [("it", "invalid", message)]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    def search(query: str, limit: int = 10, colour: Colour = Colour.RED) -> None: ...

    found = from_function(search).validate({"limits": 3, "limit": "x", "colour": "pink", "zzz": None})
    assert found == Invalid(
        problems=(
            ArgumentProblem(path="query", kind="missing", message="'query' is missing: give a string."),
            ArgumentProblem(path="limit", kind="invalid", message="'limit' must be an integer, not 'x'."),
            ArgumentProblem(
                path="colour", kind="invalid", message="'colour' must be one of 'red', 'blue', not 'pink'."
            ),
            ArgumentProblem(path="limits", kind="unexpected", message="'limits' is unknown: did you mean 'limit'?"),
            ArgumentProblem(
                path="zzz", kind="unexpected", message="'zzz' is unknown: it takes 'query', 'limit', 'colour'."
            ),
        )
    )


def test_a_tool_without_parameters_takes_none() -> None:
    def ping() -> None: ...

    found = from_function(ping).validate({"x": 1})
    assert isinstance(found, Invalid)
    assert found.text == "'x' is unknown: it takes none."


def test_a_key_that_is_not_a_string_is_refused() -> None:
    def f(a: int = 0) -> None: ...

    found = from_function(f).validate({1: 2})  # pyright: ignore[reportArgumentType]
    assert isinstance(found, Invalid)
    assert [problem.kind for problem in found.problems] == ["unexpected"]


def test_a_place_inside_is_named_by_its_path() -> None:
    assert problems(list[Row], [{"name": "a", "counts": [1, "x"]}, {"nam": "b"}]) == [
        ("it[0].counts[1]", "invalid", "'it[0].counts[1]' must be an integer, not 'x'."),
        ("it[1].name", "missing", "'it[1].name' is missing: give a string."),
        ("it[1].nam", "unexpected", "'it[1].nam' is unknown: did you mean 'name'?"),
    ]
    assert problems(dict[str, list[int]], {"a": ["x"]}) == [
        ("it.a[0]", "invalid", "'it.a[0]' must be an integer, not 'x'.")
    ]


def test_only_the_intended_type_of_a_union_is_reported() -> None:
    assert problems(int | Row, {"name": 3}) == [("it.name", "invalid", "'it.name' must be a string, not 3.")]
    assert problems(str | list[int], ["x"]) == [("it[0]", "invalid", "'it[0]' must be an integer, not 'x'.")]
    assert problems(Row | None, {}) == [("it.name", "missing", "'it.name' is missing: give a string.")]


def test_a_union_without_a_discriminator_is_spoken_of_by_the_field_that_tells_its_objects_apart() -> None:
    assert problems(Cat | Dog, {"kind": "cow"}) == [
        ("it.kind", "invalid", "'it.kind' must be one of 'cat', 'dog', not 'cow'.")
    ]


def test_a_discriminated_union_is_spoken_of_by_its_tag() -> None:
    pet = Annotated[Cat | Dog, Field(discriminator="kind")]
    assert problems(pet, {"kind": "cat", "lives": "x"}) == [
        ("it.lives", "invalid", "'it.lives' must be an integer, not 'x'.")
    ]
    assert problems(pet, {"kind": "cow"}) == [
        ("it.kind", "invalid", "'it.kind' must be one of 'cat', 'dog', not 'cow'.")
    ]


def test_a_wrong_key_is_spoken_of_at_its_mapping() -> None:
    assert problems(dict[int, str], {"x": "a"}) == [
        (
            "it.x",
            "invalid",
            (
                "'it.x' has a key that does not fit: "
                "input should be a valid integer, unable to parse string as an integer."
            ),
        )
    ]


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    class Nest(BaseModel):
        inner: list[Nest]

    nest: dict[str, Any] = {}
    nest["inner"] = [nest]
    assert [kind for _, kind, _ in problems(Nest, nest)] == ["invalid"]
