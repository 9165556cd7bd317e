"""A server of the SDK with resources, prompts and completion, for a gateway in front of it. It runs in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.runner import serve_loop
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError

from toolwire import MCPClient

Era = Literal["auto", "legacy"]
NOTE, BINARY, GREETING = "note://today", "note://picture", "note://{day}"
FORM = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}


class Upstream:
    """The server, what it has, and what it was asked."""

    def __init__(self, era: Era = "auto", said: str = "milk") -> None:
        self.resources = [types.Resource(name="today", uri=NOTE, description="The note of today.")]
        self.templates = [types.ResourceTemplate(name="a day", uri_template=GREETING)]
        self.prompts = [
            types.Prompt(name="review", arguments=[types.PromptArgument(name="text", required=True)]),
            types.Prompt(name="ask", description="Asks first."),
        ]
        self.asked: list[Any] = []
        self.subscribed: list[str] = []
        self.hangs = False
        self._said, self._era = said, era
        self._bus = InMemorySubscriptionBus()
        self._connections: set[Connection] = set()
        self.server = self._server()

    def client(self, name: str, **limits: Any) -> MCPClient:
        """Returns a client, by the protocol of this server."""
        if self._era == "auto":
            return MCPClient.in_memory(name, self.server, **limits)
        return MCPClient.in_memory(name, InMemoryTransport(self.server), **limits)

    async def tell(self, event: Any) -> None:
        """Tells each client of a change, on its loop."""
        await self._bus.publish(event)
        for connection in tuple(self._connections):
            if isinstance(event, ResourceUpdated):
                await connection.send_resource_updated(event.uri)
            elif isinstance(event, ResourcesListChanged):
                await connection.send_resource_list_changed()
            else:
                await connection.send_prompt_list_changed()

    def _server(self) -> Server[Any]:
        listen = ListenHandler(self._bus)

        async def heard(context: Any, params: types.SubscriptionsListenRequestParams) -> Any:
            self.subscribed += params.notifications.resource_subscriptions or []
            return await listen(context, params)

        server: Server[Any] = Server(
            "upstream",
            on_list_tools=self._listed(lambda: types.ListToolsResult(tools=[_CHANGE])),
            on_call_tool=self._call,
            on_list_resources=self._listed(lambda: types.ListResourcesResult(resources=self.resources)),
            on_list_resource_templates=self._listed(
                lambda: types.ListResourceTemplatesResult(resource_templates=self.templates)
            ),
            on_read_resource=self._read,
            on_list_prompts=self._listed(lambda: types.ListPromptsResult(prompts=self.prompts)),
            on_get_prompt=self._get,
            on_completion=self._complete,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=heard,
        )
        if self._era == "legacy":
            server.run = partial(_run_handshake, server)
        return server

    def _listed(self, result: Callable[[], Any]) -> Any:
        async def handler(context: Any, params: Any) -> Any:
            if self._era == "legacy":
                self._connections.add(context.session._connection)
            if self.hangs:
                await anyio.sleep_forever()
            return result()

        return handler

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        match (params.arguments or {})["what"]:
            case "resources":
                self.resources = [*self.resources, types.Resource(name="more", uri="note://more")]
                await self.tell(ResourcesListChanged())
            case "prompts":
                self.prompts = [*self.prompts, types.Prompt(name="more")]
                await self.tell(PromptsListChanged())
            case "sample":
                raise _needs_sampling()
            case uri:
                await self.tell(ResourceUpdated(uri=uri))
        return types.CallToolResult(content=[types.TextContent(text="changed")])

    async def _read(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        self.asked.append(params.uri)
        if self.hangs:
            await anyio.sleep_forever()
        if params.uri == "note://nowhere":
            raise MCPError(types.INVALID_PARAMS if self._era == "auto" else -32002, "there is no such note")
        if params.uri == BINARY:
            return types.ReadResourceResult(contents=[types.BlobResourceContents(uri=params.uri, blob="AAEC")])
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text=self._said)], ttl_ms=60_000, cache_scope="public"
        )

    async def _get(
        self, context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        self.asked.append((params.name, params.arguments))
        said = (params.arguments or {}).get("text", "")
        if said == "sample":
            raise _needs_sampling()
        if params.name == "ask" and self._era == "auto":
            if not params.input_responses:
                form = types.ElicitRequestFormParams(message="About what?", requested_schema=FORM)
                return types.InputRequiredResult(input_requests={"topic_form": types.ElicitRequest(params=form)})
            answer = params.input_responses["topic_form"]
            assert isinstance(answer, types.ElicitResult)
            said = str((answer.content or {})["topic"])
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=types.TextContent(text=f"Review {said}"))]
        )

    async def _complete(self, context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        ref = params.ref
        self.asked.append((ref.name if isinstance(ref, types.PromptReference) else ref.uri, params.argument.value))
        return types.CompleteResult(completion=types.Completion(values=[f"{params.argument.value}!"]))

    async def _subscribe(self, context: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        if params.uri == "note://nowhere":
            raise MCPError(-32002, "there is no such note")
        self.subscribed.append(params.uri)
        return types.EmptyResult()

    async def _unsubscribe(self, context: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.subscribed.remove(params.uri)
        return types.EmptyResult()


def _needs_sampling() -> MCPError:
    data = {"requiredCapabilities": {"sampling": {}}}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "it needs sampling", data=data)


async def _run_handshake(server: Server[Any], reading: Any, writing: Any, *_: Any, **__: Any) -> None:
    """Serves one connection, by the handshake protocols alone."""
    told = server.create_initialization_options(NotificationOptions(True, True, True))
    async with server.lifespan(server) as state:
        await serve_loop(server, reading, writing, lifespan_state=state, init_options=told)


_CHANGE = types.Tool(
    name="change",
    input_schema={"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
)
