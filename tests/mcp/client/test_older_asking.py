"""A server that asks as in the handshake protocols on a connection with 2026-07-28, and one that fails with both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import fastmcp
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from toolwire import MCPClient, ToolRegistry
from toolwire.doctor import diagnose_mcp
from toolwire.mcp.asked.older_asking import hint_about_asking

HINT = 'The server \'shop\' may be able to ask in an older protocol: write "protocol": "2025-11-25" in its entry.'
LAST = "\nRead the error; change the arguments or try another tool."
SDK_ERROR = (
    "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests."
)
FASTMCP_ERROR = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections."
TYPESCRIPT_ERROR = "Server-to-client requests are not available on protocol revision 2026-07-28: 'elicitation/create' c"


class Order(BaseModel):
    size: int


async def order(ctx: Any) -> str:
    return str((await ctx.elicit("How much?", Order)).action)


def fail() -> None:
    raise RuntimeError("the till is closed")


@pytest.mark.parametrize(
    ("server", "context", "error"),
    [
        (MCPServer("shop"), Context, f"the server refused the call: {SDK_ERROR} (-32600). {HINT}{LAST}"),
        (fastmcp.FastMCP("shop"), fastmcp.Context, f"{FASTMCP_ERROR}\n{HINT}{LAST}"),
    ],
    ids=["the SDK", "FastMCP"],
)
def test_a_tool_that_cannot_ask_in_the_protocol_names_the_key_that_lets_it(
    server: Any, context: type, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(order.__annotations__, "ctx", context)
    server.tool()(order)
    server.tool()(fail)
    with MCPClient.in_memory("shop", server) as client:
        registry = ToolRegistry()
        registry.register_mcp_client(client, permission="auto")
        assert registry.invoke("shop/order").text == error
        assert "protocol" not in registry.invoke("shop/fail").text


def test_the_key_is_not_named_where_it_would_not_help() -> None:
    for error in (SDK_ERROR, TYPESCRIPT_ERROR):
        assert hint_about_asking(error, "shop", "2026-07-28") == HINT
    assert hint_about_asking(SDK_ERROR, "shop", "2025-11-25") == ""
    assert hint_about_asking("the disk is full", "shop", "2026-07-28") == ""


FAILS_WITH_NEW = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize" and request["params"]["protocolVersion"] == "2025-06-18":
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif request["method"] == "tools/list":
        result = {"tools": []}
    elif "id" in request:
        sys.exit("unknown")
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def test_the_doctor_names_the_protocol_in_which_a_server_answers(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(FAILS_WITH_NEW)
    old = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    ends = {"command": sys.executable, "args": ["-c", ""]}
    found = diagnose_mcp({"mcpServers": {"old": old, "ends": ends, "named": {**old, "protocol": "2025-06-18"}}})
    failure = "config: mcpServers.{0}: the MCP server '{0}' cannot be used: its process ended with exit code {1}"
    told = failure.format("old", "1. Its stderr ends with: unknown")
    older = 'config: mcpServers.old.protocol: the server answers in an older protocol: write "2025-06-18" here'
    assert {each.server: each.problems for each in found} == {
        "old": (told, older),
        "ends": (failure.format("ends", 0),),
        "named": (),
    }
    assert [each.server for each in found if each.is_on] == ["named"]
