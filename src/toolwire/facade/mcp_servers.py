"""The tools of MCP servers, in a registry or a toolkit."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.groups import BASIC
from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.definition.tool import Permission
from toolwire.facade.policy_sources import refuse_wrong_rules
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError, RegistrationError, ServerUnavailable

if TYPE_CHECKING:
    from toolwire.mcp.client import MCPClient, MCPClientBase
    from toolwire.mcp.config import McpServerProblem
    from toolwire.mcp.tool_function import MCPToolFunction
    from toolwire.vocabulary.blocks import ToolUseBlock
    from toolwire.vocabulary.response import ToolResponse

_LOG = logging.getLogger("toolwire.registry")

STARTED_AT_ONCE = 16
"""Servers of a configuration that are started at the same time. Most of them wait for a download or a network."""


class McpServers:
    """Adds and removes the tools of MCP servers."""

    @property
    def _call_scope(self) -> Scope:
        """The present context of the calls made here, with the live catalogue."""
        raise NotImplementedError

    @property
    def _mcp_lock(self) -> threading.RLock:
        return self.__dict__.setdefault("_mcp_changes", threading.RLock())

    @property
    def _mcp_clients(self) -> dict[str, MCPClientBase]:
        return self.__dict__.setdefault("_mcp_clients_by_name", {})

    def register_mcp_client(
        self,
        client: MCPClientBase,
        /,
        *,
        group_name: str | Literal["basic"] = BASIC,
        enable_funcs: Iterable[str] | None = None,
        disable_funcs: Iterable[str] | None = None,
        preset_kwargs_mapping: Mapping[str, Mapping[str, Any]] | None = None,
        postprocess_func: Callable[[ToolUseBlock, ToolResponse], Any] | None = None,
        wrap_tool_result: bool = True,
        permission: Permission | None = None,
    ) -> None:
        """Adds the tools of an MCP server, under the names `server/tool`. Blocks until they are known.

        A person confirms each call, unless a rule or `permission` says otherwise: a server's own hints are not trusted.
        Tool names in `enable_funcs`, `disable_funcs` and `preset_kwargs_mapping` are the server's own. A tool that
        cannot be used here is left out, with a warning.

        Args:
            client: An `MCPClient`, or another `MCPClientBase`.
            group_name: The group of its tools, in a toolkit.
            enable_funcs: The tools to add; None adds all.
            disable_funcs: Tools to leave out.
            preset_kwargs_mapping: Arguments by tool that are passed at each call; no model sees or gives them.
            postprocess_func: Gets each response first; its return value replaces the response, and None keeps it.
            wrap_tool_result: False makes the SDK's `CallToolResult` the data of each result.
            permission: The permission of its tools if no rule decides: `auto`, `confirm` or `deny`.

        Raises:
            ServerUnavailable: The server cannot be reached.
            RegistrationError: A server of that name is here already, or the group does not exist.
            ConfigurationError: The server has no tool of a name that is given, the extra `toolwire[mcp]` is not
                installed, or a rule names a tool and can never apply to a call of it.
            BindingError: A preset does not fit its tool.
        """
        from toolwire.facade.toolkits.registered import check_postprocess

        check_postprocess(postprocess_func)
        scope = self._call_scope
        _check_group(scope, group_name)
        if client.name in self._mcp_clients:
            raise RegistrationError(f"an MCP server named {client.name!r} is registered already: give it another name")
        offer = _Offer(
            client=client,
            enabled=None if enable_funcs is None else frozenset(enable_funcs),
            disabled=frozenset(disable_funcs or ()),
            presets=dict(preset_kwargs_mapping or {}),
            is_wrapped=wrap_tool_result,
            options={"group": group_name, "amend": postprocess_func, "permission": permission},
        )
        with self._mcp_lock:
            found = offer.entries(offer.chosen(is_first=True))
            refuse_wrong_rules(scope.policy, found, is_whole=False)
            self._mcp_clients[client.name] = client
            for entry in found:
                _add(scope.catalogue, entry)
            offer.offered = frozenset(entry.name for entry in found)
        client.watch_tools(lambda: self._mcp_tools_changed(offer))

    def _mcp_tools_changed(self, offer: _Offer) -> None:
        """Makes the registered tools of a server those that it has now. A tool that is unchanged stays as it is."""
        client, scope = offer.client, self._call_scope
        with self._mcp_lock:
            if self._mcp_clients.get(client.name) is not client:
                return
            before = {entry.name: entry for entry in scope.catalogue if _server_of(entry) == client.name}
            found = {entry.name: entry for entry in offer.entries(offer.chosen())}
            for name in before.keys() - found.keys():
                scope.catalogue.remove(name)
            for name, entry in found.items():
                there = before.get(name)
                if there is None and name in offer.offered:
                    continue  # The host took it away.
                if there is not None and _definition(there) == _definition(entry):
                    continue
                why = _why_off(scope, there, entry)
                if why:
                    _LOG.warning("the changed tool %r of an MCP server is off: %s", name, why)
                    if there is not None:
                        scope.catalogue.remove(name)
                elif there is None:
                    _add(scope.catalogue, entry)
                else:
                    scope.catalogue.add(entry, replace=True)
            offer.offered = frozenset(found)

    def register_mcp_server(
        self,
        config: Mapping[str, Any] | str | Path,
        /,
        *,
        group_name: str | Literal["basic"] = BASIC,
        permission: Permission | None = None,
    ) -> list[McpServerProblem]:
        """Adds the tools of the servers in a configuration, as `register_mcp_client` does for each of them.

        `config` is the path of a JSON or TOML file with a table `mcpServers`, as other MCP clients have it, or what it
        holds. In its texts `${NAME}`, `${NAME:-default}` and `${env:NAME}` stand for variables of the environment. The
        servers are started at the same time.

        An entry that cannot be used, or a server that cannot be reached, is off, and the others are used. Each problem
        is returned, with its file, key and reason, and is a warning in the log `toolwire.registry`.

        Args:
            config: The configuration.
            group_name: The group of all these tools, in a toolkit.
            permission: The permission of all these tools if no rule decides.

        Raises:
            ConfigurationError: The file cannot be read or holds no table of servers, or the extra `toolwire[mcp]` is
                not installed.
            RegistrationError: The group does not exist.
        """
        from toolwire.mcp.config import McpServerProblem, read_servers

        _check_group(self._call_scope, group_name)
        servers, problems = read_servers(config)
        for server, error in zip(servers, _connected(server.client for server in servers), strict=True):
            client = server.client
            try:
                if error is not None:
                    raise error
                self.register_mcp_client(
                    client,
                    group_name=group_name,
                    enable_funcs=server.enabled,
                    disable_funcs=server.disabled,
                    permission=permission,
                )
            except (ServerUnavailable, RegistrationError, ConfigurationError) as wrong:
                client.close()
                reason = str(wrong).removeprefix("enable_funcs: ").removeprefix("disable_funcs: ")
                place = server.place
                problems.append(McpServerProblem(server=client.name, place=place, reason=reason, is_off=True))
        for problem in problems:
            _LOG.warning("%s", problem)
        return problems

    def remove_mcp_servers(self, names: Iterable[str]) -> None:
        """Removes the tools of these servers and ends their connections: all of them, or none when one is unknown.

        Raises:
            RegistrationError: No server of that name is registered here.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self._mcp_clients:
                near = suggestion(nearest(name, self._mcp_clients))
                raise RegistrationError(f"no MCP server is named {name!r}{near}")
        catalogue = self._call_scope.catalogue
        for name in wanted:
            for entry in list(catalogue):
                if _server_of(entry) == name:
                    catalogue.remove(entry.name)
            _close(self._mcp_clients.pop(name))


