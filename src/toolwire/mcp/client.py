"""Clients of MCP servers. The SDK is imported with the first connection, or with a server in memory."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

from toolwire.mcp.client_limits import ClientLimits, McpLimitOptions
from toolwire.mcp.oauth.authorization import Endpoint, McpCredentials, McpLogin, check_texts, endpoint_of
from toolwire.mcp.server_offers import ServerOffers
from toolwire.mcp.tool_function import MCPToolFunction
from toolwire.runtime.done import Done
from toolwire.runtime.extras import packages_of
from toolwire.runtime.runtime import default_runtime
from toolwire.vocabulary.errors import CallNotSent, ConfigurationError, RegistrationError

if TYPE_CHECKING:
    import httpx2
    from mcp_types import Tool as McpTool

    from toolwire.mcp.connection import Connection, Open
    from toolwire.mcp.server_log import ServerLog
    from toolwire.vocabulary.context import CallContext

NAME_CHARACTERS = 32
"""Maximum characters of a server's name. It stands before the names of its tools."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NUMBERS = itertools.count(1)
_LOG = logging.getLogger("toolwire.registry")
_HEARD: ContextVar[tuple[MCPClient, Connection] | None] = ContextVar("heard", default=None)
"""The client whose watchers are called in this thread, and the connection that has the news."""


def name_in_tools(server: str) -> str:
    """Returns a text that is equal for servers whose tools nobody can tell apart: `be-ta` and `be_ta` or `Be_Ta`."""
    return server.replace("-", "_").lower()


class MCPClientBase(ABC):
    """Lists the tools of a server, and makes functions of them. `register_mcp_client` takes any such object."""

    def __init__(self, name: str) -> None:
        """`name` comes before the names of the server's tools, as `fs` in `fs/read_file`.

        Raises:
            ConfigurationError: The name has other characters than ASCII letters, digits, `_` and `-`, or more than 32.
        """
        if _NAME.fullmatch(name) is None or len(name) > NAME_CHARACTERS:
            raise ConfigurationError(
                f"the name {name!r:.80} of an MCP server: write a letter, then at most {NAME_CHARACTERS - 1} ASCII "
                "letters, digits, '_' or '-'"
            )
        self.name = name

    @property
    def offers(self) -> ServerOffers | None:
        """The server's resources, prompts and completion, which a `ToolServer` passes on; None without any."""
        return None

    @abstractmethod
    def list_tools(self) -> list[McpTool]:
        """Returns the server's definitions of its tools."""

    def watch_tools(self, changed: Callable[[], None]) -> None:  # noqa: B027
        """Calls the function whenever the server's tools are others than before, in any thread.

        The default never calls it: a client that cannot hear of changes keeps its first list.
        """

    @abstractmethod
    def get_callable_function(self, name: str, wrap_tool_result: bool = True) -> MCPToolFunction:
        """Returns a tool as a function. Its calls give a `ToolResponse`, or the SDK's `CallToolResult`."""


