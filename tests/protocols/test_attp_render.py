"""Calls as the reply by which a model would make them."""

from __future__ import annotations

import datetime
import math

import pytest

from toolwire.protocols import get
from toolwire.protocols.text.python_source import literal
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable

ATTP = get("attp")


def test_a_program_stands_between_literal_quotes() -> None:
    assert ATTP.render([ToolCall("code_execution", {"code": "x = '\\d'\n"})], thought="t", target="g") == (
        "thought = \"t\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"g\"\ncode = '''\nx = '\\d'\n'''\n"
    )


def test_one_call_is_a_program_that_returns_what_it_gives() -> None:
    reply = ATTP.render([ToolCall("search", {"query": '中文 "q"', "limit": 3, "class": None})])
    assert ATTP.parse(reply).calls[0].arguments == {
        "code": '__result__ = search(query="中文 \\"q\\"", limit=3, class_=None)\n'
    }


def test_several_calls_are_one_program_that_returns_a_list() -> None:
    reply = ATTP.render([ToolCall("a-b", {}), ToolCall("print", {"x": [1, {"k": (2,)}]})])
    assert ATTP.parse(reply).calls[0].arguments == {
        "code": 'result_1 = a_b()\nresult_2 = print_(x=[1, {"k": (2,)}])\n__result__ = [result_1, result_2]\n'
    }


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (True, "True"),
        (1.5, "1.5"),
        (math.inf, 'float("inf")'),
        (-7, "-7"),
        ((), "[]"),
        ({1: None}, "{1: None}"),
        (datetime.date(2026, 3, 1), '"2026-03-01"'),
    ],
)
def test_a_literal_is_python(value: object, source: str) -> None:
    assert literal(value) == source


def test_an_argument_without_a_literal_is_refused_with_its_path() -> None:
    endless: list[object] = []
    endless.append(endless)
    for value in (object(), endless):
        with pytest.raises(Unrepresentable) as caught:
            ATTP.render([ToolCall("search", {"query": value})])
        assert caught.value.path.startswith("query")


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([], "one ATTP reply holds one program: render 0 calls with 'code_execution' one at a time"),
        (
            [ToolCall("code_execution", {"code": "x"}), ToolCall("a")],
            "one ATTP reply holds one program: render 2 calls with 'code_execution' one at a time",
        ),
        (
            [ToolCall("code_execution", {"source": "x"})],
            "a call of 'code_execution' has one argument, code, a string; it has ['source']",
        ),
    ],
)
def test_calls_that_are_not_one_program_cannot_be_rendered(calls: list[ToolCall], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ATTP.render(calls)
    assert str(caught.value) == message
