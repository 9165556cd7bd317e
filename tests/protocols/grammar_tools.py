"""Tools whose schemas have every keyword that a grammar holds."""

from __future__ import annotations

import datetime
import random
import uuid
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool


class Colour(Enum):
    RED = "red"
    NONE = None
    THREE = 3


class Node(BaseModel):
    name: str
    children: list[Node] = []
    parent: Node | None = None


class Address(TypedDict):
    street: str
    number: int | None


def search(query: str, limit: int = 10, exact: bool = False) -> list[dict[str, Any]]:
    """Search."""
    raise NotImplementedError


def now() -> str:
    """The time."""
    raise NotImplementedError


def order(
    when: datetime.datetime,
    day: datetime.date,
    key: uuid.UUID,
    price: float,
    address: Address,
    colours: list[Colour],
    weights: dict[str, float],
    pair: tuple[int, str] = (1, "a"),
    wait: datetime.timedelta | None = None,
    picture: bytes = b"",
    tags: Annotated[set[str], Field(max_length=3)] = set(),  # noqa: B006 - never changed
) -> None:
    """Order."""


def grow(tree: Node, mode: Literal["deep", "wide", "it's", ""] = "deep") -> None:
    """Grow a tree."""


def place(x: int, /, *, height: Annotated[float, Field(gt=0, le=2.5)], steps: int = 1) -> None:
    """Place it."""


BOUNDS = from_schema(
    "bounds/all",
    "Takes bounded values.",
    {
        "type": "object",
        "properties": {
            "page": {"type": "integer", "minimum": 1, "maximum": 250},
            "below": {"type": "integer", "maximum": -7},
            "between": {"type": "number", "minimum": -1.25, "exclusiveMaximum": 3.5},
            "share": {"type": "number", "minimum": 0.1, "maximum": 0.95},
            "even": {"type": "integer", "multipleOf": 2, "minimum": -3},
            "price": {"type": "number", "multipleOf": 0.01, "minimum": 1},
            "title": {"type": "string", "minLength": 2, "maxLength": 9},
            "long": {"type": "string", "minLength": 70, "maxLength": 700},
            "slug": {"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$", "maxLength": 20},
            "part": {"type": "string", "pattern": "v\\d+"},
            "quoted": {"type": "string", "pattern": "^[\"'\\\\]{1,4}$"},
            "fixed": {"const": "a]b'c\"d\\e"},
            "few": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
            "none": {"type": "array", "maxItems": 0},
            "kinds": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "last-name": {"type": "string"},
            "2nd value": {"type": "boolean"},
        },
        "required": ["page", "few", "last-name"],
        "additionalProperties": False,
    },
)
SHAPES = from_schema(
    "shapes",
    "Takes joined schemas.",
    {
        "type": "object",
        "$defs": {
            "filter": {
                "anyOf": [
                    {"$ref": "#/$defs/leaf"},
                    {
                        "type": "object",
                        "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/filter"}, "minItems": 1}},
                        "required": ["and"],
                        "additionalProperties": False,
                    },
                ]
            },
            "leaf": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "value": {"type": ["string", "number", "null"]}},
                "required": ["field"],
                "additionalProperties": False,
            },
        },
        "properties": {
            "filter": {"$ref": "#/$defs/filter"},
            "both": {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
                ]
            },
            "either": {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "array", "items": {"type": "integer"}}]},
            "settings": {"type": "object", "propertyNames": {"pattern": "^[a-z]{3,9}$"}, "maxProperties": 1},
            "anything": {},
            "listed": {"enum": ["x", 1, 2.5, True, None]},
            "optional": {
                "type": "object",
                "properties": {"one": {"type": "string"}, "two": {"type": "null"}, "three": {"type": "boolean"}},
            },
        },
    },
)

FUNCTIONS = [from_function(function) for function in (search, now, order, grow, place)]
TOOLS: list[Tool] = [*FUNCTIONS, BOUNDS, SHAPES]


def sampled(tool: Tool, chance: random.Random) -> dict[str, Any]:
    """Arguments that a careful model might give to the tool: required ones in order, then some of the others."""
    ordered = sorted(tool.visible_parameters, key=lambda parameter: not parameter.required)
    chosen = [parameter for parameter in ordered if parameter.required or chance.random() < 0.5]
    return {parameter.name: SAMPLES[parameter.name](chance) for parameter in chosen}


def _words(chance: random.Random) -> str:
    return " ".join(chance.choice(["Oslo", "it's", "数据", '"x"', "a\\b", "a\nb", "<b>", "[1]", "é"]) for _ in range(3))


def _pick(*values: Any) -> Any:
    return lambda chance: chance.choice(values)


SAMPLES: dict[str, Any] = {
    "query": _words,
    "limit": _pick(0, 5, -3, 10**12),
    "exact": _pick(True, False),
    "when": _pick("2026-03-01T09:00:00", "2026-12-31 23:59:59Z"),
    "day": _pick("2026-02-28", "2026-07-31"),
    "key": _pick("00000000-0000-4000-8000-0000000000ab"),
    "price": _pick(1.25, 3),
    "address": _pick({"street": "Main", "number": None}, {"street": "", "number": 3}),
    "colours": _pick([], ["red"], ["red", None, 3]),
    "weights": _pick({}, {"a": 0.5, "b": 2}),
    "pair": _pick([1, "a"]),
    "wait": _pick(None, "PT10M"),
    "picture": _pick("", "aGVsbG8="),
    "tags": _pick([], ["a", "b"]),
    "tree": _pick({"name": "a"}, {"name": "a", "children": [{"name": "b", "children": []}], "parent": None}),
    "mode": _pick("deep", "it's", ""),
    "x": _pick(1, 0),
    "height": _pick(0.5, 2.5, 1, 2.125),
    "steps": _pick(1),
    "page": _pick(1, 19, 250),
    "below": _pick(-7, -1000),
    "between": _pick(-1.25, 0, 3.49, -0.5),
    "share": _pick(0.1, 0.5, 0.95, 0.123),
    "even": _pick(-2, 0, 100),
    "title": lambda chance: _words(chance)[:9],
    "long": lambda chance: _words(chance).replace("'", "").ljust(80, "x"),
    "slug": _pick("a", "ab-c1"),
    "part": _pick("v1", "at v22 now"),
    "quoted": _pick('\\"'),
    "fixed": _pick("a]b'c\"d\\e"),
    "few": _pick([1, 2], [1, -2, 3]),
    "none": _pick([]),
    "kinds": _pick([], ["a", "c"]),
    "grid": _pick([], [[]]),
    "last-name": _words,
    "2nd value": _pick(True),
    "filter": _pick({"field": "a"}, {"and": [{"field": "a", "value": 1}, {"and": [{"field": "b"}]}]}),
    "both": _pick({"a": 1, "b": True}),
    "either": _pick(3, [], [1]),
    "settings": _pick({}, {"abc": 1}),
    "anything": _pick(None, [1, "a"], {"a": {"b": 1}}),
    "listed": _pick("x", 1, 2.5, True, None),
    "optional": _pick({}, {"two": None}, {"one": "a", "three": False}),
}
