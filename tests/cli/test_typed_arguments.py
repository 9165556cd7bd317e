"""`key=value` by a schema."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.cli.exit_codes import ExitCode, Stop
from toolwire.cli.typed_arguments import read_object, read_pairs, read_value

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NULL = {"type": "null"}
LIST = {"type": "array", "items": STRING}
OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("10", STRING, "10"),
        ("true", STRING, "true"),
        ("null", STRING, "null"),
        ('["a"]', STRING, '["a"]'),
        ('"quoted"', STRING, '"quoted"'),
        ("", STRING, ""),
        ("10", INTEGER, 10),
        ("-3", INTEGER, -3),
        ("1e3", INTEGER, 1000.0),
        ("3.5", INTEGER, "3.5"),
        ("ten", INTEGER, "ten"),
        ("9" * 5000, INTEGER, "9" * 5000),
        ("3.5", NUMBER, 3.5),
        ("3", NUMBER, 3),
        ("NaN", NUMBER, "NaN"),
        ("true", BOOLEAN, True),
        ("yes", BOOLEAN, "yes"),
        ("1", BOOLEAN, "1"),
        ("true", INTEGER, "true"),
        ("null", {"anyOf": [INTEGER, NULL]}, None),
        ("null", {"anyOf": [STRING, NULL]}, None),
        ("null", INTEGER, "null"),
        ("7", {"anyOf": [INTEGER, NULL]}, 7),
        ("7", {"type": ["integer", "null"]}, 7),
        ("0.10", {"anyOf": [NUMBER, STRING]}, "0.10"),
        ("007", {"anyOf": [INTEGER, STRING]}, "007"),
        ('["a", "b"]', LIST, ["a", "b"]),
        ("a,b", LIST, "a,b"),
        ('["a"]', {"anyOf": [STRING, LIST]}, ["a"]),
        ('{"a": 1}', OBJECT, {"a": 1}),
        ('{"a": NaN}', OBJECT, '{"a": NaN}'),
        ("[" * 100_000, LIST, "[" * 100_000),
        ("2", {"enum": [1, 2]}, 2),
        ("2", {"enum": ["1", "2"]}, "2"),
        ("2", {"const": 2}, 2),
        ("12", {}, 12),
        ("text", {}, "text"),
        ("red", {"$ref": "#/$defs/Colour"}, "red"),
        ('{"next": null}', {"$ref": "#/$defs/Node"}, {"next": None}),
        ("5", {"$ref": "#/$defs/Missing"}, 5),
        ("5", {"$ref": "#/$defs/Loop"}, "5"),
        ("5", {"allOf": [{"$ref": "#/$defs/Count"}]}, 5),
    ],
)
def test_a_text_is_read_by_what_the_schema_wants(text: str, schema: dict[str, Any], value: object) -> None:
    root = {
        "$defs": {
            "Colour": {"enum": ["red", "green"], "type": "string"},
            "Node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL]}}},
            "Loop": {"$ref": "#/$defs/Loop"},
            "Count": INTEGER,
        }
    }
    read = read_value(text, schema, root)
    assert (read, type(read)) == (value, type(value))


def test_a_value_may_hold_equals_signs_and_spaces() -> None:
    assert read_pairs(["query=a = b", "empty="], {"properties": {"query": STRING}}) == {"query": "a = b", "empty": ""}


def test_a_key_that_the_tool_does_not_know_stays_text() -> None:
    assert read_pairs(["limt=3"], {"properties": {"limit": INTEGER}}) == {"limt": "3"}


def test_further_keys_are_read_by_the_schema_for_them() -> None:
    schema = {"properties": {}, "additionalProperties": INTEGER}
    assert read_pairs(["more=3"], schema) == {"more": 3}


@pytest.mark.parametrize(
    ("pairs", "message", "hint"),
    [
        (["limit"], "'limit' is not a key=value argument", "Write key=value, as limit=3."),
        (["=3"], "'=3' is not a key=value argument", "Write key=value, as limit=3."),
        (["a=1", "a=2"], "'a' is given twice", """Write a list as JSON: a='["a", "b"]'."""),
    ],
)
def test_an_argument_without_an_equals_sign_is_wrong_usage(pairs: list[str], message: str, hint: str) -> None:
    with pytest.raises(Stop) as stopped:
        read_pairs(pairs, {})
    assert (stopped.value.code, stopped.value.message, stopped.value.hint) == (ExitCode.WRONG_USAGE, message, hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a.json is not JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        ("", "a.json is not JSON: line 1, column 1: Expecting value"),
        ('{"a": NaN}', "a.json is not JSON: NaN is not JSON"),
        ("[1]", "a.json holds array, not an object"),
    ],
)
def test_json_that_is_not_an_object_is_wrong_usage(text: str, message: str) -> None:
    with pytest.raises(Stop) as stopped:
        read_object(text, place="a.json")
    assert (stopped.value.code, stopped.value.message) == (ExitCode.WRONG_USAGE, message)
