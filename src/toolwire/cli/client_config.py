"""The lines by which MCP clients find a server: `toolwire serve --print-config CLIENT`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Client = Literal["claude", "vscode", "cursor", "codex", "gemini"]
"""Claude Code and Claude Desktop, VS Code, Cursor, Codex, and Gemini CLI."""

_FILES: Mapping[Client, str] = {
    "claude": ".mcp.json of a project, or claude_desktop_config.json",
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": "~/.codex/config.toml",
    "gemini": "~/.gemini/settings.json",
}
_VARIABLES: Mapping[Client, str] = {"vscode": "${{env:{}}}", "cursor": "${{env:{}}}", "gemini": "${}"}
"""How a client writes a variable of the environment; else as `${NAME}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAt:
    """Where a client finds the server: it starts a command, or connects to a URL."""

    name: str
    command: Sequence[str] = ()
    url: str = ""
    token_variable: str | None = None
    """The variable of the environment that has the bearer token of the URL."""


def client_file(client: Client) -> str:
    """Returns the file into which the client's lines go."""
    return _FILES[client]


def client_config(client: Client, served: ServedAt) -> str:
    """Returns the lines for that client."""
    if client == "codex":
        return _codex(served)
    table = "servers" if client == "vscode" else "mcpServers"
    return json.dumps({table: {served.name: _entry(client, served)}}, indent=2, ensure_ascii=False)


def _entry(client: Client, served: ServedAt) -> dict[str, Any]:
    if not served.url:
        started = {"command": served.command[0], "args": list(served.command[1:])}
        return {"type": "stdio", **started} if client == "vscode" else started
    entry: dict[str, Any] = {"httpUrl" if client == "gemini" else "url": served.url}
    if client in ("claude", "vscode"):
        entry = {"type": "http", **entry}
    if served.token_variable is not None:
        variable = _VARIABLES.get(client, "${{{}}}").format(served.token_variable)
        entry["headers"] = {"Authorization": f"Bearer {variable}"}
    return entry


def _codex(served: ServedAt) -> str:
    # A text of JSON is one of TOML too.
    lines = [f"[mcp_servers.{served.name}]"]
    if served.url:
        lines += [f"url = {json.dumps(served.url)}"]
        if served.token_variable is not None:
            lines += [f"bearer_token_env_var = {json.dumps(served.token_variable)}"]
    else:
        lines += [f"command = {json.dumps(served.command[0])}", f"args = {json.dumps(list(served.command[1:]))}"]
        # Else its first turn goes without the tools of a server that starts for more than a second.
        lines += ["required = true"]
    return "\n".join(lines)
