"""The title of a tool is part of what a person approves."""

from __future__ import annotations

from toolwire.definition.from_schema import from_schema
from toolwire.vocabulary.values import digest


def titled(title: str | None) -> str:
    return from_schema("pay", "Pays.", {"type": "object", "properties": {}}, title=title).digest


def test_another_title_gives_another_digest() -> None:
    assert len({titled(None), titled("Pay"), titled("Refund")}) == 3
    assert titled("Pay") == titled("Pay")


def test_a_tool_without_a_title_keeps_the_digest_of_older_stores() -> None:
    assert titled(None) == digest(["pay", "Pays.", {"type": "object", "properties": {}}, None, {}])
