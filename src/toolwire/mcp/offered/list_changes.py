"""Hears that a server's lists changed, and that a resource did, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ServerEvent, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import Client
from toolwire.mcp.client_limits import BACKOFF_MAX_S, BACKOFF_S, RELIST_S
from toolwire.mcp.offered.listing import PROMPTS, RESOURCES, TEMPLATES, OfferKind
from toolwire.mcp.server_log import ServerLog


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNews:
    """The functions that are called with the news of one server."""

    tools_changed: Callable[[], None]
    """Called in another thread when the tools are others than before."""
    offers_changed: Callable[[frozenset[OfferKind]], None]
    """Called in another thread when these lists are perhaps others than before."""
    updated: Callable[[str], None]
    """Called on the connection's loop with the URI of a resource that changed. It must not block."""


class ListChanges:
    """The changes of one connection that were heard and not yet read."""

    def __init__(self, news: ServerNews) -> None:
        self._news = news
        self._heard = anyio.Event()
        self._kinds = frozenset[OfferKind]()
        self._heard_offers = anyio.Event()

    async def take_message(self, message: IncomingMessage) -> None:
        """Notes a change of the handshake era. Other messages are of no interest here."""
        if isinstance(message, ToolListChangedNotification):
            self._heard.set()
        elif isinstance(message, ResourceListChangedNotification):
            self._hear(RESOURCES, TEMPLATES)
        elif isinstance(message, PromptListChangedNotification):
            self._hear(PROMPTS)
        elif isinstance(message, ResourceUpdatedNotification):
            self._news.updated(message.params.uri)

    async def next(self) -> None:
        """Returns when the list of tools should be read again. Many changes are read once a second."""
        await self._heard.wait()
        await anyio.sleep(RELIST_S)
        self._heard = anyio.Event()

    async def next_offers(self) -> frozenset[OfferKind]:
        """Returns the other lists that changed, once there are any. They are read only when a client asks for them."""
        await self._heard_offers.wait()
        self._heard_offers = anyio.Event()
        kinds, self._kinds = self._kinds, frozenset[OfferKind]()
        return kinds

    async def listen(self, client: Client, log: ServerLog) -> None:
        """Listens for changes as the protocol 2026-07-28 has them. Returns at once for an older one."""
        told = client.server_capabilities
        tools, resources, prompts = (
            bool(one and one.list_changed) for one in (told.tools, told.resources, told.prompts)
        )
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools or resources or prompts):
            return
        wait_s = BACKOFF_S
        while True:
            try:
                async with client.listen(
                    tools_list_changed=tools, resources_list_changed=resources, prompts_list_changed=prompts
                ) as changes:
                    async for event in changes:
                        self._take(event)
                        wait_s = BACKOFF_S
            except SubscriptionLost:
                pass
            except (MCPError, TimeoutError) as error:
                log.warning(f"changes of its lists are not heard: {error}")
                return
            await anyio.sleep(wait_s)
            wait_s = min(2 * wait_s, BACKOFF_MAX_S)
            # What changed without a listener is not sent again.
            self._heard.set()
            self._hear(RESOURCES, TEMPLATES, PROMPTS)

    def _take(self, event: ServerEvent) -> None:
        if isinstance(event, ResourcesListChanged):
            self._hear(RESOURCES, TEMPLATES)
        elif isinstance(event, PromptsListChanged):
            self._hear(PROMPTS)
        else:
            self._heard.set()

    def _hear(self, *kinds: OfferKind) -> None:
        self._kinds |= frozenset(kinds)
        self._heard_offers.set()
