"""The short form of a stub: the long one without examples, one line for each parameter, with its bounds."""

from __future__ import annotations

import ast
from typing import Annotated, Any

from pydantic import Field

from tests.protocols.tools_corpus import corpus
from toolwire.definition.from_function import from_function
from toolwire.definition.renderings.stub import compact_stub


def search(query: str, limit: Annotated[int, Field(ge=1, le=50)] = 5, *, exact: bool = False) -> list[dict[str, Any]]:
    """Search the pages.

    Args:
        query: what to look
            for
        exact: no "near" hits

    Returns:
        list[dict]: pages found:
            - url: str - address

    Raises:
        ValueError: the query is ""

    Example:
        >>> search("a")
    """
    raise NotImplementedError


def now() -> str:
    raise NotImplementedError


def test_each_parameter_is_named_once_with_its_meaning_and_bounds() -> None:
    assert compact_stub(from_function(search)) == (
        "def search(\n"
        " query: str, # what to look for\n"
        " limit: int = 5, # 1..50\n"
        " *,\n"
        ' exact: bool = False, # no "near" hits\n'
        ") -> list[dict[str, Any]]:\n"
        ' """Search the pages.\n'
        " Returns: list[dict]: pages found:\n"
        " - url: str - address\n"
        ' Raises ValueError: the query is "" """'
    )


def test_a_function_without_a_docstring_is_its_signature() -> None:
    assert compact_stub(from_function(now)) == "def now() -> str:\n ..."


def test_every_tool_of_a_hundred_is_python_and_keeps_its_texts() -> None:
    for tool in corpus():
        text = compact_stub(tool)
        ast.parse(text)
        texts = [tool.description, *(parameter.description for parameter in tool.visible_parameters)]
        assert [part for part in texts if part not in text] == []
