"""The tools of MCP servers, in a registry or a toolkit."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolwire.catalogue.groups import BASIC
from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.definition.tool import Permission
from toolwire.facade.mcp_offer import Offer, server_of
from toolwire.facade.pin_watch import watch_pins
from toolwire.invocation.scope import Scope
from toolwire.runtime.done import Done
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError, ServerUnavailable

if TYPE_CHECKING:
    from toolwire.mcp.client import MCPClient, MCPClientBase
    from toolwire.mcp.config import McpServerProblem
    from toolwire.mcp.pins import Accept
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

    @property
    def _mcp_entries(self) -> dict[str, Mapping[str, Any]]:
        """The entries of the servers that a configuration added, by server."""
        return self.__dict__.setdefault("_mcp_entries_by_name", {})

    @property
    def _mcp_offers(self) -> dict[str, Offer]:
        return self.__dict__.setdefault("_mcp_offers_by_name", {})

    @property
    def mcp_servers(self) -> tuple[str, ...]:
        """The names of the MCP servers whose tools are registered, in order of registration."""
        with self._mcp_lock:
            return tuple(self._mcp_clients)

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
        pins: str | Path | None = None,
        accept: Accept = "first",
    ) -> Done:
        """Adds the tools of an MCP server, under the names `server/tool`. Blocks until they are known, also if awaited.

        A person confirms each call, unless a rule or `permission` says otherwise: a server's own hints are not trusted.
        Tool names in `enable_funcs`, `disable_funcs` and `preset_kwargs_mapping` are the server's own. A tool that
        cannot be used here is left out, with a warning.

        Definitions of tools are pinned. Those that the server has when it is first seen are accepted. A tool that gets
        another definition later, or is new then, is off until `accept_mcp_tools` or `toolwire mcp accept`.

        Args:
            client: An `MCPClient`, or another `MCPClientBase`.
            group_name: The group of its tools, in a toolkit.
            enable_funcs: The tools to add, by name or by pattern such as `read_*`; None adds all.
            disable_funcs: Tools to leave out, by name or pattern. `resources:read` is what a `ToolServer` passes on.
            preset_kwargs_mapping: Arguments by tool that are passed at each call; no model sees or gives them.
            postprocess_func: Gets each response first; its return value replaces the response, and None keeps it.
            wrap_tool_result: False makes the SDK's `CallToolResult` the data of each result.
            permission: The permission of its tools if no rule decides: `auto`, `confirm` or `deny`.
            pins: A JSON file that keeps the accepted definitions; None keeps them in memory.
            accept: `first` as above; `none` for a server that is seen first too; `all` follows each change.

        Raises:
            ServerUnavailable: The server cannot be reached.
            RegistrationError: A server of that name is here already, or the group does not exist.
            ConfigurationError: The server has no tool of a name that is given, the extra `toolwire[mcp]` is not
                installed, a rule names a tool and can never apply to a call of it, or `pins` cannot be used.
            BindingError: A preset does not fit its tool.
        """
        from toolwire.facade.toolkits.registered import check_postprocess

        check_postprocess(postprocess_func)
        _check_place(client, self._call_scope, group_name)
        from toolwire.mcp.pins import McpPins, checked_accept

        offer = Offer(
            client=client,
            enabled=None if enable_funcs is None else frozenset(enable_funcs),
            disabled=frozenset(disable_funcs or ()),
            presets=dict(preset_kwargs_mapping or {}),
            is_wrapped=wrap_tool_result,
            options={"group": group_name, "amend": postprocess_func, "permission": permission},
            pins=McpPins(pins),
            accept=checked_accept(accept),
        )
        return self._take_mcp_offer(offer)

    def _take_mcp_offer(self, offer: Offer) -> Done:
        name = offer.client.name
        with self._mcp_lock:
            if name in self._mcp_clients:
                raise RegistrationError(f"an MCP server named {name!r} is registered already: give it another name")
            offer.take(self._call_scope)
            self._mcp_clients[name], self._mcp_offers[name] = offer.client, offer
            self._watch_mcp_pins(offer)
        offer.client.watch_tools(lambda: self._mcp_tools_changed(offer))
        return Done()

    def _mcp_tools_changed(self, offer: Offer) -> None:
        """Makes the registered tools of a server those that it has now. A tool that is unchanged stays as it is."""
        with self._mcp_lock:
            if self._mcp_offers.get(offer.client.name) is offer:
                offer.take_again(self._call_scope)
                self._watch_mcp_pins(offer)

    def _watch_mcp_pins(self, offer: Offer) -> None:
        """Looks at the file of pins as long as tools wait: another process may accept them."""
        if offer.pins.path is None or not offer.waits or offer.is_watched:
            return
        # The thread must not keep this object alive.
        watches, changed = weakref.WeakMethod(self._watches_mcp_pins), weakref.WeakMethod(self._mcp_tools_changed)
        offer.is_watched = True
        watch_pins(
            offer.pins.path,
            lambda: (method := watches()) is not None and method(offer),
            lambda: None if (method := changed()) is None else method(offer),
        )

    def _watches_mcp_pins(self, offer: Offer) -> bool:
        with self._mcp_lock:
            offer.is_watched = offer.waits and self._mcp_offers.get(offer.client.name) is offer
            return offer.is_watched

    def accept_mcp_tools(self, server: str, tools: Iterable[str] | None = None) -> list[str]:
        """Accepts new and changed definitions of a server's tools, which are on then. Returns the names of the tools.

        Args:
            server: The name of the server.
            tools: The server's own names of the tools; None accepts all that wait.

        Raises:
            RegistrationError: No such server is registered here, or a tool does not wait.
            ConfigurationError: The file of pins cannot be used.
        """
        with self._mcp_lock:
            offer = self._mcp_offers.get(server)
            if offer is None:
                raise RegistrationError(
                    f"no MCP server is named {server!r}{suggestion(nearest(server, self._mcp_offers))}"
                )
            accepted = offer.pins.accept(server, tools)
            offer.take_again(self._call_scope)
        return accepted

    def register_mcp_server(
        self,
        config: Mapping[str, Any] | str | Path,
        /,
        *,
        group_name: str | Literal["basic"] = BASIC,
        permission: Permission | None = None,
        pins: str | Path | None = None,
        accept: Accept = "first",
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
            pins: A JSON file that keeps the accepted definitions of all servers; see `register_mcp_client`.
            accept: The definitions that count without a person; see `register_mcp_client`.

        Raises:
            ConfigurationError: The file cannot be read or holds no table of servers, or the extra `toolwire[mcp]` is
                not installed.
            RegistrationError: The group does not exist.
        """
        _check_group(self._call_scope, group_name)
        return self._take_configuration(
            config, {"group_name": group_name, "permission": permission, "pins": pins, "accept": accept}
        )

    def update_mcp_servers(
        self,
        config: Mapping[str, Any] | str | Path,
        /,
        *,
        group_name: str | Literal["basic"] = BASIC,
        permission: Permission | None = None,
        pins: str | Path | None = None,
        accept: Accept = "first",
    ) -> list[McpServerProblem]:
        """Makes the servers of a configuration those that it names now: adds, removes and replaces them.

        A server whose entry is unchanged goes on, with its connection, group and permission. One that could not be
        reached is tried again. Servers of `register_mcp_client` stay. The arguments and problems are those of
        `register_mcp_server`.

        Raises:
            ConfigurationError: The file cannot be read or holds no table of servers. All servers stay as they were.
            RegistrationError: The group does not exist.
        """
        _check_group(self._call_scope, group_name)
        return self._take_configuration(
            config,
            {"group_name": group_name, "permission": permission, "pins": pins, "accept": accept},
            is_update=True,
        )

    def _take_configuration(
        self, config: Mapping[str, Any] | str | Path, options: Mapping[str, Any], *, is_update: bool = False
    ) -> list[McpServerProblem]:
        from toolwire.mcp.config import McpServerProblem, read_servers

        servers, problems = read_servers(config)
        kept: set[str] = set()
        if is_update:
            entries = {server.client.name: server.entry for server in servers}
            kept = {name for name, entry in self._mcp_entries.items() if entries.get(name) == entry}
        new = [server for server in servers if server.client.name not in kept]
        connected = _connected(server.client for server in new)
        if is_update:
            # After the new servers are connected, so that no tool is missing while they start.
            self.remove_mcp_servers(self._mcp_entries.keys() - kept)
        for server, error in zip(new, connected, strict=True):
            client = server.client
            try:
                if error is not None:
                    raise error
                self.register_mcp_client(client, enable_funcs=server.enabled, disable_funcs=server.disabled, **options)
                self._mcp_entries[client.name] = server.entry
            except (ServerUnavailable, RegistrationError, ConfigurationError) as wrong:
                client.close()
                reason = str(wrong).removeprefix("enable_funcs: ").removeprefix("disable_funcs: ")
                place = server.place
                problems.append(McpServerProblem(server=client.name, place=place, reason=reason, is_off=True))
        for problem in problems:
            _LOG.warning("%s", problem)
        if any(problem.is_off for problem in problems):
            self._call_scope.catalogue.lacks_tools()
        return problems

    def remove_mcp_servers(self, names: Iterable[str]) -> Done:
        """Removes the tools of these servers and ends their connections: all of them, or none when one is unknown.

        The return value may be awaited.

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
                if server_of(entry) == name:
                    catalogue.remove(entry.name)
            for entry in list(catalogue.beside):
                if entry.name.startswith(f"{name}/"):
                    catalogue.beside.remove(entry.name)
            self._mcp_offers.pop(name)
            self._mcp_entries.pop(name, None)
            _close(self._mcp_clients.pop(name))
        return Done()


def _check_place(client: object, scope: Scope, group_name: str) -> None:
    """Checks that it is a client, and that its tools have a group."""
    if not hasattr(client, "name"):
        raise ConfigurationError(
            f"register_mcp_client({client!r:.80}): give an MCPClient, such as MCPClient.http('name', 'https://...')"
        )
    _check_group(scope, group_name)


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
