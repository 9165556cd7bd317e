"""Reading the JSON of arguments: strict, with slips, refused; and that no value is ever invented."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processor import LINEAR, growth, milliseconds
from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.lenient_json import LenientReading, Scalar, check_against_text, read_lenient
from toolwire.protocols.reading.repair import fit_arguments, read_arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "filter": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "string"}, {"type": "array"}]},
    },
    "$defs": {"Filter": {"type": "object", "properties": {"ids": {"type": "array"}, "note": {"type": "string"}}}},
}

REPAIRED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "trailing comma": ('{"tags": ["a",], }', {"tags": ["a"]}, ["An extra comma was left out."]),
    "single quotes": ("{'query': 'it''s'}".replace("''", "'"), {"query": "it's"}, [
        "Strings in ' were read as if in double quotes.",
        "Quotes inside of a string stand without a backslash; they were read as a part of it.",
    ]),
    "Python words": ('{"a": True, "b": None}', {"a": True, "b": None}, [
        "True was read as true.", "None was read as null.",
    ]),
    "comments": ('{"a": 1, // one\n /* two */ "b": 2}', {"a": 1, "b": 2}, ["A comment was left out."]),
    "keys without quotes": ('{query: "x"}', {"query": "x"}, ["Keys without quotes were read as strings."]),
    "curly quotes": ("{“query”: “你好”}", {"query": "你好"}, ["Strings in “ were read as if in double quotes."]),
    "full-width marks": ('{"a"：1，"b"：2}', {"a": 1, "b": 2}, ["： was read as :.", "， was read as ,."]),
    "fence": ('```json\n{"a": 1}\n```', {"a": 1}, ["The code fence around the JSON was left out."]),
    "path": (r'{"query": "C:\path\new"}', {"query": r"C:\path\new"}, [
        "The backslashes of a path stand alone; they were kept.",
    ]),
    "path with a name that looks like an escape": (r'{"query": "C:\x64\bin"}', {"query": r"C:\x64\bin"}, [
        "The backslashes of a path stand alone; they were kept.",
    ]),
    "network path": (r'{"query": "\\srv\docs\new"}', {"query": r"\\srv\docs\new"}, [
        "The backslashes of a path stand alone; they were kept.",
    ]),
    "pattern": (r'{"query": "\d+\.\w"}', {"query": r"\d+\.\w"}, [r"JSON does not know \.; its backslash was kept."]),
    "escaped apostrophe": (r'{"query": "it\'s\n"}', {"query": "it's\n"}, [r"\' was read as '."]),
    "raw line break": ('{"query": "a\nb"}', {"query": "a\nb"}, [
        "Line breaks or tabs stand as they are inside of a string; they were kept.",
    ]),
    "inner quotes": ('{"query": "say "hi" to all", "limit": 1}', {"query": 'say "hi" to all', "limit": 1}, [
        "Quotes inside of a string stand without a backslash; they were read as a part of it.",
    ]),
    "brackets too many": ('{"a": 1}}', {"a": 1}, ["Extra closing brackets were left out."]),
    "a string of JSON": (r'"{\"query\": \"x\"}"', {"query": "x"}, [
        "The arguments stand in a JSON string; it was decoded.",
    ]),
    "text for a list": (r'{"tags": "[\"a\", \"b\"]"}', {"tags": ["a", "b"]}, [
        "`tags` is a JSON text where the tool takes a value; it was decoded.",
    ]),
    "text for an object, with a text in it": (r'{"filter": "{\"ids\": \"[1]\"}"}', {"filter": {"ids": "[1]"}}, [
        "`filter` is a JSON text where the tool takes a value; it was decoded.",
    ]),
    "a number without its zero": ('{"a": .25, "b": [-.5, "x"]}', {"a": 0.25, "b": [-0.5, "x"]}, [
        ".25 was read as 0.25.", "-.5 was read as -0.5.",
    ]),
    "digits in groups": ('{"a": 82_461_110, "b": -1_000.5}', {"a": 82_461_110, "b": -1000.5}, [
        "82_461_110 was read as 82461110.", "-1_000.5 was read as -1000.5.",
    ]),
    "words in capitals": ('{"a": TRUE, "b": [FALSE, NULL]}', {"a": True, "b": [False, None]}, [
        "TRUE was read as true.", "FALSE was read as false.", "NULL was read as null.",
    ]),
    "a comma missing before a new line": ('{"query": "x"\n  "limit": 3\n"a": [1]\n\n "b": {}}',
        {"query": "x", "limit": 3, "a": [1], "b": {}},
        ["A comma is missing before a key on a new line; the key was read as the next one."],
    ),
    "fence on one line": ('```json {"a": 1} ```', {"a": 1}, ["The code fence around the JSON was left out."]),
    "fence on one line without a word": ('```{"a": 1}```', {"a": 1}, ["The code fence around the JSON was left out."]),
    "odd space": ('{"a":\u00a01}', {"a": 1}, ["A space of another kind was left out."]),
}  # fmt: skip

REFUSED: dict[str, tuple[str, str]] = {
    "three quotes": (
        '{"query": """def f():\n  return 1\n"""}',
        'A string stands in """. Write it in " with \\n for each line break.',
    ),
    "escaped as a whole": (
        r"{\"query\": \"x\"}",
        'The JSON wants a key in double quotes where \'\\\\"query\\\\": \\\\"x\\\\"}\' stands.',
    ),
    "key twice": ('{"a": 1, "a": 2}', "The key 'a' is given twice. Write it once."),
    "key twice, damaged": ('{"a": 1, "a": 2,}', "The key 'a' is given twice. Write it once."),
    "NaN": ('{"a": NaN}', "JSON has no NaN. Write a number, a string or null."),
    "NaN, damaged": ("{'a': NaN}", "JSON has no NaN. Write a number, a string or null."),
    "huge number": ('{"a": 1e999}', "The number 1e999 is too large. Write a smaller one, or a string."),
    "a lone surrogate": (
        r'{"a": "\ud800"}',
        "A string holds a lone surrogate, U+D800. Write the whole character.",
    ),
    "depth": (
        '{"a": ' + "[" * 64 + "]" * 64 + "}",
        "Brackets are nested deeper than 64 levels. Write a flatter value.",
    ),
    "digits": ('{"a": ' + "1" * 4301 + "}", "A number has 4301 digits; the limit is 4300."),
    "long key": ('{"' + "k" * 257 + '": 1}', "The key 'kkkkkkkkkkkkkkkkkkkk'... has 257 characters; the limit is 256."),
    "string cut off": (
        '{"query": "x',
        "The JSON ends inside of a string: it was cut off, so it was not run. Make it shorter.",
    ),
    "object cut off": (
        '{"filter": {"ids": [1]}',
        "The JSON ends before it is closed: it was cut off, so it was not run. Make it shorter.",
    ),
    "cut off behind a comma": (
        '{"limit": 1,',
        "The JSON ends before it is closed: it was cut off, so it was not run. Make it shorter.",
    ),
    "value missing": ('{"query": }', "The JSON wants a value where '}' stands."),
    "bare word": ('{"query": hello}', "The JSON wants a value; text stands in double quotes where 'hello}' stands."),
    "leading zero": ('{"a": 007}', "The JSON wants a value where '007}' stands."),
    "two objects": (
        '{"a": 1} {"b": 2}',
        "'{\"b\": 2}' follows the JSON. Write one JSON value and nothing after it.",
    ),
    "comma missing": (
        '{"a": "x" "b": "y"}',
        'It is not clear where the string \'"x"\' ends. Inside of a string write each quote as \\".',
    ),
    "comma missing before a key on the same line": (
        '{"a": 1 "b": 2}',
        "The JSON wants a comma or } where '\"b\": 2}' stands.",
    ),
    "item comma missing on a new line": (
        '{"a": [1\n2]}',
        "The JSON wants a comma or ] where '2]}' stands.",
    ),
    "a quoted line that could be a key": (
        '{"a": "say "b\n"c": "d"}',
        'It is not clear where the string \'"say "b\\n"\' ends. Inside of a string write each quote as \\".',
    ),
    "groups that do not begin with a digit": (
        '{"a": _1}',
        "The JSON wants a value; text stands in double quotes where '_1}' stands.",
    ),
    "a group without digits": ('{"a": 1__0}', "The JSON wants a value where '1__0}' stands."),
    "item comma missing": (
        '{"a": ["x" "y"]}',
        'It is not clear where the string \'"x"\' ends. Inside of a string write each quote as \\".',
    ),
    "odd inner quote": (
        '{"a": "say "x", "b": "y"}',
        'It is not clear where the string \'"say "x"\' ends. Inside of a string write each quote as \\".',
    ),
    "pattern or line break": (
        r'{"a": "\d+\n"}',
        (
            r"A string holds \d, which JSON does not know, so \n has two readings. "
            r"Write each backslash that is meant as \\."
        ),
    ),
    "network path or what Python prints": (
        r"{'a': '\\0\x1f'}",
        (
            r"A string holds \x, which JSON does not know, so \x has two readings. "
            r"Write each backslash that is meant as \\."
        ),
    ),
    "path or what Python prints": (
        r"{'a': 'A:\x1f'}",
        (
            r"A string holds \x, which JSON does not know, so \x has two readings. "
            r"Write each backslash that is meant as \\."
        ),
    ),
    "list": ("[1]", "The arguments are a list. Write one JSON object with the parameters' names as keys."),
    "nothing": ("", "There are no arguments. Write one JSON object with the parameters' names as keys."),
    "schema": (
        '{"type": "object", "properties": {"query": {"type": "string"}}}',
        (
            "The arguments are a JSON Schema, not values. "
            "Write the parameters' names (query, limit, tags, filter, either) with their values."
        ),
    ),
    "schema for a value": (
        '{"query": {"type": "string", "description": "What to find"}}',
        "`query` is a piece of JSON Schema, not a value. Write the value itself.",
    ),
}


