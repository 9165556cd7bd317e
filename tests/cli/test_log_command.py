"""The log of a store on the command line: read, filtered, followed, as a tree, verified."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.cli.command_line import Ended, command, run_here
from tests.cli.conftest import Write
from toolwire import Store
from toolwire.cli.commands import log_command

Program = Callable[[str], str]
CODE = "print(greet('Ada'))\n__result__ = add(1, b=add(2, 3))"


@pytest.fixture
def ran(program: Program, tools: str) -> Ended:
    """A run of a program that makes three calls."""
    return run_here("run", program(CODE), "--tools", tools)


def rows(*options: str) -> list[dict[str, Any]]:
    return json.loads(run_here("log", *options, "--json").stdout)


@pytest.mark.usefixtures("ran")
def test_the_log_says_what_ran_oldest_first() -> None:
    found = rows()
    assert [row["at"] for row in found] == sorted(row["at"] for row in found)
    assert sorted(row["seq"] for row in found) == list(range(1, len(found) + 1))
    # By the time at which each began.
    calls = [(row["tool"], row["status"]) for row in found if row["kind"] == "call"]
    assert calls == [("code_execution", "success"), ("greet", "success"), ("add", "success"), ("add", "success")]
    assert next(row["status"] for row in found if row["kind"] == "run") == "started"


@pytest.mark.usefixtures("ran")
def test_rows_are_filtered_and_counted_from_the_end() -> None:
    assert [row["tool"] for row in rows("--tool", "add")] == ["add", "add"]
    assert rows("--tool", "add", "--status", "denied") == []
    everything = rows()
    assert rows("--limit", "2") == everything[-2:]
    assert rows("--since", "1h") == everything
    assert rows("--since", "2100-01-01") == []
    assert {row["run_id"] for row in rows("--run", everything[0]["run_id"][:6])} == {everything[0]["run_id"]}


@pytest.mark.usefixtures("ran")
def test_the_rows_of_a_run_that_was_forgotten_are_found_by_its_id(store: str) -> None:
    run_id = rows()[0]["run_id"]
    before = [row["hash"] for row in rows("--run", run_id)]
    with Store.open(f"sqlite:///{store}") as opened:
        assert opened.forget(before=time.time() + 1) == 1
    assert [row["hash"] for row in rows("--run", run_id)][:-1] == before
    assert "run forgotten" in run_here("log", "tree", run_id).stdout


@pytest.mark.usefixtures("ran")
def test_the_table_is_for_people() -> None:
    ended = run_here("log", "--tool", "add", "--limit", "1")
    head, row = ended.stdout.splitlines()
    assert re.split("  +", head) == ["ROW", "TIME (UTC)", "WHAT", "TOOL", "STATUS", "ID"]
    assert re.fullmatch(r"\d+ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  call  add   success  tr_ptc_\w+/\d", row)
    assert run_here("log", "--tool", "none") == Ended(code=0, stdout="", stderr="the log has no such rows\n")


def test_a_run_is_drawn_as_a_tree(ran: Ended) -> None:
    del ran
    run_id = rows()[0]["run_id"]
    ended = run_here("log", "tree", run_id[:6])
    shape = [re.sub(r"  \S+  \d{4}.*", "", line) for line in ended.stdout.splitlines()]
    assert shape[:2] == [run_id, "  run started"]
    assert shape[shape.index("  call code_execution success") :][:4] == [
        "  call code_execution success",
        "    call greet success",
        "    call add success",
        "    call add success",
    ]
    assert len(json.loads(run_here("log", "tree", run_id, "--json").stdout)) == len(shape) - 1


def test_a_log_that_was_changed_is_found_out(ran: Ended, store: str) -> None:
    del ran
    count = len(rows())
    assert run_here("log", "verify") == Ended(code=0, stdout=f"{count} rows, as they were written\n", stderr="")
    with closing(sqlite3.connect(store)) as database:
        database.execute("UPDATE log SET status = 'denied' WHERE seq = 2")
        database.commit()
    assert run_here("log", "verify") == Ended(
        code=1,
        stdout="",
        stderr="toolwire: row 2 of the log is wrong: it was changed or moved\n",
    )
    assert json.loads(run_here("log", "verify", "--json").stdout)["bad_seq"] == 2


@pytest.mark.usefixtures("ran")
def test_a_long_check_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(rows())
    monkeypatch.setattr(log_command, "PROGRESS_S", 0.0)
    ended = run_here("log", "verify")
    assert (ended.code, ended.stderr) == (0, f"checked {count} of {count} rows\n")


def test_a_deleted_step_is_named(ran: Ended, store: str) -> None:
    assert ran.code == 0
    with closing(sqlite3.connect(store)) as database:
        ((key, run_id),) = database.execute("SELECT key, run_id FROM steps WHERE key LIKE 'r_%'").fetchall()
        database.execute("DELETE FROM steps WHERE key = ?", (key,))
        database.commit()
    assert run_here("log", "verify") == Ended(
        code=1,
        stdout="",
        stderr=f"missing from the store: step {key} of run {run_id}\n"
        "toolwire: the log is whole, but the store lacks 1 run or step of it\n",
    )
    assert json.loads(run_here("log", "verify", "--json").stdout)["missing"] == [f"step {key} of run {run_id}"]


def test_the_log_is_followed_from_another_process(program: Program, tools: str) -> None:
    run_here("run", program("1"), "--tools", tools)
    before = len(rows())
    with subprocess.Popen(command("log", "--follow", "--json", "--limit", "1"), stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["seq"] == before
        run_here("run", program(CODE), "--tools", tools)
        seen = [json.loads(following.stdout.readline()) for _ in range(4)]
        following.terminate()
    assert sorted(row["seq"] for row in seen) == list(range(before + 1, before + 5))


@pytest.mark.parametrize("since", ["1x", "yesterday", "-5min", ""])
@pytest.mark.usefixtures("ran")
def test_a_time_that_is_none_is_said_so(since: str) -> None:
    ended = run_here("log", "--since", since)
    assert (ended.code, ended.stdout) == (2, "")
    assert f"{since!r} is not a time; write 30min, 2h, 7d or 2026-11-22T14:00" in ended.stderr


@pytest.mark.usefixtures("ran")
def test_a_run_that_is_none_has_no_tree(write: Write) -> None:
    del write
    assert run_here("log", "tree", "r_zz").stderr.startswith("toolwire: there is no run 'r_zz' in the store\n")


def test_the_tree_of_a_run_that_waits_shows_what_its_program_has_called(program: Program, write: Write) -> None:
    tools = write(
        "till.py",
        """
        from toolwire import tool

        @tool(permission="confirm")
        def pay(amount: int) -> str:
            return f"paid {amount}"

        def look(thing: str) -> int:
            'Looks at a thing.'
            return len(thing)
        """,
    )
    run_here("run", program("print(look('tea'))\nprint(pay(5))"), "--tools", tools)
    run_id = next(row["run_id"] for row in rows() if row["kind"] == "run")
    shown = run_here("log", "tree", run_id).stdout.splitlines()
    assert [line.split()[1:3] for line in shown if line.split()[0] == "call"] == [["look", "success"]]
