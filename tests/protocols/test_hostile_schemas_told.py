"""A stranger's schema costs little in every text that is made of it, and no prompt fails because of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from tests.definition.json_schema.hostile_schemas import BOMBS, ladder, taking
from tests.processor import seconds
from toolwire import protocols
from toolwire.definition.chat_form import chat_form
from toolwire.definition.from_schema import from_schema
from toolwire.definition.renderings.describe import docstring_text, prompt_text
from toolwire.definition.renderings.stub import compact_stub, stub
from toolwire.definition.tool import Tool
from toolwire.protocols.native.strict_schema import strict_problems, without_nulls
from toolwire.protocols.reading.repair import fit_arguments

SECONDS = 5.0
"""Seconds of the processor for one text: twice the bound, since a busy machine takes more for the same work."""


def definitions(count: int, node: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """A ladder of definitions, each made of a reference to the next."""
    steps = {f"l{rung}": node(f"#/$defs/l{rung + 1}") for rung in range(count)}
    return taking({"$ref": "#/$defs/l0"}, **{"$defs": {**steps, f"l{count}": {"type": "string"}}})


def fields(reference: str) -> dict[str, Any]:
    names = [f"p{number}" for number in range(60)]
    return {"type": "object", "properties": {name: {"$ref": reference} for name in names}, "required": names}


def shared(node: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"p{number}": {"$ref": "#/$defs/d"} for number in range(3_000)},
        "$defs": {"d": node},
    }


SCHEMAS: dict[str, Mapping[str, Any]] = {
    "a wide ladder": ladder("anyOf", 100, 4),
    "a ladder of allOf": ladder("allOf", 20, 8),
    "a ladder of objects": definitions(6, fields),
    "a ladder of tuples": definitions(
        6, lambda reference: {"type": "array", "prefixItems": [{"$ref": reference}] * 60}
    ),
    "a text that thousands share": shared({"type": "string", "description": "x" * 900_000}),
    "an enumeration that thousands share": shared({"enum": [f"{'x' * 40_000}{number}" for number in range(20)]}),
    "thousands of properties": BOMBS["names that are near thousands of others"].schema,
    "a text of a billion characters": BOMBS["a text of a billion characters"].schema,
    "a dynamic schema that is itself": BOMBS["a dynamic schema that is itself"].schema,
    "a property of any value": BOMBS["a long unknown name"].schema,
}

TEXTS: dict[str, Callable[[Tool], object]] = {
    "stub": stub,
    "compact stub": compact_stub,
    "docstring": docstring_text,
    "prompt": prompt_text,
    "chat form": chat_form,
    "strict problems": strict_problems,
    "fitted arguments": lambda tool: fit_arguments({"a": [{"a": "[1]"}] * 20}, tool.input_schema),
    "arguments without nulls": lambda tool: without_nulls(tool, {"a": [{"b": None}] * 20}),
    **{
        f"description of {name}": lambda tool, name=name: protocols.get(name).describe([tool])
        for name in protocols.names()
    },
    **{
        f"grammar of {name}": lambda tool, name=name: protocols.get(name).grammar([tool])
        for name in ("attp", "xml", "json")
    },
}


@pytest.mark.threat(68)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_hostile_schema_costs_little_in_every_text(name: str, whole: bool) -> None:
    tool = from_schema("stranger", "Adds.", SCHEMAS[name], None, lambda **given: given)
    # Each schema takes another third of the texts; all of them take a minute.
    first, step = (0, 1) if whole else (list(SCHEMAS).index(name) % 3, 3)
    for text, write in list(TEXTS.items())[first::step]:
        assert seconds(partial(write, tool), enough=SECONDS) <= SECONDS, text


def test_a_schema_of_some_references_is_told_whole() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{number}": {"$ref": "#/$defs/city"} for number in range(100)},
        "$defs": {"city": {"enum": ["Oslo", "Lima"]}},
    }
    tool = from_schema("stranger", "Adds.", schema, None, lambda **given: given)
    assert stub(tool).count("Literal['Oslo', 'Lima']") == 100
