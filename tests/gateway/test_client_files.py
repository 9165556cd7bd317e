"""Files of other MCP clients are read as they are, and each client gets lines that it reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import run_here
from toolwire import ClientProfiles, ConfigurationError
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

CODEX_ALLOWED = """
[mcp_servers.near]
command = "npx"
supports_parallel_tool_calls = true
default_tools_approval_mode = "approve"

[mcp_servers.near.tools.read]
approval_mode = "approve"
"""
ENV_FILE = """\ufeff# The keys.
PLAIN=a#b  # a comment
export QUOTED="x y\\n" # another

SINGLE = '$q\\n'
EMPTY=
BOTH=file
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


def test_the_settings_of_zed_are_read_and_its_profiles_are_its_own(tmp_path: Path) -> None:
    settings = """{
      // Zed
      "profiles": {"Talk": {"buffer_font_size": 20}},
      "context_servers": {"a": {"source": "custom", "command": "npx", "args": ["a"], "env": {}}},
    }"""
    assert list(read(tmp_path / "settings.json", settings)) == ["a"]
    assert len(ClientProfiles(tmp_path / "settings.json")) == 0


def test_codex_keeps_in_its_file_what_its_person_allowed_and_that_grants_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CODEX_ALLOWED)
    (server,), problems, _ = read_servers(tmp_path / "config.toml", {})
    assert server.entry == {"command": "npx"}
    no_grant = "grants nothing here: write a rule with effect='auto' for tools that may run unasked"
    place = f"{tmp_path / 'config.toml'}: mcp_servers.near"
    keys = (f"{place}.tools", f"{place}.default_tools_approval_mode")
    assert [(one.place, one.reason, one.is_off) for one in problems] == [(key, no_grant, False) for key in keys]


@pytest.mark.parametrize("tools", [{}, {"read": {"approval_mode": "approve", "enabled": False}}, ["*"]])
def test_a_key_that_may_take_tools_away_turns_the_server_off(tools: object) -> None:
    servers, (problem,), _ = read_servers({"mcp_servers": {"near": {"command": "npx", "tools": tools}}})
    assert (servers, problem.is_off) == ([], True)


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ({"mcpServers": {}, "servers": {"a": {"command": "npx"}}}, ("mcpServers", "servers")),
        ({"mcp_servers": {}, "mcp": {"servers": {}}}, ("mcp_servers", "mcp.servers")),
    ],
)
def test_a_file_with_two_tables_of_servers_is_refused(content: dict[str, Any], keys: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_servers(content)
    assert str(refused.value) == f"config has servers in {keys[0]} and {keys[1]}: write all of them in {keys[0]}"


def test_a_file_in_another_encoding_names_the_one_to_save_it_in(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("{}", "utf-16")
    with pytest.raises(ConfigurationError, match=r"mcp\.json cannot be read: save it as UTF-8: "):
        read_servers(tmp_path / "mcp.json")


def test_a_toml_file_may_end_in_capital_letters(tmp_path: Path) -> None:
    assert list(read(tmp_path / "CONFIG.TOML", '[mcp_servers.a]\ncommand = "npx"\n')) == ["a"]


def test_a_text_that_is_a_variable_for_gemini_alone_is_told_and_not_shown() -> None:
    (server,), (problem,), _ = read_servers({"mcpServers": {"a": {"command": "npx", "env": {"KEY": "$SECRET"}}}})
    assert server.client.name == "a"
    assert (problem.place, problem.reason) == (
        "config: mcpServers.a.env.KEY",
        "a text such as $NAME is passed on as it stands: write ${NAME} for a variable",
    )


def test_the_variables_of_a_file_are_those_of_the_server_and_env_counts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("toolwire.mcp.config.MCPClient.stdio", lambda *given, **_: seen.append(given[3]))
    (tmp_path / ".env").write_text(ENV_FILE, "utf-8")
    entry = {"command": "npx", "envFile": "${HERE}/.env", "env": {"BOTH": "env"}}
    assert read_servers({"servers": {"a": entry}}, {"HERE": str(tmp_path)}).problems == []
    assert seen == [{"PLAIN": "a#b", "QUOTED": "x y\n", "SINGLE": "$q\\n", "EMPTY": "", "BOTH": "env"}]


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "cannot be read: "), ("A=1\nsecret words", "line 2 of '{}' is not a variable: write NAME=value")],
)
def test_a_file_of_variables_that_cannot_be_used_turns_the_server_off(
    text: str | None, why: str, tmp_path: Path
) -> None:
    file = tmp_path / ".env"
    if text is not None:
        file.write_text(text)
    servers, (problem,), _ = read_servers({"servers": {"a": {"command": "npx", "envFile": str(file)}}})
    assert (servers, problem.place, problem.is_off) == ([], "config: servers.a.envFile", True)
    assert why.format(file) in problem.reason
    assert "secret" not in problem.reason


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
    assert server.entry["args"] == ["-P", "-m", "toolwire", "serve", "--tools", str(tools), "--store", "none"]
    # Codex alone drops a server that takes a second to start, unless its entry says so.
    assert server.is_required == (client == "codex")
    port = ("--http", "8000", "--token-env", "KEY")
    printed = run_here("serve", "--tools", str(tools), *port, "--print-config", client)
    assert "http://127.0.0.1:8000/mcp" in printed.stdout
    assert "KEY" in printed.stdout
    assert "required" not in printed.stdout
    assert printed.stderr.startswith("These lines go into ")


def test_files_of_the_folder_in_which_a_client_starts_the_command_are_not_imported(tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text('def add(a: int) -> int:\n    """Adds."""\n    return a\n')
    printed = run_here("serve", "--tools", str(tools), "--store", "none", "--print-config", "claude")
    entry = read(tmp_path / "lines.json", printed.stdout)["tools"].entry
    project = tmp_path / "project"
    project.mkdir()
    for name in ("toolwire", "json", "html"):
        (project / f"{name}.py").write_text("raise SystemExit('imported')")
    command = [entry["command"], *entry["args"]]
    ended = subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (ended.returncode, "imported" in ended.stderr) == (0, False)


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
    found = dict(zip(arguments[4::2], arguments[5::2], strict=True))
    folder = str(tmp_path)
    assert found == {
        "--config": f"{folder}/mcp.json",
        "--pins": f"{folder}/pins.json",
        "--store": expected.format(folder),
    }
