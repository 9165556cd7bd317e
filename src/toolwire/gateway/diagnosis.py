"""Tries the servers and profiles of a file, and logs in at a server: `toolwire mcp doctor` and `toolwire mcp login`.

A trial takes the servers as `registry.mcp.add` does, so that it finds all that a gateway would refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from toolwire.catalogue.groups import BASIC
from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.definition.naming import is_named
from toolwire.facade.mcp_connections import ServerStart
from toolwire.facade.mcp_offer import server_of
from toolwire.facade.registry import ToolRegistry
from toolwire.gateway.profiles.client_profiles import ClientProfiles
from toolwire.gateway.served_names import client_safe_name
from toolwire.mcp.client import MCPClient
from toolwire.mcp.config import ConfiguredServer, McpServerProblem, ReadServers, read_servers
from toolwire.mcp.pins import McpPins, Wait
from toolwire.vocabulary.errors import ConfigurationError, ServerUnavailable

TRIED_AT_ONCE = 16
"""Servers that are tried again at the same time."""

OLDER_PROTOCOL = "2025-06-18"
"""The protocol in which a server is tried again that ended the connection. A server with an older one answers too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerDiagnosis:
    """The outcome of one server's trial.

    Attributes:
        server: Its name.
        is_on: True if it answered, and its tools fit its entry.
        tools: Number of its tools; 0 if it is off.
        offered: Number of those that models and clients get: by its entry, and none of `waiting` and `refused`.
        seconds: Seconds until its tools were known, or until it was given up; 0.0 if it was not tried.
        problems: The mistakes in its entry and the failures of the server, each with its place.
        waiting: The tools that are off by the pins until they are accepted, each with the reason.
        refused: The tools that its entry offers and that cannot be used, each with the reason.
        names: The names in the registry of its tools and of its requests, such as `fs/resources:read`.
    """

    server: str
    is_on: bool
    tools: int
    offered: int
    seconds: float
    problems: tuple[str, ...]
    waiting: Mapping[str, Wait] = field(default_factory=dict[str, Wait])
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    names: tuple[str, ...] = ()


def diagnose_mcp(
    config: Mapping[str, Any] | str | Path, pins: McpPins | str | Path | None = None
) -> list[McpServerDiagnosis]:
    """Connects to each server of a configuration, and ends the connection. A server that is disabled is left out.

    The trial takes `config` as `registry.mcp.add` does. Each refusal of it is a problem here. `pins` is the file of
    accepted definitions, which is not changed; None tells of no tools that wait.

    Raises:
        ConfigurationError: The file cannot be read or holds no table of servers, or the extra `toolwire[mcp]` is not
            installed.
    """
    return _try_servers(read_servers(config), pins)


def diagnose_profiles(config: str | Path, found: Iterable[McpServerDiagnosis]) -> list[str]:
    """Returns the patterns of the profiles of a file that match no tool, each with its place and what to do.

    `found` are the diagnoses of its servers. A pattern that may mean a tool of a server that is off or disabled, or a
    tool of one's own, is left out.

    Raises:
        ConfigurationError: The file or a profile cannot be used.
    """
    servers = list(found)
    names = [name for each in servers for name in each.names]
    refused = {f"{each.server}/{tool}" for each in servers for tool in each.refused}
    served = {client_safe_name(name): name for name in names if name not in refused}
    absent = [*(each.server for each in servers if not each.is_on), *read_servers(config).disabled]
    told: list[str] = []
    for key, pattern in ClientProfiles(config).patterns():
        server, mark, _ = pattern.rpartition("/")
        may_match = any(is_named(one, {server}) for one in absent) or (not mark and pattern not in served)
        if not may_match and not any(is_named(name, {pattern}) for name in names):
            meant = served.get(pattern) or nearest(pattern, names)
            told.append(f"{config}: {key}: {pattern!r} matches no tool{suggestion(meant)}")
    return told


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
        return _try_servers(ReadServers([found], [], []), None)[0]
    finally:
        found.client.close()


def _of_url(url: str) -> ConfiguredServer:
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"{url!r:.80} is not a URL: give the file that has a server of this name (--config)")
    return ConfiguredServer(client=MCPClient.http("server", url, auth="oauth"), place=url, entry={})


