"""Tries the servers of a configuration, and logs in at one: `toolwire mcp doctor` and `toolwire mcp login`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

from toolwire.definition.naming import is_named
from toolwire.mcp.client import MCPClient
from toolwire.mcp.config import ConfiguredServer, read_servers
from toolwire.mcp.pins import McpPins, Wait, digest_of
from toolwire.vocabulary.errors import ConfigurationError, ServerUnavailable

TRIED_AT_ONCE = 16
"""Servers that are tried at the same time, as many as `registry.mcp.add` starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerDiagnosis:
    """The outcome of one server's trial.

    Attributes:
        server: Its name.
        is_on: True if it answered, and has the tools that its entry names.
        tools: Number of its tools; 0 if it is off.
        seconds: Seconds until its tools were known, or until it was given up; 0.0 if it was not tried.
        problems: The mistakes in its entry and the failures of the server, each with its place.
        waiting: The tools that are off by the pins until they are accepted, each with the reason.
    """

    server: str
    is_on: bool
    tools: int
    seconds: float
    problems: tuple[str, ...]
    waiting: Mapping[str, Wait] = field(default_factory=dict[str, Wait])


def diagnose_mcp(
    config: Mapping[str, Any] | str | Path, pins: McpPins | str | Path | None = None
) -> list[McpServerDiagnosis]:
    """Connects to each server of a configuration, and ends the connection. A server that is disabled is left out.

    `config` is what `registry.mcp.add` takes. `pins` is the file of accepted definitions, which is not
    changed; None tells of no tools that wait.

    Raises:
        ConfigurationError: The file cannot be read or holds no table of servers, or the extra `toolwire[mcp]` is not
            installed.
    """
    known = pins if isinstance(pins, McpPins) or pins is None else McpPins(pins)
    servers, problems = read_servers(config)
    wrong: dict[str, list[str]] = {}
    for problem in problems:
        wrong.setdefault(problem.server, []).append(f"{problem.place}: {problem.reason}")
    read = [server.client.name for server in servers]
    with ThreadPoolExecutor(TRIED_AT_ONCE, thread_name_prefix="toolwire-mcp-doctor") as pool:
        tried = list(pool.map(_diagnose_server, servers, [wrong.get(name, []) for name in read], repeat(known)))
    return tried + [
        McpServerDiagnosis(server=name, is_on=False, tools=0, seconds=0.0, problems=tuple(told))
        for name, told in wrong.items()
        if name not in read
    ]


def log_in_mcp(
    server: str,
    config: Mapping[str, Any] | str | Path | None = None,
    open_page: Callable[[str], object] | None = None,
) -> McpServerDiagnosis:
    """Logs a person in at a server, and tries it with the new token. The token is kept for all clients of its URL.

    Args:
        server: A URL, or the name of a server in `config`.
        config: What `registry.mcp.add` takes.
        open_page: As that of `MCPClient.login`.

    Raises:
        ConfigurationError: There is no such server, its entry cannot be used, or it has no login.
        ServerUnavailable: The login failed.
    """
    found = _of_url(server) if config is None else _of_config(server, config)
    try:
        found.client.login(open_page)
        return _diagnose_server(found, [], None)
    finally:
        found.client.close()


def _of_url(url: str) -> ConfiguredServer:
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"{url!r:.80} is not a URL: give the file that has a server of this name (--config)")
    return ConfiguredServer(client=MCPClient.http("server", url, auth="oauth"), place=url, entry={})


def _of_config(name: str, config: Mapping[str, Any] | str | Path) -> ConfiguredServer:
    servers, problems = read_servers(config)
    for server in servers:
        if name == server.client.name:
            return server
    for problem in problems:
        if problem.server == name:
            raise ConfigurationError(f"{problem.place}: {problem.reason}")
    known = ", ".join(repr(server.client.name) for server in servers) or "none"
    raise ConfigurationError(f"there is no server {name!r} that is on; there are {known}")


def _diagnose_server(server: ConfiguredServer, wrong: list[str], pins: McpPins | None) -> McpServerDiagnosis:
    began = time.monotonic()
    tools, why, waiting = list[str](), list[str](), dict[str, Wait]()
    try:
        listed = server.client.list_tools()
        tools = [tool.name for tool in listed]
        if pins is not None:
            waiting = pins.off(server.client.name, {tool.name: digest_of(tool) for tool in reversed(listed)})
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
        waiting=waiting,
    )