def _check_group(scope: Scope, group_name: str) -> None:
    if scope.groups is not None:
        scope.groups.known([group_name])
    elif group_name != BASIC:
        raise RegistrationError(f"group_name={group_name!r}: only a toolkit has groups")


def _connected(clients: Iterable[MCPClient]) -> list[ServerUnavailable | None]:
    """Connects all clients at the same time. Returns for each why its server cannot be reached, or None.

    Raises:
        ConfigurationError: The extra `toolwire[mcp]` is not installed.
    """

    def connect(client: MCPClient) -> ServerUnavailable | None:
        try:
            client.connect()
        except ServerUnavailable as error:
            return error
        return None

    with ThreadPoolExecutor(STARTED_AT_ONCE, thread_name_prefix="toolwire-mcp-start") as pool:
        return list(pool.map(connect, clients))


def close_mcp_clients(clients: Mapping[str, MCPClientBase]) -> None:
    """Ends the connections of these clients. A later call connects again."""
    for client in clients.values():
        _close(client)


def _close(client: MCPClientBase) -> None:
    from toolwire.mcp.client import StatefulClientBase

    if isinstance(client, StatefulClientBase):
        client.close()


def _server_of(entry: Entry) -> str | None:
    from toolwire.mcp.tool_function import MCPToolFunction

    return entry.handle.server if isinstance(entry.handle, MCPToolFunction) else None


