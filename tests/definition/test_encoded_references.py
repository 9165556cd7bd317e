"""A reference in percent-encoding leads to the same place in texts, grammars and errors as in the check."""

from __future__ import annotations

import pytest

from toolwire.definition.from_schema import from_schema
from toolwire.definition.renderings.stub import stub
from toolwire.definition.shape import Invalid
from toolwire.protocols import get


def tool(key: str, reference: str):
    schema = {
        "type": "object",
        "properties": {"size": {"$ref": reference}},
        "required": ["size"],
        "$defs": {key: {"type": "integer", "minimum": 1}},
    }
    return from_schema("order", "Orders.", schema)


@pytest.mark.parametrize(
    ("key", "reference"),
    [
        ("size", "#/$defs/size"),
        ("a size", "#/$defs/a%20size"),
        ("Größe", "#/$defs/Gr%C3%B6%C3%9Fe"),
        ("size", "#/%24defs/size"),
        ("a~b/c", "#/$defs/a~0b~1c"),
        ("a%b", "#/$defs/a%25b"),
    ],
)
def test_the_target_is_told_and_checked(key: str, reference: str) -> None:
    made = tool(key, reference)
    assert stub(made).startswith("def order(size: int):")
    wrong = made.validate({"size": "big"})
    assert isinstance(wrong, Invalid)
    assert wrong.text == "'size' must be an integer (at least 1), not 'big'."
    assert get("json").grammar([made]) == get("json").grammar([tool("size", "#/$defs/size")])
