"""News of resources: which clients want them, and which of them changed."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from toolwire.gateway.slots import SlotRefused, Slots
from toolwire.gateway.upstream.upstreams import Target, Upstreams
from toolwire.mcp.server_offers import ServerOffers

_LOG = logging.getLogger("toolwire.gateway")


@dataclass(slots=True, eq=False)
class _Subscription:
    """A resource whose changes are wanted."""

    target: Target
    listeners: dict[object, str | None] = field(default_factory=dict[object, "str | None"])
    """The owners of the listeners: the connections of the handshake protocols, and a mark for each later stream."""


class ResourceNews:
    """The subscriptions of the clients of one server. All but `_note_update` is used on the server's loop."""

    def __init__(self, upstreams: Upstreams, each: int) -> None:
        """`each` bounds the subscriptions of one owner at one server. The server's client bounds its resources."""
        self._upstreams = upstreams
        self._slots: dict[str, Slots] = defaultdict(lambda: Slots(sys.maxsize, "subscription", "open", each=each))
        self._subscriptions: dict[str, _Subscription] = {}
        self._pending: dict[str, None] = {}
        upstreams.watch(self._note_update)

    async def add(self, uri: str, target: Target, listener: object, owner: str | None) -> None:
        """Adds a listener. The first one of a URI subscribes at its server.

        Raises:
            MCPError: The server refuses it, or the owner has its share.
        """
        slots = self._slots[target.server.server]
        try:
            slots.take(owner)
        except SlotRefused as refused:
            raise MCPError(INTERNAL_ERROR, str(refused)) from refused
        try:
            is_new = await self._listen(uri, target, listener, owner)
        except BaseException:
            slots.give_back(owner)
            raise
        if not is_new:
            slots.give_back(owner)

    async def _listen(self, uri: str, target: Target, listener: object, owner: str | None) -> bool:
        """Adds a listener, which has its slot. Returns False if it is there already."""
        heard = self._subscriptions.get(uri)
        if heard is None:
            await asyncio.wrap_future(target.server.subscribe(target.own, is_wanted=True))
            if uri in self._subscriptions:
                # Another one was first meanwhile.
                target.server.subscribe(target.own, is_wanted=False)
            heard = self._subscriptions.setdefault(uri, _Subscription(target))
        if listener in heard.listeners:
            return False
        if isinstance(listener, Connection):
            listener.exit_stack.push_async_callback(self.remove, uri, listener)
        heard.listeners[listener] = owner
        return True

    async def remove(self, uri: str, listener: object) -> None:
        """Removes a listener. The last one of a URI ends the subscription."""
        heard = self._subscriptions.get(uri)
        if heard is None or listener not in heard.listeners:
            return
        self._slots[heard.target.server.server].give_back(heard.listeners.pop(listener))
        if not heard.listeners:
            del self._subscriptions[uri]
            # The client does not wait for a server that is slow. One that was removed must not be connected again.
            if self._upstreams.has(heard.target.server):
                heard.target.server.subscribe(heard.target.own, is_wanted=False)

    def take_changes(self) -> Iterator[tuple[str, list[Connection]]]:
        """Gives each URI that changed since the last look, with the connections of the handshake protocols."""
        self._follow()
        while self._pending:
            uri, _ = self._pending.popitem()
            heard = self._subscriptions.get(uri)
            if heard is not None:
                yield uri, [one for one in heard.listeners if isinstance(one, Connection)]

    def _follow(self) -> None:
        """Subscribes again at each server that was replaced, as a changed entry of a configuration does."""
        for uri, heard in self._subscriptions.items():
            server = self._upstreams.find(heard.target.server.server)
            if server is not None and server is not heard.target.server:
                heard.target = replace(heard.target, server=server)
                subscribed = asyncio.wrap_future(server.subscribe(heard.target.own, is_wanted=True))
                subscribed.add_done_callback(partial(self._note_refusal, uri, heard))
                # What changed meanwhile is not sent again.
                self._pending[uri] = None

    def _note_refusal(self, uri: str, heard: _Subscription, subscribed: asyncio.Future[None]) -> None:
        """Ends a subscription that the new server refused, so that the next listener is told of the refusal."""
        if subscribed.cancelled() or (error := subscribed.exception()) is None:
            return
        said = str(error) or type(error).__name__
        _LOG.warning("the subscription to the resource %.200r ended: its server was replaced, and says: %s", uri, said)
        if self._subscriptions.get(uri) is heard:
            del self._subscriptions[uri]
            for owner in heard.listeners.values():
                self._slots[heard.target.server.server].give_back(owner)

    def _note_update(self, server: ServerOffers, own: str) -> None:
        """Notes a change, in any thread. A server may name a part of the resource."""
        for uri, heard in list(self._subscriptions.items()):
            if heard.target.server is server and own.startswith(heard.target.own):
                self._pending[uri] = None
