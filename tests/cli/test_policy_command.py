"""`toolwire policy`, and the policy file that every command honours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import run_here
from tests.cli.conftest import Write
from toolwire.cli.exit_codes import ExitCode

BANK = '''
from toolwire import tool


@tool(permission="confirm")
def pay(amount: float, to: str) -> str:
    """Pays somebody."""
    return f"paid {amount:g} to {to}"


@tool
def balance() -> float:
    """Says what is left."""
    return 3.0
'''

RULES = """
[[rule]]
effect = "auto"
tool = "pay"
when = [{path = "/arguments/amount", op = "<=", value = 10}]
match = [{arguments = {amount = 5, to = "ada"}}]

[[rule]]
effect = "deny"
tool = "pay"
when = [{path = "/arguments/to", op = "==", value = "mallory"}]
note = "never again"
"""

BAD = """
[[rule]]
effect = "auto"
tool = "pay"
when = [{path = "/arguments/amont", op = "<=", value = 10}]

[[rule]]
effect = "deny"
tool = "pya"
"""

FOUND = [
    (
        "rules.toml, line 2, rule 1",
        "no tool that it is about ('pay') takes '/arguments/amont'; did you mean '/arguments/amount'?",
    ),
    ("rules.toml, line 7, rule 2", "there is no tool 'pya': did you mean 'pay'? mend the name, or set optional = true"),
]
UNREADABLE = "the policy file no.toml cannot be read: No such file or directory"


@pytest.fixture
def bank(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return write("bank.py", BANK)


def test_check_says_that_nothing_is_wrong(bank: str, write: Write) -> None:
    write("toolwire.toml", RULES)
    ended = run_here("policy", "check", "--tools", bank)
    assert (ended.code, ended.stdout) == (
        ExitCode.DONE,
        "toolwire.toml: 2 rules, nothing wrong for 2 tools, 1 example as it says\n",
    )


def test_check_names_each_rule_that_can_never_hit(bank: str, write: Write) -> None:
    write("rules.toml", BAD)
    ended = run_here("policy", "check", "rules.toml", "--tools", bank)
    assert (ended.code, ended.stdout.splitlines()) == (ExitCode.FAILED, [f"{place}: {said}" for place, said in FOUND])


def test_check_as_json_says_the_same(bank: str, write: Write) -> None:
    write("rules.toml", BAD)
    ended = run_here("policy", "check", "rules.toml", "--tools", bank, "--json")
    assert json.loads(ended.stdout) == [{"place": place, "message": said} for place, said in FOUND]


def test_check_without_a_file_says_so(bank: str) -> None:
    ended = run_here("policy", "check", "--tools", bank)
    assert (ended.code, ended.stdout, ended.stderr) == (
        ExitCode.WRONG_USAGE,
        "",
        "toolwire: there is no policy file toolwire.toml\n",
    )


EXPLAINED = """\
      EFFECT  RULE                                  WHY                           FROM
hits  auto    rule auto 'pay' when amount <= 10     amount <= 10 holds            toolwire.toml, line 2, rule 1
-     deny    rule deny 'pay' when to == 'mallory'  to == 'mallory' does not hold  toolwire.toml, line 8, rule 2

default  confirm, where no rule hits
verdict  auto: rule auto 'pay' when amount <= 10
"""


def test_explain_shows_every_rule_and_why(bank: str, write: Write) -> None:
    write("toolwire.toml", RULES)
    ended = run_here("policy", "explain", "pay", "amount=5", "to=ada", "--tools", bank)
    squeezed = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert (ended.code, squeezed) == (ExitCode.DONE, [" ".join(line.split()) for line in EXPLAINED.splitlines()])


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        (("amount=5", "to=ada"), "auto"),
        (("amount=11", "to=ada"), "confirm"),
        (("amount=5", "to=mallory"), "deny"),
        (("amount=5", "to=MALLORY"), "deny"),
    ],
)
def test_explain_as_json_says_the_verdict(bank: str, write: Write, arguments: tuple[str, ...], verdict: str) -> None:
    write("rules.toml", RULES)
    ended = run_here("policy", "explain", "pay", *arguments, "--tools", bank, "--policy", "rules.toml", "--json")
    assert (ended.code, json.loads(ended.stdout)["verdict"]) == (ExitCode.DONE, verdict)


def test_explain_without_rules_says_the_tools_own(bank: str) -> None:
    ended = run_here("policy", "explain", "balance", "--tools", bank)
    assert ended.stdout.splitlines()[-2:] == [
        "default  auto, where no rule hits",
        "verdict  auto: the permission of 'balance' is auto",
    ]
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pya",), "toolwire: no tool is named 'pya'; did you mean 'pay'?\n"),
        (
            ("pay", "amount=x", "to=ada"),
            "toolwire: The arguments of 'pay' are wrong:\n- 'amount' must be a number, not 'x'.\n",
        ),
        (("balance", "--policy", "no.toml"), f"toolwire: the policy cannot be used:\n{UNREADABLE}\n"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_explained_is_wrong_usage(bank: str, arguments: tuple[str, ...], said: str) -> None:
    ended = run_here("policy", "explain", *arguments, "--tools", bank)
    assert (ended.code, ended.stdout, ended.stderr) == (ExitCode.WRONG_USAGE, "", said)


def test_calls_are_under_the_file_of_the_folder(bank: str, write: Write) -> None:
    without = run_here("call", "pay", "amount=5", "to=ada", "--tools", bank)
    write("toolwire.toml", RULES)
    ended = [run_here("call", "pay", f"amount={amount}", "to=ada", "--tools", bank) for amount in (5, 11)]
    assert [each.code for each in (without, *ended)] == [ExitCode.FAILED, ExitCode.DONE, ExitCode.FAILED]
    assert (ended[0].stdout, ended[0].stderr) == ("paid 5 to ada\n", "policy: toolwire.toml\n")


def test_replies_are_under_the_file_that_is_named(bank: str, write: Write) -> None:
    reply = write("reply.json", '<tool_call>{"name": "pay", "arguments": {"amount": 5, "to": "mallory"}}</tool_call>')
    write("rules.toml", RULES)
    ended = run_here("run", reply, "--tools", bank, "--policy", "rules.toml", "--protocol", "json", "--json")
    assert [each["failure"]["kind"] for each in json.loads(ended.stdout)["results"]] == ["denied"]


def test_a_file_with_a_rule_that_can_never_hit_stops_every_command(bank: str, write: Write) -> None:
    write("toolwire.toml", BAD)
    commands = [("call", "balance"), ("tools",), ("prompt",), ("policy", "explain", "balance")]
    ended = [run_here(*command, "--tools", bank) for command in commands]
    assert [each.code for each in ended] == [ExitCode.WRONG_USAGE] * 4
    assert {each.stderr.splitlines()[0] for each in ended} == {"toolwire: the policy cannot be used:"}