@pytest.mark.parametrize(("text", "arguments", "told"), REPAIRED.values(), ids=REPAIRED)
def test_a_slip_with_one_reading_is_read_and_told(text: str, arguments: dict[str, Any], told: list[str]) -> None:
    found, problems = read_arguments(text, SCHEMA)
    assert found == arguments
    assert [problem.message for problem in problems] == told
    assert all(problem.repaired for problem in problems)


@pytest.mark.threat(45)
@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_ambiguous_text_is_refused_with_its_reason(text: str, reason: str) -> None:
    found, problems = read_arguments(text, SCHEMA)
    assert found is None
    assert [(problem.message, problem.repaired) for problem in problems] == [(reason, False)]


def test_a_text_is_decoded_only_where_the_schema_takes_none() -> None:
    text = json.dumps({"query": "[1]", "either": "[1]", "other": "[1]", "filter": "null", "tags": "{}"})
    assert read_arguments(text, SCHEMA) == (json.loads(text), ())
    assert read_arguments(r'{"tags": "[1]"}', None) == ({"tags": "[1]"}, ())


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        ("integer", [24], 24),
        ("number", [24], 24),
        ("number", [2.5], 2.5),
        ("boolean", [False], False),
        (["integer", "null"], [24], 24),
        ("integer", [24, 36], [24, 36]),
        ("integer", [True], [True]),
        ("integer", [2.5], [2.5]),
        ("integer", [[24]], [[24]]),
        ("string", ["24"], ["24"]),
        (["integer", "string"], [24], [24]),
        ("array", [24], [24]),
        (["integer", "array"], [24], [24]),
    ],
)
def test_the_only_item_of_a_list_is_taken_where_the_tool_takes_only_such_a_value(
    kind: Any, given: Any, taken: Any
) -> None:
    fitted, problems = fit_arguments({"it": given}, {"type": "object", "properties": {"it": {"type": kind}}})
    assert (fitted, type(fitted["it"])) == ({"it": taken}, type(taken))
    told = "`it` is a list where the tool takes one value; its only item was taken."
    assert [problem.message for problem in problems] == ([] if taken == given else [told])


