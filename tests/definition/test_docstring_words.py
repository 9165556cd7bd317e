"""No word of a docstring is lost on its way to a model."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import protocols
from toolwire.definition.from_function import from_function
from toolwire.definition.renderings.describe import docstring_text, prompt_text
from toolwire.definition.renderings.stub import stub
from toolwire.definition.tool import Tool

_FRAGMENTS = (
    *("Args:", "Keyword Args:", "Arguments:", "Attributes:", "Raises:", "Returns:", "Yields:", "Example:", "Examples:"),
    *("Note:", "Warning: {}", "Todo:", "参数：", "返回：", "See {}:", "Important note: {}"),
    *("Parameters\n----------", "Other Parameters\n----------------", "Returns\n-------", "Raises\n------"),
    *("Notes\n-----", "Warnings\n========", "See Also\n--------", "Examples\n--------", "----------"),
    *("    query: {}", "    limit (int): {}", "    limit (int, at most {}): {}", "    - query: {}", "    * limit: {}"),
    *("    query, limit: {}", "    `query`: {}", "    {}: {}", "    ValueError: {}", "    {} and {}", "        {}"),
    *("query : str", "query, limit : int", "limit : int, below {}", "other : {}", "query: {}", "- query: {}"),
    *(":param query: {}", ":param str limit: {}", ":param {}: {}", ":type limit: {}", ":returns: {}", ":rtype: {}"),
    *(":raises ValueError: {}", ":raises: {}", ":meta {}:", ":class:`{}` {}", "@param query: {}", "@return: {}"),
    *("@{}", "@deprecated: {}", ".. note:: {}", "{}", "{}. {}: {}", "    >>> f({})", "", "", "    "),
)


def _tool(docstring: str) -> Tool:
    def find(query: str, limit: int = 10, *rest: int) -> Any: ...

    find.__doc__ = docstring
    return from_function(find)


@st.composite
def _docstrings(draw: st.DrawFn) -> str:
    """Returns lines of any style in any order. Each `{}` is a word that no other place has."""
    lines = draw(st.lists(st.sampled_from(_FRAGMENTS), min_size=1, max_size=14))
    numbers = iter(range(1000))
    return re.sub(r"\{\}", lambda _: f"word{next(numbers)}x", "\n".join(lines))


def _texts(tool: Tool) -> list[str]:
    native = [json.dumps(protocols.get(name).describe([tool])) for name in ("openai", "anthropic", "gemini")]
    plain = [str(protocols.get(name).describe([tool])) for name in ("attp", "xml", "json")]
    return [*native, *plain, docstring_text(tool), prompt_text(tool), stub(tool)]


@given(_docstrings())
def test_every_word_is_in_every_description_of_the_tool(docstring: str) -> None:
    words = set(re.findall(r"word\d+x", docstring))
    for text in _texts(_tool(docstring)):
        assert words <= set(re.findall(r"word\d+x", text))


@pytest.mark.parametrize(
    "docstring",
    [
        "Finds.\n\nArgs:\n    query: {}\n    limit (int): {}\nWarning: {}.\n\nReturns:\n    {}\n\nRaises:\n    Bad: {}",
        "Finds {}.\n\nParameters\n----------\nquery, limit : int\n    {}\n\nWarnings\n--------\n{}\n\nNotes\n-----\n{}",
        "Finds {}.\n\n:param query: {}\n:param int limit: {}\n:returns: {}\n:raises OSError: {}\n:note: {}\n",
        "Finds.\n\n:rtype: {}\nReturns:\n    list: {}",
    ],
    ids=["Google", "NumPy", "Sphinx", "two types"],
)
def test_the_words_of_a_common_docstring_are_in_every_description(docstring: str) -> None:
    numbers = iter(range(1000))
    written = re.sub(r"\{\}", lambda _: f"word{next(numbers)}x", docstring)
    for text in _texts(_tool(written)):
        assert set(re.findall(r"word\d+x", text)) == set(re.findall(r"word\d+x", written))


def test_texts_of_parameters_that_a_host_gives_are_in_no_description() -> None:
    def find(query: str, key: str = "") -> Any:
        """Finds.

        Args:
            query: words
            key: secretword
        """

    tool = from_function(find)
    tool.bindings.preset("key", "x", is_more=False)
    assert not [text for text in _texts(tool) if "secretword" in text]
