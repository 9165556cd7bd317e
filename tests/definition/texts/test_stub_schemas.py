"""Stubs of tools known by schemas such as servers and OpenAPI documents bring them."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from toolwire.definition.from_schema import from_schema
from toolwire.definition.renderings.stub import STUB_LIMIT, stub

ADDRESS = {
    "type": "object",
    "description": "A postal address",
    "properties": {"street": {"type": "string"}, "zip": {"type": "string", "description": "Five digits"}},
    "required": ["street"],
}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "any_of_scalars": (
        {
            "properties": {"id": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "Key or number"}},
            "required": ["id"],
        },
        '''\
def any_of_scalars(id: str | int):
    """
    Args:
        id: Key or number
    """
    pass''',
    ),
    "one_of_objects": (
        {
            "properties": {
                "to": {
                    "oneOf": [
                        {"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]},
                        {"type": "object", "properties": {"phone": {"type": "string"}}},
                    ]
                }
            }
        },
        '''\
def one_of_objects(to: dict = ...):
    """
    Args:
        to: dict with these fields:
            - form 1:
                - email: str
            - form 2:
                - phone: str, optional
    """
    pass''',
    ),
    "all_of": (
        {
            "properties": {
                "user": {
                    "allOf": [
                        {"$ref": "#/$defs/Base"},
                        {"properties": {"role": {"enum": ["admin", "guest"]}}, "required": ["role"]},
                    ]
                }
            },
            "required": ["user"],
            "$defs": {"Base": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
        },
        '''\
def all_of(user: dict):
    """
    Args:
        user: dict with these fields:
            - name: str
            - role: Literal['admin', 'guest']
    """
    pass''',
    ),
    "reference_used_once": (
        {"properties": {"home": {"$ref": "#/$defs/Address"}}, "$defs": {"Address": ADDRESS}},
        '''\
def reference_used_once(home: dict = ...):
    """
    Args:
        home: dict with these fields:
            - street: str
            - zip: str, optional - Five digits
    """
    pass''',
    ),
    "reference_used_twice": (
        {
            "properties": {
                "home": {"$ref": "#/$defs/Address"},
                "work": {"$ref": "#/$defs/Address", "description": "Where they work"},
            },
            "required": ["home"],
            "$defs": {"Address": ADDRESS},
        },
        '''\
def reference_used_twice(home: dict, work: dict = ...):
    """
    Args:
        home: Address
        work: Where they work (Address)

    Types:
        Address: A postal address
            - street: str
            - zip: str, optional - Five digits
    """
    pass''',
    ),
    "recursive": (
        {
            "properties": {"tree": {"$ref": "#/definitions/tree-node"}},
            "definitions": {
                "tree-node": {
                    "type": "object",
                    "properties": {
                        "label": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/definitions/tree-node"}},
                    },
                    "required": ["label"],
                }
            },
        },
        '''\
def recursive(tree: dict = ...):
    """
    Args:
        tree: tree_node

    Types:
        tree_node: dict with these fields:
            - label: str
            - children: list[tree_node], optional
    """
    pass''',
    ),
    "recursive_in_two_steps": (
        {
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {
                "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
                "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "n": {"type": "integer"}}},
            },
        },
        '''\
def recursive_in_two_steps(a: dict = ...):
    """
    Args:
        a: A

    Types:
        A: dict with these fields:
            - b: dict, optional
                - a: A, optional
                - n: int, optional
    """
    pass''',
    ),
    "recursive_root": (
        {"properties": {"and": {"type": "array", "items": {"$ref": "#"}}, "field": {"type": "string"}}},
        '''\
def recursive_root(and_: list[dict] = ..., field: str = ...):
    """
    Args:
        and_: list[Arguments]

    Types:
        Arguments: dict with these fields:
            - and: list[Arguments], optional
            - field: str, optional
    """
    pass''',
    ),
    "mixed_enumeration": (
        {"properties": {"level": {"enum": ["low", 2, 3.5, True, None]}}},
        """\
def mixed_enumeration(level: Literal['low', 2, 3.5, True, None] = ...):
    pass""",
    ),
    "constant": (
        {"properties": {"kind": {"const": "file"}, "version": {"const": 2}}, "required": ["kind"]},
        """\
def constant(kind: Literal['file'], version: Literal[2] = ...):
    pass""",
    ),
    "pattern_properties": (
        {
            "properties": {
                "headers": {
                    "type": "object",
                    "patternProperties": {"^X-": {"type": "string"}},
                    "additionalProperties": False,
                    "description": "Sent along",
                }
            }
        },
        '''\
def pattern_properties(headers: dict[str, str] = ...):
    """
    Args:
        headers: Sent along (keys match ^X-)
    """
    pass''',
    ),
    "map": (
        {
            "properties": {
                "scores": {"type": "object", "additionalProperties": {"type": "number"}},
                "homes": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
            }
        },
        '''\
def map_(scores: dict[str, float] = ..., homes: dict[str, dict] = ...):
    """
    Args:
        homes: dict[str, dict] with these fields:
            - city: str, optional
    """
    pass''',
    ),
    "tuple": (
        {
            "properties": {
                "point": {
                    "type": "array",
                    "prefixItems": [{"type": "number"}, {"type": "number"}],
                    "description": "Where",
                },
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            }
        },
        '''\
def tuple_(point: list[float] = ..., pair: list[str | int] = ...):
    """
    Args:
        point: Where (in order: float, float)
        pair: in order: str, int
    """
    pass''',
    ),
    "nullable_type_list": (
        {
            "properties": {
                "note": {"type": ["string", "null"], "default": None},
                "n": {"type": ["integer", "string"], "default": 3},
            }
        },
        """\
