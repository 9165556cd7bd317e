"""The tools of MCP servers, in a registry or a toolkit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolwire.catalogue.groups import BASIC
from toolwire.definition.tool import Permission
from toolwire.facade.mcp_connections import McpConnections
from toolwire.facade.mcp_offer import Offer
from toolwire.invocation.scope import Scope
from toolwire.runtime.done import Done
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError

if TYPE_CHECKING:
    from toolwire.mcp.client import MCPClientBase
    from toolwire.mcp.config import McpServerProblem
    from toolwire.mcp.pins import Accept
    from toolwire.mcp.values.call_limits import CallLimits
    from toolwire.mcp.values.server_state import McpServerState
    from toolwire.vocabulary.blocks import ToolUseBlock
    from toolwire.vocabulary.response import ToolResponse


class McpServers:
    """The MCP servers of a registry or a toolkit: `registry.mcp` and `toolkit.mcp`."""

    def __init__(self, connections: McpConnections) -> None:
        self._connections = connections

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers whose tools are registered, in order of registration."""
        return self._connections.names

    def add(
        self,
        config: Mapping[str, Any] | str | Path,
        /,
        *,
        group_name: str | Literal["basic"] = BASIC,
        permission: Permission | None = None,
        pins: str | Path | None = None,
        accept: Accept = "first",
        wait_s: float | None = None,
    ) -> list[McpServerProblem]:
        """Adds the tools of the servers in a configuration, as `register_mcp_client` does for each of them.

        `config` is the path of a JSON or TOML file with a table `mcpServers`, as other MCP clients have it, or what it
        holds. In its texts `${NAME}`, `${NAME:-default}` and `${env:NAME}` stand for variables of the environment. The
        servers are started at the same time.

        An entry that cannot be used, or a server that cannot be reached, is off, and the others are used. Each problem
        is returned, with its file, key and reason, and is a warning in the log `toolwire.registry`. A server that is
        down is tried for ever, with pauses of at most 30 seconds, and its tools are added once it is there.

        Args:
            config: The configuration.
            group_name: The group of all these tools, in a toolkit.
            permission: The permission of all these tools if no rule decides.
            pins: A JSON file that keeps the accepted definitions of all servers; see `register_mcp_client`.
            accept: The definitions that count without a person; see `register_mcp_client`.
            wait_s: Seconds to wait for all servers together. None waits for each as long as its attempt to connect may
                take: its `connectTimeout`, 30 seconds by default. One that comes later adds its tools then.

        Raises:
            ConfigurationError: The file cannot be read or holds no table of servers, or the extra `toolwire[mcp]` is
                not installed.
            RegistrationError: The group does not exist.
        """
        from toolwire.mcp.config import read_servers

        _check_group(self._connections.scope(), group_name)
        options: Mapping[str, Any] = {"group": group_name, "permission": permission}
        return self._connections.connect(read_servers(config), pins, accept, options, wait_s=wait_s)

    @property
    def states(self) -> tuple[McpServerState, ...]:
        """The states of the servers that a configuration added: on, starting or off, with the reason."""
        return self._connections.states

    @property
    def left_out(self) -> tuple[McpServerState, ...]:
        """The states of the entries of a configuration that add no server: disabled, or off because they are wrong."""
        return self._connections.left_out

    def update(
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

        A server whose entry is unchanged goes on, with its connection, group and permission. So does one that is on and
        whose new entry cannot be used: its problem has `is_former`. One that could not be reached is tried again.
        Servers of `register_mcp_client` stay. The arguments and problems are those of `add`.

        Raises:
            ConfigurationError: The file cannot be read or holds no table of servers. All servers stay as they were.
            RegistrationError: The group does not exist.
        """
        from toolwire.mcp.config import ReadServers, read_servers

        _check_group(self._connections.scope(), group_name)
        read = read_servers(config)
        kept = self._connections.names_of_kept(read)
        former = kept - {server.client.name for server in read.servers}
        changed = ReadServers(
            [server for server in read.servers if server.client.name not in kept],
            [replace(one, is_off=False, is_former=True) if one.server in former else one for one in read.problems],
            read.disabled,
        )
        options: Mapping[str, Any] = {"group": group_name, "permission": permission}
        gone = self._connections.configured - kept
        return self._connections.connect(changed, pins, accept, options, gone=gone)

    def limits_of(self, server: str) -> CallLimits | None:
        """Returns the `limits` in the entry of a server, which a `ToolServer` applies; None without any."""
        return self._connections.limits_of(server)

    def wait_for_required(self) -> list[McpServerState]:
        """Waits for the servers whose entry says `"required": true`. Returns the states of those that did not come.

        Blocks for each until it was there once, or until its `connectTimeout` is over: 30 seconds by default.
        """
        return self._connections.wait_for_required()

    def accept(self, server: str, tools: Iterable[str] | None = None) -> list[str]:
        """Accepts new and changed definitions of a server's tools, which are on then. Returns the names of the tools.

        Args:
            server: The name of the server.
            tools: The server's own names of the tools; None accepts all that wait.

        Raises:
            RegistrationError: No such server is registered here, or a tool does not wait.
            ConfigurationError: The file of pins cannot be used.
        """
        return self._connections.accept(server, tools)


class McpTools:
    """A base for what has tools of MCP servers: a registry, or a toolkit."""

    @property
    def _call_scope(self) -> Scope:
        """The present context of the calls made here, with the live catalogue."""
        raise NotImplementedError

    @property
    def mcp(self) -> McpServers:
        """The servers of a configuration, and what waits to be accepted: `mcp.add("mcp.json")` and further methods."""
        return McpServers(self._mcp)

    @property
    def _mcp(self) -> McpConnections:
        there = self.__dict__.get("_toolwire_mcp")
        if there is None:
            there = self.__dict__.setdefault("_toolwire_mcp", McpConnections(lambda: self._call_scope))
        return there

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
        another definition later, or is new then, is off until `mcp.accept` or `toolwire mcp accept`.

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
        from toolwire.facade.registered import check_postprocess

        check_postprocess(postprocess_func)
        _check_place(client, self._call_scope, group_name)
        from toolwire.mcp.pins import McpPins, require_accept

        offer = Offer(
            client=client,
            enabled=None if enable_funcs is None else frozenset(enable_funcs),
            disabled=frozenset(disable_funcs or ()),
            presets=dict(preset_kwargs_mapping or {}),
            is_wrapped=wrap_tool_result,
            options={"group": group_name, "finalise": postprocess_func, "permission": permission},
            pins=McpPins(pins),
            accept=require_accept(accept),
        )
        return self._mcp.take(offer)

    def remove_mcp_servers(self, names: Iterable[str]) -> Done:
        """Removes the tools of these servers and ends their connections: all of them, or none when one is unknown.

        The return value may be awaited.

        Raises:
            RegistrationError: No server of that name is registered here.
        """
        return self._mcp.remove([names] if isinstance(names, str) else names)


def _check_place(client: object, scope: Scope, group_name: str) -> None:
    """Checks that it is a client, and that its tools have a group."""
    if not hasattr(client, "name"):
        raise ConfigurationError(
            f"register_mcp_client({client!r:.80}): give an MCPClient, such as MCPClient.http('name', 'https://...')"
        )
    _check_group(scope, group_name)


def _check_group(scope: Scope, group_name: str) -> None:
    if scope.groups is not None:
        scope.groups.require_names([group_name])
    elif group_name != BASIC:
        raise RegistrationError(f"group_name={group_name!r}: only a toolkit has groups")
