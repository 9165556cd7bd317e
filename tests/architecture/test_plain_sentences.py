"""Docstrings and comments are plain: the share of hard sentences stays small."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

WORDS_LIMIT = 30
"""CONTRIBUTING.md asks for 25; this leaves room for code in a sentence."""
HARD = re.compile(
    r"^(?:What|Who|Of|Where|There)\b"  # the subject is a clause or comes late
    r"|\b(?:[Ww]hoever|[Nn]obody)\b"  # the actor has no name
    r"|\b(?:is|are) no (?!longer\b|more\b)\w"  # 'is not a number' is plainer than 'is no number'
)
SHARES = {PACKAGE: 0.02, ROOT / "tests": 0.03, ROOT / "benchmarks": 0.03}
"""The largest share of hard sentences in a folder. Shrink, never grow."""

_BETWEEN = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`])|\n\s*\n|\n\s*[-*] ")
# The module `tokenize` takes twenty times as long.
_LEXEME = re.compile(
    r"(?P<comment>#[^\n]*)"
    r'|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\''
    r'|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
    r"|[^\s#\"']+",
    re.DOTALL,
)
"""A comment, a string, or other code."""
_DIRECTIVE = re.compile(r"#(?:!|:| *(?:noqa|pyright|type:|fmt:|%%|--))")


def sentences(source: str) -> Iterator[str]:
    """The sentences of a file's docstrings and comments, without directives for tools and dividers."""
    for statement in _statements(ast.parse(source)):
        match statement:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield from _split(text)
    lines: list[str] = []
    for found in _LEXEME.finditer(source):
        if not found["comment"]:
            yield from _split("\n".join(lines))
            lines.clear()
        elif not _DIRECTIVE.match(found["comment"]):
            lines.append(found["comment"].lstrip("# "))
    yield from _split("\n".join(lines))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements below a node. `ast.walk` takes five times as long, because it visits expressions too."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for statement in getattr(node, block, ()):
            yield statement
            yield from _statements(statement)


def _split(text: str) -> Iterator[str]:
    return (" ".join(part.split()) for part in _BETWEEN.split(text) if part.strip())


def is_hard(sentence: str) -> bool:
    return HARD.search(sentence) is not None or len(sentence.split()) > WORDS_LIMIT


@pytest.mark.parametrize("folder", SHARES, ids=lambda folder: folder.name)
def test_few_sentences_are_hard(folder: Path) -> None:
    found = [
        (path.relative_to(folder), sentence)
        for path in sorted(folder.rglob("*.py"))
        for sentence in sentences(path.read_text("utf-8"))
    ]
    hard = [f"{path}: {sentence}" for path, sentence in found if is_hard(sentence)]
    assert found
    assert len(hard) <= SHARES[folder] * len(found), "\n".join(hard)


@pytest.mark.parametrize(
    ("source", "hard"),
    [
        ('"""Returns the time in seconds."""', []),
        ('"""What the host saw."""', ["What the host saw."]),
        ('"""Adds a row. Whoever asks first gets it."""', ["Whoever asks first gets it."]),
        ("x = 1  # '1' is no argument", ["'1' is no argument"]),
        ("# The row is no longer there.\nx = 1", []),
        ("# A comment of two\n# lines that nobody reads.\nx = 1", ["A comment of two lines that nobody reads."]),
        ("x = 1  # noqa: What", []),
        (f'"""{"word " * WORDS_LIMIT}"""', []),
        (f'"""{"word " * (WORDS_LIMIT + 1)}"""', [("word " * (WORDS_LIMIT + 1)).strip()]),
        ('x = "What is this?"', []),
    ],
)
def test_hard_sentences_are_found(source: str, hard: list[str]) -> None:
    assert [sentence for sentence in sentences(source) if is_hard(sentence)] == hard
