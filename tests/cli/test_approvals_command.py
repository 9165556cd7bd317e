"""Waiting requests on the command line: shown and decided from another process while the run waits."""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Ended, run_here, run_process
from tests.cli.conftest import Write
from tests.journal.conftest import server as server
from tests.journal.pgbouncer import pooling
from tests.journal.postgres import Server
from toolwire import ApprovalRequest, Decision, Store
from toolwire.cli.commands.approvals_command import request_table
from toolwire.cli.commands.log_command import table as log_table
from toolwire.log import LogRow
from toolwire.runtime.identity import new_id

Program = Callable[[str], str]


@pytest.fixture
def till(write: Write) -> str:
    """A file with a tool that asks."""
    return write(
        "till.py",
        '''
        import os
        from toolwire import ToolSpec

        def pay(amount: int, to: str = "Ada") -> str:
            """Pays.

            Args:
                amount: How much.
                to: Whom.
            """
            with open(os.environ["TILL"], "a") as till:
                till.write(f"{amount} {to}\\n")
            return f"paid {amount}"

        pay = ToolSpec.from_function(pay, permission="confirm", effects=["spend"])
        ''',
    )


@pytest.fixture(autouse=True)
def paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """The payments that the till took in."""
    path = tmp_path / "paid.txt"
    monkeypatch.setenv("TILL", str(path))
    return lambda: path.read_text() if path.exists() else ""


class Waiting:
    """A run that waits, with two requests."""

    def __init__(self, till: str, ended: Ended) -> None:
        self.till = till
        self.ended = ended
        self.requests: list[dict[str, Any]] = json.loads(run_here("approvals", "list", "--json").stdout)
        self.ids: list[str] = [request["id"] for request in self.requests]
        self.run_id: str = self.requests[0]["run_id"]

    def resume(self) -> Ended:
        return run_here("run", "--resume", self.run_id, "--tools", self.till)


XML = "<tool_call>\n<name>pay</name>\n<params>\n<amount>{}</amount>\n</params>\n</tool_call>\n"


@pytest.fixture
def waiting(till: str, write: Write) -> Waiting:
    return Waiting(till, run_here("run", write("reply.xml", XML.format(5) + XML.format(6)), "--tools", till))


def test_a_run_that_needs_a_person_says_what_waits_and_how_to_decide(waiting: Waiting, paid: Callable[[], str]) -> None:
    first, second = (known[:10] for known in waiting.ids)
    assert (waiting.ended.code, waiting.ended.stdout, paid()) == (6, "", "")
    # However long it took to get here, and however wide that makes a column.
    said = re.sub(" {2,}", "  ", re.sub("[0-9]+ s ago", "1 s ago", waiting.ended.stderr))
    assert said == (
        "protocol: xml\n"
        f"run {waiting.run_id} waits for 2 decisions:\n\n"
        "REQUEST  TOOL  ASKED  LEFT  RUN  ARGUMENTS\n"
        f'{first}  pay  1 s ago  7 d  {waiting.run_id}  {{"amount": 5, "to": "Ada"}}\n'
        f'{second}  pay  1 s ago  7 d  {waiting.run_id}  {{"amount": 6, "to": "Ada"}}\n\n'
        f"Decide:  toolwire approvals show {first}, then approve, deny or edit\n"
        f"Go on:  toolwire run --resume {waiting.run_id} --tools {waiting.till}\n"
    )


@pytest.mark.parametrize(("approver", "code"), [("the boss", 1), (getpass.getuser(), 0)])
def test_a_person_whom_the_policy_does_not_name_decides_nothing(
    till: str, write: Write, paid: Callable[[], str], approver: str, code: int
) -> None:
    policy = write("policy.toml", f'[approvers]\nspend = ["{approver}"]\n')
    options = ["--tools", till, "--policy", policy]
    run_here("run", write("reply.xml", XML.format(5)), *options)
    (request,) = json.loads(run_here("approvals", "list", "--json").stdout)
    ended = run_here("approvals", "approve", request["id"])
    assert ended.code == code
    if code:
        assert f"{getpass.getuser()!r} is not among those who may approve calls that spend" in ended.stderr
        assert len(json.loads(run_here("approvals", "list", "--json").stdout)) == 1
    run_here("run", "--resume", request["run_id"], *options)
    assert paid() == ("" if code else "5 Ada\n")


