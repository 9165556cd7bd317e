"""Programs that call tools by dotted names, or import them."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ToolRegistry, ToolSpec

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def registry(*names: str) -> ToolRegistry:
    found = ToolRegistry()
    for name in names:
        found.register(ToolSpec.from_jsonschema(name=name, description="T.", input_schema=SCHEMA, function=echo(name)))
    return found


def echo(name: str) -> Any:
    return lambda text: f"{name}: {text}"


TOOLS = registry(
    "info.capital",
    "info.area.land",
    "server/list-files",
    "count_lines",
    "json.loads",
    "requests.get",
    "github_create_issue",
    "math_cube",
    "str_join",
)


def value(source: str) -> Any:
    result = TOOLS.run_program(source)
    assert result.error is None, result.error
    return result.value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("info.capital('a')", "info.capital: a"),
        ("info_capital('a')", "info.capital: a"),
        ("info.area.land(text='a')", "info.area.land: a"),
        ("server.list_files('a')", "server/list-files: a"),
        ("server_list_files('a')", "server/list-files: a"),
        ("requests.get('a')", "requests.get: a"),
        ("f = info.capital\n[f(x) for x in 'ab']", ["info.capital: a", "info.capital: b"]),
        ("def f(x):\n    return info.capital(x)\nf('a')", "info.capital: a"),
        (
            "import asyncio\nawait asyncio.gather(info.capital('a'), count_lines('b'))",
            ["info.capital: a", "count_lines: b"],
        ),
        ("json.loads('[1]')", "json.loads: [1]"),
        ("json.dumps([1])", "[1]"),
        ("import count_lines\ncount_lines('a')", "count_lines: a"),
        ("import count_lines as c\nc('a')", "count_lines: a"),
        ("import math, count_lines\n[math.sqrt(4), count_lines('a')]", [2.0, "count_lines: a"]),
        ("from tools import count_lines\ncount_lines('a')", "count_lines: a"),
        ("from tools import count_lines as c, info_capital\n[c('a'), info_capital('b')]", None),
        ("from functions import (\n    count_lines,\n)\ncount_lines('a')", "count_lines: a"),
        ("def f():\n    from tools import count_lines\n    return count_lines('a')\nf()", "count_lines: a"),
        ("try:\n    import count_lines\nexcept ImportError:\n    pass\ncount_lines('a')", "count_lines: a"),
        ("import info\ninfo.capital('a')", "info.capital: a"),
        ("import info.capital\ninfo.capital('a')", "info.capital: a"),
        ("import info.capital as c\nc('a')", "info.capital: a"),
        ("from info import capital\ncapital('a')", "info.capital: a"),
        ("from info.area import land as l\nl('a')", "info.area.land: a"),
        ("from tools import info\ninfo.capital('a')", "info.capital: a"),
        ("import requests\nrequests.get('a')", "requests.get: a"),
        ("github.create_issue('a')", "github_create_issue: a"),
        ("github.create.issue('a')", "github_create_issue: a"),
        ("f = github_create.issue\nf(text='a').upper()", "GITHUB_CREATE_ISSUE: A"),
        ("import github\ngithub.create_issue('a')", "github_create_issue: a"),
        ("from github import create_issue\ncreate_issue('a')", "github_create_issue: a"),
        ("from github import (\n    create_issue as c,\n)\nc('a')", "github_create_issue: a"),
        ("server.list.files('a')", "server/list-files: a"),
    ],
)
def test_a_tool_is_called_by_its_dotted_name_and_after_an_import(source: str, expected: Any) -> None:
    assert value(source) == (["count_lines: a", "info.capital: b"] if expected is None else expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class info:\n    capital = staticmethod(str.upper)\ninfo.capital('a')", "A"),
        ("def f(info):\n    return info.capital\nclass A:\n    capital = 1\nf(A)", 1),
        ("import json\njson.loads('[1]')", [1]),
        ("from json import loads\nloads('[1]')", [1]),
        ("from statistics import mean\nmean([1, 3])", 2),
        ("class github:\n    create_issue = staticmethod(str.upper)\ngithub.create_issue('a')", "A"),
        ("str.join('-', 'ab')", "a-b"),
        ("github_create_issue.__name__", "github_create_issue"),
    ],
)
def test_the_control_names_that_a_program_binds_are_its_own(source: str, expected: Any) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("info.population('a')", "NameError"),
        ("import info as i\ni.capital('a')", "SourceRefused"),
        ("import tools", "SourceRefused"),
        ("from tools import count_lines, missing", "SourceRefused"),
        ("from . import count_lines", "SourceRefused"),
        ("math.cube('a')", "AttributeError"),
        ("github.create_pull('a')", "NameError"),
        ("from github import create_pull", "SourceRefused"),
        ("import requests\nrequests.post('a')", "NameError"),
        ("import os", "SourceRefused"),
    ],
)
def test_the_control_other_names_and_imports_fail_as_before(source: str, kind: str) -> None:
    result = TOOLS.run_program(source)
    assert result.error is not None
    assert result.error.type == kind


def test_a_module_keeps_its_name_if_no_tool_has_that_path() -> None:
    assert registry("math_sqrt", "math.cube").run_program("math.sqrt(4)").value == 2.0


def test_open_imports_are_left_alone() -> None:
    result = TOOLS.run_program("import count_lines", source_checks=False)
    assert result.error is not None
    assert result.error.type == "ModuleNotFoundError"
