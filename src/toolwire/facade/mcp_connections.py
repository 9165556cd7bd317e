"""The connected MCP servers of a registry or a toolkit, and which of their tools are registered."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.facade.mcp_offer import Offer, server_of
from toolwire.facade.pin_watch import watch_pins
from toolwire.invocation.scope import Scope
from toolwire.runtime.done import Done
from toolwire.vocabulary.errors import BindingError, ConfigurationError, RegistrationError, ServerUnavailable

if TYPE_CHECKING:
    from toolwire.mcp.client import MCPClientBase
    from toolwire.mcp.config import ConfiguredServer, McpServerProblem
    from toolwire.mcp.pins import Accept, McpPins
    from toolwire.mcp.values.call_limits import CallLimits
    from toolwire.mcp.values.server_state import McpServerState

_LOG = logging.getLogger("toolwire.registry")

_MARGIN_S = 1.0
"""Seconds beyond the time of an attempt to connect, for taking the tools of a server."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Start:
    """A server of a configuration, from its first attempt to connect."""

    server: ConfiguredServer
    offer: Offer
    problem: McpServerProblem | None = None
    """Why its tools are not here; None once they are, and before the first attempt has ended."""
    is_over: threading.Event = field(default_factory=threading.Event)
    """Set once its tools are here, or the first attempt has failed."""
    is_taken: threading.Event = field(default_factory=threading.Event)
    """Set once its tools are here."""
    is_wrong: bool = False
    """True if its tools cannot be taken as its entry says. It is not tried again."""
    began: float = field(default_factory=time.monotonic)


