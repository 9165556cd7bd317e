"""The form that chat models take as their tools: written without titles, read nested or flat."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolwire.definition.chat_form import ChatForm, chat_form, drop_titles, read_chat_form
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.vocabulary.errors import DefinitionError

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}}


class Book(BaseModel):
    title: str = Field(title="Title of the book")
    pages: int = 1


def test_a_tool_in_its_nested_form() -> None:
    def lend(book: Book, title: str = "x") -> None:
        """Lends."""

    assert chat_form(from_function(lend)) == {
        "type": "function",
        "function": {
            "name": "lend",
            "description": "Lends.",
            "parameters": {
                "type": "object",
                "properties": {"book": {"$ref": "#/$defs/Book"}, "title": {"type": "string", "default": "x"}},
                "required": ["book"],
                "additionalProperties": False,
                "$defs": {
                    "Book": {
                        "type": "object",
                        "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "default": 1}},
                        "required": ["title"],
                    }
                },
            },
        },
    }


def test_titles_that_pydantic_made_in_a_given_schema_go_too() -> None:
    tool = from_schema("lend", "Lends.", Book.model_json_schema())
    assert chat_form(tool)["function"]["parameters"] == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "default": 1}},
        "required": ["title"],
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"title": "T", "type": "string"}, {"type": "string"}),
        ({"properties": {"title": {"title": "T"}}}, {"properties": {"title": {}}}),
        ({"properties": {"title": True}}, {"properties": {"title": True}}),
        ({"$defs": {"title": {"title": "T"}}}, {"$defs": {"title": {}}}),
        ({"anyOf": [{"title": "T"}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        ({"items": {"title": "T"}}, {"items": {}}),
        ({"not": {"allOf": [{"title": "T"}]}}, {"not": {"allOf": [{}]}}),
        ({"additionalProperties": {"title": "T"}}, {"additionalProperties": {}}),
        ({"default": {"title": "T"}}, {"default": {"title": "T"}}),
        ({"const": {"title": "T"}}, {"const": {"title": "T"}}),
        ({"enum": [{"title": "T"}]}, {"enum": [{"title": "T"}]}),
        ({"examples": [{"title": "T"}]}, {"examples": [{"title": "T"}]}),
        ({"required": ["title"]}, {"required": ["title"]}),
    ],
)
def test_the_keyword_title_goes_and_what_only_looks_like_it_stays(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert drop_titles(schema) == expected


@pytest.mark.parametrize(
    "form",
    [
        {"type": "function", "function": {"name": "f", "description": "F.", "parameters": PARAMETERS}},
        {"type": "function", "name": "f", "description": "F.", "parameters": PARAMETERS, "strict": True},
    ],
)
def test_the_nested_and_the_flat_form_say_the_same(form: dict[str, Any]) -> None:
    assert read_chat_form(form, "tool 'f'") == ChatForm(name="f", description="F.", parameters=PARAMETERS)


def test_fields_missing_from_a_form_are_empty() -> None:
    nothing = ChatForm(name="", description="", parameters={"type": "object", "properties": {}})
    assert read_chat_form({"type": "function"}, "tool 'f'") == nothing
    assert read_chat_form({"type": "function", "function": {"name": None}}, "tool 'f'") == nothing


WANTED = '{"type": "function", "function": {"name": ..., "description": ..., "parameters": {"type": "object", ...}}}'


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("f", f"tool 'f': json_schema='f' is not a dict: write {WANTED}"),
        ({}, f'tool \'f\': json_schema lacks "type": "function": write {WANTED}.'),
        (
            PARAMETERS,
            f'tool \'f\': json_schema lacks "type": "function": write {WANTED}. This looks like the parameters alone.',
        ),
        (
            {"type": "function", "function": 3},
            f"tool 'f': \"function\" in json_schema must be a dict, not 3: write {WANTED}",
        ),
        ({"type": "function", "parameters": []}, "tool 'f': \"parameters\" in json_schema must be a dict, not []"),
        ({"type": "function", "name": 5}, "tool 'f': 'name' in json_schema must be a string, not 5"),
    ],
)
def test_any_other_form_is_a_type_error(form: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"^{re.escape(message)}$") as caught:
        read_chat_form(form, "tool 'f'")
    assert isinstance(caught.value, TypeError)
