"""The examples and tables of the page on permissions are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from toolwire import Policy, Rule, Session, ToolSpec, load_policy
from toolwire.permission.condition import OPERATORS
from toolwire.vocabulary.calls import Reply, ToolCall

PAGE = (ROOT / "docs/permissions.md").read_text("utf-8")


def block(language: str) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        ({"amount": 5, "to": "ada"}, "paid 5 to ada"),
        ({"amount": 11, "to": "ada"}, "approval_required"),
        ({"amount": 5, "to": "mallory"}, "denied"),
        ({"amount": 5, "to": "Mallory"}, "denied"),
    ],
)
async def test_the_rules_of_the_page_do_what_it_says(arguments: dict[str, object], ends: str) -> None:
    names: dict[str, object] = {}
    exec(compile(block("python"), "permissions.md", "exec", dont_inherit=True), names)
    session = names["session"]
    assert isinstance(session, Session)
    (result,) = (await session.turn(Reply(calls=(ToolCall("pay", arguments),)))).results
    assert (result.data if result.failure is None else result.failure.kind) == ends


def test_the_file_of_the_page_is_one(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(block("toml"))
    policy = load_policy(path)

    def pay(amount: float, to: str) -> None:
        """Pays."""

    assert policy.check({"pay": ToolSpec.from_function(pay)}) == []
    assert [rule.id for rule in policy.rules] == ["small payments"]


def test_the_page_has_every_operator() -> None:
    rows = re.findall(r"^\| (`.*?) \| ", PAGE, re.MULTILINE)
    assert [op for row in rows for op in re.findall(r"`(.+?)`", row)] == list(OPERATORS)


def test_a_rule_may_be_written_both_ways() -> None:
    condition = {"path": "/arguments/amount", "op": "<=", "value": 10}
    rule = Rule(effect="auto", tool="pay", when=[condition])
    assert Policy([rule]).digest == Policy([{"effect": "auto", "tool": "pay", "when": [condition]}]).digest