@dataclass(slots=True, kw_only=True)
class _Offer:
    """The tools of one server that a registry takes, and how."""

    client: MCPClientBase
    enabled: frozenset[str] | None
    disabled: frozenset[str]
    presets: Mapping[str, Mapping[str, Any]]
    is_wrapped: bool
    options: Mapping[str, Any]
    offered: frozenset[str] = frozenset()
    """Names of the tools at the last look. One that is no longer registered was taken away by the host."""

    def chosen(self, *, is_first: bool = False) -> list[str]:
        """Returns the names of the tools to add, in the server's order and each once.

        A chosen tool that is missing is an error at first. Later it is only not there.
        """
        listed = [tool.name for tool in self.client.list_tools()]
        there = dict.fromkeys(listed)
        for name, times in Counter(listed).items():
            if times > 1:
                message = "the MCP server %r has several tools named %a: each but the first is off"
                _LOG.warning(message, self.client.name, name)
        given = {"enable_funcs": self.enabled, "disable_funcs": self.disabled, "preset_kwargs_mapping": self.presets}
        for what, names in given.items() if is_first else ():
            for name in sorted(names or ()):
                if name not in there:
                    near = suggestion(nearest(name, there))
                    raise ConfigurationError(f"{what}: the MCP server {self.client.name!r} has no tool {name!r}{near}")
        is_offered = there if self.enabled is None else self.enabled
        return [name for name in there if name in is_offered and name not in self.disabled]

    def entries(self, names: Iterable[str]) -> list[Entry]:
        """Returns the entries of the tools that can be used here. A warning names each other one."""
        made = (
            _entry(self.client.get_callable_function(name, self.is_wrapped), self.presets.get(name)) for name in names
        )
        return [replace(entry, **self.options) for entry in made if entry is not None]


def _add(catalogue: Catalogue, entry: Entry) -> None:
    try:
        catalogue.add_new(entry)
    except RegistrationError as error:
        _LOG.warning("the tool %r of an MCP server is off: %s", entry.name, error)


def _why_off(scope: Scope, there: Entry | None, entry: Entry) -> str:
    """Returns the reason why a new or changed tool is not taken; empty if it is."""
    if there is not None and there.tool.bindings.current.keys() != entry.tool.bindings.current.keys():
        return "parameters of it were bound here; register the server again, and bind them"
    try:
        refuse_wrong_rules(scope.policy, [entry], is_whole=False)
    except ConfigurationError as error:
        return str(error)
    return ""


def _definition(entry: Entry) -> object:
    from toolwire.mcp.tool_function import MCPToolFunction

    return entry.handle.value if isinstance(entry.handle, MCPToolFunction) else None


def _entry(function: MCPToolFunction, presets: Mapping[str, Any] | None) -> Entry | None:
    """Returns the entry, or None for a tool that cannot be used here. A warning says why."""
    from toolwire.facade.tools.intake import check_reserved

    try:
        tool = function.__tool__()
        tool.verify()
        check_reserved(tool.name, tool)
    except (DefinitionError, RegistrationError) as error:
        _LOG.warning("the tool %a of the MCP server %r is off: %s", function.name, function.server, error)
        return None
    if presets:
        tool = tool.with_presets(presets)
        tool.verify()
    return Entry(name=tool.name, tool=tool, handle=function)