@pytest.mark.parametrize("tool", ["pay", "accounts_payable_" + "x" * 47])
def test_tables_of_80_columns_show_ids_whole(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    runs, of_host = [new_id("r") for _ in range(3)], "order-" + "Z" * 60
    now = time.time()
    waits = ApprovalRequest(
        id="a_0123456789abcdef", call_id="1", tool=tool, arguments={"to": "Ada" * 99}, reasons=(), arguments_digest=""
    )
    requests = [replace(waits, run_id=run, created_at=now - 3_000, expires_at=now + 80_000) for run in runs]
    shown = request_table(requests, is_terminal=True)
    row = LogRow(
        seq=123_456,
        at=now,
        kind="call",
        run_id="",
        subject="",
        tool=tool,
        status="approval_required",
        entry={},
        hash="",
    )
    subjects = [f"{runs[0]}/123", runs[1], f"tr_ptc_{'0' * 16}/12"]
    log = log_table([replace(row, subject=subject) for subject in subjects], is_terminal=True)
    assert max(map(len, [*shown.splitlines(), *log.splitlines()])) <= 80
    assert [run for run in runs if run in shown.split()] == runs
    assert [subject for subject in subjects if subject in log.split()] == subjects
    assert log.split().count(tool) == 3
    assert shown.split().count("a_01234567") == 3
    # A longer id of the host's own is folded, and no character of it is lost.
    folded = request_table([replace(requests[0], run_id=of_host)], is_terminal=True)
    assert max(map(len, folded.splitlines())) <= 80
    assert folded.count("Z") == 60


def test_json_says_that_the_run_waits(till: str, write: Write) -> None:
    ended = run_here("run", write("reply.xml", XML.format(5)), "--tools", till, "--json")
    report = json.loads(ended.stdout)
    (request,) = report["suspended"]["pending"]
    assert (ended.code, report["status"], report["results"]) == (6, "suspended", [])
    assert (request["tool"], request["arguments"]) == ("pay", {"amount": 5, "to": "Ada"})
    assert report["suspended"]["run_id"] == request["run_id"]


def test_a_request_is_shown_whole(waiting: Waiting) -> None:
    ended = run_here("approvals", "show", waiting.ids[0])
    assert (ended.code, ended.stderr) == (0, "")
    assert re.sub(r"\d{4}-.*", "...", ended.stdout) == (
        "tool       pay\n"
        "why        the permission of 'pay' is confirm\n"
        "does       spend\n"
        "expires    ...\n"
        f"request    {waiting.ids[0]}\n"
        f"call       {waiting.run_id}/1 of run {waiting.run_id}\n"
        "arguments\n"
        '  "amount": 5\n'
        '  "to": "Ada"\n'
        "changed    the model wrote it otherwise:\n"
        '  + "to": filled in\n'
    )


def test_decisions_from_other_processes_let_the_run_go_on(waiting: Waiting, paid: Callable[[], str]) -> None:
    approved = run_process("approvals", "approve", waiting.ids[0])
    assert (approved.code, paid()) == (0, "")
    assert re.fullmatch(rf"{waiting.ids[0]}: approved by \S+ through cli, [\d :-]+ UTC\n", approved.stdout)
    # One of two: the approved one runs, the other still waits.
    half = waiting.resume()
    assert (half.code, paid()) == (6, "5 Ada\n")
    edited = run_process("approvals", "edit", waiting.ids[1], "--arguments", '{"amount": 4, "to": "Eve"}')
    assert ": approved with other arguments by " in edited.stdout
    whole = waiting.resume()
    assert (whole.code, paid()) == (0, "5 Ada\n4 Eve\n")
    assert "paid 5" in whole.stdout
    assert "paid 4" in whole.stdout
    # Gone on with once more, it says the same and pays nothing.
    again = waiting.resume()
    assert (again.stdout, again.code, paid()) == (whole.stdout, 0, "5 Ada\n4 Eve\n")


def test_what_is_remembered_lets_later_calls_like_it_run_unasked(
    waiting: Waiting, write: Write, paid: Callable[[], str]
) -> None:
    approved = run_here("approvals", "approve", waiting.ids[0], "--remember", "workspace", "--for", "2h")
    told = approved.stdout.splitlines()[1]
    assert re.fullmatch(r"remembered: rule .* auto 'pay' when .*, scope workspace, until [\d :-]+ UTC", told)
    shown = json.loads(run_here("approvals", "show", waiting.ids[0], "--json").stdout)
    assert f"remembered: {shown['decision']['remember']}" == told
    # The rule counts after its run was resumed: only then does the policy see the decider.
    assert (waiting.resume().code, paid()) == (6, "5 Ada\n")
    again = run_here("run", write("again.xml", XML.format(5)), "--tools", waiting.till)
    assert (again.code, paid()) == (0, "5 Ada\n5 Ada\n")
    # The control: the person did not see these other arguments.
    other = run_here("run", write("other.xml", XML.format(7)), "--tools", waiting.till)
    assert (other.code, paid()) == (6, "5 Ada\n5 Ada\n")


def test_what_is_remembered_for_any_arguments_is_a_choice_of_its_own(
    waiting: Waiting, write: Write, paid: Callable[[], str]
) -> None:
    run_here("approvals", "approve", waiting.ids[0], "--remember", "workspace", "--any-arguments")
    waiting.resume()
    other = run_here("run", write("other.xml", XML.format(7)), "--tools", waiting.till)
    assert other.code == 0
    assert paid().endswith("7 Ada\n")


def test_what_is_remembered_in_a_run_ends_with_it(waiting: Waiting, write: Write, paid: Callable[[], str]) -> None:
    run_here("approvals", "approve", waiting.ids[0], "--remember", "run", "--any-arguments")
    # The other call of the same reply was asked about before: it still waits for its own answer, or for the rule.
    waiting.resume()
    other = run_here("run", write("other.xml", XML.format(7)), "--tools", waiting.till)
    assert other.code == 6
    assert "7 Ada" not in paid()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--any-arguments"], "--any-arguments and --for say what is remembered"),
        (["--for", "2h"], "--any-arguments and --for say what is remembered"),
        (["--remember", "run", "--for", "0h"], "'0h' is not a length of time"),
        (["--remember", "run", "--for", "soon"], "'soon' is not a length of time"),
        (["--remember", "always"], "'always' is not one of 'run', 'session', 'workspace'"),
    ],
)
def test_a_memory_that_is_none_decides_nothing(waiting: Waiting, options: list[str], message: str) -> None:
    ended = run_here("approvals", "approve", waiting.ids[0], *options)
    assert ended.code == 2
    assert message in ended.stderr
    assert len(json.loads(run_here("approvals", "list", "--json").stdout)) == 2