def test_an_empty_text_means_no_arguments_only_for_tools_without_any() -> None:
    assert read_arguments(" ", {"type": "object", "properties": {}})[0] == {}


def test_a_tool_that_takes_schemas_is_given_them() -> None:
    schema = {"type": "object", "properties": {"properties": {"type": "object"}, "type": {"type": "string"}}}
    arguments = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert fit_arguments(arguments, schema) == (arguments, ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), JSON, max_size=5))
def test_strict_json_is_read_as_the_standard_library_reads_it(arguments: dict[str, Any]) -> None:
    assert read_arguments(json.dumps(arguments)) == (arguments, ())
    assert read_arguments(json.dumps(arguments, ensure_ascii=False, indent=1)) == (arguments, ())


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), JSON, max_size=5))
def test_the_lenient_reader_reads_strict_json_as_it_is_or_refuses_it(arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    try:
        found = read_lenient(text)
    except Refusal:
        return
    assert found.value == arguments


@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3))
def test_python_literals_are_read_exactly_or_refused(arguments: dict[str, Any]) -> None:
    found, problems = read_arguments(repr(arguments))
    assert found == arguments or (found is None and not problems[0].repaired)


@given(st.text("{}[]:,\"'\\ntrue10 x“”,：/*`#\n", max_size=40))
def test_nothing_is_invented_and_nothing_raised(text: str) -> None:
    found, problems = read_arguments(text)
    if found is None:
        assert [problem.repaired for problem in problems] == [False]
        return
    for word in _words(found):
        # Without its backslashes every word is a piece of the text without its own.
        assert word.replace("\\", "").replace("\n", "n") in text.replace("\\", "").replace("\n", "n")


