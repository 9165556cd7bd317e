"""A mistake in a file of servers is told with its place, by `serve`, the doctor and `--print-config` alike."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import run_here
from tests.gateway.test_config import GONE, written
from tests.gateway.test_starting import OFFERED, QUICK
from toolwire import ClientProfiles, ConfigurationError, ToolRegistry
from toolwire.doctor import diagnose_mcp
from toolwire.mcp.config import read_servers

TWO = {"command": sys.executable, "args": ["-c", OFFERED.replace('("add", version)', '("add", "drop")')]}
"""A quick server with the tools `add` and `drop`."""
NAMELESS = {"command": sys.executable, "args": ["-c", OFFERED.replace('("add", version)', '("add", "x" * 200)')]}
"""A quick server with a tool that nobody can use."""


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry()
    yield made
    made.close()


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "kept", "proposed"),
    [
        (["be-ta", "be_ta"], ["be-ta"], ["be_ta_2"]),
        (["be_ta", "be-ta"], ["be_ta"], ["be-ta_2"]),
        (["Alpha", "alpha", "ALPHA"], ["Alpha"], ["alpha_2", "ALPHA_2"]),
        (["my notes", "My-Notes"], ["my_notes"], ["My-Notes_2"]),
        (["a" * 32, "A" * 32], ["a" * 32], ["A" * 30 + "_2"]),
        # The controls: names that only look alike.
        (["beta", "be_ta", "s1", "sl"], ["beta", "be_ta", "s1", "sl"], []),
    ],
)
def test_the_first_of_two_names_that_become_equal_is_kept(
    names: list[str], kept: list[str], proposed: list[str]
) -> None:
    servers, problems, _ = read_servers({"mcpServers": dict.fromkeys(names, TWO)})
    assert [server.client.name for server in servers] == kept
    assert [problem.place for problem in problems] == [
        f"config: mcpServers.{name}" for name in names[1 : 1 + len(proposed)]
    ]
    why = "its tools would be named as those of {!r}: name it {!r}, for example"
    assert [problem.reason for problem in problems] == [why.format(names[0], other) for other in proposed]


def test_a_disabled_server_takes_no_name() -> None:
    off = {**TWO, "disabled": True}
    servers, problems, disabled = read_servers({"mcpServers": {"a_b": off, "a-b": TWO, "A_B": off}})
    assert ([server.client.name for server in servers], problems, disabled) == (["a-b"], [], ["a_b", "A_B"])


def test_two_equal_names_are_one_message_and_the_order_of_the_file_decides(
    registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    (problem,) = registry.mcp.add({"mcpServers": {"be-ta": TWO, "be_ta": TWO}})
    assert caplog.messages == [str(problem)]
    assert list(registry.tool_library) == ["be-ta/add", "be-ta/drop"]
    # The other one stands first now, so that this one does not go on with its former entry.
    (problem,) = registry.mcp.update({"mcpServers": {"be_ta": TWO, "be-ta": TWO}})
    assert (problem.server, problem.is_off, problem.is_former) == ("be-ta", True, False)
    assert list(registry.tool_library) == ["be_ta/add", "be_ta/drop"]
    # A second file is held against the first.
    (problem,) = registry.mcp.add({"mcpServers": {"BE-TA": TWO}})
    assert problem.reason == "an MCP server named 'be_ta' is registered already: give it another name"


# -- the doctor -------------------------------------------------------------------------------------------------------


def test_the_doctor_tells_what_serve_refuses(registry: ToolRegistry) -> None:
    entries = {
        "fits": TWO,
        "taken": TWO | {"rename": {"add": "drop"}},
        "equal": TWO | {"rename": {"add": "x-y", "drop": "x_y"}},
        "rename": TWO | {"rename": {"fly": "soar"}},
        "describe": TWO | {"describe": {"fly": "Flies."}},
        "defaults": TWO | {"defaults": {"fly": {"a": 1}}},
        "choice": TWO | {"includeTools": ["fly", "swim"]},
        "Fits": TWO,
        "gone": GONE,
    }
    found = {each.server: each for each in diagnose_mcp({"mcpServers": entries})}
    refused = registry.mcp.add({"mcpServers": entries})
    assert {problem.server for problem in refused if problem.is_off} == entries.keys() - {"fits"}
    assert [name for name, each in found.items() if each.is_on] == ["fits"]
    told = [problem for each in found.values() for problem in each.problems]
    assert sorted(told) == sorted(f"{problem.place}: {problem.reason}" for problem in refused)
    assert "config: mcpServers.equal.rename.drop: " in "\n".join(told)


def test_the_doctor_tells_each_mistake_once_and_ends_with_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = written(tmp_path / "mcp.json", {"a": TWO | {"rename": {"fly": "soar"}}, "n": NAMELESS})
    ended = run_here("mcp", "doctor", "--config", config)
    problem, refused = ended.stdout.splitlines()[-2:]
    assert problem == f"{config}: mcpServers.a.rename.fly: the MCP server 'a' has no tool 'fly'"
    assert refused.startswith(f"n/{'x' * 200} is off: ")
    assert (ended.code, ended.stderr, caplog.messages) == (1, "", [])
    # A tool that is off is a fault, unless its entry leaves it out.
    assert run_here("mcp", "doctor", "--config", written(tmp_path / "mcp.json", {"n": NAMELESS})).code == 1
    left_out = NAMELESS | {"excludeTools": ["x*"]}
    assert run_here("mcp", "doctor", "--config", written(tmp_path / "mcp.json", {"n": left_out})).code == 0


def test_the_doctor_tells_patterns_of_profiles_that_match_no_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "long and random")
    patterns = {
        "tools": ["a/ad", "a_drop", "nope/*", "a/*", "a/resources:read", "stock", "off/x", "later/*", "*"],
        "excludeTools": ["a/delete_*", "*/delete_*"],
    }
    content = {
        "mcpServers": {"a": TWO, "off": {**TWO, "disabled": True}, "later": GONE},
        "profiles": {"p": {"token": "${A_TOKEN}", **patterns}},
    }
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps(content))
    told = [
        f"{config}: profiles.p.tools: 'a/ad' matches no tool; did you mean 'a/add'?",
        f"{config}: profiles.p.tools: 'a_drop' matches no tool; did you mean 'a/drop'?",
        f"{config}: profiles.p.tools: 'nope/*' matches no tool",
        f"{config}: profiles.p.excludeTools: 'a/delete_*' matches no tool",
    ]
    assert run_here("mcp", "doctor", "--config", str(config)).stdout.splitlines()[-4:] == told
    ended = run_here("mcp", "doctor", "--config", str(config), "--json")
    assert (ended.code, ended.stderr.splitlines()) == (1, told)
    # The control: nothing else is wrong with it.
    del content["mcpServers"]["later"]
    content["profiles"]["p"] |= {"tools": ["a/*", "stock"], "excludeTools": ["*/delete_*", "off/x"]}
    config.write_text(json.dumps(content))
    assert run_here("mcp", "doctor", "--config", str(config)).code == 0


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (
            {"mcpServers": {}},
            3,
            "{} names no server that is on\nWrite one in its table mcpServers, or enable one that is disabled.\n",
        ),
        (
            {"mcpServers": {"a": {**TWO, "disabled": True}}},
            3,
            "{} names no server that is on\nWrite one in its table mcpServers, or enable one that is disabled.\n",
        ),
        ({"mcpServers": {"a": TWO}, "profiles": {"p": {}}}, 2, "{}: profiles.p: "),
        # Without profiles, each client would have all tools.
        ({"mcpServers": {"a": TWO}, "profile": {"p": {}}}, 2, "{}: profile is not known: write profiles\n"),
        ({"mcpServers": {"a": TWO}, "Auth": {}}, 2, "{}: Auth is not known: write auth\n"),
        # A text in a file is not the path of another one.
        ("other.json", 2, "{} has no table of servers: "),
        ([], 2, "{} has no table of servers: "),
    ],
)
def test_the_doctor_refuses_a_file_as_serve_does(content: object, code: int, said: str, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps(content))
    for command in (["mcp", "doctor"], ["serve", "--store", "none"]):
        ended = run_here(*command, "--config", str(config))
        assert (ended.code, ended.stdout) == (code, "")
        assert ended.stderr.startswith(f"toolwire: {said.format(config)}")


def test_the_profiles_of_codex_say_which_model_it_takes_and_are_its_own(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    server = f"[mcp_servers.two]\ncommand = {json.dumps(TWO['command'])}\nargs = {json.dumps(TWO['args'])}\n"
    config.write_text(f'profile = "deep"\n[profiles.deep]\nmodel = "x"\n{server}')
    assert len(ClientProfiles(config)) == 0
    # The control: a table with a token is of clients.
    config.write_text(f'[profiles.deep]\ntoken = "plain"\ntools = ["x"]\n{server}')
    with pytest.raises(ConfigurationError, match=r"profiles\.deep\.token: write a variable"):
        ClientProfiles(config)


def test_a_command_of_no_letters_is_missing() -> None:
    (problem,) = read_servers({"mcpServers": {"a": {"command": ""}}}).problems
    assert problem.reason == "is missing: a server with stdio needs it"


# -- the lines for a client -------------------------------------------------------------------------------------------

WRONG = {"command": "sh", "args": 7}


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ("{", 2, "toolwire: {} cannot be read"),
        ('{"servres": {}}', 2, "toolwire: {} has no table of servers"),
        ({"mcpServers": {}}, 3, "toolwire: {} names no server"),
        ({"mcpServers": {"a": WRONG}}, 3, "toolwire: no server of {} can be used"),
        ({"mcpServers": {"a": {**WRONG, "required": True}, "b": GONE}}, 3, "servers that cannot be used: 'a'"),
        ({"mcpServers": {"b": GONE}, "profiles": {"p": {}}}, 2, "toolwire: {}: profiles.p: "),
        # The controls: the others are served without it, and no server is started.
        ({"mcpServers": {"a": WRONG, "b": GONE}}, 0, "mcpServers.a.args: 7 is not a list of texts"),
        ({"mcpServers": {"b": GONE}}, 0, "These lines go into "),
    ],
)
@pytest.mark.parametrize("client", ["claude", "codex"])
def test_lines_for_a_client_are_printed_for_a_file_that_serve_takes(
    content: Any, code: int, said: str, client: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(content if isinstance(content, str) else json.dumps(content))
    ended = run_here("serve", "--config", str(config), "--print-config", client)
    assert (ended.code, bool(ended.stdout)) == (code, code == 0)
    assert said.format(config) in "\n".join([ended.stderr, *caplog.messages])


# -- the port ---------------------------------------------------------------------------------------------------------


def test_a_port_in_use_ends_the_command_before_anything_starts(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/started; exec sleep 600"
    config = written(tmp_path / "mcp.json", {"a": {"command": "sh", "args": ["-c", script]}})
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = run_here("serve", "--config", config, "--http", port, "--store", str(tmp_path / "runs.db"))
    assert ended.stderr.startswith(f"toolwire: the address 127.0.0.1:{port} cannot be used: ")
    assert [path.name for path in tmp_path.iterdir()] == ["mcp.json"]
    (line,) = [line for line in run_here("serve", "--help").stdout.splitlines() if "could not start" in line]
    assert line.split()[0] == str(ended.code)


# -- a file that is read again ----------------------------------------------------------------------------------------


def test_a_server_that_goes_on_with_its_former_entry_says_so_until_it_is_mended(registry: ToolRegistry) -> None:
    def former() -> list[str]:
        return [state.server for state in registry.mcp.states if state.is_former]

    registry.mcp.add({"mcpServers": {"a": TWO, "b": TWO}})
    assert former() == []
    registry.mcp.update({"mcpServers": {"a": WRONG, "b": TWO}})
    assert [(state.server, state.state) for state in registry.mcp.states] == [("a", "on"), ("b", "on")]
    assert former() == ["a"]
    # Another file changes nothing about it.
    registry.mcp.add({"mcpServers": {"c": {**TWO, "disabled": True}}})
    assert former() == ["a"]
    registry.mcp.update({"mcpServers": {"a": TWO, "b": TWO}})
    assert former() == []


@pytest.mark.parametrize(
    ("first", "second", "is_kept"),
    [
        ({}, {"colour": "red"}, True),
        ({"colour": "red"}, {}, True),
        ({"colour": "red"}, {"colour": "blue", "description": "Two tools.", "trust": True}, True),
        # The controls: keys that count.
        ({}, {"required": True}, False),
        ({"colour": "red"}, {"excludeTools": ["drop"]}, False),
    ],
)
def test_a_key_that_is_not_read_replaces_no_server(
    first: dict[str, Any], second: dict[str, Any], is_kept: bool, registry: ToolRegistry
) -> None:
    registry.mcp.add({"mcpServers": {"a": TWO | first}})
    before = registry._mcp.starts
    told = registry.mcp.update({"mcpServers": {"a": TWO | second}})
    assert [problem.place for problem in told] == [
        f"config: mcpServers.a.{key}" for key in ("trust", "colour") if key in second
    ]
    assert (registry._mcp.starts == before) == is_kept


def test_a_required_server_whose_tools_do_not_fit_is_not_waited_for(registry: ToolRegistry) -> None:
    entry = {**QUICK, "required": True, "includeTools": ["fly"], "connectTimeout": 600}
    registry.mcp.add({"mcpServers": {"a": entry}})
    (state,) = registry.mcp.wait_for_required()
    assert state.reason == "the MCP server 'a' has no tool 'fly'"
