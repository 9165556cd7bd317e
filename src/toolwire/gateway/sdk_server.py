"""The SDK's server of a `ToolServer`: its handlers, the protected state of calls, and the news of changed tools."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.definition.derived import input_schema_of
from toolwire.definition.tool import Tool
from toolwire.gateway.caller_bus import CallerBus
from toolwire.gateway.client_line import LEVEL_KEY
from toolwire.gateway.clients import Clients, connection_of
from toolwire.gateway.hidden_characters import remove_hidden_in_value
from toolwire.gateway.served_calls import ServedCalls
from toolwire.gateway.served_names import by_served_name
from toolwire.gateway.server_limits import LIST_POLL_S, STREAMS, ServerLimits
from toolwire.gateway.slots import Slots
from toolwire.gateway.tasks.served_tasks import ServedTasks, require_tasks
from toolwire.gateway.upstream.offer_handlers import OfferHandlers
from toolwire.gateway.upstream.resource_news import ResourceNews
from toolwire.gateway.upstream.upstreams import Upstreams
from toolwire.mcp.client_limits import SUBSCRIPTIONS
from toolwire.mcp.convert import to_mcp
from toolwire.mcp.values.call_results import (
    FAILURE_META,
    has_structured_content,
    is_object,
    output_schema_for_clients,
    without_own_meta,
)
from toolwire.permission.approval import REQUEST_LIFE_S
from toolwire.session.session import Session
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.texts.invisible import remove_hidden
from toolwire.vocabulary.texts.lone_surrogates import encodable

if TYPE_CHECKING:
    from toolwire.journal.store import Store

_LOG = logging.getLogger("toolwire.gateway")

Context = ServerRequestContext[Any, Any]


class SdkServer(Server[None]):
    """One server of the SDK. It belongs to one event loop, and may serve many connections there."""

    def __init__(self, name: str, version: str, instructions: str | None, parts: ServedParts) -> None:
        """`parts` are the tools, the clients and the store behind it."""
        self._parts = parts
        self._bus = CallerBus(parts.clients.caller)
        self._listen = ListenHandler(self._bus, max_subscriptions=STREAMS)
        self._connections: set[Connection] = set()
        self._seen: tuple[object, ...] | None = None
        self._news = ResourceNews(parts.upstreams, parts.limits.each(SUBSCRIPTIONS))
        self._offer_handlers = OfferHandlers(parts.upstreams, parts.clients, parts.calls, self._news, parts.limits)
        super().__init__(
            name,
            version=version,
            instructions=instructions,
            lifespan=lambda _: self._watching(),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self._serve_listening,
        )
        self.middleware.append(_sendable_answer)
        self.middleware.append(RequestStateBoundary(_security(parts.store), default_audience=name))
        if parts.tasks is not None:
            parts.tasks.add_to(self)
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
        self.add_notification_handler("notifications/initialized", types.NotificationParams, self._on_initialized)

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *arguments: Any, **options: Any
    ) -> InitializationOptions:
        """Returns the SDK's options. They promise `list_changed`, but to clients without a session: none would come."""
        there = not self._parts.clients.is_stateless
        told = notification_options or NotificationOptions(there, there, there)
        return super().create_initialization_options(told, *arguments, **options)

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:
        """Returns the SDK's capabilities, and those of the servers behind this one."""
        self._pass_on()
        return super().get_capabilities(*arguments, **options)

    def end_listening(self) -> None:
        """Ends the streams of clients that listen for changes."""
        self._listen.close()

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        client = await self._parts.clients.of(context)
        version = context.protocol_version
        found = [_listing_of(served, tool, version) for served, tool in client.visible_tools.items()]
        return types.ListToolsResult(tools=[tool for tool in found if tool is not None])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        calls = self._parts.calls if self._parts.tasks is None else self._parts.tasks
        answer = await calls.call(context, params)
        client = await self._parts.clients.of(context)
        if not client.has_found():
            return answer
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            self._bus.publish_to(client.caller, ToolsListChanged())
        else:
            # By the stream of the call, which is there, and before its result.
            await context.session.send_notification(types.ToolListChangedNotification(), context.request_id)
        return answer

    async def _serve_listening(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if "taskIds" in (params.notifications.model_extra or {}):
            # News of tasks are optional, and none are sent. The extension demands this error.
            require_tasks(context)
        return await self._offer_handlers.listen(context, params, self._listen)

    def _input_schema(self, served: str) -> Mapping[str, Any] | None:
        """Returns the schema of a tool for the SDK, which compares headers with arguments before the call."""
        name = self._parts.own_name(served)
        tool = None if name is None else self._parts.find(name, self._parts.clients.caller())
        return None if tool is None else input_schema_of(tool)

    def _pass_on(self) -> None:
        """Adds the handlers of the requests that a server behind this one answers. Servers may come later."""
        there, handlers = self._parts.upstreams, self._offer_handlers
        if there.serves("resources") and self.get_request_handler("resources/list") is None:
            self.add_request_handler("resources/list", types.PaginatedRequestParams, handlers.list_resources)
            self.add_request_handler("resources/templates/list", types.PaginatedRequestParams, handlers.list_templates)
            self.add_request_handler("resources/read", types.ReadResourceRequestParams, handlers.read)
            self.add_request_handler("resources/subscribe", types.SubscribeRequestParams, handlers.subscribe)
            self.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, handlers.unsubscribe)
        if there.serves("prompts") and self.get_request_handler("prompts/list") is None:
            self.add_request_handler("prompts/list", types.PaginatedRequestParams, handlers.list_prompts)
            self.add_request_handler("prompts/get", types.GetPromptRequestParams, handlers.get)
        if there.serves("completions") and self.get_request_handler("completion/complete") is None:
            self.add_request_handler("completion/complete", types.CompleteRequestParams, handlers.complete)

    # -- news of changed tools --------------------------------------------------------------------------------------

    async def _on_initialized(self, context: Context, _: types.NotificationParams) -> None:
        connection = connection_of(context)
        self._connections.add(connection)
        connection.exit_stack.callback(self._connections.discard, connection)

    @asynccontextmanager
    async def _watching(self) -> AsyncGenerator[None]:
        self._pass_on()
        if self._seen is None:
            self._seen = self._look()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks)
            yield None
            tasks.cancel_scope.cancel()

    async def _watch(self, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            await anyio.sleep(LIST_POLL_S)
            seen, self._seen = self._seen, self._look()
            if seen is not None and seen != self._seen:
                tools, resources, prompts = (before != now for before, now in zip(seen, self._seen, strict=True))
                for connection in list(self._connections):
                    tasks.start_soon(_tell_lists, connection, tools, resources, prompts)
                for event, is_changed in (
                    (ToolsListChanged(), tools),
                    (ResourcesListChanged(), resources),
                    (PromptsListChanged(), prompts),
                ):
                    if is_changed:
                        await self._bus.publish(event)
            for uri, connections in self._news.take_changes():
                for connection in connections:
                    tasks.start_soon(connection.send_resource_updated, uri)
                await self._bus.publish(ResourceUpdated(uri=uri))

    def _look(self) -> tuple[object, object, object]:
        """Returns values that differ once the list of tools, of resources or of prompts has changed."""
        upstreams, revision = self._parts.upstreams, self._parts.revision()
        upstreams.follow()
        resources, prompts = upstreams.resources_revision, upstreams.prompts_revision
        return (self._parts.fingerprint(), revision), (resources, revision), (prompts, revision)


async def _set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Keeps the least level of log messages that a client of the handshake protocols wants."""
    connection_of(context).state[LEVEL_KEY] = params.level
    return types.EmptyResult()


async def _sendable_answer(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware of the SDK: UTF-8 can encode each answer, and only failures of this server have our keys of `_meta`.

    A lone surrogate would end the connection. A server behind this one may write any `_meta`.
    """
    try:
        answer = encodable(await call_next(ctx))
    except MCPError as error:
        told = encodable(error.error.model_dump())
        raise MCPError.from_error_data(types.ErrorData.model_validate(told)) from error
    if not isinstance(answer, dict):
        return answer
    members = cast("dict[str, Any]", answer)
    found = without_own_meta(members)
    if members.get("isError") and FAILURE_META in (members.get("_meta") or {}):
        # `call_result` has written it over that of a server.
        found["_meta"][FAILURE_META] = members["_meta"][FAILURE_META]
    return found


async def _tell_lists(connection: Connection, tools: bool, resources: bool, prompts: bool) -> None:
    if tools:
        await connection.send_tool_list_changed()
    if resources:
        await connection.send_resource_list_changed()
    if prompts:
        await connection.send_prompt_list_changed()


class ServedParts:
    """What all transports of one `ToolServer` share."""

    def __init__(
        self,
        name: str,
        base: Session,
        clients: Clients,
        slots: Slots,
        limits: ServerLimits,
        store: Store | None,
        upstreams: Upstreams,
        revision: Callable[[], int],
    ) -> None:
        """`revision` returns a number that differs once what clients may see is decided anew."""
        self.revision = revision
        self.base, self.clients, self.slots, self.store, self.upstreams = base, clients, slots, store, upstreams
        self.forms = Slots(limits.waiting, "waiting call", "open", each=limits.each(limits.waiting))
        self.calls = ServedCalls(clients, slots, self.forms, store, name)
        self.tasks = None if store is None else ServedTasks(self.calls, clients, store, limits.task_s)
        self.limits = limits
        self._names: Mapping[str, str] = {}

    def find(self, name: str, caller: Caller) -> Tool | None:
        """Returns the tool with that name in the registry, if this caller may see it."""
        scope = self.base._scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        tools = scope.tools if caller == scope.caller else scope.narrow(caller=caller).tools
        entry = tools.find(name)
        return None if entry is None else entry.tool_view

    def own_name(self, served: str) -> str | None:
        """Returns the name in the registry of a served tool, also of a hidden one; None for any other name."""
        own = self._names.get(served)
        catalogue = self.base._scope.catalogue  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if own is None or catalogue.find(own) is None:
            self._names = {name: tool.name for name, tool in by_served_name(e.tool_view for e in catalogue).items()}
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


def _listing_of(served: str, tool: Tool, version: str) -> types.Tool | None:
    """Returns a tool for the list; None if the protocol cannot express it. One such tool would break the whole list."""
    if not is_object(tool.input_schema):
        _LOG.warning("the tool %r is not served: the root of its input schema has not the type 'object'", tool.name)
        return None
    value, original = to_mcp(tool), tool.original
    texts: dict[str, Any] = {"name": served}
    if original is not None:
        # The client has a prompt of its own, and reads the definition that the operator accepted.
        bound = {one.name for one in tool.parameters} - {one.name for one in tool.visible_parameters}
        texts |= {"title": original.title, "description": original.description or None}
        texts |= {"input_schema": original.input_without(bound), "output_schema": original.output_schema}
    # Structured content of the handshake protocols is always an object.
    output_schema = texts.get("output_schema", output_schema_for_clients(tool))
    is_known = version in MODERN_PROTOCOL_VERSIONS or is_object(output_schema)
    texts["output_schema"] = output_schema if is_known and has_structured_content(version) else None
    listed = value.model_copy(update=texts)
    return _seen_listing(listed, tool.name) if tool.is_outside else listed


def _seen_listing(listed: types.Tool, name: str) -> types.Tool:
    """Returns a listing whose hints, icons and `_meta` have no hidden characters; an icon whose URI has some is left
    out. A warning says so.
    """
    hints = None if listed.annotations is None else listed.annotations.model_dump(by_alias=True, exclude_none=True)
    icons = [icon for icon in listed.icons or () if remove_hidden(icon.src) == icon.src]
    seen_hints, meta = remove_hidden_in_value(hints), remove_hidden_in_value(listed.meta)
    if (seen_hints, meta, icons) == (hints, listed.meta, listed.icons or []):
        return listed
    _LOG.warning("the tool %r: hidden characters were removed from its hints, icons or meta", name)
    annotations = None if hints is None else types.ToolAnnotations.model_validate(seen_hints)
    return listed.model_copy(update={"annotations": annotations, "meta": meta, "icons": icons or None})