@given(JSON, st.data())
def test_a_text_that_is_cut_off_never_gives_arguments(value: Any, data: st.DataObject) -> None:
    text = json.dumps({"a": value}, ensure_ascii=False)
    end = data.draw(st.integers(1, len(text) - 1))
    assert read_arguments(text[:end])[0] is None


def test_a_value_that_is_not_in_the_text_is_caught() -> None:
    lenient = LenientReading(
        value={"a": "invented"}, end=9, problems=(), said=(Scalar("a", "a"), Scalar("invented", "x"))
    )
    with pytest.raises(Refusal):
        check_against_text(lenient)
    check_against_text(LenientReading(value={"a": "x"}, end=9, problems=(), said=(Scalar("a", "a"), Scalar("x", "x"))))


LISTS = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array"}}}}
SIZE = 65_536
LIMIT_MS = 100
PUMPS: dict[str, Callable[[int], str]] = {
    "quotes": lambda n: '{"a": "' + '"x ' * (n // 3),
    "nesting": lambda n: "[" * n,
    "objects": lambda n: '{"a":' * (n // 5),
    "single quotes": lambda n: "{'a':[" + "'b'," * (n // 4) + "]}",
    "wrong escapes": lambda n: '{"a": "' + "\\p" * (n // 2) + '"}',
    "inner quotes": lambda n: '{"a": "' + 'say "x", ' * (n // 9) + '"}',
    "lists": lambda n: '{"a":[' + "[]," * (n // 3) + "]}",
    "comments": lambda n: "{" + "/**/" * (n // 4) + "}",
    "fences": lambda n: "```\n" + ("\n```" + " " * 100 + "x") * (n // 105),
    "spaces": lambda n: "{'a'" + " " * n + "x",
    "apostrophes": lambda n: "{'a': '" + "\\'" * (n // 2) + "'}",
    "texts of lists": lambda n: '{"a":[' + '"[1,]",' * (n // 7) + "[]]}",
}


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_four_times_the_text_takes_about_four_times_the_time(pump: Callable[[int], str]) -> None:
    assert growth(lambda text: read_arguments(text, LISTS), pump(SIZE // 4), pump(SIZE)) <= LINEAR


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_the_worst_text_is_read_in_time(pump: Callable[[int], str]) -> None:
    text = pump(SIZE)
    assert milliseconds(lambda: read_arguments(text, LISTS), enough=LIMIT_MS) <= LIMIT_MS


def _words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for key, item in value.items() for word in [key, *_words(item)]]
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [value] if isinstance(value, str) else []
