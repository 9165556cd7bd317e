"""The page on errors has every kind of failure and every exception, with the properties that the code gives them."""

from __future__ import annotations

import re
from typing import get_args

import toolwire.tools
from tests.documents.pages import text_of
from toolwire.vocabulary import errors
from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.failures import FAILURE_RULES, FailureKind

PAGE = text_of("docs/errors.md")
PUBLIC = [(name, getattr(module, name)) for module in (toolwire, toolwire.tools) for name in module.__all__]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without the table's own head."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (`.+) \|$", section, re.MULTILINE)
    return [line.split(" | ") for line in lines]


def test_every_kind_of_failure_has_a_row_with_its_properties() -> None:
    said = [(kind, acts, retry) for kind, _, retry, acts, _ in rows("A failed call")]
    assert said == [
        (f"`{kind}`", FAILURE_RULES[kind].actor, "yes" if FAILURE_RULES[kind].retry else "no")
        for kind in get_args(FailureKind)
    ]


def test_every_exception_has_a_row() -> None:
    public = [found for _, found in PUBLIC]
    known = {found for found in (*vars(errors).values(), *public) if _is_ours(found)}
    assert sorted(row[0] for row in rows("Exceptions")) == sorted(f"`{found.__name__}`" for found in known)


def test_every_exception_that_is_a_builtin_one_too_says_so() -> None:
    public = [*vars(errors).items(), *PUBLIC]
    also = {name: base.__name__ for name, found in public if _is_ours(found) for base in found.__bases__[1:]}
    assert dict(re.findall(r"^\| `(\w+)` \| .*; also a `(\w+)` \|", PAGE, re.MULTILINE)) == also


def _is_ours(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, ToolwireError)
