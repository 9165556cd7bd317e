"""Texts about a tool."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.renderings.describe import code_text, docstring_text, jsonschema_form, prompt_text
from toolwire.definition.renderings.python_text import call_text
from toolwire.definition.tool import Tool
from toolwire.vocabulary.errors import DefinitionError


def search_database(query: str, limit: int = 10, user: str = "me") -> dict[str, Any]:
    """在数据库中搜索匹配的记录。

    Args:
        query: 搜索查询字符串
        limit: 返回的最大结果数
        user: 用户

    Returns:
        dict: 包含匹配记录的搜索结果
            - rows: list

    Raises:
        ValueError: 当查询为空时
    """
    return {"query": query, "limit": limit, "user": user}


DOCSTRING = """在数据库中搜索匹配的记录。

Args:
    query: 搜索查询字符串
    limit: 返回的最大结果数

Returns:
    dict: 包含匹配记录的搜索结果
        - rows: list

Raises:
    ValueError: 当查询为空时

Example:
    >>> search_database(query='x')
    {'rows': []}"""


@pytest.fixture
def tool() -> Tool:
    example = {"arguments": {"query": "x"}, "result": {"rows": []}}
    made = from_function(search_database, examples=[example])
    made.bindings.bind("user", default="you")
    return made


def test_the_docstring_is_in_google_style(tool: Tool) -> None:
    assert docstring_text(tool) == DOCSTRING


def test_the_code_is_a_definition_with_its_docstring(tool: Tool) -> None:
    text = code_text(tool)
    first, *lines = text.split("\n")
    assert first == "def search_database(query: str, limit: int = 10) -> dict[str, Any]:"
    assert lines[0] == '    """在数据库中搜索匹配的记录。'
    assert lines[-2:] == ['    """', "    ..."]
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function) == DOCSTRING


def test_the_code_of_an_async_tool_is_async() -> None:
    async def fetch(url: str) -> str:
        """Says "hello\""""
        return url

    assert code_text(from_function(fetch)) == ('async def fetch(url: str) -> str:\n    """Says "hello" """\n    ...')


def test_the_code_of_a_tool_without_description() -> None:
    def f(list: int): ...

    assert code_text(from_function(f)) == "def f(list: int):\n    ..."


def test_a_call_as_text(tool: Tool) -> None:
    assert call_text(tool, {"query": "example", "limit": 10}) == "search_database(query='example', limit=10)"
    assert call_text(tool, {}) == "search_database()"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("limits", "tool 'search_database' has no parameter 'limits': did you mean 'limit'?"),
        ("user", "tool 'search_database' has no parameter 'user': it takes 'query', 'limit'"),
    ],
)
def test_a_call_with_what_no_visible_parameter_takes_is_refused(tool: Tool, name: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        call_text(tool, {name: 1})
    assert str(refused.value) == message


def test_the_prompt_tells_all_that_a_model_needs(tool: Tool) -> None:
    assert prompt_text(tool) == (
        "search_database: 在数据库中搜索匹配的记录。\n"
        "\n"
        "Parameters:\n"
        "- query (str, required): 搜索查询字符串\n"
        "- limit (int, default 10): 返回的最大结果数\n"
        "\n"
        "Returns: dict: 包含匹配记录的搜索结果\n"
        "    - rows: list\n"
        "\n"
        "Raises:\n"
        "- ValueError: 当查询为空时\n"
        "\n"
        "Examples:\n"
        ">>> search_database(query='x')\n"
        "{'rows': []}"
    )


def test_the_prompt_of_a_tool_without_anything() -> None:
    assert prompt_text(from_schema("ping")) == "ping\n\nParameters: none"


def test_the_flat_json_form(tool: Tool) -> None:
    assert jsonschema_form(tool, strict=False, custom_field="value") == {
        "type": "function",
        "name": "search_database",
        "description": "在数据库中搜索匹配的记录。",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "搜索查询字符串"},
                "limit": {"default": 10, "type": "integer", "description": "返回的最大结果数"},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        "strict": False,
        "custom_field": "value",
    }
    assert list(jsonschema_form(tool)) == ["type", "name", "description", "parameters", "strict"]
    assert jsonschema_form(tool)["strict"] is True


@pytest.mark.parametrize(
    ("example", "text"),
    [
        ("  >>> f()\n  3", ">>> f()\n3"),
        ({"query": "x", "limit": 2}, ">>> search_database(query='x', limit=2)"),
        ({"inputs": {"query": "x"}, "output": 3}, ">>> search_database(query='x')\n3"),
        ({"other": 1}, "{'other': 1}"),
        (3, "3"),
    ],
)
def test_examples_may_be_text_arguments_or_arguments_with_a_result(example: Any, text: str) -> None:
    tool = from_function(search_database, parse_docstring=False, examples=[example])
    assert docstring_text(tool).split("Example:\n")[1] == "\n".join(f"    {line}" for line in text.split("\n"))


def test_the_exceptions_of_the_docstring_can_be_named(tool: Tool) -> None:
    assert tool.raises == ("ValueError",)
