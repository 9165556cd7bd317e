"""Schemas that strangers could send to harm a host, each with arguments that set it off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
EVIL = "^(a+)+$"
PUMP = {"a": "a" * 28 + "b"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bomb:
    """A schema, and arguments for it."""

    schema: Mapping[str, Any]
    arguments: Mapping[str, Any]


def taking(node: Any, **more: Any) -> dict[str, Any]:
    """A schema of arguments of which `a` is the only one."""
    return {"type": "object", "properties": {"a": node}, **more}


def ladder(key: str, fan: int = 2, rungs: int = 30, *, last: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Definitions of which each applies the next one several times to the same value."""
    steps = {f"l{rung}": {key: [{"$ref": f"#/$defs/l{rung + 1}"}] * fan} for rung in range(rungs)}
    end = {"type": "string"} if last is None else last
    return taking({"$ref": "#/$defs/l0"}, **{"$defs": {**steps, f"l{rungs}": end}})


def nested(levels: int) -> dict[str, Any]:
    """A schema with so many schemas inside each other."""
    return taking(reduce(lambda inner, _: {"properties": {"x": inner}}, range(levels), dict[str, Any]()))


BOMBS: dict[str, Bomb] = {
    "a pattern that backtracks": Bomb(schema=taking({"pattern": EVIL}), arguments=PUMP),
    "a pattern under another draft": Bomb(schema=taking({"pattern": EVIL}, **{"$schema": DRAFT_7}), arguments=PUMP),
    "a pattern under an inner draft": Bomb(schema=taking({"$schema": DRAFT_7, "pattern": EVIL}), arguments=PUMP),
    "a pattern inside of a default": Bomb(
        schema=taking({"$ref": "#/default/x"}, default={"x": {"$schema": DRAFT_7, "pattern": EVIL}}), arguments=PUMP
    ),
    "names by a pattern that backtracks": Bomb(
        schema={"type": "object", "patternProperties": {EVIL: True}, "additionalProperties": False},
        arguments={"a" * 28 + "b": 1},
    ),
    "names by a pattern, and unevaluated ones": Bomb(
        schema={"type": "object", "patternProperties": {EVIL: True}, "unevaluatedProperties": False},
        arguments={"a" * 28 + "b": 1},
    ),
    "a pattern of a billion states": Bomb(
        schema=taking({"pattern": "((a{1000}){1000}){1000}"}), arguments={"a": "a" * 100_000}
    ),
    "many large patterns": Bomb(
        schema={"type": "object", "properties": {f"p{n}": {"pattern": rf"\p{{L}}{{60}}{n}"} for n in range(500)}},
        arguments=PUMP,
    ),
    "a large pattern on a long text": Bomb(
        schema=taking({"pattern": "[ab]*a[ab]{20000}c"}), arguments={"a": "ab" * 400_000}
    ),
    "distinct objects": Bomb(
        schema=taking({"uniqueItems": True}), arguments={"a": [{"n": number} for number in range(3_000)]}
    ),
    "distinct values of many types": Bomb(
        schema=taking({"uniqueItems": True}),
        arguments={"a": [[number] if number % 2 else {"n": number} for number in range(80_000)]},
    ),
    "a long text that each rung compares with choices": Bomb(
        schema=ladder("anyOf", rungs=12, last={"enum": ["q", 1]}), arguments={"a": "x" * 900_000}
    ),
    "a large integer that each rung refuses": Bomb(
        schema=ladder("anyOf", rungs=12, last={"type": "boolean"}), arguments={"a": 10**4_000}
    ),
    "a long name that each rung refuses": Bomb(
        schema=ladder("oneOf", rungs=12, last={"propertyNames": {"type": "null"}}),
        arguments={"a": {"k" * 900_000: 1}},
    ),
    "a distinct enumeration in an old draft": Bomb(
        schema={
            "$schema": DRAFT_4,
            **taking({"enum": [[number] if number % 2 else {"n": number} for number in range(4_000)]}),
        },
        arguments={"a": 1},
    ),
    "a ladder of anyOf": Bomb(schema=ladder("anyOf"), arguments={"a": 1}),
    "a ladder of oneOf": Bomb(schema=ladder("oneOf"), arguments={"a": "x"}),
    "a ladder of allOf": Bomb(schema=ladder("allOf"), arguments={"a": "x"}),
    "a wide ladder": Bomb(schema=ladder("anyOf", 100, 4), arguments={"a": 1}),
    "unevaluated properties over a ladder": Bomb(
        schema={**ladder("allOf"), "properties": {"a": {"$ref": "#/$defs/l0", "unevaluatedProperties": False}}},
        arguments={"a": {"b": 1}},
    ),
    "unevaluated items of a long array": Bomb(
        schema=taking({"unevaluatedItems": {"type": "string"}}), arguments={"a": list(range(100_000))}
    ),
    "a schema that is itself": Bomb(schema={"type": "object", "$ref": "#"}, arguments={}),
    "a schema that holds itself in place": Bomb(schema={"type": "object", "allOf": [{"$ref": "#"}]}, arguments={}),
    "a dynamic schema that is itself": Bomb(
        schema={"type": "object", "$dynamicRef": "#x", "$dynamicAnchor": "x"}, arguments={}
    ),
    "an anchor that leads to itself": Bomb(
        schema=taking({"$ref": "#x"}, **{"$defs": {"x": {"$anchor": "x", "allOf": [{"$ref": "#x"}]}}}),
        arguments={"a": 1},
    ),
    "an anchor in a large schema": Bomb(
        schema=taking(
            {"items": {"$ref": "#x"}},
            **{"$defs": {"x": {"$anchor": "x", "type": "string"}, **{f"d{n}": {"type": "null"} for n in range(5_000)}}},
        ),
        arguments={"a": [1] * 3_000},
    ),
    "a multiple of a huge integer": Bomb(schema=taking({"multipleOf": 10**300}), arguments={"a": 1.5}),
    "a multiple beyond every double": Bomb(schema=taking({"multipleOf": 10**400}), arguments={"a": 1.5}),
    "a multiple of the smallest number": Bomb(schema=taking({"multipleOf": 5e-324}), arguments={"a": 1e308}),
    "a huge multiple of a tiny number": Bomb(schema=taking({"multipleOf": 1e-300}), arguments={"a": 10**4_000}),
    "a text of a billion characters": Bomb(
        schema=taking({"type": "string", "minLength": 10**9}, required=["a"]), arguments={"a": "x"}
    ),
    "a huge enumeration of each item": Bomb(
        schema=taking({"type": "array", "items": {"enum": list(range(15_000))}}), arguments={"a": [-1] * 5_000}
    ),
    "a large constant, compared often": Bomb(
        schema=taking({"anyOf": [{"$ref": "#/$defs/c"}] * 2_000}, **{"$defs": {"c": {"const": [list(range(9_000))]}}}),
        arguments={"a": [[*range(8_999), 0]]},
    ),
    "a large value shown often": Bomb(
        schema=taking({"anyOf": [{"type": "string", "minLength": number} for number in range(3_000)]}),
        arguments={"a": list(range(150_000))},
    ),
    "a large value under not": Bomb(
        schema=taking({"anyOf": [{"not": {"type": "array"}, "minItems": number} for number in range(3_000)]}),
        arguments={"a": ["x" * 1_000] * 900},
    ),
    "thousands of required names in each item": Bomb(
        schema=taking({"items": {"required": [f"n{number}" for number in range(9_000)]}}), arguments={"a": [{}] * 3_000}
    ),
    "unknown names refused often": Bomb(
        schema=taking({"anyOf": [{"additionalProperties": False, "minProperties": n} for n in range(3_000)]}),
        arguments={"a": {f"k{number}": 1 for number in range(50_000)}},
    ),
    "names that are near thousands of others": Bomb(
        schema={
            "type": "object",
            "properties": {f"prop_{number}": True for number in range(9_000)},
            "additionalProperties": False,
        },
        arguments={f"propx_{number}": 1 for number in range(2_000)},
    ),
    "a long unknown name": Bomb(schema=taking(True, additionalProperties=False), arguments={"x" * 500_000: 1}),
    "a long enumeration": Bomb(schema=taking({"enum": ["x" * 30_000] * 30}), arguments={"a": 1}),
    "a schema 200 levels deep": Bomb(schema=nested(200), arguments={"a": 1}),
    "a schema 100,000 levels deep": Bomb(schema=nested(100_000), arguments={"a": 1}),
    "another document": Bomb(schema=taking({"$ref": "https://example.com/a.json"}), arguments={"a": 1}),
    "a file": Bomb(schema=taking({"$dynamicRef": "file:///etc/passwd"}), arguments={"a": 1}),
    "an index that is not a number": Bomb(schema=taking({"$ref": "#/anyOf/x"}), arguments={"a": 1}),
    "an anchor that is not there": Bomb(schema=taking({"$ref": "#nowhere"}), arguments={"a": 1}),
    "a broken identifier": Bomb(
        schema=taking({"$id": "http://[", "properties": {"x": {"$ref": "#/y"}}}), arguments={"a": {"x": 1}}
    ),
    "a number that is not one": Bomb(schema=taking({"minimum": float("nan")}), arguments={"a": 1}),
    "a lone surrogate": Bomb(schema=taking({"pattern": "^\ud800"}), arguments={"a": "\ud83d"}),
    "arrays inside each other": Bomb(
        schema=taking({"items": {"$ref": "#/properties/a"}}), arguments={"a": json.loads("[" * 60 + "]" * 60)}
    ),
    "thousands of wrong items": Bomb(schema=taking({"items": {"type": "string"}}), arguments={"a": list(range(4_000))}),
}
"""At most 1 MB each, schema and arguments."""
