"""`parse` answers any reply without an error, and reads every text that `render` writes."""

from __future__ import annotations

import ast
import tomllib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolwire.protocols import get
from toolwire.vocabulary.calls import Reply, ToolCall

ATTP = get("attp")

FRAGMENTS = (
    *("thought = ", "status = ", "target = ", "code = ", "message = ", "[tool_call]", "tool_call.", "[[tool_call]]"),
    *('"success"', '"fail"', '"', "'", "'''", '"""', "“", "’’’", "```", "```toml", "~~~", "r'''", "\\", "\\d", "\\n"),
    *("\n", "\n", "\n", "\r\n", "\r", " ", "\t", "#", "=", ".", ",", "[", "]", "{", "}", ":", "\ufeff", "\x00"),
    *(
        "<think>",
        "</think>",
        "<tool_call>",
        "x = 1",
        "__result__ = f(x)",
        "print(",
        "中文",
        "\ud800",
        "1e9",
        "1979-05-27",
    ),
)
soup = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
whole = st.text(st.characters(exclude_categories=["Cs"]))
programs = st.one_of(
    whole, st.lists(st.sampled_from([f for f in FRAGMENTS if f != "\ud800"]), max_size=20).map("".join)
)


@pytest.mark.threat(47)
@settings(max_examples=300, deadline=None)
@given(st.one_of(soup, soup, st.text(), st.binary(max_size=200)))
@example("=")
@example("thought = '")
@example("{" * 100_000)
@example("code = 1\nx = " + "[" * 100_000)
@example("a" * 100 + "\\" * 1000)
def test_every_reply_gets_an_answer(reply: str | bytes) -> None:
    parsed = ATTP.parse(reply)
    assert isinstance(parsed, Reply)
    is_other = bool(parsed.calls) + (parsed.failure is not None) + parsed.is_refused
    assert is_other == 1 or (is_other == 0 and parsed.text.strip())
    assert isinstance(ATTP.refuse(parsed), str)


@pytest.mark.threat(47)
@settings(max_examples=300, deadline=None)
@given(soup)
def test_only_valid_toml_is_read_without_problems(reply: str) -> None:
    parsed = ATTP.parse(reply)
    if parsed.calls and not parsed.problems:
        assert parsed.calls[0].arguments["code"] == tomllib.loads(reply)["tool_call"]["code"]
    if parsed.calls and parsed.problems and "\ufeff" not in reply:
        try:
            tomllib.loads(reply)
        except tomllib.TOMLDecodeError:
            ast.parse(parsed.calls[0].arguments["code"])


@settings(max_examples=300, deadline=None)
@given(programs.filter(str.strip), st.text(st.characters(exclude_categories=["Cs"])), whole)
@example("x = '''a'''\n", "t", "")
@example('x = """a"""\n', "t", "")
@example("x = '''a''' + \"\"\"b\"\"\" + '\\d'\r\n", "a\nb", '"')
@example('"', "'''", "\r\n")
@example("'", '"""\n', "\\\n")
@example("\n\nx = 1\n\n", "\n", "\x00")
@example("x = '\x00\x7f\x85\u2028'", "\ufeff", "\t")
def test_a_rendered_program_is_read_back_byte_for_byte(code: str, thought: str, target: str) -> None:
    reply = ATTP.render([ToolCall("code_execution", {"code": code})], thought=thought, target=target)
    parsed = ATTP.parse(reply)
    assert ([dict(call.arguments) for call in parsed.calls], parsed.problems) == ([{"code": code}], ())
    assert (parsed.thought, parsed.target) == (thought, target)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["search", "read_file", "print"]), values), min_size=1, max_size=3))
def test_rendered_calls_are_a_program_that_makes_them(calls: list[tuple[str, Any]]) -> None:
    reply = ATTP.render([ToolCall(name, {"query": value, "if": 1}) for name, value in calls])
    made: list[tuple[str, Any]] = []

    def stand_in(name: str) -> Any:
        return lambda *, query, if_: made.append((name, query)) or name

    space = {"search": stand_in("search"), "read_file": stand_in("read_file"), "print_": stand_in("print")}
    exec(ATTP.parse(reply).calls[0].arguments["code"], space)
    assert made == calls
    names = [name for name, _ in calls]
    assert space["__result__"] == (names[0] if len(names) == 1 else names)
