"""Rules that can never take effect are found when they are loaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pytest

from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.permission.policy import Policy
from toolwire.permission.policy_file import FILE_LIMIT_BYTES, load_policy
from toolwire.vocabulary.errors import ConfigurationError

Mode = Literal["slow", "fast"]


def pay(amount: float, to: str, memo: str | None = None, mode: Mode = "slow", now: bool = False) -> None:
    """Pays."""


def search(query: str, tags: list[str], page: int = 1) -> None:
    """Searches."""


def tools() -> dict[str, Tool]:
    made = {"pay": from_function(pay), "search": from_function(search)}
    made["bank/refund"] = from_schema(
        "bank/refund",
        input_schema={
            "type": "object",
            "properties": {
                "amount": {"$ref": "#/$defs/money"},
                "by": {"type": "object", "properties": {"name": {}}},
                "code": {"allOf": [{"type": "string"}, {"$ref": "#/$defs/code"}]},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
                "way": {"anyOf": [{"enum": [1, 2]}, {"oneOf": [{"const": "all"}, {"type": "null"}]}]},
            },
            "$defs": {"money": {"type": "integer", "minimum": 1}, "code": {"enum": ["a", "b"]}},
        },
    )
    made["drop"] = from_function(pay, name="drop", permission="deny")
    return made


NOW = 1_000.0


def when(path: str, op: str, value: Any = None, **rule: Any) -> dict[str, Any]:
    return {"effect": "auto", "tool": "pay", **rule, "when": [{"path": path, "op": op, "value": value}]}


def both(one: tuple[str, Any], other: tuple[str, Any], path: str = "/arguments/amount") -> dict[str, Any]:
    conditions = [{"path": path, "op": op, "value": value} for op, value in (one, other)]
    return {"effect": "deny", "tool": "pay", "when": conditions}


def example(word: str, call: dict[str, Any], **rule: Any) -> dict[str, Any]:
    return {**when("/arguments/amount", "<=", 10), word: [call], **rule}


OK = {"amount": 5, "to": "ada"}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"tool": "pya"}, "there is no tool 'pya': did you mean 'pay'? mend the name, or set optional = true"),
    ({"tool": "Pay"}, "there is no tool 'Pay': did you mean 'pay'? mend the name, or set optional = true"),
    ({"tool": "zzz"}, "there is no tool 'zzz': mend the name, or set optional = true"),
    ({"tool": "x_*"}, "no tool fits 'x_*': it never hits; mend the pattern, or set optional = true"),
    ({"tool": "bank/*/x"}, "no tool fits 'bank/*/x': it never hits; mend the pattern, or set optional = true"),
    ({"tool": "shop/*"}, "no tool fits 'shop/*': it never hits; mend the pattern, or set optional = true"),
    ({"tool": "drop"}, "an auto rule never lifts deny: change the permission of 'drop' itself"),
    ({"tool": "pay", "expires_at": 999}, "it has expired: take it out, or set another expires_at"),
    (
        when("/arguments/amont", "<=", 10),
        "no tool that it is about ('pay') takes '/arguments/amont'; did you mean '/arguments/amount'?",
    ),
    (
        when("/arguments/x", "<=", 10),
        "no tool that it is about ('pay') takes '/arguments/x'; there are amount, memo, mode, now, to",
    ),
    (
        when("/arguments/to/name", "==", "a"),
        "no tool that it is about ('pay') takes '/arguments/to/name'; there are amount, memo, mode, now, to",
    ),
    (
        when("/arguments/by/nam", "==", "a", tool="bank/refund"),
        "no tool that it is about ('bank/refund') takes '/arguments/by/nam'; there are amount, by, code, pair, way",
    ),
    (
        when("/arguments/tags/first", "==", "a", tool="search"),
        "no tool that it is about ('search') takes '/arguments/tags/first'; there are page, query, tags",
    ),
    (
        when("/arguments/amount", "starts_with", "1"),
        (
            "it can never hit 'pay': amount starts_with '1' looks at a string, and '/arguments/amount' is a number in "
            "its schema"
        ),
    ),
    (
        when("/arguments/amount", "==", "5"),
        "it can never hit 'pay': amount == '5' looks at a string, and '/arguments/amount' is a number in its schema",
    ),
    (
        when("/arguments/to", ">", 5),
        "it can never hit 'pay': to > 5 looks at a number, and '/arguments/to' is a string in its schema",
    ),
    (
        when("/arguments/memo", "in", [1, 2]),
        (
            "it can never hit 'pay': memo in [1, 2] looks at a number, and '/arguments/memo' is a string or null in "
            "its schema"
        ),
    ),
    (
        when("/arguments/now", "==", "yes"),
        "it can never hit 'pay': now == 'yes' looks at a string, and '/arguments/now' is true or false in its schema",
    ),
    (
        when("/arguments/now", "contains", "y"),
        (
            "it can never hit 'pay': now contains 'y' looks at a string or a list, and '/arguments/now' is true or "
            "false in its schema"
        ),
    ),
    (
        when("/arguments/tags", "under", "/a", tool="search"),
        "it can never hit 'search': tags under '/a' looks at a string, and '/arguments/tags' is a list in its schema",
    ),
    (
        when("/arguments/mode", "==", "quick"),
        "it can never hit 'pay': mode == 'quick' can never hold among 'slow', 'fast'",
    ),
    (
        when("/arguments/mode", "in", ["Slow", "quick"]),
        "it can never hit 'pay': mode in ['Slow', 'quick'] can never hold among 'slow', 'fast'",
    ),
    (
        when("/arguments/mode", "starts_with", "x"),
        "it can never hit 'pay': mode starts_with 'x' can never hold among 'slow', 'fast'",
    ),
    (
        when("/arguments/mode", "not_in", ["slow", "fast"]),
        "it can never hit 'pay': mode not_in ['slow', 'fast'] can never hold among 'slow', 'fast'",
    ),
    (
        when("/arguments/mode", "ends_with", "x"),
        "it can never hit 'pay': mode ends_with 'x' can never hold among 'slow', 'fast'",
    ),
    (
        when("/arguments/now", "in", [1, 0]),
        "it can never hit 'pay': now in [1, 0] looks at a number, and '/arguments/now' is true or false in its schema",
    ),
    (
        when("/arguments/way", "==", 3, tool="bank/refund"),
        "it can never hit 'bank/refund': way == 3 can never hold among 1, 2, 'all', None",
    ),
    (
        when("/arguments/way", "contains", 5, tool="bank/refund"),
        (
            "it can never hit 'bank/refund': way contains 5 looks at a list, and '/arguments/way' is a string or a "
            "number or null in its schema"
        ),
    ),
    (
        when("/arguments/code", "==", "c", tool="bank/refund"),
        "it can never hit 'bank/refund': code == 'c' can never hold among 'a', 'b'",
    ),
    (
        when("/arguments/code", "in", ["c", "d"], tool="bank/refund"),
        "it can never hit 'bank/refund': code in ['c', 'd'] can never hold among 'a', 'b'",
    ),
    (
        when("/arguments/way", "starts_with", "b", tool="bank/*"),
        "it can never hit 'bank/refund': way starts_with 'b' can never hold among 1, 2, 'all', None",
    ),
    (
        when("/arguments/page", "contains", "1", tool="search"),
        (
            "it can never hit 'search': page contains '1' looks at a string or a list, and '/arguments/page' is a "
            "number in its schema"
        ),
    ),
    (
        {"tool": "bank/refnd"},
        "there is no tool 'bank/refnd': did you mean 'bank/refund'? mend the name, or set optional = true",
    ),
    (
        when("/arguments/pair/1", "==", 5, tool="bank/refund"),
        (
            "it can never hit 'bank/refund': pair.1 == 5 looks at a number, and '/arguments/pair/1' is a string in its "
            "schema"
        ),
    ),
    (
        example("match", {"arguments": {**OK, "amount": 11}}),
        "match {'arguments': {'amount': 11, 'to': 'ada'}}: the rule does not hit it: amount <= 10 does not hold",
    ),
    (
        example("not_match", {"arguments": OK}),
        "not_match {'arguments': {'amount': 5, 'to': 'ada'}}: the rule hits it",
    ),
    (
        example("match", {"arguments": {"amount": 5}}),
        "match {'arguments': {'amount': 5}} is not a call of 'pay': 'to' is missing: give a string.",
    ),
    (
        example("match", {"tool": "search", "arguments": OK}),
        "match {'tool': 'search', 'arguments': {'amount': 5, 'to': 'ada'}}: add tool = one of 'pay'",
    ),
    (
        {"tool": "[ps]*", "match": [{"arguments": OK}]},
        "match {'arguments': {'amount': 5, 'to': 'ada'}}: add tool = one of 'pay', 'search'",
    ),
    (
        when("/arguments/amount", ">", 5, tool="*", effect="deny"),
        (
            "'search' have no 'amount', so that it would hit all their calls: name the tools it is about, or add "
            "{path = '/arguments/amount', op = 'exists'}"
        ),
    ),
]


def told(rules: Iterable[dict[str, Any]]) -> list[str]:
    policy = Policy([{"effect": "auto", **rule} for rule in rules], clock=lambda: NOW)
    return [str(problem) for problem in policy.check(tools())]


@pytest.mark.threat(10)
@pytest.mark.parametrize(("rule", "message"), BAD, ids=range(len(BAD)))
def test_a_rule_that_can_never_hit_is_found(rule: dict[str, Any], message: str) -> None:
    assert told([rule]) == [f"rule 1: {message}"]


@pytest.mark.threat(10)
def test_forty_are_found_and_none_of_them_by_finding_all() -> None:
    assert len(BAD) >= 40
    assert told(GOOD) == []


GOOD: list[dict[str, Any]] = [
    {"tool": "*"},
    {"tool": "pay"},
    {"tool": "bank/*"},
    {"tool": "zzz", "optional": True},
    {"tool": "code_execution"},
    {"tool": "pay", "expires_at": 1_001},
    {"tool": "drop", "effect": "confirm"},
    when("/arguments/amont", "<=", 10, optional=True),
    when("/arguments/amount", "<=", 10),
    when("/arguments/memo", "absent"),
    when("/arguments/mode", "==", "slow"),
    when("/arguments/tags", "contains", "a", tool="search"),
    when("/arguments/tags/0", "==", "a", tool="search"),
    when("/arguments/by/name", "==", "a", tool="bank/refund"),
    when("/arguments/amount", ">=", 100, tool="bank/refund"),
    when("/arguments/way", "absent", tool="bank/refund"),
    when("/arguments/way", "in", ["all", 7], tool="bank/refund"),
    when("/arguments/code", "starts_with", "a", tool="bank/refund"),
    when("/arguments/pair/0", ">", 5, tool="bank/refund"),
    when("/arguments/amount", "<=", 10, tool="*"),
    both((">", 5), ("<", 10)),
    both((">=", 10), ("<=", 10)),
    both(("starts_with", "a"), ("starts_with", "ab"), "/arguments/to"),
    both(("in", [1, 2]), (">", 1)),
    {
        "effect": "deny",
        "tool": "*",
        "when": [
            {"path": "/arguments/amount", "op": "exists"},
            {"path": "/arguments/amount", "op": ">", "value": 5},
        ],
        "match": [{"tool": "pay", "arguments": {**OK, "amount": 6}}],
        "not_match": [{"tool": "search", "arguments": {"query": "x", "tags": []}}],
    },
    example("match", {"arguments": OK}, not_match=[{"arguments": {**OK, "amount": 11}}]),
]


def test_one_id_for_two_rules_is_found() -> None:
    rule = {"tool": "pay", "id": "a"}
    assert told([rule, rule]) == ["rule 2: rule 1 has the id 'a' too: give each its own"]


def test_a_permission_for_a_tool_that_is_not_there_is_found() -> None:
    policy = Policy(defaults={"pya": "deny"})
    assert [str(problem) for problem in policy.check(tools())] == [
        "permissions: there is no tool 'pya': did you mean 'pay'? mend the name"
    ]


def test_where_there_are_more_tools_only_rules_that_name_one_are_looked_at() -> None:
    policy = Policy([{"effect": "auto", "tool": "zzz"}, {"effect": "auto", **when("/arguments/x", "exists")}])
    assert [problem.place for problem in policy.check(tools(), is_whole=False)] == ["rule 2"]


FILE = """
[permissions]
search = "confirm"

