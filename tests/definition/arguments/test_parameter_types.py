"""Every type a parameter may have: its schema, the accepted values, and the value that the function receives."""

from __future__ import annotations

import datetime as dt
import enum
import typing
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Required
from uuid import UUID

import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel

from toolwire.definition.from_function import from_function
from toolwire.definition.shape import Invalid, Validated
from toolwire.definition.tool import Tool, canonical
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Address(BaseModel):
    street: str
    seal: bytes = b""


class Person(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str = Field(validation_alias="fullName", serialization_alias="full")
    address: Address | None = None
    friends: list[Person] = []


class Tags(RootModel[list[str]]):
    pass


@dataclass
class Point:
    x: int
    y: float = 0.5
    label: str | None = None
    seal: bytes = b""
    size: int = field(init=False, default=3)


class Movie(typing.TypedDict):
    title: Required[str]
    year: NotRequired[int]
    sequels: NotRequired[list[Movie]]


class Partial(typing.TypedDict, total=False):
    title: Required[str]
    year: int


class Extended(typing_extensions.TypedDict):
    a: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


def tool_for(annotation: Any) -> Tool:
    def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = annotation
    return from_function(take)


def read(annotation: Any, value: Any) -> Any:
    validated = tool_for(annotation).validate({"value": value})
    assert isinstance(validated, Validated), validated
    return validated.values["value"]


def property_schema(annotation: Any) -> Any:
    return tool_for(annotation).input_schema["properties"]["value"]


UTC = dt.UTC
IDENTITY = UUID("12345678-1234-5678-1234-567812345678")

TABLE: list[tuple[Any, Any, Any, Any]] = [
    (int, "10", 10, {"type": "integer"}),
    (float, 1, 1.0, {"type": "number"}),
    (bool, True, True, {"type": "boolean"}),
    (str, "10", "10", {"type": "string"}),
    (Any, {"a": [1]}, {"a": [1]}, {}),
    (list, [1, "a"], [1, "a"], {"type": "array", "items": {}}),
    (list[int], [1, "2"], [1, 2], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[int], [1, 2], [1, 2], {"type": "array", "items": {"type": "integer"}}),
    (dict, {"a": 1}, {"a": 1}, {"type": "object", "additionalProperties": True}),
    (dict[str, float], {"a": 1}, {"a": 1.0}, {"type": "object", "additionalProperties": {"type": "number"}}),
    (
        Mapping[str, Address],
        {"a": {"street": "s"}},
        {"a": Address(street="s")},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/Address"}},
    ),
    (
        tuple[int, str],
        [1, "a"],
        (1, "a"),
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    (tuple[int, ...], [1, 2], (1, 2), {"type": "array", "items": {"type": "integer"}}),
    (set[int], [1, 2, 2], {1, 2}, {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    (
        frozenset[str],
        ["a"],
        frozenset({"a"}),
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    ),
    (deque[int], [1], deque([1]), {"type": "array", "items": {"type": "integer"}}),
    (Literal["a", "b"], "b", "b", {"type": "string", "enum": ["a", "b"]}),
    (Colour, "red", Colour.RED, {"$ref": "#/$defs/Colour"}),
    (Level, 2, Level.HIGH, {"$ref": "#/$defs/Level"}),
    (Optional[int], None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045  # this form too
    (int | str, "1", "1", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (
        dt.datetime,
        "2024-05-06T07:08:09+00:00",
        dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        {"type": "string", "format": "date-time"},
    ),
    (dt.date, "2024-05-06", dt.date(2024, 5, 6), {"type": "string", "format": "date"}),
    (dt.time, "07:08:09.5", dt.time(7, 8, 9, 500000), {"type": "string", "format": "time"}),
    (dt.timedelta, "P1DT2H", dt.timedelta(days=1, hours=2), {"type": "string", "format": "duration"}),
    (UUID, str(IDENTITY), IDENTITY, {"type": "string", "format": "uuid"}),
    (Path, "a/b.txt", Path("a/b.txt"), {"type": "string", "format": "path"}),
    (Decimal, "1.10", Decimal("1.10"), {"anyOf": [{"type": "number"}, {"type": "string"}]}),
    (bytes, "aGk=", b"hi", {"type": "string", "contentEncoding": "base64"}),
    (bytes | None, "aGk=", b"hi", {"anyOf": [{"type": "string", "contentEncoding": "base64"}, {"type": "null"}]}),
    (list[bytes], ["aGk="], [b"hi"], {"type": "array", "items": {"type": "string", "contentEncoding": "base64"}}),
    (
        Annotated[bytes, Field(min_length=1, max_length=4)],
        "aGk=",
        b"hi",
        {"type": "string", "contentEncoding": "base64", "minLength": 4, "maxLength": 8},
    ),
    (AnyUrl, "https://a.b/", AnyUrl("https://a.b/"), {"type": "string", "format": "uri", "minLength": 1}),
    (Address, {"street": "s", "seal": "aGk="}, Address(street="s", seal=b"hi"), {"$ref": "#/$defs/Address"}),
    (Tags, ["a"], Tags(["a"]), {"$ref": "#/$defs/Tags"}),
    (Point, {"x": 1, "seal": "aGk="}, Point(1, seal=b"hi"), {"$ref": "#/$defs/Point"}),
    (Movie, {"title": "a", "sequels": [{"title": "b"}]}, {"title": "a", "sequels": [{"title": "b"}]}, None),
    (Partial, {"title": "a"}, {"title": "a"}, {"$ref": "#/$defs/Partial"}),
    (Extended, {"a": "1"}, {"a": 1}, {"$ref": "#/$defs/Extended"}),
    (list[Movie] | None, [{"title": "a"}], [{"title": "a"}], None),
    (Pair, [1], Pair(1), None),
    (Annotated[int, "a number"], 1, 1, {"type": "integer", "description": "a number"}),
    (Annotated[int, Field(ge=1, le=5)], 5, 5, {"type": "integer", "minimum": 1, "maximum": 5}),
]
NAMES = [str(row[0]) for row in TABLE]


@pytest.mark.parametrize(("annotation", "value", "real", "schema"), TABLE, ids=NAMES)
def test_a_parameter_of_the_type(annotation: Any, value: Any, real: Any, schema: Any) -> None:
    received = read(annotation, value)
    assert received == real
    assert type(received) is type(real)
    if schema is not None:
        assert property_schema(annotation) == schema


@pytest.mark.parametrize(("annotation", "value", "real", "schema"), TABLE, ids=NAMES)
def test_what_is_valid_is_valid_again_in_canonical_form_and_as_real_objects(
    annotation: Any, value: Any, real: Any, schema: Any
) -> None:
    tool = tool_for(annotation)
    validated = tool.validate({"value": value})
    assert isinstance(validated, Validated)
    assert tool.validate(canonical(validated)) == validated
    assert tool.validate({"value": real}) == validated


STREETS = st.builds(Address, street=st.text(), seal=st.binary())
PEOPLE = st.recursive(
    st.builds(lambda name, address: Person(fullName=name, address=address), st.text(), st.none() | STREETS),
    lambda inner: st.builds(
        lambda name, friends, more: Person(fullName=name, friends=friends, more=more),
        st.text(),
        st.lists(inner, max_size=2),
        st.integers(),
    ),
    max_leaves=4,
)
ZONED = st.datetimes(timezones=st.just(UTC))


def unfolded(moment: Any) -> Any:
    """JSON has no `fold`: a moment that has one is unrepresentable."""
    return moment.replace(fold=0)


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    str: st.text(st.characters(exclude_categories=["Cs"])),
    bytes: st.binary(),
    list[bytes]: st.lists(st.binary()),
    dt.datetime: (st.datetimes() | ZONED).map(unfolded),
    dt.date: st.dates(),
    dt.time: st.times().map(unfolded),
    dt.timedelta: st.timedeltas(dt.timedelta(days=-10_000), dt.timedelta(days=10_000)),
    UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    set[int]: st.sets(st.integers()),
    frozenset[Colour]: st.frozensets(st.sampled_from(Colour)),
    tuple[int, Colour]: st.tuples(st.integers(), st.sampled_from(Colour)),
    dict[str, list[dt.date]]: st.dictionaries(st.text(), st.lists(st.dates())),
    dict[int, bool]: st.dictionaries(st.integers(), st.booleans()),
    Level: st.sampled_from(Level),
    int | None: st.none() | st.integers(),
    list[Address | None]: st.lists(st.none() | STREETS, max_size=3),
    Person: PEOPLE,
    Point: st.builds(Point, st.integers(), st.floats(allow_nan=False), st.none() | st.text(), st.binary()),
}


@pytest.mark.parametrize("annotation", VALUES, ids=str)
def test_validating_the_canonical_form_gives_the_same_objects(annotation: Any) -> None:
    tool = tool_for(annotation)

    @given(VALUES[annotation])
    @settings(max_examples=25, deadline=None)
    def check(value: Any) -> None:
        validated = tool.validate({"value": value})
        assert isinstance(validated, Validated), validated
        again = tool.validate(canonical(validated))
        assert again == validated
        assert canonical(again) == canonical(validated)

    check()


def test_the_canonical_form_names_fields_as_they_are_read() -> None:
    def greet(person: Person) -> None: ...

    tool = from_function(greet)
    validated = tool.validate({"person": {"fullName": "Ada", "mood": "good"}})
    assert isinstance(validated, Validated)
    assert canonical(validated) == {
        "person": {"fullName": "Ada", "address": None, "friends": [], "mood": "good"},
    }


def test_a_default_that_json_cannot_hold_is_left_out_of_the_canonical_form() -> None:
    sentinel = object()

    def f(a: int, b: Any = sentinel) -> None: ...

    tool = from_function(f)
    validated = tool.validate({"a": 1})
    assert isinstance(validated, Validated)
    assert canonical(validated) == {"a": 1}
    assert tool.validate(canonical(validated)) == validated
    assert tool.input_schema["properties"]["b"] == {}


def test_an_object_that_json_cannot_hold_has_no_canonical_form() -> None:
    def f(a: Any) -> None: ...

    validated = from_function(f).validate({"a": object()})
    assert isinstance(validated, Validated)
    with pytest.raises(Unrepresentable):
        canonical(validated)


def test_none_for_a_default_may_be_given_too() -> None:
    def f(
        names: list[str] = None,  # noqa: RUF013  # pyright: ignore[reportArgumentType]
        n: Annotated[int, Field(ge=1)] = None,  # noqa: RUF013  # pyright: ignore[reportArgumentType]
    ) -> None: ...

    tool = from_function(f)
    assert isinstance(tool.validate({"names": None, "n": None}), Validated)
    assert isinstance(tool.validate({"n": 0}), Invalid)
    assert [parameter.annotation for parameter in tool.parameters] == ["list[str] | None", "int | None"]


def test_text_for_bytes_or_text_is_text() -> None:
    assert read(bytes | str, "aGk=") == "aGk="
    assert read(bytes | str, b"hi") == b"hi"


def test_text_that_is_not_base64_is_refused_for_bytes() -> None:
    found = tool_for(bytes).validate({"value": "$$"})
    assert isinstance(found, Invalid)
    assert found.text == "'value' must be a string of base64, not '$$': it is not base64."


def test_a_typeddict_keeps_what_is_required_when_annotations_are_text() -> None:
    schema = tool_for(Movie).input_schema
    assert schema["$defs"]["Movie"] == {
        "properties": {
            "title": {"type": "string"},
            "year": {"type": "integer"},
            "sequels": {"items": {"$ref": "#/$defs/Movie"}, "type": "array"},
        },
        "required": ["title"],
        "type": "object",
    }
    assert tool_for(Partial).input_schema["$defs"]["Partial"]["required"] == ["title"]


def test_a_model_serves_two_parameters() -> None:
    def f(a: Address, b: list[Address]) -> list[Address]:
        return [a, *b]

    tool = from_function(f)
    validated = tool.validate({"a": {"street": "x"}, "b": [{"street": "y"}]})
    assert isinstance(validated, Validated)
    assert tool.invoke(validated) == [Address(street="x"), Address(street="y")]


def test_keywords_typed_by_a_typeddict() -> None:
    def f(**more: typing_extensions.Unpack[Movie]) -> Any:
        return more

    tool = from_function(f)
    validated = tool.validate({"more": {"title": "a"}})
    assert isinstance(validated, Validated)
    assert tool.invoke(validated) == {"title": "a"}
    assert isinstance(tool.validate({}), Invalid)


def test_a_mutable_default_is_not_shared_between_calls() -> None:
    def f(items: list[int] = []) -> list[int]:  # noqa: B006
        items.append(1)
        return items

    tool = from_function(f)
    for _ in range(2):
        validated = tool.validate({})
        assert isinstance(validated, Validated)
        assert tool.invoke(validated) == [1]


@pytest.mark.parametrize("default", [Field(alias="from"), Field(validation_alias="from")])
def test_an_alias_for_a_parameter_is_refused(default: Any) -> None:
    def f(start: str = default) -> None: ...

    with pytest.raises(DefinitionError) as refused:
        from_function(f).verify()
    assert str(refused.value) == (
        "tool 'f': parameter 'start' has the alias 'from': a tool's parameters go by their own names, rename it"
    )