class McpConnections:
    """Adds and removes the tools of servers. Safe to use from several threads."""

    def __init__(self, scope: Callable[[], Scope]) -> None:
        self.scope = scope
        """Returns the present scope of the owner's calls, with the live catalogue."""
        self._lock = threading.RLock()
        self._offers: dict[str, Offer] = {}
        self._starts: dict[str, _Start] = {}
        """The servers that a configuration added, by name. Those that are not there are tried for ever."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers whose tools are here, in order of registration."""
        with self._lock:
            return tuple(self._offers)

    @property
    def configured(self) -> frozenset[str]:
        """The names of the servers that a configuration added."""
        return frozenset(self._starts)

    @property
    def states(self) -> tuple[McpServerState, ...]:
        """The states of the servers that a configuration added."""
        with self._lock:
            return tuple(self._state_of(start) for start in self._starts.values())

    def _state_of(self, start: _Start) -> McpServerState:
        from toolwire.mcp.values.server_state import McpServerState

        client = start.server.client
        is_taken = self._offers.get(client.name) is start.offer
        reason = "" if start.problem is None else start.problem.reason
        if is_taken and not client.is_connected:
            reason = client.reason or "a new connection is being made"
        state = "off" if reason else "on" if is_taken else "starting"
        return McpServerState(server=client.name, state=state, reason=reason, is_required=start.server.is_required)

    def limits_of(self, server: str) -> CallLimits | None:
        """Returns the limits in the entry of a server; None without any."""
        start = self._starts.get(server)
        return None if start is None else start.server.limits

    def wait_for_required(self) -> list[McpServerState]:
        """Blocks until each required server was there once, or its time to connect is over. Returns those without."""
        missing: list[McpServerState] = []
        for start in [*self._starts.values()]:
            until = start.began + start.server.client.connect_s + _MARGIN_S
            if start.server.is_required and not start.is_taken.wait(max(0.0, until - time.monotonic())):
                missing.append(self._state_of(start))
        return missing

    def names_of_unchanged(self, servers: Iterable[ConfiguredServer]) -> frozenset[str]:
        """Returns the names of the servers here that have the same entry among these, and no problem."""
        entries = {server.client.name: server.entry for server in servers}
        return frozenset(
            name
            for name, start in self._starts.items()
            if entries.get(name) == start.server.entry and start.problem is None
        )

    def connect(
        self,
        servers: Sequence[ConfiguredServer],
        problems: Iterable[McpServerProblem],
        pins: str | Path | None,
        accept: Accept,
        options: Mapping[str, Any],
        *,
        gone: Iterable[str] = (),
        wait_s: float | None = None,
    ) -> list[McpServerProblem]:
        """Starts all servers at the same time, in place of those that are gone. Each adds its tools once it is there.

        Returns the problems that were there and those of servers that are not there after `wait_s` seconds, or after
        the time of each for None. Each is a warning in the log.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        from toolwire.mcp.pins import McpPins, require_accept

        kept, old = require_accept(accept), frozenset(gone)
        there = [server for server in servers if server.client.name in self._starts.keys() - old]
        found = [*problems, *(_problem_of(server, _IS_THERE.format(server.client.name)) for server in there)]
        new = {server.client.name: server for server in servers if server not in there}
        starts = [_Start(server=one, offer=_offer_of(one, McpPins(pins), kept, options)) for one in new.values()]
        # One that is replaced stays until its successor is there, so that no tool is missing while that starts.
        for name in old - new.keys():
            self._remove_configured(name)
        for start in starts:
            self._start(start)
        until = math.inf if wait_s is None else time.monotonic() + wait_s
        for start in starts:
            start.is_over.wait(min(start.server.client.connect_s + _MARGIN_S, max(0.0, until - time.monotonic())))
        for problem in found:
            _LOG.warning("%s", problem)
        # Those of servers are in the log already.
        found += [start.problem for start in starts if start.problem is not None]
        if any(problem.is_off for problem in found) or not all(start.is_over.is_set() for start in starts):
            self.scope().catalogue.lacks_tools()
        return found

    def _start(self, start: _Start) -> None:
        client = start.server.client
        # An extra that is missing is noticed here, before anything is replaced.
        client.start()
        with self._lock:
            before = self._starts.get(client.name)
            self._starts[client.name] = start
        if before is not None and self._offers.get(client.name) is not before.offer:
            before.server.client.close()
            before.is_over.set()
        client.watch_tools(lambda: self._take_start(start))
        threading.Thread(target=self._try_first, args=(start,), name="toolwire-mcp-start", daemon=True).start()

    def _try_first(self, start: _Start) -> None:
        """Takes the tools of a server, or notes why its first attempt to connect failed."""
        try:
            start.server.client.connect()
            self._take_start(start)
        except Exception as error:  # noqa: BLE001 - it is the server's problem, and is shown
            if not isinstance(error, ServerUnavailable):
                _LOG.exception("the tools of the MCP server %r could not be taken", start.server.client.name)
            self._note_problem(start, str(error))

    def _note_problem(self, start: _Start, reason: str) -> None:
        name = start.server.client.name
        with self._lock:
            if self._starts.get(name) is not start or self._offers.get(name) is start.offer:
                return
            start.problem = _problem_of(start.server, reason)
            _LOG.warning("%s", start.problem)
            replaced = self._take_out(name)
        start.is_over.set()
        _close(*replaced)

    def _take_start(self, start: _Start) -> None:
        """Adds the tools of a server that is there, or makes them those that it has now."""
        name = start.server.client.name
        with self._lock:
            if self._starts.get(name) is not start or start.is_wrong:
                return
            if self._offers.get(name) is start.offer:
                self._take_again(start.offer)
                return
            replaced, wrong = self._take_out(name), None
            try:
                self._add(start.offer)
            except (RegistrationError, ConfigurationError, BindingError) as error:
                start.is_wrong = True
                wrong = _in_words_of_file(str(error))
            else:
                if start.problem is not None:
                    _LOG.info("the MCP server %r is there now", name)
                start.problem = None
        if wrong is None:
            start.is_taken.set()
            start.is_over.set()
        else:
            start.server.client.close()
            self._note_problem(start, wrong)
        _close(*replaced)

    def _take_out(self, name: str) -> list[MCPClientBase]:
        """Removes the tools of a server of the configuration. Returns its client, which is to be closed."""
        there = self._offers.get(name)
        if there is None or not there.is_configured:
            return []
        self._remove_tools(name)
        return [self._offers.pop(name).client]

    def _remove_configured(self, name: str) -> None:
        """Removes a server of the configuration. One of that name that was registered by hand stays."""
        with self._lock:
            start, closed = self._starts.pop(name), self._take_out(name)
        start.is_over.set()
        _close(start.server.client, *closed)

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
        self._add(offer)
        offer.client.watch_tools(lambda: self._take_again(offer))
        return Done()

    def _add(self, offer: Offer) -> None:
        name = offer.client.name
        with self._lock:
            if name in self._offers:
                raise RegistrationError(_IS_THERE.format(name))
            offer.take(self.scope())
            self._offers[name] = offer
            self._watch_pins(offer)

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
        for name in wanted:
            if name in self._starts:
                self._remove_configured(name)
            if name in self._offers:
                self._remove_tools(name)
                _close(self._offers.pop(name).client)
        return Done()

    def _remove_tools(self, name: str) -> None:
        catalogue = self.scope().catalogue
        for entry in list(catalogue):
            if server_of(entry) == name:
                catalogue.remove(entry.name)
        for entry in list(catalogue.server_requests):
            if entry.name.startswith(f"{name}/"):
                catalogue.server_requests.remove(entry.name)

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._offers and name not in self._starts:
                near = suggestion(nearest(name, self._offers))
                raise RegistrationError(f"no MCP server is named {name!r}{near}")

    def disconnect(self) -> None:
        """Ends the connections. A later call connects again."""
        _close(*(offer.client for offer in self._offers.values()))
        _close(*(start.server.client for start in self._starts.values()))


_IS_THERE = "an MCP server named {!r} is registered already: give it another name"


_KEYS = {"enable_funcs: ": "", "disable_funcs: ": "", "preset_kwargs_mapping: ": "defaults: "}
"""How errors begin about options of Python that are keys of a file."""


def _in_words_of_file(error: str) -> str:
    begin = next((begin for begin in _KEYS if error.startswith(begin)), "")
    return _KEYS.get(begin, "") + error.removeprefix(begin)


def _problem_of(server: ConfiguredServer, reason: str) -> McpServerProblem:
    from toolwire.mcp.config import McpServerProblem

    return McpServerProblem(server=server.client.name, place=server.place, reason=reason, is_off=True)


def _offer_of(server: ConfiguredServer, pins: McpPins, accept: Accept, options: Mapping[str, Any]) -> Offer:
    return Offer(
        client=server.client,
        enabled=None if server.enabled is None else frozenset(server.enabled),
        disabled=frozenset(server.disabled),
        presets=server.defaults,
        renames=server.renames,
        descriptions=server.descriptions,
        is_wrapped=True,
        options=options,
        pins=pins,
        accept=accept,
        is_configured=True,
    )


def _close(*clients: MCPClientBase) -> None:
    from toolwire.mcp.client import StatefulClientBase

    for client in clients:
        if isinstance(client, StatefulClientBase):
            client.close()