[approvers]
spend = ["ada"]

[[rule]]
effect = "auto"
tool = "pay"
when = [{path = "/arguments/amount", op = "<=", value = 10}]
expires_at = 2030-01-01T00:00:00Z

[[rule]]
effect = "deny"
tool = "drop"
note = "never"
"""


def test_a_file_holds_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(FILE)
    policy = load_policy(path)
    assert [rule.source for rule in policy.rules] == [f"{path}, line 8, rule 1", f"{path}, line 14, rule 2"]
    assert [str(rule) for rule in policy.rules] == ["rule auto 'pay' when amount <= 10", "rule deny 'drop'"]
    assert policy.rules[0].ends_at == 1_893_456_000
    assert (policy.defaults, policy.approvers) == ({"search": "confirm"}, {"spend": frozenset({"ada"})})


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("[[rule]", ["it is not TOML: Expected ']]' at the end of an array declaration (at line 1, column 7)"]),
        ("rules = 1", ["unknown key 'rules': there are [[rule]], [permissions], [approvers]"]),
        ("[rule]\neffect='auto'", ["rule is one table: write [[rule]] above it, in double brackets"]),
        ("permissions = 1", ["permissions is not a table: write [permissions], and below it a line for each"]),
        ("[permissions]\npay='never'", ["permissions={'pay': 'never'}: write one of auto, confirm, deny"]),
        ("rule = [1]", [", rule 1: 1 is not a rule: write Rule(...), or a dict with its fields"]),
    ],
)
def test_a_file_that_holds_none_is_refused(tmp_path: Path, text: str, messages: list[str]) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_policy(path)
    assert str(caught.value).replace(f"{path}: ", "").replace(f"{path}", "").split("\n") == messages


def test_all_that_is_wrong_in_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[[rule]]\ntool = "a"\n\n[[rule]]\neffect = "auto"\n\n[permissions]\na = "no"\n')
    with pytest.raises(ConfigurationError) as caught:
        load_policy(path)
    assert str(caught.value).split("\n") == [
        f"{path}, line 1, rule 1: 'effect' is not there: write one of auto, confirm, deny",
        f"{path}, line 4, rule 2: 'tool' is not there: write a tool's name, or '*' for all tools",
        f"{path}: permissions={{'a': 'no'}}: write one of auto, confirm, deny",
    ]


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_may_be_so_long_and_no_longer(tmp_path: Path, more: int) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"#" * (FILE_LIMIT_BYTES + more))
    if not more:
        assert load_policy(path).rules == ()
        return
    with pytest.raises(ConfigurationError) as caught:
        load_policy(path)
    assert str(caught.value) == f"{path} is longer than 1,048,576 bytes"


def test_a_file_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_policy(tmp_path / "no.toml")
    assert str(caught.value) == f"the policy file {tmp_path / 'no.toml'} cannot be read: No such file or directory"
