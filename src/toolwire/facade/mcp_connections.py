"""The connected MCP servers of a registry or a toolkit, and which of their tools are registered."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.facade.mcp_offer import Offer, server_of
from toolwire.facade.pin_watch import watch_pins
from toolwire.invocation.scope import Scope
from toolwire.runtime.done import Done
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError, ServerUnavailable

if TYPE_CHECKING:
    from toolwire.mcp.client import MCPClient, MCPClientBase
    from toolwire.mcp.config import ConfiguredServer, McpServerProblem
    from toolwire.mcp.pins import Accept

_LOG = logging.getLogger("toolwire.registry")

STARTED_AT_ONCE = 16
"""Servers of a configuration that are started at the same time. Most of them wait for a download or a network."""


class McpConnections:
    """Adds and removes the tools of servers. Safe to use from several threads."""

    def __init__(self, scope: Callable[[], Scope]) -> None:
        self.scope = scope
        """Returns the present scope of the owner's calls, with the live catalogue."""
        self._lock = threading.RLock()
        self._offers: dict[str, Offer] = {}
        self._entries: dict[str, Mapping[str, Any]] = {}
        """The entries of the servers that a configuration added, by server."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers, in order of registration."""
        with self._lock:
            return tuple(self._offers)

    @property
    def configured(self) -> frozenset[str]:
        """The names of the servers that a configuration added."""
        return frozenset(self._entries)

    def names_of_unchanged(self, servers: Iterable[ConfiguredServer]) -> frozenset[str]:
        """Returns the names of the servers here that have the same entry among these."""
        entries = {server.client.name: server.entry for server in servers}
        return frozenset(name for name, entry in self._entries.items() if entries.get(name) == entry)

    def connect(
        self,
        servers: Sequence[ConfiguredServer],
        problems: Iterable[McpServerProblem],
        pins: str | Path | None,
        accept: Accept,
        options: Mapping[str, Any],
        *,
        gone: Iterable[str] = (),
    ) -> list[McpServerProblem]:
        """Connects the servers and adds their tools, in place of those that are gone.

        Returns the problems that were there and the new ones, each of which is a warning in the log.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        from toolwire.mcp.config import McpServerProblem
        from toolwire.mcp.pins import McpPins, require_accept

        found = [*problems]
        errors = _connected(server.client for server in servers)
        # After the new servers are connected, so that no tool is missing while they start.
        self.remove(gone)
        for server, error in zip(servers, errors, strict=True):
            client = server.client
            try:
                if error is not None:
                    raise error
                enabled = None if server.enabled is None else frozenset(server.enabled)
                self.take(
                    Offer(
                        client=client,
                        enabled=enabled,
                        disabled=frozenset(server.disabled),
                        presets={},
                        is_wrapped=True,
                        options=options,
                        pins=McpPins(pins),
                        accept=require_accept(accept),
                    )
                )
                self._entries[client.name] = server.entry
            except (ServerUnavailable, RegistrationError, ConfigurationError) as wrong:
                client.close()
                reason = str(wrong).removeprefix("enable_funcs: ").removeprefix("disable_funcs: ")
                found.append(McpServerProblem(server=client.name, place=server.place, reason=reason, is_off=True))
        for problem in found:
            _LOG.warning("%s", problem)
        if any(problem.is_off for problem in found):
            self.scope().catalogue.lacks_tools()
        return found

    def accept(self, server: str, tools: Iterable[str] | None) -> list[str]:
        """Accepts definitions of a server's tools; see `McpServers.accept`."""
        with self._lock:
            self._refuse_unknown([server])
            offer = self._offers[server]
            accepted = offer.pins.accept(server, tools)
            offer.take_again(self.scope())
        return accepted

    def take(self, offer: Offer) -> Done:
        """Adds the tools of a server, and follows its changes. The return value may be awaited.

        Raises:
            RegistrationError: A server of that name is registered already.
            ConfigurationError: See `Offer.take`.
        """
        name = offer.client.name
        with self._lock:
            if name in self._offers:
                raise RegistrationError(f"an MCP server named {name!r} is registered already: give it another name")
            offer.take(self.scope())
            self._offers[name] = offer
            self._watch_pins(offer)
        offer.client.watch_tools(lambda: self._take_again(offer))
        return Done()

    def _take_again(self, offer: Offer) -> None:
        """Makes the registered tools of a server those that it has now. A tool that is unchanged stays as it is."""
        with self._lock:
            if self._offers.get(offer.client.name) is offer:
                offer.take_again(self.scope())
                self._watch_pins(offer)

    def _watch_pins(self, offer: Offer) -> None:
        """Looks at the file of pins as long as tools wait: another process may accept them."""
        if offer.pins.path is None or not offer.has_waiting_tools or offer.is_watched:
            return
        # The thread must not keep this object alive.
        watches, take_again = weakref.WeakMethod(self._watches), weakref.WeakMethod(self._take_again)
        offer.is_watched = True
        watch_pins(
            offer.pins.path,
            lambda: (method := watches()) is not None and method(offer),
            lambda: None if (method := take_again()) is None else method(offer),
        )

    def _watches(self, offer: Offer) -> bool:
        with self._lock:
            offer.is_watched = offer.has_waiting_tools and self._offers.get(offer.client.name) is offer
            return offer.is_watched

    def remove(self, names: Iterable[str]) -> Done:
        """Removes the tools of these servers and ends their connections: all of them, or none after an error.

        The return value may be awaited.

        Raises:
            RegistrationError: No server of that name is registered here.
        """
        wanted = dict.fromkeys(names)
        self._refuse_unknown(wanted)
        catalogue = self.scope().catalogue
        for name in wanted:
            for entry in list(catalogue):
                if server_of(entry) == name:
                    catalogue.remove(entry.name)
            for entry in list(catalogue.server_requests):
                if entry.name.startswith(f"{name}/"):
                    catalogue.server_requests.remove(entry.name)
            self._entries.pop(name, None)
            _close(self._offers.pop(name).client)
        return Done()

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._offers:
                near = suggestion(nearest(name, self._offers))
                raise RegistrationError(f"no MCP server is named {name!r}{near}")

    def disconnect(self) -> None:
        """Ends the connections. A later call connects again."""
        for offer in self._offers.values():
            _close(offer.client)


def _connected(clients: Iterable[MCPClient]) -> list[ServerUnavailable | None]:
    """Connects all clients at the same time. Returns for each why its server cannot be reached, or None.

    Raises:
        ConfigurationError: The extra `toolwire[mcp]` is not installed.
    """

    def connect(client: MCPClient) -> ServerUnavailable | None:
        try:
            client.connect()
        except ServerUnavailable as error:
            return error
        return None

    with ThreadPoolExecutor(STARTED_AT_ONCE, thread_name_prefix="toolwire-mcp-start") as pool:
        return list(pool.map(connect, clients))


def _close(client: MCPClientBase) -> None:
    from toolwire.mcp.client import StatefulClientBase

    if isinstance(client, StatefulClientBase):
        client.close()
