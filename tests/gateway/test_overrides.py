"""Names, descriptions and fixed arguments of tools that an operator writes into the file of servers."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

from mcp import Client
from tests.architecture.source import ROOT
from toolwire import ToolRegistry, ToolServer
from toolwire.mcp.config import read_servers

RAW = {"command": sys.executable, "args": ["-m", "tests.mcp.client.raw_server"], "cwd": str(ROOT)}


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    yield made
    made.close()


async def test_a_tool_has_the_name_description_and_arguments_of_the_file(registry: ToolRegistry) -> None:
    entry = {
        **RAW,
        "rename": {"say": "announce"},
        "describe": {"say": "Announces\na text."},
        "defaults": {"say": {"text": "fixed"}},
    }
    assert registry.mcp.add({"mcpServers": {"raw": entry}}) == []
    async with Client(ToolServer(registry, "gateway").in_memory()) as client:
        (tool,) = (await client.list_tools()).tools
        assert (tool.name, tool.description) == ("raw_announce", "Announces\na text.")
        assert tool.input_schema["properties"] == {}
        said: Any = await client.call_tool("raw_announce", {})
        assert said.content[0].text == "fixed"
        refused: Any = await client.call_tool("raw_announce", {"text": "mine"})
        assert refused.is_error
        assert "text" in refused.content[0].text


@pytest.mark.parametrize(
    ("more", "key", "why"),
    [
        ({"rename": {"shout": "x"}}, "rename.shout", "the MCP server 'raw' has no tool 'shout'"),
        ({"describe": {"shout": "x"}}, "describe.shout", "the MCP server 'raw' has no tool 'shout'"),
        ({"defaults": {"shout": {}}}, "defaults.shout", "the MCP server 'raw' has no tool 'shout'"),
        (
            {"defaults": {"say": {"txet": "x"}}},
            "defaults.say",
            "the tool 'say' of the MCP server 'raw' has no parameter 'txet'; did you mean 'text'?",
        ),
        ({"includeTools": ["shout", "say"]}, "includeTools", "the MCP server 'raw' has no tool 'shout'"),
        ({"enabled_tools": ["shout"]}, "enabled_tools", "the MCP server 'raw' has no tool 'shout'"),
        ({"excludeTools": [], "disabledTools": ["x*"]}, "disabledTools", "the MCP server 'raw' has no tool 'x*'"),
    ],
)
def test_a_wrong_override_turns_the_server_off_and_says_where_and_why(
    more: dict[str, Any], key: str, why: str, registry: ToolRegistry
) -> None:
    (problem,) = registry.mcp.add({"mcpServers": {"raw": {**RAW, **more}}})
    assert (problem.is_off, problem.place, problem.reason) == (True, f"config: mcpServers.raw.{key}", why)
    assert list(registry.tool_library) == []


def test_each_wrong_override_of_a_server_is_told(registry: ToolRegistry) -> None:
    wrong = {"includeTools": ["say", "fly", "swim"], "rename": {"shout": "x"}, "defaults": {"say": {"text": 3}}}
    found = registry.mcp.add({"mcpServers": {"raw": {**RAW, **wrong}}})
    keys = ["includeTools", "includeTools", "rename.shout", "defaults.say"]
    assert sorted(one.place for one in found) == sorted(f"config: mcpServers.raw.{key}" for key in keys)
    assert next(one.reason for one in found if one.place.endswith("say")).startswith("tool 'raw/say': ")
    assert [state.reason.count("has no tool") for state in registry.mcp.states] == [3]


@pytest.mark.parametrize(
    ("rename", "key", "why"),
    [
        (
            {"ask": "pair"},
            "rename.ask",
            "the tools 'ask' and 'pair' of the MCP server 'two' are both named 'pair' then",
        ),
        ({"ask": "p-q", "pair": "p_q"}, "rename.pair", "both named 'p_q' then"),
    ],
)
def test_a_rename_onto_a_taken_name_is_refused(
    rename: dict[str, str], key: str, why: str, registry: ToolRegistry
) -> None:
    entry = {"command": sys.executable, "args": ["-m", "tests.mcp.client.asking_server", "/dev/null"], "cwd": str(ROOT)}
    (problem,) = registry.mcp.add({"mcpServers": {"two": {**entry, "rename": rename}}})
    assert problem.place == f"config: mcpServers.two.{key}"
    assert problem.reason.endswith(f"{why}: write another name")


def test_a_name_that_is_not_one_is_refused_with_its_place() -> None:
    _, problems, _ = read_servers({"mcpServers": {"raw": {**RAW, "rename": {"say": "a b"}}}})
    assert [problem.place for problem in problems] == ["config: mcpServers.raw.rename.say"]
