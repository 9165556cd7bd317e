"""Required fields with a default in a stranger's schema: filled in, judged and reported like any value."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from toolwire import ToolRegistry, ToolSpec
from toolwire.definition.from_schema import from_schema
from toolwire.definition.shape import Invalid
from toolwire.definition.tool import Tool, canonical

SCREENSHOT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["png", "jpeg"], "default": "png"},
        "filename": {"type": "string"},
    },
    "required": ["type"],
}


def tool_of(schema: dict[str, Any]) -> Tool:
    return from_schema("shoot", "", schema)


def values_of(schema: dict[str, Any], arguments: dict[str, Any]) -> Any:
    validated = tool_of(schema).validate(arguments)
    return [one.message for one in validated.problems] if isinstance(validated, Invalid) else validated.values


def test_a_required_field_with_a_default_may_be_left_out() -> None:
    assert values_of(SCREENSHOT, {}) == {"type": "png"}
    assert values_of(SCREENSHOT, {"type": "jpeg"}) == {"type": "jpeg"}
    assert values_of(SCREENSHOT, {"type": "gif"}) == ["'type' must be one of 'png', 'jpeg', not 'gif'."]


@pytest.mark.parametrize("node", [{"type": "string", "default": None}, {"enum": ["png"], "default": "gif"}])
def test_a_default_that_does_not_fit_its_own_schema_is_not_filled_in(node: dict[str, Any]) -> None:
    [message] = values_of({"properties": {"type": node}, "required": ["type"]}, {})
    assert message.startswith("'type' is missing: give ")


def test_a_field_inside_a_list_or_an_object_is_filled_in_too() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}, "required": ["n"]}
    schema = {
        "properties": {
            "one": {"$ref": "#/$defs/inner"},
            "all": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/inner"}, {"type": "null"}]}},
        },
        "$defs": {"inner": inner},
    }
    given: dict[str, Any] = {"one": {}, "all": [{}, {"n": 1}, None]}
    assert values_of(schema, given) == {"one": {"n": 7}, "all": [{"n": 7}, {"n": 1}, None]}
    assert given == {"one": {}, "all": [{}, {"n": 1}, None]}


def test_a_default_that_refers_to_a_definition_is_checked_by_it() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/a", "default": 3}, "b": {"$ref": "#/$defs/a", "default": "x"}},
        "required": ["a", "b"],
        "$defs": {"a": {"type": "integer"}},
    }
    assert values_of(schema, {"b": 1}) == {"a": 3, "b": 1}
    assert values_of(schema, {}) == ["'b' is missing: give an integer."]


def test_two_calls_do_not_share_a_default() -> None:
    tool = tool_of({"properties": {"a": {"type": "array", "default": []}}, "required": ["a"]})
    first, second = tool.validate({}), tool.validate({})
    assert not isinstance(first, Invalid)
    assert not isinstance(second, Invalid)
    first.values["a"].append(1)
    assert second.values["a"] == []


def test_the_filled_in_value_is_in_the_form_that_rules_and_people_judge() -> None:
    validated = tool_of(SCREENSHOT).validate({})
    assert not isinstance(validated, Invalid)
    assert canonical(validated) == {"type": "png"}


def test_a_rule_decides_on_the_filled_in_value() -> None:
    spec = ToolSpec.from_jsonschema(
        name="shoot", description="", input_schema=SCREENSHOT, function=lambda **values: values
    )
    registry = ToolRegistry(
        policy=[{"effect": "deny", "tool": "shoot", "when": [{"path": "/arguments/type", "op": "==", "value": "png"}]}]
    )
    registry.register(spec)
    denied = registry.invoke("shoot", {})
    assert denied.failure is not None
    assert denied.failure.kind == "denied"
    assert registry.invoke("shoot", {"type": "jpeg"}).data == {"type": "jpeg"}


def test_the_value_is_reported_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="toolwire.arguments"):
        values_of(SCREENSHOT, {})
        values_of(SCREENSHOT, {"type": "png"})
    assert [record.getMessage() for record in caplog.records] == [
        "tool 'shoot': type: it is required and was not given: its default is filled in"
    ]


def test_a_program_may_leave_it_out_too() -> None:
    registry = ToolRegistry()
    registry.register(
        ToolSpec.from_jsonschema(
            name="shoot", description="", input_schema=SCREENSHOT, function=lambda **values: values
        )
    )
    assert registry.run_program("shoot()").value == {"type": "png"}
