"""The value of a condition on arguments: true, false, or undecided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.processor import thread_s
from toolwire.definition.hostile.patterns import PATTERN_STATES_LIMIT
from toolwire.permission.condition import MISSING, OPERATORS, TEXT_LIMIT, Condition, Pattern, kind_of, value_at
from toolwire.vocabulary.errors import ConfigurationError

YES, NO, PERHAPS = True, False, None
GONE = object()
NO_HOST = "is not a host: write a name as 'example.com', '*.example.com' for those below, no scheme or port"

CASES: list[tuple[str, Any, Any, bool | None]] = [
    ("==", 5, 5, YES),
    ("==", 5, 5.0, YES),
    ("==", 5, 6, NO),
    ("==", 5, "5", PERHAPS),
    ("==", 1, True, PERHAPS),
    ("==", 5, None, PERHAPS),
    ("==", 5, GONE, PERHAPS),
    ("==", "a", "a", YES),
    ("==", "a", "A", PERHAPS),
    ("==", "a", "b", NO),
    ("==", "a", ["a"], PERHAPS),
    ("==", [1, "a"], [1, "a"], YES),
    ("==", [1, "a"], [1, "A"], PERHAPS),
    ("==", [1], [1, 2], NO),
    ("==", {"a": {"b": 1}}, {"a": {"b": 1}}, YES),
    ("==", {"a": 1}, {"a": 1, "b": 2}, NO),
    ("==", {"a": 1}, {"a": True}, PERHAPS),
    ("==", "a", " a ", PERHAPS),
    ("==", " a ", "a", PERHAPS),
    ("==", True, True, YES),
    ("==", {"a": "b"}, {"a": "B"}, PERHAPS),
    ("==", {"a": 1}, {"b": 1}, NO),
    ("==", [1, 2], [1, 3], NO),
    ("==", ["a", 2], ["A", 3], NO),
    ("==", [None], [None], YES),
    ("!=", 5, 6, YES),
    ("!=", 5, 5, NO),
    ("!=", 5, "6", PERHAPS),
    ("!=", "a", "A", PERHAPS),
    ("!=", 5, GONE, PERHAPS),
    ("<", 5, 4.9, YES),
    ("<", 5, 5, NO),
    ("<=", 5, 5, YES),
    ("<=", 5, 10**400, NO),
    (">", 5, 5, NO),
    (">=", 5, 5, YES),
    (">", 5, "6", PERHAPS),
    (">", 5, True, PERHAPS),
    (">", 5, float("nan"), PERHAPS),
    (">", 5, float("inf"), YES),
    (">", 5, None, PERHAPS),
    (">", 5, [6], PERHAPS),
    ("in", ["a", 5], "a", YES),
    ("in", ["a", 5], "b", NO),
    ("in", ["a", 5], 5.0, YES),
    ("in", ["a", "b"], 5, PERHAPS),
    ("in", ["a"], "Ａ", PERHAPS),
    ("in", ["a", "b"], "B", PERHAPS),
    ("in", [True], True, YES),
    ("in", [True], 1, PERHAPS),
    ("in", ["a"], GONE, PERHAPS),
    ("not_in", ["a"], "A", PERHAPS),
    ("not_in", ["a"], GONE, PERHAPS),
    ("not_in", ["a"], "b", YES),
    ("not_in", ["a"], "a", NO),
    ("not_in", ["a"], 1, PERHAPS),
    ("starts_with", "git ", "git log", YES),
    ("starts_with", "git ", "GIT  log", PERHAPS),
    ("starts_with", "git ", " git log", PERHAPS),
    ("starts_with", "git ", "github", NO),
    ("starts_with", "1", 1, PERHAPS),
    ("starts_with", "Git", "gIT", PERHAPS),
    ("starts_with", "git", " x", NO),
    ("ends_with", "git", "x GIT", PERHAPS),
    ("ends_with", "Git", "gIT ", PERHAPS),
    ("contains", "RM", "a rm b", PERHAPS),
    ("ends_with", "@a.example", "x@a.example", YES),
    ("ends_with", "@a.example", "x@A.example ", PERHAPS),
    ("ends_with", "@a.example", "x@a.example.evil", NO),
    ("contains", "rm", "a rm b", YES),
    ("contains", "rm", "r\u200bm", PERHAPS),
    ("contains", "rm", "x", NO),
    ("contains", "a", ["a", "b"], YES),
    ("contains", "a", ["A"], PERHAPS),
    ("contains", "a", ["b", ["a"]], PERHAPS),
    ("contains", "a", ["b"], NO),
    ("contains", "bob", ["bobby"], PERHAPS),
    ("contains", "rm -rf", ["rm", "-rf", "/"], PERHAPS),
    ("contains", " rm -rf", ["rm", "-rf"], PERHAPS),
    ("contains", "RM -rf", ["rm", "-rf"], PERHAPS),
    ("contains", "rm -rf", ["RM", 5, "-rf"], PERHAPS),
    ("contains", "rm -rf", ["rm", "x", "-rf"], NO),
    ("contains", 5, [6, 5], YES),
    ("contains", 5, [6], NO),
    ("contains", 5, ["5"], PERHAPS),
    ("contains", True, [True], YES),
    ("contains", 5, "5", PERHAPS),
    ("contains", "a", {"a": 1}, PERHAPS),
    ("matches", "[a-z]+@a[.]example", "x@a.example", YES),
    ("matches", "[a-z]+@a[.]example", "X@a.example", PERHAPS),
    ("matches", "[a-z]+@a[.]example", "x@a.example.evil", NO),
    ("matches", "a.*", "ab\nc", PERHAPS),
    ("matches", "a*", "a" * TEXT_LIMIT, YES),
    ("matches", "a*", "a" * (TEXT_LIMIT + 1), PERHAPS),
    ("matches", ".*", "\ud800", PERHAPS),
    ("matches", "a", "b\ud800", PERHAPS),
    ("matches", "a", "b\udfff", PERHAPS),
    ("matches", "a", "b\ud7ff", NO),
    ("matches", "a", "b\ue000", NO),
    ("matches", "[A-Z]+", "ab", PERHAPS),
    ("matches", "[A-Z]+", "AB", YES),
    ("matches", "[A-Z]+", "5", NO),
    ("matches", "[a-z]+", " ab ", PERHAPS),
    ("matches", "a", 5, PERHAPS),
    ("exists", None, 0, YES),
    ("exists", None, None, NO),
    ("exists", None, GONE, NO),
    ("absent", None, GONE, YES),
    ("absent", None, None, YES),
    ("absent", None, "", NO),
    ("under", "/srv/data", "/srv/data", YES),
    ("under", "/srv/data/", "/srv//data/./a", YES),
    ("under", "/srv/data", "/srv/database", NO),
    ("under", "/srv/data", "/srv/data/../x", PERHAPS),
    ("under", "/srv/data", "/x/../srv/data/a", PERHAPS),
    ("under", "/srv/data", "srv/data/a", PERHAPS),
    ("under", "/srv/data", "/SRV/data/a", PERHAPS),
    ("under", "/srv/data", "/srv/%64ata", PERHAPS),
    ("under", "/srv/data", "~/a", PERHAPS),
    ("under", "/srv/data", "\\srv\\data", PERHAPS),
    ("under", "/srv/data", "/srv/data\x00", PERHAPS),
    ("under", "/srv/data", "", PERHAPS),
    ("under", "/srv/data", ["/srv/data"], PERHAPS),
    ("under", "data", "data/a", YES),
    ("under", "data", "other/a", NO),
    ("host_in", ["a.example"], "https://a.example/x?y#z", YES),
    ("host_in", ["a.example"], "HTTPS://A.example:8443", YES),
    ("host_in", ["a.example"], "https://a.example.", YES),
    ("host_in", ["a.example"], "https://b.a.example", NO),
    ("host_in", ["*.a.example"], "https://c.b.a.example", YES),
    ("host_in", ["*.a.example"], "https://a.example", NO),
    ("host_in", ["a.example"], "https://xa.example", NO),
    ("host_in", ["*.a.example"], "https://evila.example", NO),
    ("host_in", ["a.example"], "https://a.example@b.example", PERHAPS),
    ("host_in", ["a.example"], "https://b.example\\@a.example", PERHAPS),
    ("host_in", ["a.example"], "https://b.example\t.a.example", PERHAPS),
    ("host_in", ["a.example"], "https://a。example", PERHAPS),
    ("host_in", ["a.example"], "a.example", PERHAPS),
    ("host_in", ["a.example"], "https://", PERHAPS),
    ("host_in", ["a.example"], "https://a.example:x", PERHAPS),
    ("host_in", ["127.0.0.1"], "http://127.0.0.1", YES),
    ("host_in", ["127.0.0.1"], "http://127.1", PERHAPS),
    ("host_in", ["127.0.0.1"], "http://0x7f000001", PERHAPS),
    ("host_in", ["127.0.0.1"], "http://2130706433", PERHAPS),
    ("host_in", ["[::1]"], "http://[0:0::1]", YES),
    ("host_in", ["[::1]"], "http://[::1%25eth0]", PERHAPS),
    ("host_in", ["a.example"], 5, PERHAPS),
]


@pytest.mark.parametrize(("op", "wanted", "value", "told"), CASES)
def test_a_condition_holds_does_not_or_cannot_be_told(op: Any, wanted: Any, value: Any, told: bool | None) -> None:
    condition = Condition(path="/arguments/x", op=op, value=wanted)
    assert condition.holds({} if value is GONE else {"x": value}) is told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/arguments/to/0/name", True),
        ("/arguments/to/1/name", False),
        ("/arguments/to/2/name", None),
        ("/arguments/to/-/name", None),
        ("/arguments/to/²/name", None),
        ("/arguments/a~1b/~0c", True),
        ("/arguments/none/name", None),
    ],
)
def test_a_path_is_a_pointer_into_the_arguments(path: str, told: bool | None) -> None:
    arguments = {"to": [{"name": "ada"}, {"name": "bob"}], "a/b": {"~c": "ada"}}
    assert Condition(path=path, op="==", value="ada").holds(arguments) is told


def test_all_arguments_together_have_a_path_too() -> None:
    same = Condition(path="/arguments", op="==", value={"a": 1})
    given: list[dict[str, Any]] = [{"a": 1}, {"a": 1.0}, {"a": 2}, {"a": 1, "b": 2}, {}]
    assert [same.holds(arguments) for arguments in given] == [True, None, False, False, False]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (5, "number"),
        (5.5, "number"),
        ("5", "text"),
        ([5], "list"),
        ((5,), "list"),
        ({}, "object"),
    ],
)
def test_a_value_has_one_kind(value: Any, kind: str) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize("op", ["in", "not_in", "host_in"])
def test_a_list_of_a_condition_is_kept_as_a_tuple(op: Any) -> None:
    assert Condition(path="/arguments/x", op=op, value=["a.example"]).value == ("a.example",)
    assert Condition(path="/arguments/x", op="==", value=["a"]).value == ["a"]


def test_only_a_condition_that_matches_has_a_pattern() -> None:
    assert Condition(path="/arguments/x", op="==", value="a").pattern is None


def test_a_null_argument_is_found_and_an_absent_one_is_missing() -> None:
    assert value_at({"a": None}, ("a",)) is None
    assert value_at({"a": None}, ("b",)) is MISSING


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Condition(path="/arguments/a/b", op="exists"), "a.b exists"),
        (Condition(path="/arguments/a", op="absent"), "a absent"),
        (Condition(path="/arguments/a", op="in", value=["x", 1]), "a in ['x', 1]"),
        (Condition(path="/arguments", op="==", value={"a": 1}), "arguments == {'a': 1}"),
    ],
)
def test_a_condition_is_shown_with_its_path_operator_and_value(condition: Condition, text: str) -> None:
    assert str(condition) == text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "amount"}, "path='amount': write where in the call, as '/arguments/amount'"),
        ({"path": "/args/amount"}, "path='/args/amount': write where in the call, as '/arguments/amount'"),
        ({"path": None}, "path=None: write where in the call, as '/arguments/amount'"),
        ({"op": "==", "value": None}, "op='==' with value=None: write op='absent' or op='exists' instead"),
        ({"op": "<", "value": "5"}, "op='<' with value='5': write a number"),
        ({"op": "<", "value": True}, "op='<' with value=True: write a number"),
        ({"op": "<", "value": float("nan")}, "op='<' with value=nan: write a number"),
        ({"op": "<=", "value": float("inf")}, "op='<=' with value=inf: write a number"),
        ({"op": "not_in", "value": [None]}, "op='not_in' with value=[None]: write a list of texts or numbers"),
        ({"op": "in", "value": ["a", {}]}, "op='in' with value=['a', {}]: write a list of texts or numbers"),
        ({"op": "absent", "value": 0}, "op='absent' with value=0: leave the value out"),
        ({"op": "!=", "value": None}, "op='!=' with value=None: write op='absent' or op='exists' instead"),
        ({"op": "contains", "value": ["a"]}, "op='contains' with value=['a']: write a string or a number"),
        ({"op": "matches", "value": ""}, "op='matches' with value='': write a string"),
        ({"op": "matches", "value": 5}, "op='matches' with value=5: write a string"),
        (
            {"op": "host_in", "value": ["a.example", 5]},
            "op='host_in' with value=['a.example', 5]: write a list of host names, as ['example.com', '*.example.org']",
        ),
        (
            {"op": "host_in", "value": ["a.example", "b.example:80"]},
            f"op='host_in' with value=['a.example', 'b.example:80']: 'b.example:80' {NO_HOST}",
        ),
        ({"op": "is"}, f"op='is': write one of {', '.join(OPERATORS)}"),
        ({"op": "in", "value": "abc"}, "op='in' with value='abc': write a list of texts or numbers"),
        ({"op": "in", "value": []}, "op='in' with value=[]: write a list of texts or numbers"),
        ({"op": "exists", "value": True}, "op='exists' with value=True: leave the value out"),
        ({"op": "contains", "value": ""}, "op='contains' with value='': write a string or a number"),
        ({"op": "starts_with", "value": ""}, "op='starts_with' with value='': write a string"),
        (
            {"op": "under", "value": "../x"},
            "op='under' with value='../x': write a folder without '..', '~', backslashes and escapes",
        ),
        (
            {"op": "host_in", "value": "a.example"},
            "op='host_in' with value='a.example': write a list of host names, as ['example.com', '*.example.org']",
        ),
        (
            {"op": "host_in", "value": ["https://a.example"]},
            f"op='host_in' with value=['https://a.example']: 'https://a.example' {NO_HOST}",
        ),
        ({"op": "matches", "value": "(a"}, "op='matches' with value='(a': unclosed group"),
    ],
)
def test_a_condition_that_is_none_is_refused_where_it_is_written(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Condition(**{"path": "/arguments/x", "op": "==", "value": 1, **given})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("a*b", ["b", "aab"], ["a", "ba"]),
        ("(?:a|bc)+d?", ["a", "bcad"], ["", "d"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,3}b", ["ab", "aaab"], ["b", "aaaab"]),
        ("x|", ["x", ""], ["xx"]),
        (r"\d{4}-\d\d", ["2024-05"], ["2024-5", "٢٠٢٤-٠٥"]),
        (r"[^;&|]*", ["ls -l"], ["ls; rm"]),
        (r"a\.b\\", ["a.b\\"], ["axb\\"]),
        (".", ["x", "é"], ["", "xx", "\n", "\r", "\u2028"]),
        ("^a|b$", ["a", "b"], ["ab", "ax", "xb", "b\n"]),
        ("(?m)^a$", ["a"], ["a\na", "a\n"]),
        ("[a&&b[]", ["a", "&", "["], ["]"]),
        ("", [""], ["x"]),
    ],
)
def test_a_pattern_fits_whole_texts(pattern: str, fits: list[str], misses: list[str]) -> None:
    assert [text for text in fits + misses if Pattern(pattern).matches(text)] == fits


@pytest.mark.parametrize(
    "pattern", ["*a", "(?=a)", "(?<!a)", r"(a)\1", "[a", "a{3,1}", "a)", "a)|(b", "(?x)a#", "((){999}){999}"]
)
def test_an_expression_that_the_engine_cannot_run_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r".{10}"):
        Pattern(pattern)


def test_a_pattern_has_a_limit_of_states() -> None:
    assert Pattern(f"a{{{PATTERN_STATES_LIMIT - 10}}}").matches("a" * TEXT_LIMIT) is False
    with pytest.raises(ValueError, match=f"it has more than {PATTERN_STATES_LIMIT:,} states"):
        Pattern(f"a{{{PATTERN_STATES_LIMIT + 10}}}")


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "a*a*a*a*a*a*a*b", "(.*.*.*)*x", "([a-z]+)*[0-9]"]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    assert thread_s(lambda: Pattern(pattern).matches("a" * TEXT_LIMIT)) < 1
    assert not Pattern(pattern).matches("a" * TEXT_LIMIT)
