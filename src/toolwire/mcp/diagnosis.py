"""Tries the servers of a configuration, as `toolwire mcp doctor` does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolwire.definition.naming import is_named
from toolwire.mcp.config import ConfiguredServer, read_servers
from toolwire.vocabulary.errors import ServerUnavailable

TRIED_AT_ONCE = 16
"""Servers that are tried at the same time, as many as `register_mcp_server` starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerDiagnosis:
    """The outcome of one server's trial.

    Attributes:
        server: Its name.
        is_on: True if it answered, and has the tools that its entry names.
        tools: Number of its tools; 0 if it is off.
        seconds: Seconds until its tools were known, or until it was given up; 0.0 if it was not tried.
        problems: The mistakes in its entry and the failures of the server, each with its place.
    """

    server: str
    is_on: bool
    tools: int
    seconds: float
    problems: tuple[str, ...]


def diagnose_mcp(config: Mapping[str, Any] | str | Path) -> list[McpServerDiagnosis]:
    """Connects to each server of a configuration, and ends the connection. A server that is disabled is left out.

    `config` is what `ToolRegistry.register_mcp_server` takes.

    Raises:
        ConfigurationError: The file cannot be read or holds no table of servers, or the extra `toolwire[mcp]` is not
            installed.
    """
    servers, problems = read_servers(config)
    wrong: dict[str, list[str]] = {}
    for problem in problems:
        wrong.setdefault(problem.server, []).append(f"{problem.place}: {problem.reason}")
    read = [server.client.name for server in servers]
    with ThreadPoolExecutor(TRIED_AT_ONCE, thread_name_prefix="toolwire-mcp-doctor") as pool:
        tried = list(pool.map(_tried, servers, [wrong.get(name, []) for name in read]))
    return tried + [
        McpServerDiagnosis(server=name, is_on=False, tools=0, seconds=0.0, problems=tuple(told))
        for name, told in wrong.items()
        if name not in read
    ]


def _tried(server: ConfiguredServer, wrong: list[str]) -> McpServerDiagnosis:
    began = time.monotonic()
    tools, why = list[str](), list[str]()
    try:
        tools = [tool.name for tool in server.client.list_tools()]
        for name in (*(server.enabled or ()), *server.disabled):
            if not any(is_named(tool, [name]) for tool in tools):
                why.append(f"{server.place}: the server has no tool {name!r}")
    except ServerUnavailable as error:
        why.append(f"{server.place}: {error}")
    finally:
        server.client.close()
    return McpServerDiagnosis(
        server=server.client.name,
        is_on=not why,
        tools=0 if why else len(tools),
        seconds=time.monotonic() - began,
        problems=(*wrong, *why),
    )