def test_a_denial_reaches_the_model_with_its_reason(waiting: Waiting, paid: Callable[[], str]) -> None:
    for known in waiting.ids:
        assert run_here("approvals", "deny", known, "--reason", "4 at most – really").code == 0
    ended = waiting.resume()
    assert (ended.code, paid()) == (1, "")
    assert ended.stdout.count("'pay' may not be run: 4 at most – really.") == 2


def test_a_run_can_be_stopped(waiting: Waiting, paid: Callable[[], str]) -> None:
    ended = run_here("approvals", "deny", waiting.ids[0], "--stop-run", "--reason", "enough")
    assert ": run stopped by " in ended.stdout
    assert (waiting.resume().code, paid()) == (1, "")


def test_a_call_in_a_program_waits_too(till: str, program: Program, paid: Callable[[], str]) -> None:
    reply = program("print('before')\n__result__ = pay(5, to='Zoë\\u202e')")
    waiting = Waiting(till, run_here("run", reply, "--tools", till))
    assert (waiting.ended.code, len(waiting.ids)) == (6, 1)
    assert '"to": "Zoë\\u202e' in run_here("approvals", "list").stdout
    run_here("approvals", "approve", waiting.ids[0])
    assert waiting.resume().stdout == "before\npaid 5\n"
    assert paid() == "5 Zoë\u202e\n"


@pytest.mark.parametrize("shortened", [lambda known: known[:12], lambda known: known[2:12], lambda known: known])
def test_an_id_may_be_shortened(waiting: Waiting, shortened: Callable[[str], str]) -> None:
    ended = run_here("approvals", "show", shortened(waiting.ids[0]), "--json")
    assert json.loads(ended.stdout)["id"] == waiting.ids[0]
    assert json.loads(ended.stdout)["decision"] is None


