"""A schema whose root combines others is told, written and read by the fields of all of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.invocation.world import World
from toolwire.definition.from_schema import from_schema
from toolwire.definition.renderings.stub import stub
from toolwire.definition.root_fields import FIELDS_LIMIT, FORMS_LIMIT, with_root_fields
from toolwire.definition.tool import Tool
from toolwire.protocols import get
from toolwire.protocols.json_text.prompt import tool_text

BY_ID = {"properties": {"id": {"type": "integer"}}, "required": ["id"]}
BY_NAME = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
COMBINED: list[tuple[dict[str, Any], str, str]] = [
    ({"allOf": [BY_ID, BY_NAME]}, "def find(id: int, name: str):", "find(id: integer, name: string): Finds."),
    (
        {"anyOf": [BY_ID, BY_NAME]},
        "def find(id: int = ..., name: str = ...):",
        "find(id?: integer, name?: string): Finds.",
    ),
    (
        {"oneOf": [BY_ID, {"$ref": "#/$defs/n"}], "$defs": {"n": BY_NAME}},
        "def find(id: int = ..., name: str = ...):",
        "find(id?: integer, name?: string): Finds.",
    ),
    ({"$ref": "#/$defs/n", "$defs": {"n": BY_NAME}}, "def find(name: str):", "find(name: string): Finds."),
    (
        {"properties": {"limit": {"type": "integer"}}, "required": ["limit"], "anyOf": [BY_ID, BY_NAME]},
        "def find(limit: int, id: int = ..., name: str = ...):",
        "find(limit: integer, id?: integer, name?: string): Finds.",
    ),
]


def find(schema: dict[str, Any]) -> Tool:
    return from_schema("find", "Finds.", {"type": "object", **schema}, function=lambda **given: given)


@pytest.mark.parametrize(("schema", "header", "told"), COMBINED)
def test_prompt_and_stub_have_the_fields(schema: dict[str, Any], header: str, told: str) -> None:
    tool = find(schema)
    assert stub(tool).splitlines()[0] == header
    assert tool_text(tool) == told
    assert "- name (string" in get("xml").tools_text([tool])
    assert tool.input_schema == {"type": "object", **schema}


@pytest.mark.parametrize("protocol", ["attp", "json", "xml"])
@pytest.mark.parametrize("schema", [schema for schema, _, _ in COMBINED])
def test_the_grammar_allows_the_fields(protocol: str, schema: dict[str, Any]) -> None:
    assert "name" in get(protocol).grammar([find(schema)]).partition("find")[2]


@pytest.mark.parametrize("schema", [{"anyOf": [BY_ID, BY_NAME]}, {"oneOf": [BY_ID, BY_NAME]}])
def test_the_error_names_the_fields_and_the_whole_schema_still_checks(schema: dict[str, Any]) -> None:
    world = World(driver="blocking")
    world.add(find(schema))
    wrong = world.call("find")
    assert wrong.failure is not None
    assert wrong.failure.hint.endswith("It takes: id (optional), name (optional).")
    assert world.call("find", name="x").data == {"name": "x"}
    assert world.call("find", id="x").failure is not None


def test_an_xml_value_is_read_by_the_type_of_the_field() -> None:
    written = "<tool_call><name>find</name><params><id>7</id></params></tool_call>"
    assert get("xml").parse(written, [find({"anyOf": [BY_ID, BY_NAME]})]).calls[0].arguments == {"id": 7}


def test_a_field_of_several_forms_takes_each_of_them() -> None:
    def form(value: str) -> dict[str, Any]:
        return {"properties": {"kind": {"const": value}}}

    def annotations(count: int) -> list[str]:
        return [one.annotation for one in find({"anyOf": [form(f"k{n}") for n in range(count)]}).visible_parameters]

    assert annotations(2) == ["Literal['k0'] | Literal['k1']"]
    assert annotations(FORMS_LIMIT)[0].endswith("Literal['k15']")
    assert annotations(FORMS_LIMIT + 1) == ["Any"]


def test_the_same_field_in_two_parts_has_both_of_their_limits() -> None:
    parts = [{"properties": {"n": {"type": "integer", "minimum": 1}}}, {"properties": {"n": {"maximum": 9}}}]
    (parameter,) = find({"allOf": parts}).visible_parameters
    assert (parameter.annotation, parameter.required) == ("int", False)


def test_fields_that_programs_would_write_alike_are_numbered() -> None:
    parts = [{"properties": {"a-b": {}}}, {"properties": {"a_b": {}}}]
    assert {one.name: one.program_name for one in find({"anyOf": parts}).visible_parameters} == {
        "a-b": "a_b_2",
        "a_b": "a_b",
    }


def test_fields_up_to_the_limit_are_told() -> None:
    def count(fields: int) -> int:
        schema = {"allOf": [{"properties": {f"f{n}": {} for n in range(fields)}}]}
        return len(with_root_fields(schema)["properties"])

    assert (count(FIELDS_LIMIT - 2), count(FIELDS_LIMIT + 10)) == (FIELDS_LIMIT - 2, FIELDS_LIMIT - 2)


def test_definitions_that_double_at_each_level_stay_cheap() -> None:
    levels = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)}
    schema = {"anyOf": [{"$ref": "#/$defs/d0"}], "$defs": {**levels, "d40": BY_NAME}}
    started = time.process_time()
    assert with_root_fields(schema)["properties"] == {}
    assert time.process_time() - started < 2


def test_a_plain_schema_is_the_same_object() -> None:
    schema = {"type": "object", **BY_ID}
    assert with_root_fields(schema) is schema
