"""Tools from source text of their owner's."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.definition.from_code import from_code
from toolwire.definition.shape import Validated
from toolwire.definition.tool import Tool
from toolwire.vocabulary.errors import DefinitionError

SUM = """
def calculate_sum(a: int, b: int) -> int:
    '''将两个数字相加。

    Args:
        a: 第一个数字
        b: 第二个数字

    Returns:
        int: a 和 b 的和
    '''
    return a + b
"""


def run(tool: Tool, **arguments: Any) -> Any:
    validated = tool.validate(arguments)
    assert isinstance(validated, Validated), validated
    return tool.invoke(validated)


def refusal(code: str, func_name: str | None = None) -> str:
    with pytest.raises(DefinitionError) as refused:
        from_code(code, func_name)
    return str(refused.value)


@pytest.mark.parametrize("func_name", [None, "calculate_sum"])
def test_the_only_function_is_the_tool(func_name: str | None) -> None:
    tool = from_code(SUM, func_name=func_name, env=None, permission="confirm")
    assert (tool.name, tool.description, tool.permission) == ("calculate_sum", "将两个数字相加。", "confirm")
    assert [parameter.description for parameter in tool.parameters] == ["第一个数字", "第二个数字"]
    assert run(tool, a=1, b=2) == 3


def test_helpers_imports_and_constants_do_not_count() -> None:
    code = "from math import *\nfrom json import dumps\nK = 2\n"
    code += "def _twice(x): return x * K\ndef f(x: int): return _twice(x)"
    assert run(from_code(code), x=3) == 6


def test_a_private_function_can_be_named() -> None:
    assert from_code("def _f(): return 1\ndef g(): return 2", "_f").name == "_f"


def test_classes_of_the_text_can_be_annotations() -> None:
    code = (
        "from __future__ import annotations\n"
        "from pydantic import BaseModel\n"
        "class Row(BaseModel):\n    n: int\n"
        "async def f(rows: list[Row]) -> int: return sum(row.n for row in rows)"
    )
    tool = from_code(code)
    assert tool.is_async
    assert isinstance(tool.validate({"rows": [{"n": 1}]}), Validated)


def test_env_is_seen_by_the_text_and_stays_as_it_was() -> None:
    env: dict[str, Any] = {"rate": 3, "seen": []}
    tool = from_code("rate = rate + 1\ndef f(x: int):\n    seen.append(x)\n    return x * rate", env=env)
    assert run(tool, x=2) == 8
    assert env == {"rate": 3, "seen": [2]}


@pytest.mark.requirement("spec.from-code.func-name-ambiguous", "spec.from-code.func-name-missing")
def test_text_that_cannot_be_a_tool_is_refused() -> None:
    assert refusal("x = 1\ndef f(:\n  pass") == "the code has a syntax error in line 2: invalid syntax"
    assert refusal("x = 1\ny = 1 / 0") == "the code failed in line 2: ZeroDivisionError: division by zero"
    assert refusal("import json\njson.loads('x')").startswith("the code failed in line 2: JSONDecodeError: ")
    assert refusal("x = 1") == "the code defines no public function: write one with def"
    assert refusal("def f(): ...\ndef g(): ...") == (
        "the code defines 2 public functions (f, g): give func_name='f' or another"
    )
    assert refusal("def first(): ...\ndef g(): ...", "frist") == (
        "the code defines no function 'frist': did you mean 'first'?"
    )
    assert refusal("def first(): ...", "zzz") == "the code defines no function 'zzz': it defines 'first'"


@pytest.mark.requirement("spec.from-code.options")
def test_the_options_of_from_function_work_here_too() -> None:
    made = from_code("def twice(n):\n    return 2 * n\n", name="double", description="Doubles.", permission="confirm")
    assert (made.name, made.description, made.permission) == ("double", "Doubles.", "confirm")