def test_an_id_that_may_be_several_is_not_taken(waiting: Waiting) -> None:
    both = ", ".join(waiting.ids)
    assert run_here("approvals", "approve", "a_") == Ended(
        code=2, stdout="", stderr=f"toolwire: 'a_' may be 2 requests: {both}\nGive more of it.\n"
    )


@pytest.mark.parametrize("command", [["show"], ["approve"], ["deny"], ["edit", "--arguments", "{}"]])
def test_an_id_that_is_none_is_said_so(waiting: Waiting, command: list[str]) -> None:
    assert run_here("approvals", *command, "a_zz") == Ended(
        code=2,
        stdout="",
        stderr=(
            "toolwire: no waiting request begins with 'a_zz'\n"
            "See `toolwire approvals list`; of one that was decided or has expired give the whole id.\n"
        ),
    )


def test_the_first_decision_counts_and_is_shown(waiting: Waiting) -> None:
    known = waiting.ids[0]
    first = run_here("approvals", "deny", known, "--reason", "no").stdout.partition(": ")[2]
    second = run_here("approvals", "approve", known)
    assert second == Ended(
        code=1,
        stdout="",
        stderr=f"toolwire: {known} was decided before: {first}The first decision counts.\n",
    )
    assert run_here("approvals", "show", known).stdout.split("\n")[-2] == f"decided    {first.rstrip()}"
    shown = json.loads(run_here("approvals", "show", known, "--json").stdout)
    assert (shown["decision"]["verdict"], shown["decision"]["by"]["channel"]) == ("deny", "cli")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"amount": "x"}', "the edit of 'pay' is not valid: 'amount' must be an integer, not 'x'."),
        ('{"amount": 1', "the edit of 'pay' is not valid: it is not JSON: line 1, column 13: Expecting ',' delimiter"),
        ('{"amount": 1, "amount": 2}', "the edit of 'pay' is not valid: it is not JSON: a key is given twice"),
    ],
)
def test_a_wrong_edit_decides_nothing(waiting: Waiting, arguments: str, message: str) -> None:
    ended = run_here("approvals", "edit", waiting.ids[0], "--arguments", arguments)
    assert ended == Ended(code=1, stdout="", stderr=f"toolwire: {message}\nNothing was decided.\n")
    assert len(json.loads(run_here("approvals", "list", "--json").stdout)) == 2


def test_an_edit_comes_from_a_file_or_from_standard_input(waiting: Waiting, write: Write) -> None:
    file = write("edit.json", '{"amount": 1}')
    assert run_here("approvals", "edit", waiting.ids[0], "--arguments", file).code == 0
    assert run_here("approvals", "edit", waiting.ids[1], "--arguments", "-", stdin=b'{"amount": 2}').code == 0
    missing = run_here("approvals", "edit", waiting.ids[1], "--arguments", "none.json")
    assert missing.stderr == "toolwire: the arguments none.json cannot be read: No such file or directory\n"


def test_requests_of_one_run_can_be_listed(waiting: Waiting) -> None:
    assert len(json.loads(run_here("approvals", "list", "--run", waiting.run_id, "--json").stdout)) == 2
    shortened = run_here("approvals", "list", "--run", waiting.run_id[:8], "--json")
    assert len(json.loads(shortened.stdout)) == 2
    unknown = run_here("approvals", "list", "--run", "r_none")
    assert (unknown.code, unknown.stdout) == (2, "")
    assert unknown.stderr.startswith("toolwire: there is no run 'r_none' in the store\n")


def test_a_list_without_entries_does_not_say_that_nothing_waits_if_a_part_was_asked_for(waiting: Waiting) -> None:
    part = run_here("approvals", "list", "--tool", "price")
    assert part == Ended(code=0, stdout="", stderr="no such request waits for a person\n")
    for waited in waiting.ids:
        run_here("approvals", "deny", waited)
    assert run_here("approvals", "list") == Ended(code=0, stdout="", stderr="nothing waits for a person\n")


