"""The servers of a configuration that is read again, patterns of tool names, and a try of each server."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.cli.command_line import run_here, run_process
from tests.mcp.client.tool_server import TOOLS, tool_server
from toolwire import ConfigurationError, MCPClient, RegistrationError, ToolRegistry
from toolwire.doctor import diagnose_mcp
from toolwire.mcp.config import read_servers
from toolwire.mcp.pins import digest_of
from toolwire.types import McpPins

TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}
GONE = {"command": "/no/such/command"}


def local(record: Path, **more: Any) -> dict[str, Any]:
    arguments = ["-m", "tests.mcp.client.tool_server", str(record)]
    return {"command": sys.executable, "args": arguments, "cwd": str(ROOT), **more}


def process_of(registry: ToolRegistry, server: str) -> str:
    """The number of the server's process."""
    return registry.invoke(f"{server}/process").text


def names(registry: ToolRegistry) -> list[str]:
    return list(registry.tool_library)


def test_an_update_adds_removes_and_replaces_servers_and_leaves_the_others(tmp_path: Path) -> None:
    record = tmp_path / "record"
    registry = ToolRegistry()
    own = MCPClient.in_memory("own", tool_server())
    registry.register_mcp_client(own, enable_funcs=["add"])
    before = {name: local(record) for name in ("kept", "changed", "left")}
    registry.mcp.add({"mcpServers": before}, permission="auto")
    kept, changed = process_of(registry, "kept"), process_of(registry, "changed")

    after = {"kept": local(record), "changed": local(record, excludeTools=["die"]), "new": local(record)}
    assert registry.mcp.update({"mcpServers": after}, permission="auto") == []
    assert {name.split("/")[0] for name in names(registry)} == {"own", "kept", "changed", "new"}
    assert process_of(registry, "kept") == kept
    assert process_of(registry, "changed") != changed
    assert "changed/die" not in names(registry)
    registry.close()


def test_an_update_tries_a_missing_server_again_and_keeps_one_whose_new_entry_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = ToolRegistry()
    b = local(tmp_path / "record")
    (problem,) = registry.mcp.add({"mcpServers": {"a": GONE, "b": b}}, permission="auto")
    assert (problem.server, problem.is_off) == ("a", True)
    before = process_of(registry, "b")
    (found,) = registry.mcp.update({"mcpServers": {"a": b, "b": {"args": []}}}, permission="auto")
    assert (found.server, found.is_off, found.is_former) == ("b", False, True)
    assert caplog.messages[-1] == (
        "config: mcpServers.b.command: is missing: a server with stdio needs it. "
        "The MCP server 'b' goes on with its former entry"
    )
    assert {name.split("/")[0] for name in names(registry)} == {"a", "b"}
    assert process_of(registry, "b") == before
    # It goes on when the entry is right again, and is off when it is taken away.
    assert registry.mcp.update({"mcpServers": {"b": b}}, permission="auto") == []
    assert process_of(registry, "b") == before
    assert registry.mcp.update({"mcpServers": {}}) == []
    assert names(registry) == []
    registry.close()


def test_a_server_that_is_off_has_no_former_entry_to_go_on_with() -> None:
    registry = ToolRegistry()
    registry.mcp.add({"mcpServers": {"a": GONE}})
    (found,) = registry.mcp.update({"mcpServers": {"a": {"args": []}}})
    assert (found.is_off, found.is_former, registry.mcp.states) == (True, False, ())
    registry.close()


def test_entries_that_add_no_server_have_a_state_until_they_do() -> None:
    registry = ToolRegistry()
    wrong = "is missing: a server with stdio needs it"
    registry.mcp.add({"mcpServers": {"off": {**GONE, "disabled": True}, "wrong": {}}})
    registry.mcp.add({"mcpServers": {"more": {**GONE, "enabled": False}}})
    assert [(one.server, one.state, one.reason) for one in registry.mcp.left_out] == [
        ("wrong", "off", wrong),
        ("off", "disabled", ""),
        ("more", "disabled", ""),
    ]
    registry.mcp.update({"mcpServers": {"off": GONE, "wrong": {}}})
    assert [one.server for one in registry.mcp.left_out] == ["wrong"]
    assert [one.server for one in registry.mcp.states] == ["off"]
    registry.close()


def test_a_file_that_cannot_be_read_leaves_all_servers_as_they_were(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"a": local(tmp_path / "record")}}))
    registry = ToolRegistry()
    registry.mcp.add(config, permission="auto")
    before = process_of(registry, "a")
    config.write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        registry.mcp.update(config)
    assert process_of(registry, "a") == before
    registry.close()


def test_a_server_that_was_registered_by_hand_keeps_its_name() -> None:
    registry = ToolRegistry()
    registry.register_mcp_client(MCPClient.in_memory("own", tool_server()))
    (problem,) = registry.mcp.update({"mcpServers": {"own": GONE}})
    assert problem.is_off
    assert "own/add" in names(registry)
    with pytest.raises(RegistrationError, match="only a toolkit has groups"):
        registry.mcp.update({"mcpServers": {}}, group_name="other")
    registry.close()


