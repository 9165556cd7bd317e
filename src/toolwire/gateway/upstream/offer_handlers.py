"""Requests of clients for resources, prompts and completions, passed on to the servers that have them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.gateway.clients import Clients, connection_of, owner_of
from toolwire.gateway.served_calls import ServedCalls
from toolwire.gateway.server_limits import STREAMS, ServerLimits
from toolwire.gateway.slots import SlotRefused, Slots
from toolwire.gateway.upstream.resource_news import ResourceNews
from toolwire.gateway.upstream.upstreams import Target, Upstreams
from toolwire.mcp.requesting import SERVER_ERROR
from toolwire.mcp.server_offers import COMPLETE, GET, READ
from toolwire.mcp.values.call_results import FAILURE_META, failure_of, without_server_name
from toolwire.session.session import Session
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.invisible import visible_text

Context = ServerRequestContext[Any, Any]

RESOURCE_NOT_FOUND = -32002
"""The error of the handshake protocols for an unknown resource. The later one has -32602 in its place."""


class OfferHandlers:
    """The handlers of one server of the SDK."""

    def __init__(
        self, upstreams: Upstreams, clients: Clients, calls: ServedCalls, news: ResourceNews, limits: ServerLimits
    ) -> None:
        self._upstreams, self._clients, self._calls, self._news = upstreams, clients, calls, news
        self._streams = Slots(STREAMS, "stream", "open", each=limits.each(STREAMS))

    async def list_resources(self, context: Context, _: Any) -> types.ListResourcesResult:
        """Lists the resources that the client sees."""
        return types.ListResourcesResult(resources=await self._upstreams.resources(await self._session(context)))

    async def list_templates(self, context: Context, _: Any) -> types.ListResourceTemplatesResult:
        """Lists the templates of resources that the client sees."""
        found = await self._upstreams.templates(await self._session(context))
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def list_prompts(self, context: Context, _: Any) -> types.ListPromptsResult:
        """Lists the prompts that the client sees."""
        return types.ListPromptsResult(prompts=await self._upstreams.prompts(await self._session(context)))

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Reads a resource.

        Raises:
            MCPError: The resource is unknown, or the request failed.
        """
        target = await self._upstreams.resource(await self._session(context), params.uri)
        answer = await self._send_request(context, target, READ, {"uri": target.own}, params, {"uri": params.uri})
        if isinstance(answer, types.InputRequiredResult):
            return answer
        # How long others may keep it is for the server of this client to say.
        kept = {key: value for key, value in answer.items() if key not in ("ttlMs", "cacheScope")}
        result = types.ReadResourceResult.model_validate(kept)
        for one in result.contents:
            one.uri = f"{target.prefix}{one.uri}"
        return result

    async def get(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Gets a prompt.

        Raises:
            MCPError: The prompt is unknown, or the request failed.
        """
        target = await self._upstreams.prompt(await self._session(context), params.name)
        given = {"name": target.own} | ({} if params.arguments is None else {"arguments": params.arguments})
        answer = await self._send_request(context, target, GET, given, params, {"name": params.name})
        return answer if isinstance(answer, types.InputRequiredResult) else types.GetPromptResult.model_validate(answer)

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Completes an argument of a prompt or a template.

        Raises:
            MCPError: It is unknown, or the request failed.
        """
        session, ref = await self._session(context), params.ref
        if isinstance(ref, types.PromptReference):
            target = await self._upstreams.prompt(session, ref.name)
            own: Any = ref.model_copy(update={"name": target.own})
        else:
            target = await self._upstreams.resource(session, ref.uri, is_template=True)
            own = ref.model_copy(update={"uri": target.own})
        asked = params.model_copy(update={"ref": own, "meta": None})
        given = asked.model_dump(by_alias=True, mode="json", exclude_none=True)
        answer = await self._send_request(context, target, COMPLETE, given, None, {})
        assert not isinstance(answer, types.InputRequiredResult)
        return types.CompleteResult.model_validate(answer)

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Subscribes a connection of the handshake protocols to a resource.

        Raises:
            MCPError: The resource is unknown, its server refuses it, or the client has its share of subscriptions.
        """
        target = await self._upstreams.resource(await self._session(context), params.uri)
        await self._news.add(params.uri, target, connection_of(context), owner_of(context.request))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Ends a subscription of a connection."""
        await self._news.remove(params.uri, connection_of(context))
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams, handler: ListenHandler
    ) -> types.SubscriptionsListenResult:
        """Serves a stream of changes. It leaves out resources that the client does not see, and those past its share.

        Raises:
            MCPError: The client has its share of streams.
        """
        try:
            with self._streams.hold(owner_of(context.request)):
                return await self._serve_stream(context, params, handler)
        except SlotRefused as refused:
            raise MCPError(types.INTERNAL_ERROR, str(refused)) from refused

    async def _serve_stream(
        self, context: Context, params: types.SubscriptionsListenRequestParams, handler: ListenHandler
    ) -> types.SubscriptionsListenResult:
        wanted = params.notifications.resource_subscriptions or []
        if not wanted:
            return await handler(context, params)
        async with self._follow_resources(context, wanted) as heard:
            notifications = params.notifications.model_copy(update={"resource_subscriptions": heard or None})
            return await handler(context, params.model_copy(update={"notifications": notifications}))

    @asynccontextmanager
    async def _follow_resources(self, context: Context, uris: list[str]) -> AsyncGenerator[list[str]]:
        session, listener, heard = await self._session(context), object(), list[str]()
        owner = owner_of(context.request)
        async with AsyncExitStack() as stack:
            for uri in dict.fromkeys(uris):
                try:
                    await self._news.add(uri, await self._upstreams.resource(session, uri), listener, owner)
                except MCPError:
                    continue
                stack.push_async_callback(self._news.remove, uri, listener)
                heard.append(uri)
            yield heard

    async def _session(self, context: Context) -> Session:
        return await self._clients.requests_of(await self._clients.of(context))

    async def _send_request(
        self,
        context: Context,
        target: Target,
        method: str,
        given: Mapping[str, Any],
        params: types.ReadResourceRequestParams | types.GetPromptRequestParams | None,
        named: Mapping[str, str],
    ) -> dict[str, Any] | types.InputRequiredResult:
        """Sends the request down the path of calls. Returns the server's result as JSON, or forms for the client."""
        client = await self._clients.of(context)
        session = await self._clients.requests_of(client)
        call = ToolCall(f"{target.server.server}/{method}", given)
        answer = await self._calls.run(context, client, session, call, params, can_ask=method != COMPLETE)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        if not answer.success:
            raise _error(answer, named, is_modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS)
        return {**answer.data, "_meta": without_server_name(answer.data.get("_meta")) or None}


def _error(result: ToolResult, named: Mapping[str, str], *, is_modern: bool) -> MCPError:
    """Returns a failed request as an error of the protocol. Its data have the kind of the failure."""
    code, own = types.INTERNAL_ERROR, result.metadata.get(SERVER_ERROR)
    if own in (types.INVALID_PARAMS, RESOURCE_NOT_FOUND):
        code = types.INVALID_PARAMS if is_modern else own
    return MCPError(code, visible_text(result.error or ""), data={**named, FAILURE_META: failure_of(result)})