def test_a_list_that_was_cut_says_how_it_goes_on(waiting: Waiting) -> None:
    cut = run_here("approvals", "list", "--limit", "1", "--json")
    assert [one["id"] for one in json.loads(cut.stdout)] == waiting.ids[:1]
    said = re.fullmatch(r"1 of the requests; 2 wait in all. The next ones: --after (\S+)\n", cut.stderr)
    assert said is not None, cut.stderr
    rest = run_here("approvals", "list", "--after", said[1], "--json")
    assert ([one["id"] for one in json.loads(rest.stdout)], rest.stderr) == (waiting.ids[1:], "")
    assert json.loads(run_here("approvals", "list", "--tool", "price", "--json").stdout) == []
    wrong = run_here("approvals", "list", "--after", "x")
    assert (wrong.code, wrong.stderr) == (2, "toolwire: after='x': give the `cursor` of a page of pending requests\n")


def test_a_damaged_request_is_listed_and_not_approved(waiting: Waiting, store: str) -> None:
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE requests SET request = x'00' WHERE request_id = ?", waiting.ids[:1])
    listed = run_here("approvals", "list")
    assert (listed.code, "damaged, cannot be decided" in listed.stdout) == (0, True)
    for command in ("show", "approve"):
        ended = run_here("approvals", command, waiting.ids[0])
        assert (ended.code, "cannot be approved: a damaged request" in ended.stderr) == (1, True)
    # The control: its neighbour is approved.
    assert run_here("approvals", "approve", waiting.ids[1]).code == 0


