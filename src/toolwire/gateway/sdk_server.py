"""The SDK's server of a `ToolServer`: its handlers, the protected state of calls, and the news of changed tools."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.definition.tool import Tool
from toolwire.gateway.clients import Clients, connection_of
from toolwire.gateway.kept_schemas import KeptSchemas
from toolwire.gateway.served_calls import ServedCalls
from toolwire.gateway.served_names import by_served_name
from toolwire.gateway.server_limits import LIST_POLL_S
from toolwire.gateway.slots import Slots
from toolwire.mcp.convert import to_mcp
from toolwire.mcp.values.call_results import is_object
from toolwire.permission.approval import REQUEST_LIFE_S
from toolwire.session.session import Session
from toolwire.vocabulary.calls import Caller

if TYPE_CHECKING:
    from toolwire.journal.store import Store

_LOG = logging.getLogger("toolwire.gateway")

Context = ServerRequestContext[Any, Any]


class SdkServer(Server[None]):
    """One server of the SDK. It belongs to one event loop, and may serve many connections there."""

    def __init__(self, name: str, version: str, instructions: str | None, parts: ServedParts) -> None:
        """`parts` are the tools, the clients and the store behind it."""
        self._parts = parts
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._connections: set[Connection] = set()
        self._seen: object = None
        super().__init__(
            name,
            version=version,
            instructions=instructions,
            lifespan=lambda _: self._watching(),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=parts.calls.call,
            on_subscriptions_listen=self._listen,
        )
        self.middleware.append(RequestStateBoundary(_security(parts.store), default_audience=name))
        self.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Returns the SDK's options, which promise `list_changed`: the SDK's HTTP app asks for no options."""
        told = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)

    def end_listening(self) -> None:
        """Ends the streams of clients that listen for changes."""
        self._listen.close()

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        client = await self._parts.clients.of(context)
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        found = [_listed(served, tool, is_modern=is_modern) for served, tool in client.shown.items()]
        return types.ListToolsResult(tools=[tool for tool in found if tool is not None])

    def _input_schema(self, served: str) -> Mapping[str, Any] | None:
        """Returns the schema of a tool for the SDK, which compares headers with arguments before the call."""
        name = self._parts.own_name(served)
        tool = None if name is None else self._parts.find(name, self._parts.clients.caller())
        return None if tool is None else self._parts.schemas.of(tool).input_schema

    # -- news of changed tools --------------------------------------------------------------------------------------

    async def _initialized(self, context: Context, _: types.NotificationParams) -> None:
        connection = connection_of(context)
        self._connections.add(connection)
        connection.exit_stack.callback(self._connections.discard, connection)

    @asynccontextmanager
    async def _watching(self) -> AsyncGenerator[None]:
        if self._seen is None:
            self._seen = self._parts.fingerprint()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks)
            yield None
            tasks.cancel_scope.cancel()

    async def _watch(self, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            await anyio.sleep(LIST_POLL_S)
            now = self._parts.fingerprint()
            if now == self._seen:
                continue
            self._seen = now
            for connection in list(self._connections):
                tasks.start_soon(connection.send_tool_list_changed)
            await self._bus.publish(ToolsListChanged())


class ServedParts:
    """What all transports of one `ToolServer` share."""

    def __init__(self, base: Session, clients: Clients, slots: Slots, store: Store | None) -> None:
        self.base, self.clients, self.slots, self.store = base, clients, slots, store
        self.schemas = KeptSchemas()
        self.calls = ServedCalls(clients, slots, store, self.schemas)
        self._names: Mapping[str, str] = {}

    def find(self, name: str, caller: Caller) -> Tool | None:
        """Returns the tool with that name in the registry, if this caller may see it."""
        scope = self.base._scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        tools = scope.tools if caller == scope.caller else scope.narrowed(caller=caller).tools
        entry = tools.find(name)
        return None if entry is None else entry.described

    def own_name(self, served: str) -> str | None:
        """Returns the name in the registry of a served tool, also of a hidden one; None for any other name."""
        own = self._names.get(served)
        catalogue = self.base._scope.catalogue  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if own is None or catalogue.find(own) is None:
            self._names = {name: tool.name for name, tool in by_served_name(e.described for e in catalogue).items()}
            own = self._names.get(served)
        return own

    def fingerprint(self) -> object:
        """Returns a value that differs once the list of tools has changed, for any caller."""
        scope = self.base._scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        tools = [(one.name, one.tool.description, one.tool.revision, one.disabled) for one in scope.catalogue]
        return tools, [tool.name for tool in self.base.tools]


def _security(store: Store | None) -> RequestStateSecurity:
    """Returns the protection of the state that clients send back. Each process with the same store accepts it."""
    if store is None:
        return RequestStateSecurity.ephemeral()
    key = hmac.digest(store.wire_key, b"toolwire mcp request state 1", "sha256")
    return RequestStateSecurity(keys=[key], ttl=REQUEST_LIFE_S)


def _listed(served: str, tool: Tool, *, is_modern: bool) -> types.Tool | None:
    """Returns a tool for the list; None if the protocol cannot express it. One such tool would break the whole list."""
    if not is_object(tool.input_schema):
        _LOG.warning("the tool %r is not served: the root of its input schema has not the type 'object'", tool.name)
        return None
    value = to_mcp(tool)
    # Structured content of the handshake protocols is always an object.
    output_schema = value.output_schema if is_modern or is_object(value.output_schema) else None
    return value.model_copy(update={"name": served, "output_schema": output_schema})
