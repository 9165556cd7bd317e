"""The demo: its scenes run, fit a terminal, and say what happened."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.command_line import ROOT
from tests.patience import PATIENCE_S

DEMO = ROOT / "examples" / "demo"
WITHOUT_SANDBOX = """
import asyncio, runpy, sys, tempfile
from toolwire.vocabulary.machine import system
system.IS_LINUX, system.PLATFORM = False, 'darwin'
{}
runpy.run_path({!r}, run_name='__main__')
"""
TEN = 10
COMPILED = """\
the WebAssembly guest is compiled for this machine, once: this takes some seconds. `toolwire doctor` does it beforehand.
"""
"""What the first program in WebAssembly tells a user whose folder for caches has no guest yet."""


def shown(*arguments: str) -> str:
    """The output of the demo, which ends well and writes no error."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr.removeprefix(COMPILED)) == (0, "")
    return done.stdout


def scenes(text: str) -> dict[str, list[str]]:
    """The lines of each scene by its title."""
    _, *parts = re.split(r"^== (.+) ==\n", text, flags=re.MULTILINE)
    return {title: body.splitlines() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def test_each_scene_ends_as_it_says() -> None:
    text = shown(str(DEMO / "demo.py"))
    assert [line for line in text.splitlines() if len(line) > 100] == []
    found = scenes(text)
    assert [title[0] for title in found] == ["1", "2", "3", "4", "5"]
    assert [lines[0].startswith("Look at this: ") for lines in found.values()] == [True] * 5
    calls, mistakes, program, attacks, killed = found.values()
    assert calls[-3:-1] == [
        "    {'role': 'tool', 'tool_call_id': 'call_Qk1', 'content': 'clear in Oslo, 21 degrees'}",
        "    {'role': 'tool', 'tool_call_id': 'call_Zr7', 'content': 'clear in Bergen, 21 degrees'}",
    ]
    assert "    Did you mean 'book'?" in mistakes
    assert "    - 'town' is unknown: it takes 'city', 'nights'." in mistakes
    totals = (ROOT / "examples/repository/replies/loop_over_many_calls.stdout").read_text("utf-8").splitlines()
    assert program[-4:-1] == [f"    {line}" for line in totals]
    walls = [line.partition(",")[0].strip() for line in attacks if line.startswith("      ")]
    assert walls == ["Wall 1", "Wall 1", "Wall 2", "Wall 2"]
    # The control: the attack that reaches the kernel succeeds where no wall stands.
    assert attacks[-2] == "    b'the secret'"
    assert_each_bill_is_paid_once(killed, "water 40", ["power 60", "rent 900", "water 40"])


def assert_each_bill_is_paid_once(killed: list[str], before: str, after: list[str]) -> None:
    """The scene of the killed run: payments before the kill, and after the run was resumed twice."""
    assert f"It waits. It has paid: {before}." in killed
    assert [line for line in killed if line.endswith("the process ended by signal 9.")] != []
    assert killed.count("    paid rent") == 2
    (last,) = [line for line in killed if line.startswith("Payments, all processes together: ")]
    assert last == f"Payments, all processes together: {', '.join(after)}."


def test_a_machine_without_a_sandbox_is_told_and_sees_the_other_scenes() -> None:
    text = shown("-c", WITHOUT_SANDBOX.format("sys.modules['wasmtime'] = None", str(DEMO / "demo.py")))
    assert "    programs in WebAssembly need wasmtime\n    pip install 'toolwire[wasm]'." in text.partition("== 1.")[0]
    found = scenes(text)
    assert [title[0] for title in found] == ["1", "2", "5"]
    assert_each_bill_is_paid_once(list(found.values())[-1], "power 60, water 40", ["power 60", "rent 900", "water 40"])


def test_where_programs_run_in_web_assembly_all_scenes_are_shown() -> None:
    text = shown("-c", WITHOUT_SANDBOX.format("", str(DEMO / "demo.py")))
    assert [title[0] for title in scenes(text)] == ["1", "2", "3", "4", "5"]
    assert text.count("Wall 2, WebAssembly, where there is no such thing") == 2


def test_a_run_that_starts_anew_pays_again(tmp_path: Path) -> None:
    """The control of the killed run: without its id, the same bills are paid a second time."""
    for _ in range(2):
        command = [sys.executable, str(DEMO / "bills.py"), "start", str(tmp_path), "calls"]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=True)
    # The two calls of a reply run side by side, so either may be first.
    paid = (tmp_path / "payments.txt").read_text("utf-8").splitlines()
    assert sorted(paid) == ["power 60", "power 60", "water 40", "water 40"]


def test_the_first_scene_is_ten_lines_of_code() -> None:
    lines = (DEMO / "first.py").read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= TEN