def _of_config(name: str, config: Mapping[str, Any] | str | Path) -> ConfiguredServer:
    servers, problems, _ = read_servers(config)
    for server in servers:
        if name == server.client.name:
            return server
    for problem in problems:
        if problem.server == name:
            raise ConfigurationError(f"{problem.place}: {problem.reason}")
    known = ", ".join(repr(server.client.name) for server in servers) or "none"
    raise ConfigurationError(f"there is no server {name!r} that is on; there are {known}")


def _try_servers(read: ReadServers, pins: McpPins | str | Path | None) -> list[McpServerDiagnosis]:
    with TemporaryDirectory() as folder, closing(ToolRegistry()) as registry:
        # Servers that are taken change their pins, and a trial must not.
        copy = None if pins is None else Path(folder) / "pins.json"
        if pins is not None and copy is not None:
            (pins if isinstance(pins, McpPins) else McpPins(pins)).copy_to(copy)
        connections = registry._mcp  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        connections.connect(read, copy, "first", {"group": BASIC, "permission": None})
        starts = connections.starts
        tried = [_diagnosis_of(start, read.problems, registry) for start in starts]
        connections.remove(connections.configured)
    with ThreadPoolExecutor(TRIED_AT_ONCE, thread_name_prefix="toolwire-mcp-doctor") as pool:
        tried = list(pool.map(_try_older_protocol, starts, tried))
    wrong: dict[str, list[McpServerProblem]] = {}
    on = {server.client.name for server in read.servers}
    for problem in read.problems:
        if problem.is_off or problem.server not in on:
            wrong.setdefault(problem.server, []).append(problem)
    return tried + [
        McpServerDiagnosis(server=name, is_on=False, tools=0, offered=0, seconds=0.0, problems=_texts_of(problems))
        for name, problems in wrong.items()
    ]


def _diagnosis_of(start: ServerStart, read: list[McpServerProblem], registry: ToolRegistry) -> McpServerDiagnosis:
    server, offer = start.server, start.offer
    name, is_on = server.client.name, start.is_taken.is_set()
    problems = [problem for problem in read if problem.server == name and not problem.is_off] + [*start.problems]
    silent = () if is_on or start.problems else (f"{server.place}: it did not answer in {server.client.connect_s:g} s",)
    pinned = offer.pins.states().get(name, {})
    catalogue = registry._call_scope.catalogue  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    tools = [entry for entry in catalogue if server_of(entry) == name]
    requests = [entry for entry in catalogue.server_requests if entry.name.startswith(f"{name}/")]
    return McpServerDiagnosis(
        server=name,
        is_on=is_on,
        tools=offer.listed if is_on else 0,
        offered=sum(entry.disabled is None for entry in tools),
        seconds=0.0 if start.ended is None else start.ended - start.began,
        problems=(*_texts_of(problems), *silent),
        waiting={tool: state for tool, state in pinned.items() if state != "accepted"} if is_on else {},
        refused={**offer.refused} if is_on else {},
        names=(*(entry.name for entry in (*tools, *requests)), *(f"{name}/{tool}" for tool in offer.refused)),
    )


def _texts_of(problems: list[McpServerProblem]) -> tuple[str, ...]:
    return tuple(f"{problem.place}: {problem.reason}" for problem in problems)


def _try_older_protocol(start: ServerStart, found: McpServerDiagnosis) -> McpServerDiagnosis:
    """Returns the diagnosis of a server, and names the key if one that failed answers in an older protocol."""
    client = start.server.client
    # A second wait for a server that was silent all the time would tell nothing.
    is_quick = bool(start.problems) and not start.is_wrong and found.seconds < client.connect_s
    if not is_quick or client.protocol is not None:
        return found
    client.protocol = OLDER_PROTOCOL
    try:
        client.list_tools()
    except ServerUnavailable:
        return found
    finally:
        client.close()
    told = f'{start.server.place}.protocol: the server answers in an older protocol: write "{OLDER_PROTOCOL}" here'
    return replace(found, problems=(*found.problems, told))