def test_without_a_store_nothing_is_made(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    ended = run_here("approvals", "list", "--store", str(path))
    assert ended == Ended(
        code=2,
        stdout="",
        stderr=(
            f"toolwire: there is no store at {path}\n"
            "Name another with --store or $TOOLWIRE_STORE; `toolwire run` makes one.\n"
        ),
    )
    assert not path.exists()


def test_a_store_that_is_none_is_said_so(till: str, write: Write) -> None:
    reply = write("reply.xml", XML.format(5))
    ended = run_here("run", reply, "--tools", till, "--store", "mysql://x")
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr == (
        "toolwire: 'mysql' is not a database that a store can use: write sqlite:///file.db or "
        "postgresql://user@host/database, or memory: for a test\n"
    )


def test_the_store_of_a_folder_is_kept_from_others_and_out_of_repositories(
    till: str, write: Write, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    reply = write("reply.xml", XML.format(5))
    environment = {**os.environ, "TOOLWIRE_STORE": ""}
    ended = run_process("run", reply, "--tools", till, cwd=folder, environment=environment)
    assert ended.code == 6
    kept = folder / ".toolwire"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [kept, *kept.iterdir()]}
    assert modes == {".toolwire": 0o700, ".gitignore": 0o644, "journal.db": 0o600, "journal.db.key": 0o600}
    assert (kept / ".gitignore").read_text() == "*\n"
    listed = run_process("approvals", "list", "--json", cwd=folder, environment=environment)
    assert len(json.loads(listed.stdout)) == 1


@pytest.mark.parametrize("arguments", [[], ["reply.toml", "--resume", "r_1"]])
def test_either_a_reply_or_a_run_is_given(till: str, arguments: list[str]) -> None:
    assert run_here("run", *arguments, "--tools", till) == Ended(
        code=2, stdout="", stderr="toolwire: give a reply or --resume RUN\nSee toolwire run --help.\n"
    )


def test_a_run_that_is_none_is_said_so(waiting: Waiting) -> None:
    assert run_here("run", "--resume", "r_zz", "--tools", waiting.till) == Ended(
        code=2,
        stdout="",
        stderr=("toolwire: there is no run 'r_zz' in the store\nSee `toolwire approvals list` for those that wait.\n"),
    )


def test_a_run_is_not_gone_on_with_by_other_tools(waiting: Waiting, write: Write, paid: Callable[[], str]) -> None:
    run_here("approvals", "approve", waiting.ids[0])
    other = Path(waiting.till).read_text().replace("Pays.", "Pays somebody else.")
    ended = run_here("run", "--resume", waiting.run_id, "--tools", write("other.py", other))
    assert (ended.code, paid()) == (6, "") or ended.code == 1
    assert paid() == ""


def test_tools_without_the_one_that_waits_do_not_end_its_call(
    waiting: Waiting, write: Write, paid: Callable[[], str]
) -> None:
    other = write("other.py", 'def add(a: int) -> int:\n    """Adds."""\n    return a\n')
    refused = Ended(
        code=2,
        stdout="",
        stderr="toolwire: the run waits for a call of 'pay', and there is no such tool in --tools\n"
        f"Give the tools with which it began. To end the run: toolwire runs cancel {waiting.run_id}\n",
    )
    assert run_here("run", "--resume", waiting.run_id, "--tools", other) == refused
    for waited in waiting.ids:
        run_here("approvals", "approve", waited)
    assert run_here("run", "--resume", waiting.run_id, "--tools", other) == refused
    assert (waiting.resume().code, sorted(paid().splitlines())) == (0, ["5 Ada", "6 Ada"])


def test_a_program_that_waits_itself_goes_on_by_its_tools(
    till: str, program: Program, write: Write, paid: Callable[[], str]
) -> None:
    rules = write("rules.toml", '[[rule]]\neffect = "confirm"\ntool = "code_execution"\n')
    options = ["--tools", till, "--policy", rules]
    asked = run_here("run", program("print(1)"), *options, "--json")
    run_id = json.loads(asked.stdout)["suspended"]["run_id"]
    run_here("approvals", "approve", json.loads(run_here("approvals", "list", "--json").stdout)[0]["id"])
    ended = run_here("run", "--resume", run_id, *options)
    assert (ended.code, ended.stdout, paid()) == (0, "1\n", "")


def test_all_of_it_is_the_same_on_postgresql(
    server: Server, till: str, write: Write, paid: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = f"t{secrets.token_hex(6)}"
    server.create(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TOOLWIRE_STORE", server.url(name))
    waiting = Waiting(till, run_here("run", write("reply.xml", XML.format(5) + XML.format(6)), "--tools", till))
    assert run_process("approvals", "approve", waiting.ids[0], "--remember", "run").code == 0
    assert run_here("approvals", "deny", waiting.ids[1], "--reason", "4 at most").code == 0
    ended = waiting.resume()
    assert (ended.code, paid()) == (1, "5 Ada\n")
    assert "4 at most" in ended.stdout
    tree = run_here("log", "tree", waiting.run_id[:6])
    assert (tree.code, "pay" in tree.stdout) == (0, True)
    assert run_here("log", "verify").code == 0
    assert [row["status"] for row in json.loads(run_here("log", "--tool", "pay", "--json").stdout)].count(
        "success"
    ) == 1
    server.drop(name)


def test_all_of_it_is_the_same_behind_a_pooler_of_transactions(
    server: Server, till: str, write: Write, paid: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = f"t{secrets.token_hex(6)}"
    server.create(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pooling(server) as pooler:
        url = f"{pooler.url(name)}&prepared=false"
        monkeypatch.setenv("TOOLWIRE_STORE", pooler.url(name))
        refused = run_here("approvals", "list")
        assert refused.code == 2
        assert "add prepared=false to the query of the URL" in refused.stderr
        reply = write("reply.xml", XML.format(5) + XML.format(6))
        ran = run_here("run", reply, "--tools", till, "--store", url)
        monkeypatch.setenv("TOOLWIRE_STORE", url)
        waiting = Waiting(till, ran)
        assert run_process("approvals", "approve", waiting.ids[0], "--store", url).code == 0
        assert run_here("approvals", "deny", waiting.ids[1]).code == 0
        assert "5" in run_here("approvals", "show", waiting.ids[0]).stdout
        assert (waiting.resume().code, paid()) == (1, "5 Ada\n")
        assert "pay" in run_here("log", "tree", waiting.run_id[:6]).stdout
        assert run_here("log", "verify").code == 0
        assert "success" in run_here("log", "--tool", "pay").stdout
    server.drop(name)


@pytest.mark.parametrize("query", ["prepared=true", "prepared=", "host=/x&prepared=0", "prepared=false&prepared=false"])
def test_another_value_than_false_is_answered_with_what_to_write(query: str) -> None:
    ended = run_here("log", "--store", f"postgresql://ann@/runs?{query}")
    given = query.removeprefix("host=/x&")
    assert ended == Ended(
        code=2,
        stdout="",
        stderr=f"toolwire: {given} in the URL of the store: write prepared=false, or leave it out\n",
    )


def test_a_decision_by_another_process_is_seen_here(waiting: Waiting, store: str) -> None:
    with Store.open(f"sqlite:///{store}") as opened:
        opened.decide(waiting.ids[0], Decision(verdict="deny", reason="by a program"))
    assert "by a program" in run_here("approvals", "show", waiting.ids[0]).stdout