class StatefulClientBase(MCPClientBase):
    """A client with a connection, which `connect` opens and `close` ends. Usable with `with`."""

    @abstractmethod
    def connect(self) -> Done | None:
        """Connects to the server, and returns once its tools are known."""

    @abstractmethod
    def close(self) -> Done | None:
        """Ends the connection."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """True if calls can be sent at once."""

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MCPClient(StatefulClientBase):
    """A connection to an MCP server.

    >>> client = MCPClient.stdio("fs", "npx", ["server-filesystem", "."])

    It connects when it is first used, and again after a loss. One thread of its own keeps the connection, so that
    several threads and event loops may use it at once. It is closed by `close`, or when the program exits.
    """

    def __init__(
        self, name: str, open_server: Callable[[ServerLog], Open], limits: ClientLimits, *, is_in_memory: bool = False
    ) -> None:
        """Use `stdio`, `http`, `sse` or `in_memory` instead."""
        super().__init__(name)
        self._open_server, self._limits, self._is_in_memory = open_server, limits, is_in_memory
        self.connect_s = limits.connect_s
        """Seconds of an attempt to connect."""
        self._key = f"mcp-{next(_NUMBERS)}"
        self._known: dict[str, McpTool] = {}
        self._watchers: list[Callable[[], None]] = []
        self._endpoint: Endpoint | None = None
        self.login_command = ""
        """The command that errors name if a login is missing. Empty for a server without a URL."""
        self.protocol: str | None = None
        """The only version of the protocol to speak, such as `2025-06-18`; None agrees on the newest. Set it before the
        first use.
        """
        self._offers = ServerOffers(name, lambda: self._connection)

    def __repr__(self) -> str:
        return f"<MCPClient {self.name!r}>"

    @property
    def offers(self) -> ServerOffers:
        """The server's resources, prompts and completion, which a `ToolServer` passes on."""
        return self._offers

    @classmethod
    def stdio(
        cls,
        name: str,
        command: str,
        args: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        **limits: Unpack[McpLimitOptions],
    ) -> Self:
        """Returns a client that starts the server as a process and talks to it by stdin and stdout.

        The process gets HOME, LOGNAME, PATH, SHELL, TERM and USER of this one, and `env`. Its stderr goes to the log
        `toolwire.mcp.<name>`.

        Raises:
            ConfigurationError: The name, an argument or a limit cannot be used.
        """
        check_texts("args", args)
        check_texts("env", [] if env is None else [*env, *env.values()])
        arguments, variables = list(args), dict(env or {})
        place, bounds = None if cwd is None else Path(cwd), ClientLimits(**limits)

        def open_server(log: ServerLog) -> Open:
            from toolwire.mcp.transports.stdio import Command, stdio
            from toolwire.mcp.transports.streams import watch_transport

            started = Command(command=command, args=arguments, env=variables, cwd=place)
            return lambda ended: watch_transport(stdio(started, log, bounds.message_bytes), ended, log)

        return cls(name, open_server, bounds)

    @classmethod
    def http(
        cls,
        name: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        auth: httpx2.Auth | McpLogin | McpCredentials | Literal["oauth"] | None = None,
        **limits: Unpack[McpLimitOptions],
    ) -> Self:
        """Returns a client of a server at a URL, by streamable HTTP.

        `headers` go to this URL's origin alone, also after a redirect. Proxies of the environment are not used.
        `auth="oauth"` is `McpLogin()`: it uses the token of a login that `login` or `toolwire mcp login` made. Any
        authentication of `httpx2` works too.

        Raises:
            ConfigurationError: The name, the URL, a header, `auth` or a limit cannot be used.
        """
        return cls._at_url(name, endpoint_of("http", url, headers, auth, ClientLimits(**limits)))

    @classmethod
    def sse(
        cls,
        name: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        auth: httpx2.Auth | McpLogin | McpCredentials | Literal["oauth"] | None = None,
        **limits: Unpack[McpLimitOptions],
    ) -> Self:
        """Returns a client of a server at a URL, by the older transport HTTP with SSE; otherwise as `http`."""
        return cls._at_url(name, endpoint_of("sse", url, headers, auth, ClientLimits(**limits)))

    @classmethod
    def in_memory(cls, name: str, server: object, **limits: Unpack[McpLimitOptions]) -> Self:
        """Returns a client of a server in this process. It runs in the client's thread.

        `server` is a `Server` or `MCPServer` of the SDK, a `FastMCP` of the package fastmcp, or a transport of the SDK.

        Raises:
            ConfigurationError: It is none of these, the name or a limit cannot be used, or the extra `toolwire[mcp]` is
                not installed.
        """
        with packages_of("mcp", "MCPClient"):
            from toolwire.mcp.transports.streams import opener_of

        opened, bounds = opener_of(server), ClientLimits(**limits)
        return cls(name, lambda _: lambda _: opened(), bounds, is_in_memory=True)

    @classmethod
    def _at_url(cls, name: str, endpoint: Endpoint) -> Self:
        def open_server(log: ServerLog) -> Open:
            from toolwire.mcp.transports.http import at_endpoint
            from toolwire.mcp.transports.streams import watch_transport

            return lambda ended: watch_transport(at_endpoint(endpoint, client.login_command), ended, log)

        client = cls(name, open_server, endpoint.limits)
        client._endpoint = endpoint
        is_plain = endpoint.auth == McpLogin()
        client.login_command = f"toolwire mcp login {shlex.quote(endpoint.url)}" if is_plain else "MCPClient.login()"
        return client

    def login(self, open_page: Callable[[str], object] | None = None) -> None:
        """Logs a person in by the browser, and keeps the tokens for all later clients of this URL.

        Blocks until the person is back, for 5 minutes at most. `docs/mcp.md` says where the tokens are kept.

        Args:
            open_page: Shows the person this address, which a browser on this machine has to open. None opens the
                default browser.

        Raises:
            ConfigurationError: This server has no login: it has no URL, or another authentication.
            ServerUnavailable: The server asks for no login, the person or a server refused, or no one came back.
        """
        if self._endpoint is None or not isinstance(self._endpoint.auth, McpLogin):
            raise ConfigurationError(f"the MCP server {self.name!r} has no login: give it a URL and auth='oauth'")
        with packages_of("mcp", "MCPClient"):
            from toolwire.mcp.login import log_in

        log_in(self._endpoint, open_page)

    # -- its tools ----------------------------------------------------------------------------------------------

    def list_tools(self) -> list[McpTool]:
        """Returns the server's definitions of its tools. Connects if needed, and blocks until then.

        Raises:
            ServerUnavailable: The server cannot be reached.
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        tools = self._connection.tools()
        # The first of two tools with one name counts.
        self._known = {tool.name: tool for tool in reversed(tools)}
        return tools

    def watch_tools(self, changed: Callable[[], None]) -> None:
        """Calls the function when the tools are known, and whenever they are others than before.

        They are known after the first connection, and are others after the server's notice or a new connection. The
        function is called in a thread, one call at a time, and may use this client.
        """
        self._watchers.append(changed)

    def _tools_changed(self, connection: Connection) -> None:
        # What is called reads the tools of this connection. After its end it must not make a new one.
        before = _HEARD.set((self, connection))
        try:
            for changed in tuple(self._watchers):
                self._call_watcher(changed, connection)
        finally:
            _HEARD.reset(before)

    def _call_watcher(self, changed: Callable[[], None], connection: Connection) -> None:
        try:
            changed()
        except Exception:  # noqa: BLE001 - the host's function: the connection goes on
            if default_runtime().find(self._key) is connection:
                _LOG.exception("the changed tools of the MCP server %r could not be taken over", self.name)

    def get_callable_function(self, name: str, wrap_tool_result: bool = True) -> MCPToolFunction:
        """Returns a tool as a function. `name` is the server's own name for it. Awaiting the function returns it.

        Raises:
            RegistrationError: The server has no such tool.
            ServerUnavailable: The server cannot be reached.
        """
        if name not in self._known:
            self.list_tools()
        value = self._known.get(name)
        if value is None:
            raise RegistrationError(
                f"the MCP server {self.name!r} has no tool {name!r}: it has {', '.join(self._known) or 'none'}"
            )
        function = MCPToolFunction(self.name, value, self._send, wrap_tool_result=wrap_tool_result)
        function.is_sanitised = self.offers.is_sanitised
        return function

    def _send(
        self,
        tool: str,
        arguments: dict[str, Any],
        read: Callable[[Any], Any],
        future: Future[Any],
        context: CallContext | None,
    ) -> None:
        try:
            from toolwire.mcp.values.client_requests import tool_call

            self._connection.call(tool_call(tool, arguments), read, future, context)
        except RuntimeError:
            future.set_exception(CallNotSent(f"the connection to the MCP server {self.name!r} was closed"))

    # -- the connection -----------------------------------------------------------------------------------------

    def connect(self) -> Done:
        """Connects to the server, and returns once its tools are known. The return value may be awaited.

        Raises:
            ServerUnavailable: The server cannot be reached.
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        self._connection.tools()
        return Done()

    def close(self) -> Done:
        """Ends the connection, and the server's process if it has one. Calls under way fail as `unknown_outcome`.

        A later call connects again. The return value may be awaited.
        """
        default_runtime().close_part(self._key)
        return Done()

    def start(self) -> None:
        """Begins to connect, and does not wait. It is tried for ever, with growing pauses of at most 30 seconds.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        _ = self._connection

    @property
    def is_connected(self) -> bool:
        """True if calls can be sent at once."""
        there = cast("Connection | None", default_runtime().find(self._key))
        return there is not None and there.is_connected

    @property
    def reason(self) -> str:
        """The reason why there was no connection at last. Empty before the first end of one."""
        there = cast("Connection | None", default_runtime().find(self._key))
        return "" if there is None else there.reason

    @property
    def _connection(self) -> Connection:
        heard = _HEARD.get()
        if heard is not None and heard[0] is self:
            return heard[1]
        return default_runtime().own(self._key, self._new_connection)

    def _new_connection(self) -> Connection:
        with packages_of("mcp", "MCPClient"):
            from toolwire.mcp.connection import Connection
            from toolwire.mcp.offered.list_changes import ServerNews
            from toolwire.mcp.server_log import ServerLog

            log = ServerLog(self.name)
            opened = self._open_server(log)
        told, made = self._offers, list[Connection]()
        news = ServerNews(
            tools_changed=lambda: self._tools_changed(made[0]) if made else None,
            offers_changed=told.tell_changed,
            updated=told.tell_updated,
        )
        made.append(
            Connection(
                *(self.name, opened, self._limits, log, news),
                is_in_memory=self._is_in_memory,
                protocol=self.protocol,
                allowed=told.allowed,
            )
        )
        return made[0]