PATTERNS: list[tuple[dict[str, Any], set[str]]] = [
    ({"enable_funcs": ["p*"]}, {"progress", "process"}),
    ({"enable_funcs": ["p*", "add"], "disable_funcs": ["*ess"]}, {"add"}),
    ({"disable_funcs": ["?a*", "progress", "[a-f]*"]}, {"process"}),
]


@pytest.mark.parametrize(("chosen", "offered"), PATTERNS)
def test_tools_are_chosen_by_name_or_pattern(chosen: dict[str, Any], offered: set[str]) -> None:
    registry = ToolRegistry()
    registry.register_mcp_client(MCPClient.in_memory("local", tool_server()), **chosen)
    assert {name.removeprefix("local/") for name in names(registry)} == offered
    registry.close()


def test_a_pattern_that_fits_no_tool_is_an_error_and_a_preset_names_its_tool_exactly() -> None:
    for chosen in ({"enable_funcs": ["x*"]}, {"disable_funcs": ["Add"]}, {"preset_kwargs_mapping": {"a*": {"a": 1}}}):
        with pytest.raises(ConfigurationError, match="has no tool"):
            ToolRegistry().register_mcp_client(MCPClient.in_memory("local", tool_server()), **chosen)


def test_the_doctor_says_which_servers_answer_and_what_is_wrong_with_the_others(tmp_path: Path) -> None:
    servers = {"local": local(tmp_path / "record", trust=True), "gone": GONE, "bad": {}, "off": {"disabled": True}}
    found = {each.server: each for each in diagnose_mcp({"mcpServers": servers})}
    assert {name: (each.is_on, each.tools, each.offered) for name, each in found.items()} == {
        "local": (True, 9, 9),
        "gone": (False, 0, 0),
        "bad": (False, 0, 0),
    }
    assert (found["local"].seconds > 0, found["bad"].seconds) == (True, 0.0)
    assert found["bad"].problems == ("config: mcpServers.bad.command: is missing: a server with stdio needs it",)
    assert "grants nothing here" in found["local"].problems[0]
    assert "No such file or directory" in found["gone"].problems[0]


def test_a_server_is_off_for_the_doctor_when_it_lacks_a_tool_that_its_entry_names(tmp_path: Path) -> None:
    entry = local(tmp_path / "record", excludeTools=["delete_*", "add"])
    (found,) = diagnose_mcp({"mcpServers": {"a": entry}})
    (problem,) = ToolRegistry().mcp.add({"mcpServers": {"a": entry}})
    assert (found.is_on, problem.is_off) == (False, True)
    assert found.problems == ("config: mcpServers.a.excludeTools: the MCP server 'a' has no tool 'delete_*'",)


def test_the_doctor_tells_which_tools_wait_and_changes_no_pin(tmp_path: Path) -> None:
    config, pins = tmp_path / "mcp.json", tmp_path / "pins.json"
    config.write_text(json.dumps({"mcpServers": {"a": local(tmp_path / "record")}}))
    digests = {name: digest_of(tool) for name, tool in TOOLS_BY_NAME.items()}
    McpPins(pins).check("a", {**digests, "add": "0" * 64}, "first")
    before = pins.read_bytes()
    ended = run_here("mcp", "doctor", "--config", str(config), "--pins", str(pins))
    assert re.split(r"\s{2,}", ended.stdout.splitlines()[1])[:3] == ["a", "on", "9, 8 offered"]
    assert ended.stdout.splitlines()[2:] == [
        f"a/add is off, because it is changed: toolwire mcp accept a add --pins {pins}"
    ]
    assert (ended.code, pins.read_bytes()) == (1, before)


@pytest.mark.parametrize(("key", "is_off"), [("excludedTools", True), ("disable_tools", True), ("colour", False)])
def test_a_misspelt_key_that_may_take_tools_away_turns_the_server_off(key: str, is_off: bool, tmp_path: Path) -> None:
    found, problems, _ = read_servers({"mcpServers": {"a": local(tmp_path / "record", **{key: ["die"]})}})
    assert (not found, [problem.is_off for problem in problems]) == (is_off, [is_off])


def test_the_command_prints_a_table_and_the_problems_and_exits_with_one(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"local": local(tmp_path / "record"), "gone": GONE}}))
    ended = run_process("mcp", "doctor", "--config", str(config))
    head, first, second, problem = ended.stdout.splitlines()
    assert head.split() == ["SERVER", "STATE", "TOOLS", "AFTER"]
    assert (first.split()[:3], second.split()) == (["local", "on", "9"], ["gone", "off"])
    assert problem.startswith(f"{config}: mcpServers.gone: the MCP server 'gone' cannot be used: No such file")
    assert ended.code == 1
    chosen = local(tmp_path / "record", includeTools=["p*", "add"], excludeTools=["process"])
    config.write_text(json.dumps({"mcpServers": {"local": chosen}}))
    ended = run_process("mcp", "doctor", "--config", str(config), "--json")
    assert (ended.code, [(each["tools"], each["offered"]) for each in json.loads(ended.stdout)]) == (0, [(9, 2)])
    config.write_text("{")
    assert run_process("mcp", "doctor", "--config", str(config)).code == 2
