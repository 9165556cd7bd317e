"""Files of other MCP clients are read as they are, and each client gets lines that it reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import run_here
from toolwire.mcp.config import read_servers

COMMENTED = """{
  // The servers of this project.
  "servers": {
    "My Notes": {"command": "npx", "args": ["notes", "// no comment", "/* nor this */", ",}"],},
    /* a proxy */ "far": {"serverUrl": "https://example.com/mcp", "headers": {"X": "1",}},
  },
}
"""
CODEX = """
[mcp_servers.near]
command = "npx"
args = ["near"]
startup_timeout_sec = 20
tool_timeout_sec = 90
enabled_tools = ["read_*"]
disabled_tools = ["read_all"]
env_vars = ["HOME_TOKEN"]

[mcp_servers.far]
url = "https://example.com/mcp"
bearer_token_env_var = "FAR_TOKEN"
http_headers = { X = "1" }
env_http_headers = { Y = "FAR_TOKEN" }
"""


def read(path: Path, text: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    path.write_text(text)
    servers, problems, _ = read_servers(path, environ or {})
    assert problems == []
    return {server.client.name: server for server in servers}


def test_json_with_comments_and_the_keys_of_vs_code_and_windsurf_are_read(tmp_path: Path) -> None:
    found = read(tmp_path / "mcp.json", COMMENTED)
    assert list(found) == ["My_Notes", "far"]
    assert found["My_Notes"].entry["args"] == ["notes", "// no comment", "/* nor this */", ",}"]
    assert found["far"].client.login_command == f"toolwire mcp login far --config {tmp_path / 'mcp.json'}"
    # Editors of Windows begin a file with a mark.
    assert list(read(tmp_path / "mcp.json", f"\ufeff{COMMENTED}")) == ["My_Notes", "far"]
    settings = '{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "npx"}}}}'
    assert list(read(tmp_path / "settings.json", settings)) == ["a"]


def test_the_tables_of_codex_are_read(tmp_path: Path) -> None:
    found = read(tmp_path / "config.toml", CODEX, {"HOME_TOKEN": "h", "FAR_TOKEN": "f"})
    near = found["near"]
    # A server whose variable is not there has no problem either.
    assert "near" in read(tmp_path / "config.toml", CODEX, {"FAR_TOKEN": "f"})
    assert (near.client.connect_s, near.enabled, near.disabled) == (20, ("read_*",), ("read_all",))
    # A server with a token of its own has no login.
    endpoint = found["far"].client._endpoint  # pyright: ignore[reportPrivateUsage]
    assert (endpoint.auth, endpoint.headers) == (None, {"X": "1", "Y": "f", "Authorization": "Bearer f"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "the key 'a' is there twice in one table"),
        ('{"mcpServers": {} // end', "cannot be read: Expecting"),
    ],
)
def test_a_file_with_two_servers_of_one_name_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(text)
    ended = run_here("serve", "--config", str(tmp_path / "mcp.json"))
    assert ended.code == 2
    assert why in ended.stderr


def test_two_names_that_are_one_here_are_refused_with_their_place() -> None:
    servers, problems, _ = read_servers({"mcpServers": {"a b": {"command": "x"}, "a_b": {"command": "y"}}})
    assert [server.entry["command"] for server in servers] == ["x"]
    assert [problem.place for problem in problems] == ["config: mcpServers.a_b"]
    assert problems[0].reason == "its tools would be named as those of 'a b': name it 'a_b_2', for example"


@pytest.mark.parametrize("client", ["claude", "vscode", "cursor", "codex", "gemini"])
def test_the_lines_for_a_client_name_this_command_or_its_port(client: str, tmp_path: Path) -> None:
    tools = tmp_path / "my tools.py"
    tools.write_text('def add(a: int) -> int:\n    """Adds."""\n    return a\n')
    file = tmp_path / ("lines.toml" if client == "codex" else "lines.json")
    printed = run_here("serve", "--tools", str(tools), "--store", "none", "--print-config", client)
    server = read(file, printed.stdout)["my_tools"]
    # The interpreter that has toolwire, because a client may have another PATH.
    assert server.entry["command"] == sys.executable
    assert server.entry["args"] == ["-m", "toolwire", "serve", "--tools", str(tools), "--store", "none"]
    # Codex alone drops a server that takes a second to start, unless its entry says so.
    assert server.is_required == (client == "codex")
    port = ("--http", "8000", "--token-env", "KEY")
    printed = run_here("serve", "--tools", str(tools), *port, "--print-config", client)
    assert "http://127.0.0.1:8000/mcp" in printed.stdout
    assert "KEY" in printed.stdout
    assert "required" not in printed.stdout
    assert printed.stderr.startswith("These lines go into ")


def test_lines_for_a_port_that_changes_are_refused(tmp_path: Path) -> None:
    ended = run_here("serve", "--tools", "tools.py", "--http", "0", "--print-config", "claude")
    assert (ended.code, ended.stderr) == (2, "toolwire: --http 0 is another port each time\nGive --http PORT.\n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("runs.db", "{}/runs.db"),
        ("sqlite:///runs.db", "sqlite:///{}/runs.db"),
        ("sqlite:////runs.db", "sqlite:////runs.db"),
        ("memory:", "memory:"),
        ("none", "none"),
        ("postgresql://server/runs", "postgresql://server/runs"),
    ],
)
def test_the_lines_name_pins_and_stores_that_each_folder_finds(
    given: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    printed = run_here(
        "serve", "--config", "mcp.json", "--pins", "pins.json", "--store", given, "--print-config", "claude"
    )
    arguments = read(tmp_path / "lines.json", printed.stdout)["mcp"].entry["args"]
    found = dict(zip(arguments[3::2], arguments[4::2], strict=True))
    folder = str(tmp_path)
    assert found == {
        "--config": f"{folder}/mcp.json",
        "--pins": f"{folder}/pins.json",
        "--store": expected.format(folder),
    }
