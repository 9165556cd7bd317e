"""Parameters as providers take them: strict mode, references, Gemini's two fields."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from toolwire import ToolSpec
from toolwire.definition.tool import Tool
from toolwire.protocols.native.gemini_schema import json_schema, older_schema
from toolwire.protocols.native.provider_schema import (
    inline_references,
    isolate_references,
    properties_named,
    properties_restored,
)
from toolwire.protocols.native.strict_schema import strict_problems, strict_schema, without_nulls


class Point(BaseModel):
    x: int
    y: int = 0


class Node(BaseModel):
    value: str
    children: list[Node] = []


def known_by(schema: dict[str, Any]) -> Tool:
    return ToolSpec.from_jsonschema(name="t", input_schema=schema).__tool__()


def of(function: Any) -> Tool:
    return ToolSpec.from_function(function).__tool__()


def draw(
    start: Point, ends: list[Point], mode: Literal["fast", "slow"] = "fast", label: str | None = None, width: int = 1
) -> None:
    """Draws."""


def walk(root: Node, depth: int = 3) -> None:
    """Walks."""


def test_strict_mode_requires_all_and_lets_null_stand_for_what_is_left_out() -> None:
    assert strict_problems(draw) == ()
    assert strict_schema(of(draw)) == {
        "type": "object",
        "properties": {
            "start": {"$ref": "#/$defs/Point"},
            "ends": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
            "mode": {
                "anyOf": [{"enum": ["fast", "slow"], "type": "string"}, {"type": "null"}],
                "description": 'null: the default, "fast".',
            },
            "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "width": {"type": ["integer", "null"], "description": "null: the default, 1."},
        },
        "required": ["start", "ends", "mode", "label", "width"],
        "additionalProperties": False,
        "$defs": {
            "Point": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "y": {"type": ["integer", "null"], "description": "null: the default, 0."},
                },
                "required": ["x", "y"],
                "additionalProperties": False,
            }
        },
    }


def test_nulls_are_taken_away_where_they_stand_for_nothing_and_nowhere_else() -> None:
    given_ = {
        "start": {"x": 1, "y": None},
        "ends": [{"x": None, "y": None}],
        "mode": None,
        "label": None,
        "width": None,
    }
    assert without_nulls(of(draw), given_) == {"start": {"x": 1}, "ends": [{"x": None}], "label": None}


def test_a_recursive_schema_stays_strict() -> None:
    assert strict_problems(walk) == ()
    tree = {"value": "a", "children": [{"value": "b", "children": None}]}
    assert without_nulls(of(walk), {"root": tree, "depth": None}) == {
        "root": {"value": "a", "children": [{"value": "b"}]}
    }


@pytest.mark.parametrize(
    ("property_", "problem"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "keys that are not listed are allowed"),
        ({"type": "object"}, "an object of anything is allowed"),
        ({}, "any value is allowed"),
        ({"type": "array"}, "an array of anything is allowed"),
        ({"type": "string", "minLength": 2}, "'minLength' cannot be expressed"),
        ({"type": "string", "pattern": "(?=a)"}, "the pattern looks around"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "'uniqueItems' cannot be expressed"),
        ({"allOf": [{"type": "string"}], "type": "string"}, "'allOf' cannot be expressed"),
        ({"oneOf": [{"type": "string"}], "type": "string"}, "'oneOf' cannot be expressed"),
        ({"type": "string", "pattern": r"(a)\1"}, "the pattern looks around"),
        ({"type": "string", "pattern": "(?i)a"}, "the pattern looks around"),
        ({"enum": [f"{n:0100}" for n in range(251)]}, "more than 250 allowed values with more than 15,000 characters"),
        ({"const": {"a": 1}}, "an object or a list is an allowed value"),
    ],
)
def test_constraints_beyond_strict_mode_are_reported_with_their_place(property_: dict[str, Any], problem: str) -> None:
    tool = known_by({"type": "object", "properties": {"p": property_}, "required": ["p"]})
    (found,) = strict_problems(tool)
    assert found.startswith(f"p: {problem}")


def test_all_names_and_values_together_have_a_limit() -> None:
    schema = {"type": "object", "properties": {f"{n:0100}": {"type": "string"} for n in range(1_201)}}
    assert strict_problems(known_by(schema)) == (
        "120,100 characters of names and allowed values, and 120,000 are allowed",
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"enum": ["a", "b"]}, "string"),
        ({"const": 3}, "integer"),
        ({"enum": ["a", 1.5, None]}, ["string", "number", "null"]),
    ],
)
def test_allowed_values_have_a_type(given: dict[str, Any], kind: Any) -> None:
    schema = {"type": "object", "properties": {"p": given}, "required": ["p"]}
    assert strict_schema(known_by(schema))["properties"]["p"] == {**given, "type": kind}


def test_annotations_of_others_are_left_out() -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string", "x-order": 1}}, "required": ["p"]}
    assert strict_problems(known_by(schema)) == ()
    assert strict_schema(known_by(schema))["properties"] == {"p": {"type": "string"}}


def test_a_schema_that_nests_too_deep_is_not_strict() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "object", "properties": {"p": schema}}
    assert strict_problems(known_by(schema))[-1].endswith("nested deeper than 10 levels")


scalars = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": ["number", "null"]},
        {"type": "boolean", "default": True},
        {"enum": ["a", "b"], "type": "string"},
        {"const": 3},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ]
)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["a", "b", "c"])
    return st.builds(
        lambda properties, needed: {
            "type": "object",
            "properties": properties,
            "required": sorted(needed & set(properties)),
            "additionalProperties": False,
        },
        st.dictionaries(names, inner, min_size=1),
        st.sets(names),
    )


schemas = objects(
    st.recursive(scalars, lambda inner: objects(inner) | inner.map(lambda item: {"type": "array", "items": item}))
)


@given(schemas, st.data())
def test_valid_arguments_fit_the_strict_schema_with_nulls_filled_in(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    tool = known_by(schema)
    assert strict_problems(tool) == ()
    told = strict_schema(tool)
    arguments = data.draw(values(schema))
    filled = _filled(arguments, schema)
    jsonschema.validate(filled, told)
    assert without_nulls(tool, filled) == arguments


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit; only what `schemas` makes."""
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*map(values, schema["anyOf"]))
    if schema["type"] == "object":
        parts = {name: values(inner) for name, inner in schema["properties"].items()}
        needed = {name: parts[name] for name in schema["required"]}
        return st.fixed_dictionaries(needed, optional={name: parts[name] for name in parts if name not in needed})
    if schema["type"] == "array":
        return st.lists(values(schema["items"]), max_size=2)
    if schema["type"] == ["number", "null"]:
        return st.none() | st.integers(0, 9)
    return {"string": st.just("s"), "integer": st.integers(0, 9), "boolean": st.booleans()}[schema["type"]]


