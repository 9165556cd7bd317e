"""`toolwire call`: one tool, its arguments typed by a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.conftest import Write

TYPED = '''
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Literal
from pydantic import BaseModel

class Colour(Enum):
    RED = "red"

class Point(BaseModel):
    x: int
    next: "Point | None" = None

def typed(
    text: str = "",
    number: int = 0,
    ratio: float = 0.0,
    flag: bool = False,
    maybe: int | None = 1,
    names: list[str] = [],
    rows: dict[str, int] = {},
    day: date = date(2025, 1, 1),
    price: Decimal = Decimal("0"),
    colour: Colour = Colour.RED,
    level: Literal[1, 2] = 1,
    point: Point | None = None,
) -> str:
    """Shows what it was given."""
    given = [text, number, ratio, flag, maybe, names, rows, day, price, colour, level, point]
    return " | ".join(repr(value) for value in given)
'''
DEFAULTS = [
    "''",
    "0",
    "0.0",
    "False",
    "1",
    "[]",
    "{}",
    "datetime.date(2025, 1, 1)",
    "Decimal('0')",
    "<Colour.RED: 'red'>",
    "1",
    "None",
]


@pytest.mark.parametrize(
    ("pair", "place", "shown"),
    [
        ("text=10", 0, "'10'"),
        ("text=true", 0, "'true'"),
        ("number=-7", 1, "-7"),
        ("ratio=3", 2, "3.0"),
        ("flag=true", 3, "True"),
        ("maybe=null", 4, "None"),
        ('names=["a", "b"]', 5, "['a', 'b']"),
        ('rows={"a": 1}', 6, "{'a': 1}"),
        ("day=2025-03-14", 7, "datetime.date(2025, 3, 14)"),
        ("price=0.10", 8, "Decimal('0.10')"),
        ("colour=red", 9, "<Colour.RED: 'red'>"),
        ("level=2", 10, "2"),
        ('point={"x": 1, "next": {"x": 2}}', 11, "Point(x=1, next=Point(x=2, next=None))"),
    ],
)
def test_a_value_is_read_by_the_schema(write: Write, pair: str, place: int, shown: str) -> None:
    source = write("typed.py", TYPED)
    expected = [*DEFAULTS]
    expected[place] = shown
    assert run_here("call", "typed", pair, "--tools", source) == Ended(
        code=0, stdout=" | ".join(expected) + "\n", stderr=""
    )


def test_arguments_come_from_a_file_and_keys_win_over_it(write: Write, tools: str) -> None:
    arguments = write("arguments.json", '{"a": 1, "b": 2}')
    assert run_here("call", "add", "--arguments", arguments, "--tools", tools).stdout == "3\n"
    assert run_here("call", "add", "b=5", "--arguments", arguments, "--tools", tools).stdout == "6\n"


def test_arguments_come_from_standard_input(tools: str) -> None:
    ended = run_here("call", "greet", "--arguments", "-", "--tools", tools, stdin='{"name": "李雷"}'.encode())
    assert ended == Ended(code=0, stdout="Hello 李雷\n", stderr="")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{a: 1}", "{} is not JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        (b"[1]", '{} holds array, not an object\nWrite the arguments by name: {{"query": "x", "limit": 3}}.'),
        (b"\xff", "the file of arguments {} is not UTF-8: byte 0 is 0xff"),
    ],
)
def test_arguments_that_cannot_be_read_are_wrong_usage(
    tmp_path: Path, tools: str, content: bytes, message: str
) -> None:
    path = tmp_path / "arguments.json"
    path.write_bytes(content)
    ended = run_here("call", "add", "--arguments", str(path), "--tools", tools)
    assert ended == Ended(code=2, stdout="", stderr=f"toolwire: {message.format(path)}\n")


def test_a_file_of_arguments_that_is_not_there_is_wrong_usage(tools: str) -> None:
    assert run_here("call", "add", "--arguments", "absent.json", "--tools", tools) == Ended(
        code=2,
        stdout="",
        stderr="toolwire: the file of arguments absent.json cannot be read: No such file or directory\n",
    )


def test_an_argument_without_an_equals_sign_is_wrong_usage(tools: str) -> None:
    assert run_here("call", "add", "a", "--tools", tools) == Ended(
        code=2, stdout="", stderr="toolwire: 'a' is not a key=value argument\nWrite key=value, as limit=3.\n"
    )


WRONG_CALLS = {
    "tool": ("ad a=1", "There is no tool named 'ad'.\nDid you mean 'add'?\n"),
    "arguments": (
        "add a=many c=1",
        """\
The arguments of 'add' are wrong:
- 'a' must be an integer, not 'many'.
- 'c' is unknown: it takes 'a', 'b'.
Correct them and call 'add' again. It takes: a (required), b (optional).
""",
    ),
    "missing": (
        "greet",
        """\
The arguments of 'greet' are wrong:
- 'name' is missing: give a string.
Correct them and call 'greet' again. It takes: name (required).
""",
    ),
}


@pytest.mark.parametrize(("words", "text"), WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_a_wrong_call_is_answered_as_a_model_would_be(tools: str, words: str, text: str) -> None:
    assert run_here("call", *words.split(), "--tools", tools) == Ended(code=1, stdout=text, stderr="")


def test_json_gives_the_result_and_its_failure(tools: str) -> None:
    done = run_here("call", "add", "a=1", "--tools", tools, "--json")
    assert (done.code, json.loads(done.stdout)) == (
        0,
        {"name": "add", "success": True, "data": 11, "text": "11", "error": None, "metadata": {}, "failure": None},
    )
    failed = run_here("call", "ad", "--tools", tools, "--json")
    assert (failed.code, json.loads(failed.stdout)) == (
        1,
        {
            "name": "ad",
            "success": False,
            "data": None,
            "text": "There is no tool named 'ad'.\nDid you mean 'add'?",
            "error": "There is no tool named 'ad'.",
            "metadata": {},
            "failure": {
                "kind": "unknown_tool",
                "hint": "Did you mean 'add'?",
                "path": "",
                "retry": False,
                "data": {"nearest": "add", "tools": ["add", "greet"]},
            },
        },
    )


def test_a_tool_that_never_returns_is_given_up(write: Write) -> None:
    source = write(
        "hangs.py",
        'import threading\n\ndef hangs() -> int:\n    """Never returns."""\n    threading.Event().wait()\n',
    )
    assert run_here("call", "hangs", "--tools", source, "--timeout", "0.2") == Ended(
        code=1,
        stdout="'hangs' returned nothing within 0.2 s; it may still be running.\n"
        "It may have taken effect. Check that before you repeat the call.\n",
        stderr="",
    )


def test_an_async_tool_is_called_as_any_other(write: Write) -> None:
    source = write("waits.py", 'async def waits(a: int) -> int:\n    """Waits."""\n    return a\n')
    assert run_here("call", "waits", "a=3", "--tools", source) == Ended(code=0, stdout="3\n", stderr="")
