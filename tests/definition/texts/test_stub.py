"""Stubs: tools as a program sees them."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.renderings.stub import stub

FOUR = '''
def search_web(query: str, max_results: int = 5) -> list[dict]:
    """
    在网络上搜索信息，返回搜索结果的列表。

    Args:
        query: 搜索查询字符串
        max_results: 返回结果的最大数量，默认为5

    Returns:
        list[dict]: 搜索结果列表，每个结果包含以下字段：
            - title: str - 标题
            - url: str - 链接地址
            - snippet: str - 内容摘要

    Example:
        >>> results = search_web("Python异步编程", max_results=3)
        >>> print(results[0]["title"])
        '深入理解Python异步编程'
    """
    pass


def read_file(path: str) -> str:
    """
    读取指定路径的文件内容。

    Args:
        path: 文件的绝对路径

    Returns:
        str: 文件的完整内容

    Raises:
        FileNotFoundError: 当文件不存在时
        PermissionError: 当无读取权限时

    Example:
        >>> content = read_file("/home/user/config.json")
        >>> print(content)
        '{"timeout": 30}'
    """
    pass


def write_file(path: str, content: str) -> bool:
    """
    将内容写入到指定路径的文件。

    Args:
        path: 文件的绝对路径
        content: 要写入的内容

    Returns:
        bool: 成功返回True，失败返回False

    Example:
        >>> success = write_file("/home/user/output.txt", "Hello World")
        >>> print(success)
        True
    """
    pass


def list_files(directory: str, pattern: str = "*") -> list[str]:
    """
    列出指定目录下的文件，支持通配符匹配。

    Args:
        directory: 目录的绝对路径
        pattern: 文件匹配模式，默认为"*"（所有文件）

    Returns:
        list[str]: 匹配的文件路径列表

    Example:
        >>> files = list_files("/home/user/docs", pattern="*.md")
        >>> print(files)
        ['readme.md', 'api.md', 'changelog.md']
    """
    pass
'''


def defined() -> dict[str, Callable[..., Any]]:
    names: dict[str, Any] = {}
    exec(FOUR, names)
    return {name: value for name, value in names.items() if callable(value)}


@pytest.mark.parametrize("place", range(4))
def test_the_four_documented_tools_come_out_character_for_character(place: int) -> None:
    text = FOUR.strip().split("\n\n\n")[place]
    assert stub(from_function(list(defined().values())[place])) == text


def test_the_same_tool_described_in_another_style_has_the_same_stub() -> None:
    def read_file(path):
        """读取指定路径的文件内容。

        :param path: 文件的绝对路径
        :returns: 文件的完整内容
        :rtype: str
        :raises FileNotFoundError: 当文件不存在时
        :raises PermissionError: 当无读取权限时
        """

    read_file.__annotations__.update({"path": str, "return": str})
    expected = FOUR.strip().split("\n\n\n")[1].split("\n\n    Example:")[0] + '\n    """\n    pass'
    assert stub(from_function(read_file)) == expected


class Order(Enum):
    UP = "up"
    DOWN = "down"


class Place(BaseModel):
    city: str = Field(description="its name")
    zip: int | None = None


class Person(BaseModel):
    name: str
    homes: list[Place] = []


def every(
    a: int,
    /,
    b: Person,
    order: Order = Order.UP,
    path: Path | None = None,
    *,
    since: datetime.date = datetime.date(2024, 1, 2),
    raw: bytes = b"",
    text: str = 'say "hi"',
    made: Annotated[list[str], "made anew"] = Field(default_factory=list),  # noqa: B008  # pydantic's way
    **more: float,
) -> list[Person]: ...


def test_a_signature_of_every_kind_is_python_and_objects_list_their_fields() -> None:
    text = stub(from_function(every))
    assert (
        text
        == '''def every(a: int, /, b: dict, order: Literal['up', 'down'] = "up", path: str | None = None, *, since: datetime.date = datetime.date(2024, 1, 2), raw: bytes = b'', text: str = 'say "hi"', made: list[str] = ..., **more: float) -> list[dict]:
    """
    Args:
        b: dict with these fields:
            - name: str
            - homes: list[dict] = []
                - city: str - its name
                - zip: int | None, optional
        made: made anew

    Returns:
        list[dict] with these fields:
            - name: str
            - homes: list[dict] = []
                - city: str - its name
                - zip: int | None, optional
    """
    pass'''  # noqa: E501
    )
    ast.parse(text)


def test_without_any_description_the_signature_is_all() -> None:
    def add(a: int, b, *rest): ...

    assert stub(from_function(add)) == "def add(a: int, b, *rest):\n    pass"


def test_names_are_what_a_program_writes() -> None:
    schema = {
        "type": "object",
        "properties": {"max-results": {"type": "integer", "description": "how many"}, "class": {"type": "string"}},
        "required": ["class"],
    }
    assert stub(from_schema("web.search", "Searches.", schema)) == (
        "def web_search(class_: str, max_results: int = ...):\n"
        '    """\n    Searches.\n\n    Args:\n        max_results: how many\n    """\n    pass'
    )


def test_bound_parameters_do_not_show() -> None:
    def act(user_id: str, action: str) -> str:
        """Acts.

        Args:
            user_id: who
            action: what
        """
        return user_id + action

    tool = from_function(act)
    tool.bindings.bind("user_id", default="me")
    assert stub(tool) == (
        'def act(action: str) -> str:\n    """\n    Acts.\n\n    Args:\n        action: what\n    """\n    pass'
    )


def test_quotes_and_backslashes_in_a_docstring_stay_what_they_are() -> None:
    tool = from_schema("f", 'Splits at "\\n" or """ or \\')
    function = ast.parse(stub(tool)).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function) == 'Splits at "\\n" or """ or \\'


def test_a_recursive_model_has_a_name_and_lists_its_fields_once() -> None:
    class Node(BaseModel):
        name: str
        inner: list[Node] = []

    def f(node: Node) -> None: ...

    assert (
        stub(from_function(f))
        == '''def f(node: dict) -> None:
    """
    Args:
        node: Node

    Types:
        Node: dict with these fields:
            - name: str
            - inner: list[Node] = []
    """
    pass'''
    )