def _filled(value: Any, schema: dict[str, Any]) -> Any:
    """The value with null for each property left out, save those that take null: there a model must say something."""
    if schema.get("type") == "array":
        return [_filled(item, schema["items"]) for item in value]
    if schema.get("type") != "object":
        return value
    for name, inner in schema["properties"].items():
        if name not in value and inner.get("type") == ["number", "null"]:
            value[name] = 1
    return {
        name: _filled(value[name], inner) if name in value else None for name, inner in schema["properties"].items()
    }


def test_a_reference_stands_alone() -> None:
    schema = {"properties": {"p": {"$ref": "#/$defs/P", "description": "A point."}}}
    assert isolate_references(schema) == {
        "properties": {"p": {"description": "A point.", "anyOf": [{"$ref": "#/$defs/P"}]}}
    }


def test_references_are_written_out() -> None:
    schema, lost = inline_references(of(draw).input_schema)
    assert "$ref" not in str(schema)
    assert "$defs" not in schema
    assert schema["properties"]["ends"]["items"]["properties"]["y"] == {"default": 0, "type": "integer"}
    assert lost == ()


def test_recursion_is_widened_and_said() -> None:
    schema, lost = inline_references(of(walk).input_schema)
    assert schema["properties"]["root"]["properties"]["children"]["items"] == {"type": "object"}
    assert lost == ("#/$defs/Node stands in itself and cannot be written out: its contents are left out",)


def test_references_that_double_themselves_end() -> None:
    definitions = {
        f"d{n}": {
            "type": "object",
            "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}},
        }
        for n in range(40)
    }
    schema, lost = inline_references(
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    )
    assert len(str(schema)) < 1_000_000
    assert lost


def test_odd_parameter_names_are_told_in_plain_ones_and_come_back() -> None:
    tool = known_by({"type": "object", "properties": {"@type": {"type": "string"}, "größe": {}}, "required": ["@type"]})
    told = properties_named(tool)
    assert list(told["properties"]) == ["_x40_type", "gr_xf6__xdf_e"]
    assert told["required"] == ["_x40_type"]
    assert properties_restored(tool, {"_x40_type": "a", "gr_xf6__xdf_e": 1, "other": 2}) == {
        "@type": "a",
        "größe": 1,
        "other": 2,
    }
    assert properties_restored(tool, {"@type": "a", "_x40_type": "b"}) == {"@type": "a", "_x40_type": "b"}


def test_geminis_newer_field_keeps_references_and_has_no_const() -> None:
    schema, problems = json_schema(
        {
            "type": "object",
            "properties": {"kind": {"const": "a"}, "root": {"$ref": "#/$defs/N", "description": "Root."}},
            "$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "required": ["next"]}},
        }
    )
    assert schema["properties"] == {
        "kind": {"enum": ["a"]},
        "root": {"description": "Root.", "anyOf": [{"$ref": "#/$defs/N"}]},
    }
    assert problems == ("N.next holds N again and is required, which the API follows only so far",)


def cyclic(
    tree: Node, sizes: dict[str, int], when: str = Field("now", pattern="n.w"), level: float | None = None
) -> None:
    """Takes what the older field does not."""


@pytest.mark.parametrize("function", [draw, walk, cyclic])
def test_geminis_older_field_is_a_schema_of_the_sdk(function: Any) -> None:
    schema, _ = older_schema(of(function).input_schema)
    assert types.Schema.model_validate(schema).type == types.Type.OBJECT
    assert "$ref" not in str(schema)


def test_losses_of_the_older_field_are_reported() -> None:
    assert older_schema(of(cyclic).input_schema)[1] == (
        "#/$defs/Node stands in itself and cannot be written out: its contents are left out",
        "'additionalProperties' cannot be expressed here",
    )


@given(schemas)
def test_any_schema_fits_the_older_field(schema: dict[str, Any]) -> None:
    types.Schema.model_validate(older_schema(schema)[0])
