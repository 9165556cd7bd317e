"""Forms for the answers of questions: what a form can express, and what is asked for as JSON."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from toolwire import ApprovalRequest
from toolwire.approvals import Decider
from toolwire.gateway.asking.elicitation import decision_of, form_of

FIELDS: list[dict[str, Any]] = [
    {"type": "string", "minLength": 1, "maxLength": 9, "title": "Name", "default": "Ada"},
    {"type": "string", "format": "email"},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
    {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
    {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    {"type": "number", "minimum": 0},
    {"type": "integer", "maximum": 9},
    {"type": "boolean", "default": True},
]
DEEP: list[dict[str, Any]] = [
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "properties": {"a": {"type": "object"}}},
    {"type": "integer", "enum": [1, 2]},
    {"type": ["string", "null"]},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"type": "object"},
]


def question(schema: dict[str, Any]) -> ApprovalRequest:
    return ApprovalRequest(
        id="a_1",
        call_id="r_1/1?1",
        tool="book",
        arguments={},
        reasons=(),
        kind="question",
        question="Which?",
        answer_schema=schema,
    )


def asked(schema: dict[str, Any]) -> dict[str, Any]:
    return form_of(question(schema)).requested_schema


def answered(schema: dict[str, Any], content: dict[str, Any]) -> Any:
    said = types.ElicitResult(action="accept", content=content)
    decision = decision_of(question(schema), said, Decider())
    return None if decision is None else decision.answer


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_simple_value_is_one_field(field: dict[str, Any]) -> None:
    assert asked(field) == {"type": "object", "properties": {"answer": field}, "required": ["answer"]}


def test_an_object_of_simple_values_has_their_fields() -> None:
    schema = {"type": "object", "properties": {str(n): field for n, field in enumerate(FIELDS)}, "required": ["0"]}
    assert asked(schema) == schema
    assert answered(schema, {"0": "Ada", "5": ["a"], "7": 0.5, "9": None}) == {"0": "Ada", "5": ["a"], "7": 0.5}


@pytest.mark.parametrize("schema", DEEP, ids=str)
def test_any_other_value_is_asked_for_as_json(schema: dict[str, Any]) -> None:
    assert asked(schema)["properties"]["answer"]["title"] == "JSON"
    assert answered(schema, {"answer": '{"a": [1, null]}'}) == {"a": [1, None]}
    for wrong in ("{", "[" * 100_000, 7):
        assert answered(schema, {"answer": wrong}) is None


def test_a_question_without_a_schema_takes_any_text() -> None:
    assert asked({})["properties"] == {"answer": {"type": "string"}}
    assert (answered({}, {"answer": "Ada"}), answered({}, {"other": "Ada"})) == ("Ada", None)


def test_keywords_that_a_form_does_not_know_are_left_out_of_it() -> None:
    schema = {"type": "string", "pattern": "a+", "format": "hostname", "minLength": 1}
    assert asked(schema)["properties"]["answer"] == {"type": "string", "minLength": 1}


@pytest.mark.parametrize("content", [{}, {"decision": "yes"}, {"decision": True}, {"decision": "ONCE"}, None])
def test_no_choice_is_no_decision(content: dict[str, Any] | None) -> None:
    request = ApprovalRequest(id="a_1", call_id="r_1/1", tool="pay", arguments={}, reasons=())
    said = types.ElicitResult(action="accept", content=content)
    assert decision_of(request, said, Decider()) is None
