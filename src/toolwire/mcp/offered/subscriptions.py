"""Keeps the subscriptions to resources of one server over its connections, in both eras of the protocol."""

from __future__ import annotations

from collections import Counter

import anyio
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    EmptyResult,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import Client
from toolwire.mcp.client_limits import BACKOFF_MAX_S, BACKOFF_S, SUBSCRIPTIONS
from toolwire.mcp.offered.list_changes import ServerNews
from toolwire.mcp.server_log import ServerLog


class Subscriptions:
    """The resources whose changes are wanted. All is used on the loop of the connection's owner."""

    def __init__(self, log: ServerLog, news: ServerNews) -> None:
        self._log, self._news = log, news
        self._wanted = Counter[str]()
        self._changed = anyio.Event()

    async def change(self, client: Client | None, uri: str, *, is_wanted: bool) -> None:
        """Subscribes to a resource for one more subscriber, or for one less. `client` is the connection, if any.

        Raises:
            MCPError: The server refuses it, or there are too many.
        """
        if is_wanted:
            if uri not in self._wanted and len(self._wanted) >= SUBSCRIPTIONS:
                raise MCPError(INTERNAL_ERROR, f"{SUBSCRIPTIONS:,} resources of this server are subscribed already")
            if uri not in self._wanted and client is not None and not _is_modern(client):
                await _send(client, SubscribeRequest(params=SubscribeRequestParams(uri=uri)))
            self._wanted[uri] += 1
        elif uri in self._wanted:
            self._wanted[uri] -= 1
            if not self._wanted[uri]:
                del self._wanted[uri]
                if client is not None and not _is_modern(client):
                    await _send(client, UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri)))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def follow(self, client: Client) -> None:
        """Subscribes on a new connection to all that is wanted, as long as it lasts."""
        if client.server_capabilities.resources is None:
            return
        if _is_modern(client):
            await self._keep_listening(client)
        for uri in list(self._wanted):
            try:
                await _send(client, SubscribeRequest(params=SubscribeRequestParams(uri=uri)))
            except MCPError as error:
                self._log.warning(f"the subscription to its resource {uri!r:.200} ended: {error}")
            # What changed without a connection is not sent again.
            self._news.updated(uri)

    async def _keep_listening(self, client: Client) -> None:
        """Keeps one stream open for the wanted resources. A new set opens its stream before the old one ends."""
        before: anyio.CancelScope | None = None
        async with anyio.create_task_group() as streams:
            while True:
                changed, wanted, now = self._changed, list(self._wanted), anyio.CancelScope()
                if wanted:
                    is_open = anyio.Event()
                    streams.start_soon(self._listen, client, wanted, now, is_open)
                    await is_open.wait()
                if before is not None:
                    before.cancel()
                before = now
                await changed.wait()

    async def _listen(self, client: Client, uris: list[str], scope: anyio.CancelScope, is_open: anyio.Event) -> None:
        wait_s = BACKOFF_S
        with scope:
            while True:
                try:
                    async with client.listen(resource_subscriptions=uris) as events:
                        is_open.set()
                        async for event in events:
                            if isinstance(event, ResourceUpdated):
                                self._news.updated(event.uri)
                                wait_s = BACKOFF_S
                except SubscriptionLost:
                    pass
                except (MCPError, TimeoutError) as error:
                    self._log.warning(f"changes of its resources are not heard: {error}")
                    return
                finally:
                    is_open.set()
                await anyio.sleep(wait_s)
                wait_s = min(2 * wait_s, BACKOFF_MAX_S)
                for uri in uris:
                    self._news.updated(uri)


async def _send(client: Client, request: SubscribeRequest | UnsubscribeRequest) -> None:
    await client.session.send_request(request, EmptyResult)


def _is_modern(client: Client) -> bool:
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS
