"""A tool that takes a model's fields beside its own arguments."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, model_validator

from toolwire.definition.extended import extend_tool, model_of
from toolwire.definition.from_function import from_function
from toolwire.definition.shape import StructuredValues
from toolwire.definition.tool import Invalid, Tool, Validated, canonical
from toolwire.vocabulary.errors import DefinitionError


class Place(BaseModel):
    name: str
    people: int = Field(ge=0)


class Trip(BaseModel):
    to: Place
    day: datetime.date
    nights: int = 1

    @model_validator(mode="after")
    def is_possible(self) -> Trip:
        if self.nights > 99:
            raise ValueError("nobody stays that long")
        return self


GIVEN: dict[str, Any] = {"response": "Done.", "to": {"name": "Rome", "people": 3}, "day": "2026-03-01"}
TRIP = Trip(to=Place(name="Rome", people=3), day=datetime.date(2026, 3, 1))


def finish(response: str) -> str:
    """Ends the work.

    Args:
        response: What the user reads
    """
    return response


def validated(tool: Tool, arguments: dict[str, Any]) -> Validated:
    found = tool.validate(arguments)
    assert isinstance(found, Validated), found
    return found


def problems(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    found = tool.validate(arguments)
    assert isinstance(found, Invalid)
    return [problem.message for problem in found.problems]


def test_the_schema_has_the_tools_own_parameters_and_the_fields() -> None:
    assert extend_tool(from_function(finish), Trip).input_schema == {
        "type": "object",
        "properties": {
            "response": {"type": "string", "description": "What the user reads"},
            "to": {"$ref": "#/$defs/Place"},
            "day": {"type": "string", "format": "date"},
            "nights": {"type": "integer", "default": 1},
        },
        "required": ["response", "to", "day"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
                "required": ["name", "people"],
            }
        },
    }


def test_the_arguments_make_the_model_and_the_function_gets_its_own() -> None:
    tool = extend_tool(from_function(finish), Trip)
    found = validated(tool, GIVEN)
    assert isinstance(found.values, StructuredValues)
    assert found.values.structured == TRIP
    assert tool.invoke(found) == "Done."


def test_a_function_gets_the_fields_that_it_takes() -> None:
    def finish_some(response: str, day: object) -> tuple[str, object]:
        return response, day

    def finish_all(response: str, **more: object) -> tuple[str, object]:
        return response, more

    some, whole = (extend_tool(from_function(function), Trip) for function in (finish_some, finish_all))
    assert some.invoke(validated(some, GIVEN)) == ("Done.", TRIP.day)
    assert whole.invoke(validated(whole, GIVEN)) == ("Done.", {"to": TRIP.to, "day": TRIP.day, "nights": 1})


def test_fields_go_by_their_alias_for_the_model_and_by_their_name_for_the_function() -> None:
    class Aliased(BaseModel):
        place: str = Field(alias="where")
        other: str = Field(validation_alias="wherever")

    def finish_there(place: str, other: str) -> str:
        return place + other

    tool = extend_tool(from_function(finish_there), Aliased)
    assert list(tool.input_schema["properties"]) == ["where", "wherever"]
    assert tool.invoke(validated(tool, {"where": "R", "wherever": "P"})) == "RP"


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert problems(extend_tool(from_function(finish), Trip), {"to": {"name": "Rome", "people": -1}, "nigths": 2}) == [
        "'response' is missing: give a string.",
        "'nigths' is unknown: did you mean 'nights'?",
        "'to.people' must be an integer (at least 0), not -1.",
        "'day' is missing: give a string (date in ISO 8601).",
    ]


def test_an_error_of_the_whole_model_is_reported() -> None:
    assert problems(extend_tool(from_function(finish), Trip), {**GIVEN, "nights": 100}) == ["nobody stays that long."]


def test_two_definitions_of_one_name_stay_apart() -> None:
    def own() -> Tool:
        class Place(BaseModel):
            street: str

        def finish_at(at: Place) -> str:
            return at.street

        return from_function(finish_at)

    tool = extend_tool(own(), Trip)
    assert list(tool.input_schema["$defs"]) == ["Place", "Trip_Place"]
    assert tool.input_schema["properties"]["to"] == {"$ref": "#/$defs/Trip_Place"}
    assert tool.invoke(validated(tool, {"at": {"street": "Via"}, "to": GIVEN["to"], "day": GIVEN["day"]})) == "Via"


def test_a_model_that_holds_itself_can_be_filled_in() -> None:
    tool = extend_tool(from_function(finish), Tree)
    found = validated(tool, {"response": "x", "leaf": "a", "below": [{"leaf": "b"}]})
    assert isinstance(found.values, StructuredValues)
    assert found.values.structured == Tree(leaf="a", below=[Tree(leaf="b")])


class Tree(BaseModel):
    leaf: str
    below: list[Tree] = []


def test_another_model_takes_the_place_of_the_first_and_none_takes_it_away() -> None:
    tool = from_function(finish)
    first = extend_tool(tool, Trip)
    second = extend_tool(first, Place)
    assert list(second.input_schema["properties"]) == ["response", "name", "people"]
    assert extend_tool(second, None).input_schema == tool.input_schema
    assert [model_of(each) for each in (tool, first, second, extend_tool(second, None))] == [None, Trip, Place, None]


def test_the_tool_that_is_extended_stays_as_it_is() -> None:
    tool = from_function(finish)
    before = tool.input_schema
    extend_tool(tool, Trip)
    assert (tool.input_schema, tool.invoke(validated(tool, {"response": "x"}))) == (before, "x")


class Empty(BaseModel):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (dict, "structured_model=<class 'dict'>: give a subclass of pydantic.BaseModel"),
        ({"a": 1}, "structured_model={'a': 1}: give a subclass of pydantic.BaseModel"),
        (Empty, "Empty has no fields that a model could fill in: give it some"),
        (RootModel[int], "RootModel[int] has no fields that a model could fill in: give it some"),
    ],
)
def test_a_class_that_is_not_a_model_with_fields_is_an_error(model: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"^tool 'finish': {re.escape(message)}$"):
        extend_tool(from_function(finish), model)


def test_a_field_that_the_host_gives_is_an_error() -> None:
    def finish_at(response: str, day: str) -> str:
        return response + day

    tool = from_function(finish_at)
    tool.bindings.bind("day", default="today")
    with pytest.raises(DefinitionError, match="the field 'day' of Trip is a parameter that the host gives"):
        extend_tool(tool, Trip)


def test_the_parameters_of_both_can_be_written_as_a_signature() -> None:
    found = extend_tool(from_function(finish), Trip).visible_parameters
    assert [(each.name, each.required, each.annotation) for each in found] == [
        ("response", True, "str"),
        ("to", True, "dict"),
        ("day", True, "str"),
        ("nights", False, "int"),
    ]


@given(name=st.text(), people=st.integers(min_value=0, max_value=2**53), day=st.dates(), nights=st.integers(0, 99))
def test_the_canonical_form_is_read_back_to_the_same(name: str, people: int, day: datetime.date, nights: int) -> None:
    arguments = {"response": name, "to": {"name": name, "people": people}, "day": day.isoformat(), "nights": nights}
    first = validated(FINISH, arguments)
    again = validated(FINISH, canonical(first))
    assert first == again
    assert isinstance(first.values, StructuredValues)
    assert isinstance(again.values, StructuredValues)
    assert first.values.structured == again.values.structured


FINISH = extend_tool(from_function(finish), Trip)
