"""`toolwire serve --config` answers at once, and the tools of a server come when it is there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types

from mcp import Client
from tests.free_ports import free_port
from tests.gateway.test_config import GONE, said_until_served, serve_config, servers_of, written
from tests.mcp.client.conftest import HttpServer
from tests.patience import PATIENCE_S, until
from toolwire import ToolRegistry, __version__

OFFERED = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": ""}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("add", version)]}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""A quick server with a tool that has the name of the version which it was offered."""
QUICK = {"command": sys.executable, "args": ["-c", OFFERED]}
HUNG = {"command": "sleep", "args": ["600"]}


class LateServer(HttpServer):
    """A server whose port is known before it starts."""

    def __init__(self, record: Path) -> None:
        self.record, self._kind, self.port = record, "", free_port()


async def test_a_hung_server_holds_up_nothing_and_one_that_is_down_comes_later(tmp_path: Path) -> None:
    late = LateServer(tmp_path / "late")
    config = written(tmp_path / "mcp.json", {"hung": HUNG, "good": QUICK, "late": {"url": late.url}})
    process = serve_config("--config", config, cwd=tmp_path)
    heard = asyncio.Queue[None]()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.put_nowait(None)

    try:
        *_, served = said_until_served(process)
        url = served.split(" at ")[1].strip()
        async with Client(url, mode="legacy", message_handler=hear) as client:
            # The prompts and resources of those that come later can be asked for then.
            assert client.server_capabilities.prompts is not None
            assert client.server_info.version == __version__
            with anyio.fail_after(PATIENCE_S):
                while await servers_of(client) != {"good"}:
                    await heard.get()
                late.start()
                while await servers_of(client) != {"good", "late"}:
                    await heard.get()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        late.kill()


def test_a_required_server_that_does_not_come_ends_the_command(tmp_path: Path) -> None:
    servers = {"hung": {**HUNG, "required": True, "connectTimeout": 0.5}, "good": QUICK}
    process = serve_config("--config", written(tmp_path / "mcp.json", servers), cwd=tmp_path)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "toolwire: the required server 'hung' is not there: " in errors
    assert process.returncode == 3


def test_a_required_server_that_is_there_keeps_the_command_going() -> None:
    registry = ToolRegistry()
    entry = {**QUICK, "required": True}
    assert registry.mcp.add({"mcpServers": {"good": entry, "gone": GONE}})[0].server == "gone"
    assert registry.mcp.wait_for_required() == []
    found = {state.server: (state.state, state.is_required) for state in registry.mcp.states}
    assert found == {"good": ("on", True), "gone": ("off", False)}
    registry.close()


def test_the_wait_for_servers_is_bounded_and_their_tools_come_later() -> None:
    registry = ToolRegistry()
    servers = {"good": QUICK, "hung": HUNG}
    assert registry.mcp.add({"mcpServers": servers}, wait_s=0.01) == []
    # On a busy machine the good one may be there already.
    assert [state.state for state in registry.mcp.states][1] == "starting"
    until(lambda: "good/add" in registry)
    assert [(state.server, state.state) for state in registry.mcp.states] == [("good", "on"), ("hung", "starting")]
    # An entry that is unchanged goes on, and one that is taken away ends its start.
    assert registry.mcp.update({"mcpServers": {"good": servers["good"]}}) == []
    assert [state.server for state in registry.mcp.states] == ["good"]
    registry.close()


def test_a_second_server_of_one_name_is_refused_and_the_first_stays() -> None:
    registry = ToolRegistry()
    assert registry.mcp.add({"mcpServers": {"good": QUICK}}) == []
    (problem,) = registry.mcp.add({"mcpServers": {"good": HUNG}})
    assert problem.reason == "an MCP server named 'good' is registered already: give it another name"
    assert "good/add" in registry
    registry.close()


def test_a_server_is_asked_for_the_protocol_of_its_entry() -> None:
    registry = ToolRegistry()
    assert registry.mcp.add({"mcpServers": {"old": {**QUICK, "protocol": "2025-03-26"}}}) == []
    assert registry.mcp.names == ("old",)
    assert "old/2025-03-26" in registry
    registry.close()
