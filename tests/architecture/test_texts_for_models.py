"""No text for a model asks for the same reply once more: small models take it word for word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import Module, modules

AGAIN = re.compile(r"\bagain[.!]?\s*\Z|\bsend (?:it|this|that) again\b")

FOR_HOSTS = {
    *("approvers", "binding", "cassette", "circuit_breaker", "decision_check"),
}
"""Modules whose errors with such an end are raised at a developer, not told to a model."""


def texts(module: Module) -> Iterator[str]:
    """Yields the string literals of a module that are no docstrings. The pieces of an f-string are joined."""
    inside: set[ast.AST] = set()
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.value


def test_no_text_for_a_model_ends_in_again() -> None:
    found = {
        text
        for module in modules()
        if module.name.rpartition(".")[2] not in FOR_HOSTS
        for text in texts(module)
        if " " in text and AGAIN.search(text)
    }
    assert found == set()


def test_the_search_finds_such_texts_and_no_others() -> None:
    ends = ["Write it again.", "Nothing ran. Call again.", "Correct it and send it again, please."]
    assert all(AGAIN.search(text) for text in ends)
    assert not any(
        AGAIN.search(text) for text in ("Do not send the same program again: it fails.", "Call it again. It takes: x.")
    )
