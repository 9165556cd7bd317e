"""`toolwire init`: each file that it writes runs as it is, and none is overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, run_here
from tests.patience import PATIENCE_S
from tests.protocols.providers import provider
from tests.session.test_native_protocols import completion

FILES = ["tools.py", "toolwire.toml", "mcp.json", "agent.py"]
NEXT = """\
Try next:
  cd my_agent
  toolwire tools --tools tools.py
  toolwire call weather city=Oslo --tools tools.py
  toolwire policy check --tools tools.py
  toolwire mcp list --config mcp.json    needs: pip install 'toolwire[mcp]'
  python agent.py                        needs: pip install openai, and OPENAI_API_KEY
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `toolwire init` was run."""
    folder = tmp_path / "made"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run_here("init").code == 0
    return folder


def test_it_names_the_files_and_what_to_try_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run_here("init", "my_agent")
    assert ended == Ended(code=0, stdout="".join(f"my_agent/{name}\n" for name in FILES), stderr=NEXT)
    assert sorted(path.name for path in Path("my_agent").iterdir()) == sorted(FILES)
    assert max(len(Path("my_agent", name).read_text().splitlines()) for name in FILES) <= 35


def test_the_tools_and_their_rules_are_used_by_each_command(made: Path) -> None:
    found = json.loads(run_here("tools", "--tools", "tools.py", "--json").stdout)
    assert {tool["name"]: tool["description"] for tool in found} == {
        "weather": "Looks up today's weather in a city.",
        "send_message": "Sends a message.",
    }
    assert run_here("policy", "check", "--tools", "tools.py") == Ended(
        code=0, stdout="toolwire.toml: 2 rules, nothing wrong for 2 tools\n", stderr=""
    )
    assert "celsius" in run_here("call", "weather", "city=Oslo", "--tools", "tools.py").stdout
    refused = run_here("call", "send_message", "to=ada", "text=hi", "--tools", "tools.py")
    assert (refused.code, "a person has to allow it" in refused.stdout) == (1, True)
    assert made.exists()


def test_the_configuration_serves_the_tools_from_any_folder(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLWIRE_STORE")
    ended = run_here("mcp", "list", "--config", str(made / "mcp.json"), "--json")
    assert (ended.code, json.loads(ended.stdout)) == (
        0,
        {"my_tools": {"read_result": "accepted", "send_message": "accepted", "weather": "accepted"}},
    )


def test_the_loop_answers_and_asks_before_a_message_is_sent(made: Path, tmp_path: Path) -> None:
    with provider() as server:
        server.script = [
            completion(("call_a", "weather", '{"city": "Oslo"}')),
            completion(("call_b", "send_message", '{"to": "ada", "text": "clear"}')),
            completion(content="It is clear."),
        ]
        done = subprocess.run(
            [sys.executable, str(made / "agent.py"), "How is it in Oslo?"],
            cwd=tmp_path,
            env={**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE_S,
            check=False,
        )
        asked, told = server.requests[0]["messages"], server.requests[-1]["messages"]
    assert (done.returncode, done.stdout) == (0, "It is clear.\n")
    assert asked[-1]["content"] == "How is it in Oslo?"
    assert "celsius" in str(told[2])
    assert "'send_message' was not run: a person has to allow it" in str(told[4])


def test_the_loop_without_a_key_says_what_to_set(made: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(made / "agent.py")],
        env={name: value for name, value in os.environ.items() if not name.startswith("OPENAI")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    said = "Set OPENAI_API_KEY to your key first: export OPENAI_API_KEY=...\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path(there).write_text("mine")
    assert run_here("init") == Ended(
        code=1,
        stdout="",
        stderr=f"toolwire: nothing was written, because there is already: {there}\n"
        "Name another folder: toolwire init DIR\n",
    )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(there, "mine")]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes").write_text("x")
    ended = run_here("init", "notes/agent")
    assert (ended.code, ended.stderr) == (1, "toolwire: notes/agent cannot be written: Not a directory\n")
