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
    ("more", "why"),
    [
        ({"rename": {"shout": "x"}}, "rename: the MCP server 'raw' has no tool 'shout'"),
        ({"describe": {"shout": "x"}}, "describe: the MCP server 'raw' has no tool 'shout'"),
        ({"defaults": {"say": {"text": 3}}}, "text"),
        ({"defaults": {"shout": {}}}, "defaults: the MCP server 'raw' has no tool 'shout'"),
    ],
)
def test_a_wrong_override_turns_the_server_off_and_says_why(
    more: dict[str, Any], why: str, registry: ToolRegistry
) -> None:
    (problem,) = registry.mcp.add({"mcpServers": {"raw": {**RAW, **more}}})
    assert problem.is_off
    assert why in problem.reason
    assert list(registry.tool_library) == []


def test_a_rename_onto_a_taken_name_is_refused(registry: ToolRegistry) -> None:
    entry = {"command": sys.executable, "args": ["-m", "tests.mcp.client.asking_server", "/dev/null"], "cwd": str(ROOT)}
    (problem,) = registry.mcp.add({"mcpServers": {"two": {**entry, "rename": {"ask": "pair"}}}})
    assert problem.reason == (
        "rename: the tools 'ask' and 'pair' of the MCP server 'two' are both named 'pair' then: write another name"
    )


def test_a_name_that_is_not_one_is_refused_with_its_place() -> None:
    _, problems = read_servers({"mcpServers": {"raw": {**RAW, "rename": {"say": "a b"}}}})
    assert [problem.place for problem in problems] == ["config: mcpServers.raw.rename.say"]