def nullable_type_list(note: str | None = None, n: int | str = 3):
    pass""",
    ),
    "optional_object": (
        {
            "properties": {
                "page": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {
                                "size": {"type": "integer", "default": 20, "description": "Rows"},
                                "token": {"type": "string"},
                            },
                        },
                        {"type": "null"},
                    ]
                }
            }
        },
        '''\
def optional_object(page: dict | None = ...):
    """
    Args:
        page: dict | None with these fields:
            - size: int = 20 - Rows
            - token: str, optional
    """
    pass''',
    ),
    "deep_nesting": (
        {
            "properties": {
                "a": {
                    "type": "object",
                    "properties": {
                        "b": {
                            "type": "object",
                            "properties": {
                                "c": {
                                    "type": "object",
                                    "properties": {"d": {"type": "object", "properties": {"e": {"type": "string"}}}},
                                }
                            },
                        }
                    },
                }
            }
        },
        '''\
def deep_nesting(a: dict = ...):
    """
    Args:
        a: dict with these fields:
            - b: dict, optional
                - c: dict, optional
                    - d: dict, optional
                        - e: str, optional
    """
    pass''',
    ),
    "huge_enumeration": (
        {
            "properties": {
                "country": {"enum": [f"C{n:03}" for n in range(250)], "description": "Code"},
                "size": {"enum": list(range(21))},
            }
        },
        '''\
def huge_enumeration(country: str = ..., size: int = ...):
    """
    Args:
        country: Code (one of 'C000', 'C001', 'C002', 'C003', 'C004', 'C005', 'C006', 'C007', 'C008', 'C009', 'C010', 'C011', 'C012', 'C013', 'C014', 'C015', 'C016', 'C017', 'C018', 'C019', ... (250 in all))
        size: one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, ... (21 in all)
    """
    pass''',  # noqa: E501 - the text as it is
    ),
    "names_no_program_can_write": (
        {
            "properties": {
                "class": {"type": "string"},
                "user-id": {"type": "integer"},
                "$filter": {"type": "string", "default": 'a "b"'},
            },
            "required": ["class"],
        },
        """\
def names_no_program_can_write(class_: str, user_id: int = ..., _filter: str = 'a "b"'):
    pass""",
    ),
    "list_of_lists": (
        {
            "properties": {
                "rows": {
                    "type": "array",
                    "items": {
                        "type": "array",
                        "items": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
                    },
                    "default": [],
                }
            }
        },
        """\
def list_of_lists(rows: list[list[str | float | None]] = []):
    pass""",
    ),
    "no_types_at_all": (
        {"properties": {"data": {}, "more": True, "shape": {"properties": {"x": {}}}}},
        '''\
def no_types_at_all(data: Any = ..., more: Any = ..., shape: dict = ...):
    """
    Args:
        shape: dict with these fields:
            - x: Any, optional
    """
    pass''',
    ),
    "two_types_of_one_name": (
        {
            "properties": {
                "a": {"$ref": "#/$defs/v1/Item"},
                "b": {"$ref": "#/$defs/v1/Item"},
                "c": {"$ref": "#/$defs/v2/Item"},
                "d": {"$ref": "#/$defs/v2/Item"},
            },
            "$defs": {
                "v1": {"Item": {"type": "object", "properties": {"x": {"type": "integer"}}}},
                "v2": {"Item": {"type": "object", "properties": {"y": {"type": "integer"}}}},
            },
        },
        '''\
def two_types_of_one_name(a: dict = ..., b: dict = ..., c: dict = ..., d: dict = ...):
    """
    Args:
        a: Item
        b: Item
        c: Item_2
        d: Item_2

    Types:
        Item: dict with these fields:
            - x: int, optional
        Item_2: dict with these fields:
            - y: int, optional
    """
    pass''',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_schema_is_a_function_with_every_type_said_once(name: str) -> None:
    schema, expected = CASES[name]
    text = stub(from_schema(name, "", {"type": "object", **schema}))
    assert text == expected
    ast.parse(text)


def test_the_same_schema_gives_the_same_text_whatever_was_described_before() -> None:
    schemas = [{"type": "object", **schema} for schema, _ in CASES.values()]
    texts = [stub(from_schema("f", "", schema)) for schema in schemas]
    assert texts[::-1] == [stub(from_schema("f", "", schema)) for schema in reversed(schemas)]


def test_a_docstring_too_long_is_cut_at_a_line_and_says_so() -> None:
    properties = {f"field_{n}": {"type": "string", "description": f"What field {n} is for. " * 4} for n in range(100)}
    text = stub(from_schema("f", "Does it. " * 1_000, {"type": "object", "properties": properties}))
    docstring = ast.get_docstring(ast.parse(text).body[0])  # type: ignore[arg-type]
    assert docstring is not None
    lines = docstring.split("\n")
    assert lines[:4] == ["Does it. " * 176 + "Does it.", "... (7,408 more characters are left out here)", "", "Args:"]
    assert lines[4] == f"    field_0: {'What field 0 is for. ' * 4}"
    assert lines[-1].endswith("more characters are left out here)")
    assert len(docstring) <= STUB_LIMIT + 100


def test_a_thousand_shared_types_are_described_in_bounded_time_and_space() -> None:
    names = [f"T{n}" for n in range(1_000)]
    types = {
        name: {"type": "object", "properties": {other: {"$ref": f"#/$defs/{other}"} for other in names[n : n + 5]}}
        for n, name in enumerate(names)
    }
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/T0"}}, "$defs": types}
    assert len(stub(from_schema("f", "", schema))) <= STUB_LIMIT + 1_000
