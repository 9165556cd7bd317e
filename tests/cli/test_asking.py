"""Approval of calls at the terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command_line import command, run_process
from tests.cli.conftest import Write
from tests.patience import PATIENCE_S

PAYS = '''
from pathlib import Path
from toolwire import tool

@tool(permission="confirm")
def pay(amount: int) -> str:
    """Pays."""
    with Path("LEDGER").open("a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"
'''
REPLY = "<tool_call><name>pay</name><params><amount>5</amount></params></tool_call>"


@pytest.fixture
def pays(write: Write, tmp_path: Path) -> str:
    """A file with a tool that needs approval, and writes its payments to `ledger`."""
    return write("pays.py", PAYS.replace("LEDGER", str(tmp_path / "ledger")))


REGISTRY = """
from toolwire import Decision, ToolRegistry
registry = ToolRegistry(APPROVER)
registry.register(pay)
"""


@pytest.fixture
def registers(write: Write, tmp_path: Path) -> str:
    """The same tool in a registry of its owner, which has no approver."""
    return write(
        "registers.py", f"{PAYS}{REGISTRY.replace('APPROVER', '')}".replace("LEDGER", str(tmp_path / "ledger"))
    )


@pytest.fixture
def decides(write: Write, tmp_path: Path) -> str:
    """The same tool in a registry with an approver, which denies every call."""
    own = 'approver=lambda request: Decision(verdict="deny", reason="never here")'
    return write("decides.py", f"{PAYS}{REGISTRY.replace('APPROVER', own)}".replace("LEDGER", str(tmp_path / "ledger")))


def paid(folder: Path) -> list[str]:
    """The payments that were made."""
    file = folder / "ledger"
    return file.read_text().split() if file.exists() else []


def answered(words: Sequence[str], *answers: tuple[str, str]) -> tuple[int, str]:
    """Runs a command at a terminal, and answers each question by its last words.

    Returns the exit code and the results.
    """
    screen, terminal = pty.openpty()
    process = subprocess.Popen(command(*words), stdin=terminal, stderr=terminal, stdout=subprocess.PIPE, text=True)
    os.close(terminal)
    seen, left = "", list(answers)
    with process:
        # Linux reports the end of a terminal as an error.
        with suppress(OSError):
            while part := os.read(screen, 65_536):
                seen += part.decode()
                if left and seen.endswith(left[0][0]):
                    os.write(screen, f"{left.pop(0)[1]}\n".encode())
        os.close(screen)
        results, _ = process.communicate(timeout=PATIENCE_S)
    assert left == [], seen
    return process.returncode, results


@pytest.mark.parametrize(
    ("answers", "ended", "payments"),
    [
        ([("? ", "y")], (0, "paid 5\n"), ["5"]),
        ([("? ", "e"), ("back): ", '{"amount": 3}')], (0, "paid 3\n"), ["3"]),
    ],
)
def test_a_person_at_the_terminal_approves_or_edits(
    pays: str, tmp_path: Path, answers: list[tuple[str, str]], ended: tuple[int, str], payments: list[str]
) -> None:
    assert answered(["call", "pay", "amount=5", "--tools", pays], *answers) == ended
    assert paid(tmp_path) == payments


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_a_call_of_an_owners_registry_asks_too(registers: str, tmp_path: Path, more: list[str]) -> None:
    assert answered(["call", "pay", "amount=5", "--tools", registers, *more], ("? ", "y")) == (0, "paid 5\n")
    assert paid(tmp_path) == ["5"]


def test_a_run_with_an_owners_registry_asks_too(registers: str, write: Write, tmp_path: Path) -> None:
    code, text = answered(["run", write("reply.xml", REPLY), "--tools", registers], ("? ", "y"))
    assert (code, "paid 5" in text, paid(tmp_path)) == (0, True, ["5"])


def test_an_owners_registry_is_not_asked_about_if_no_one_may_be_asked(registers: str, tmp_path: Path) -> None:
    code, text = answered(["call", "pay", "amount=5", "--tools", registers, "--no-ask", "--json"])
    assert (code, json.loads(text)["failure"]["kind"], paid(tmp_path)) == (1, "approval_required", [])


def test_the_approver_of_an_owners_registry_decides_alone(decides: str, write: Write, tmp_path: Path) -> None:
    code, text = answered(["call", "pay", "amount=5", "--tools", decides])
    assert (code, "never here" in text) == (1, True)
    code, text = answered(["run", write("reply.xml", REPLY), "--tools", decides])
    assert (code, "never here" in text, paid(tmp_path)) == (1, True, [])


def test_a_person_at_the_terminal_denies(pays: str, tmp_path: Path) -> None:
    code, text = answered(["call", "pay", "amount=5", "--tools", pays, "--json"], ("? ", "n"), ("empty): ", "too much"))
    found = json.loads(text)
    assert (code, found["failure"]["kind"], "too much" in found["text"], paid(tmp_path)) == (1, "denied", True, [])


def test_a_run_asks_at_the_terminal(pays: str, write: Write, tmp_path: Path) -> None:
    reply = write("reply.xml", REPLY)
    code, text = answered(["run", reply, "--tools", pays], ("? ", "y"))
    assert (code, "paid 5" in text, paid(tmp_path)) == (0, True, ["5"])


def test_a_run_that_may_not_ask_waits_in_the_store(pays: str, write: Write, tmp_path: Path) -> None:
    reply = write("reply.xml", REPLY)
    assert (answered(["run", reply, "--tools", pays, "--no-ask"])[0], paid(tmp_path)) == (6, [])


def test_a_pipe_is_never_asked(pays: str, write: Write, tmp_path: Path) -> None:
    called = run_process("call", "pay", "amount=5", "--tools", pays, "--json", stdin=b"y\n")
    assert (called.code, json.loads(called.stdout)["failure"]["kind"]) == (1, "approval_required")
    ran = run_process("run", write("reply.xml", REPLY), "--tools", pays, stdin=b"y\n")
    assert (ran.code, "May this call run?" in called.stderr + ran.stderr, paid(tmp_path)) == (6, False, [])


@pytest.mark.parametrize("words", [["call", "pay", "amount=5"], ["run", "-"]])
def test_asking_without_a_terminal_is_wrong_usage(pays: str, words: list[str]) -> None:
    ended = run_process(*words, "--tools", pays, "--ask")
    assert (ended.code, ended.stdout, ended.stderr) == (
        2,
        "",
        (
            "toolwire: --ask needs a terminal at standard input and standard error\n"
            "Run it at a terminal, or decide by `toolwire approvals`.\n"
        ),
    )
