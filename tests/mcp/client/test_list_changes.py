"""A server adds, changes and removes tools while it is used, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

from tests.architecture.source import ROOT
from tests.mcp.client.tool_server import OBJECT, text
from tests.patience import until
from toolwire import MCPClient, Toolkit, ToolRegistry
from toolwire.mcp import connection
from toolwire.mcp.offered import list_changes

HANDSHAKE = ["2025-03-26", "2025-06-18", "2025-11-25"]
FIRST = {"poke": "Reports a change.", "one": "The first.", "two": "The second."}


class Changing:
    """A client of a server whose tools are those of a file."""

    def __init__(self, tools: Path, revision: str) -> None:
        self._tools = tools
        self.has(FIRST)
        if revision in HANDSHAKE:
            command = ["-m", "tests.mcp.client.handshake_server", str(tools), revision]
            self.client = MCPClient.stdio("c", sys.executable, command, cwd=ROOT)
        else:
            self.client = MCPClient.in_memory("c", self._server())

    def has(self, tools: dict[str, str]) -> None:
        self._tools.write_text(json.dumps(tools))

    def _server(self) -> Server[Any]:
        bus = InMemorySubscriptionBus()

        async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
            named = json.loads(self._tools.read_text())
            tools = [types.Tool(name=name, description=said, input_schema=OBJECT) for name, said in named.items()]
            return types.ListToolsResult(tools=tools)

        async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            if params.name == "poke":
                await bus.publish(ToolsListChanged())
            return text(f"{params.name} ran")

        listen = ListenHandler(bus)
        return Server("new", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=listen)


@pytest.fixture(params=[*HANDSHAKE, "2026-07-28"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Changing]:
    found = Changing(tmp_path / "tools.json", request.param)
    yield found
    found.client.close()


@pytest.fixture
def old(tmp_path: Path) -> Generator[Changing]:
    found = Changing(tmp_path / "tools.json", HANDSHAKE[-1])
    yield found
    found.client.close()


def registered(server: Changing, **options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_mcp_client(server.client, permission="auto", accept="all", **options)
    return registry


def described(registry: ToolRegistry) -> dict[str, str]:
    return {name: spec.__tool__().description for name, spec in registry.tool_library.items()}


def changed(server: Changing, registry: ToolRegistry, tools: dict[str, str], until_true: Callable[[], bool]) -> None:
    """The server changes its tools and says so, until the condition is true."""
    server.has({"poke": FIRST["poke"], **tools})

    def looks() -> bool:
        if until_true():
            return True
        registry.invoke("c/poke", {})
        return until_true()

    until(looks)


def test_tools_come_change_and_go_in_the_registry(server: Changing) -> None:
    registry = registered(server)
    kept = registry.tool_library["c/one"]
    tools = {"one": FIRST["one"], "two": "Another second.", "three": "The third."}
    changed(server, registry, tools, lambda: "c/three" in registry.tool_library)
    assert described(registry) == {"c/poke": FIRST["poke"], **{f"c/{name}": said for name, said in tools.items()}}
    assert registry.invoke("c/three", {}).text == "three ran"
    assert registry.tool_library["c/one"] is kept  # What did not change stays as it is.
    changed(server, registry, {"three": "The third."}, lambda: "c/one" not in registry.tool_library)
    assert set(registry.tool_library) == {"c/poke", "c/three"}
    failure = registry.invoke("c/one", {}).failure
    assert failure is not None
    assert failure.kind == "unknown_tool"


def test_a_toolkit_and_its_prompt_follow(old: Changing) -> None:
    toolkit = Toolkit()
    toolkit.register_mcp_client(old.client, permission="auto", accept="all")
    old.has({"poke": "", "new": "Is new."})
    asyncio.run(toolkit.execute_tool("c/poke", {}))

    def names() -> list[str]:
        return [schema["function"]["name"] for schema in toolkit.get_json_schemas()]

    until(lambda: any("new" in name for name in names()))
    assert not any("one" in name for name in names())


def test_the_choice_of_tools_and_what_the_host_took_away_stay(old: Changing) -> None:
    registry = registered(old, disable_funcs=["two"])
    registry.unregister("c/one")
    more = {**FIRST, "three": "The third."}
    changed(old, registry, more, lambda: "c/three" in registry.tool_library)
    assert set(registry.tool_library) == {"c/poke", "c/three"}


def test_a_tool_that_the_host_disabled_stays_disabled_when_it_changes(old: Changing) -> None:
    registry = registered(old)
    registry.disable("c/one", "it is being mended")
    changed(old, registry, {"one": "Changed."}, lambda: described(registry).get("c/one") == "Changed.")
    assert dict(registry.disabled_tools) == {"c/one": "it is being mended"}


def test_a_new_tool_that_a_rule_of_the_host_does_not_fit_is_off(
    old: Changing, caplog: pytest.LogCaptureFixture
) -> None:
    """A rule that looks at a parameter would never apply to a tool without it."""
    rule = {"tool": "c/late", "effect": "deny", "when": [{"path": "/arguments/path", "op": "==", "value": "/etc"}]}
    registry = ToolRegistry(rules=[rule])
    registry.register_mcp_client(old.client, permission="auto", accept="all")
    changed(old, registry, {"late": "", "new": ""}, lambda: "c/new" in registry.tool_library)
    assert "c/late" not in registry.tool_library
    assert any("'c/late' of an MCP server is off" in record.getMessage() for record in caplog.records)


def test_a_changed_tool_whose_parameters_the_host_bound_is_off(old: Changing, caplog: pytest.LogCaptureFixture) -> None:
    """Else the model could give a value that the host had fixed."""
    registry = registered(old)
    catalogue = registry._call_scope.catalogue
    catalogue.change("c/one", lambda tool: tool.with_presets({"secret": "s"}))
    changed(old, registry, {"one": "Changed.", "new": ""}, lambda: "c/new" in registry.tool_library)
    assert "c/one" not in registry.tool_library
    assert any("were bound here" in record.getMessage() for record in caplog.records)


def test_a_flood_of_news_is_one_look_at_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Changing(tmp_path / "tools.json", "2026-07-28")
    looks: list[int] = []
    whole = connection.list_entries

    async def counted(*given: Any) -> Any:
        looks.append(1)
        return await whole(*given)

    monkeypatch.setattr(connection, "list_entries", counted)
    monkeypatch.setattr(list_changes, "RELIST_S", 0.5)
    try:
        registry = registered(server)
        server.has({**FIRST, "late": ""})
        began = time.monotonic()
        for _ in range(50):
            registry.invoke("c/poke", {})
        until(lambda: "c/late" in registry.tool_library)
        # One for the connection, one for each wait that ended since, and one that the last news began.
        assert len(looks) <= 2 + (time.monotonic() - began) / 0.5
    finally:
        server.client.close()


def test_a_removed_server_is_not_followed_any_more(old: Changing) -> None:
    registry = registered(old)
    registry.remove_mcp_servers(["c"])
    other = registered(old)
    changed(old, other, {"new": "Is new."}, lambda: "c/new" in other.tool_library)
    assert len(registry) == 0


def test_the_log_of_a_server_is_kept_with_its_level(old: Changing, caplog: pytest.LogCaptureFixture) -> None:
    registry = registered(old)
    with caplog.at_level(logging.INFO, "toolwire.mcp.c"):
        registry.invoke("c/poke", {})
        until(lambda: any(record.getMessage() == "the tools changed" for record in caplog.records))
    assert [record.levelname for record in caplog.records if record.getMessage() == "the tools changed"] == ["WARNING"]


def test_a_list_that_cannot_be_read_again_leaves_the_tools_as_they_are(
    old: Changing, caplog: pytest.LogCaptureFixture
) -> None:
    registry = registered(old)
    before = described(registry)
    old.has({})
    registry.invoke("c/poke", {})
    until(lambda: any("cannot be listed" in record.getMessage() for record in caplog.records))
    assert described(registry) == before
    changed(old, registry, {"new": "Is new."}, lambda: "c/new" in registry.tool_library)
