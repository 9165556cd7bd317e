"""Hears that a server's list of tools changed, in both eras of the protocol."""

from __future__ import annotations

import anyio
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import Client
from toolwire.mcp.client_limits import BACKOFF_MAX_S, BACKOFF_S, RELIST_S
from toolwire.mcp.server_log import ServerLog


class ListChanges:
    """The changes of one connection that were heard and not yet read."""

    def __init__(self) -> None:
        self._heard = anyio.Event()

    async def take_message(self, message: IncomingMessage) -> None:
        """Notes a change of the handshake era. Other messages are of no interest here."""
        if isinstance(message, ToolListChangedNotification):
            self._heard.set()

    async def next(self) -> None:
        """Returns when the list should be read again. A server that reports many changes is asked once a second."""
        await self._heard.wait()
        await anyio.sleep(RELIST_S)
        self._heard = anyio.Event()

    async def listen(self, client: Client, log: ServerLog) -> None:
        """Listens for changes as the protocol 2026-07-28 has them. Returns at once for an older one."""
        capability = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (capability and capability.list_changed):
            return
        wait_s = BACKOFF_S
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._heard.set()
                        wait_s = BACKOFF_S
            except SubscriptionLost:
                pass
            except (MCPError, TimeoutError) as error:
                log.warning(f"changes of its tools are not heard: {error}")
                return
            await anyio.sleep(wait_s)
            wait_s = min(2 * wait_s, BACKOFF_MAX_S)
            # What changed without a listener is not sent again.
            self._heard.set()
