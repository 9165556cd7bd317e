"""The log says for whom and by which agent a call was made, and keeps every name whole."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.terminal import run_on_terminal
from tests.patience import PATIENCE_S
from toolwire import Caller, Session, ToolSpec

TOOL = "refund_the_invoice_of_a_customer"
CALL = f"<tool_call><name>{TOOL}</name><params><number>5</number></params></tool_call>"
CALLERS = [
    Caller(principal="ada", agent="support"),
    Caller(principal="grace.hopper@example.com", agent="support"),
    Caller(principal="ada", agent="billing"),
]


@pytest.fixture(autouse=True)
def turns(store: str) -> None:
    """One call for each caller."""

    def refund(number: int) -> int:
        """Refunds an invoice."""
        return number

    for caller in CALLERS:
        session = Session([ToolSpec.from_function(refund, name=TOOL)], protocol="xml", store=f"sqlite:///{store}")
        session.run_turn(CALL, caller=caller, deadline_s=PATIENCE_S)


def callers(*options: str) -> list[tuple[str, str]]:
    rows = json.loads(run_here("log", "--tool", TOOL, *options, "--json").stdout)
    return [(row["principal"], row["agent"]) for row in rows]


def test_the_table_has_a_column_for_each_part_of_who() -> None:
    head, *rows = run_here("log", "--tool", TOOL).stdout.splitlines()
    assert head.split("  ", 1)[0] == "ROW"
    assert re.findall(r"PRINCIPAL +AGENT +ID$", head) != []
    assert [re.split("  +", row)[5:7] for row in rows] == [[caller.principal, caller.agent] for caller in CALLERS]


def test_rows_are_filtered_by_who() -> None:
    assert callers("--principal", "ada") == [("ada", "support"), ("ada", "billing")]
    assert callers("--agent", "support") == [("ada", "support"), ("grace.hopper@example.com", "support")]
    assert callers("--principal", "ada", "--agent", "billing") == [("ada", "billing")]
    assert run_here("log", "--principal", "eve") == Ended(code=0, stdout="", stderr="the log has no such rows\n")


def test_a_tree_names_who_its_run_was_for() -> None:
    run_id = json.loads(run_here("log", "--agent", "billing", "--json").stdout)[0]["run_id"]
    assert run_here("log", "tree", run_id).stdout.splitlines()[0] == f"{run_id} for ada by billing"


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_narrow_terminal_shows_all_names_whole_and_no_line_is_wider(columns: int) -> None:
    shown = run_on_terminal("log", columns=columns).stdout
    assert max(map(len, shown.splitlines())) <= columns
    words = shown.split()
    assert {"TOOL", "STATUS", "PRINCIPAL", "AGENT", "ID"} <= set(words)
    assert [words.count(name) for name in (TOOL, "grace.hopper@example.com", "billing")] == [3, 3, 3]


@pytest.mark.parametrize("columns", ["20", "60"])
def test_in_a_pipe_a_row_is_one_line(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run_here("log").stdout.splitlines()
    assert len([line for line in lines if TOOL in line and "success" in line]) == len(CALLERS)
    assert len(lines) == 1 + len(json.loads(run_here("log", "--json").stdout))


def test_a_log_without_callers_has_no_empty_columns() -> None:
    rows = run_here("log", "--principal", "ada", "--agent", "support").stdout.splitlines()
    assert "TOOL" in rows[0]
    only_runs = [line for line in rows if TOOL not in line]
    assert only_runs[0].startswith("ROW")
    started = run_here("log", "--status", "started").stdout.splitlines()[0]
    assert re.split("  +", started) == ["ROW", "TIME (UTC)", "WHAT", "STATUS", "PRINCIPAL", "AGENT", "ID"]
