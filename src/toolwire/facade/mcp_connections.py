"""The connected MCP servers of a registry or a toolkit, and which of their tools are registered."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.facade.mcp_offer import FaultyChoices, Offer, server_of
from toolwire.facade.pin_watch import watch_pins
from toolwire.invocation.scope import Scope
from toolwire.runtime.done import Done
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError, ServerUnavailable

if TYPE_CHECKING:
    from toolwire.mcp.client import MCPClientBase
    from toolwire.mcp.config import ConfiguredServer, McpServerProblem, ReadServers
    from toolwire.mcp.pins import Accept, McpPins
    from toolwire.mcp.values.call_limits import CallLimits
    from toolwire.mcp.values.server_state import McpServerState

_LOG = logging.getLogger("toolwire.registry")

_MARGIN_S = 1.0
"""Seconds beyond the time of an attempt to connect, for taking the tools of a server."""


@dataclass(slots=True, kw_only=True, eq=False)
class ServerStart:
    """A server of a configuration, from its first attempt to connect."""

    server: ConfiguredServer
    offer: Offer
    problems: tuple[McpServerProblem, ...] = ()
    """Why its tools are not here. Empty once they are, and before the first attempt has ended."""
    is_over: threading.Event = field(default_factory=threading.Event)
    """Set once its tools are here, or the first attempt has failed."""
    is_taken: threading.Event = field(default_factory=threading.Event)
    """Set once its tools are here."""
    is_wrong: bool = False
    """True if its tools cannot be taken as its entry says. It is not tried again."""
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    """When `is_over` was set."""

    def end(self) -> None:
        """Notes that its tools are here, or that the first attempt has failed."""
        self.ended = self.ended or time.monotonic()
        self.is_over.set()


class McpConnections:
    """Adds and removes the tools of servers. Safe to use from several threads."""

    def __init__(self, scope: Callable[[], Scope]) -> None:
        self.scope = scope
        """Returns the present scope of the owner's calls, with the live catalogue."""
        self._lock = threading.RLock()
        self._offers: dict[str, Offer] = {}
        self._starts: dict[str, ServerStart] = {}
        """The servers that a configuration added, by name. Those that are not there are tried for ever."""
        self._left_out: dict[str, McpServerState] = {}
        """The states of the entries of a configuration that add no server, by name."""
        self._former: frozenset[str] = frozenset()
        """The names of the servers whose present entry cannot be used, so that they go on with the one before."""

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
    def starts(self) -> tuple[ServerStart, ...]:
        """The servers that a configuration added."""
        with self._lock:
            return tuple(self._starts.values())

    @property
    def states(self) -> tuple[McpServerState, ...]:
        """The states of the servers that a configuration added."""
        with self._lock:
            return tuple(self._state_of(start) for start in self._starts.values())

    @property
    def left_out(self) -> tuple[McpServerState, ...]:
        """The states of the entries of a configuration that add no server."""
        with self._lock:
            return tuple(state for name, state in self._left_out.items() if name not in self._starts)

    def _state_of(self, start: ServerStart) -> McpServerState:
        from toolwire.mcp.values.server_state import McpServerState

        client = start.server.client
        is_taken = self._offers.get(client.name) is start.offer
        reason = "; ".join(problem.reason for problem in start.problems)
        if is_taken and not client.is_connected:
            reason = client.reason or "a new connection is being made"
        state = "off" if reason else "on" if is_taken else "starting"
        return McpServerState(
            server=client.name,
            state=state,
            reason=reason,
            is_required=start.server.is_required,
            is_former=client.name in self._former,
        )

    def limits_of(self, server: str) -> CallLimits | None:
        """Returns the limits in the entry of a server; None without any."""
        start = self._starts.get(server)
        return None if start is None else start.server.limits

    def wait_for_required(self) -> list[McpServerState]:
        """Blocks until each required server was there once, or its time to connect is over.

        Returns those without, and those whose entries cannot be used.
        """
        missing: list[McpServerState] = []
        for start in [*self._starts.values()]:
            until = start.began + start.server.client.connect_s + _MARGIN_S
            if not start.server.is_required:
                continue
            start.is_over.wait(max(0.0, until - time.monotonic()))
            # One whose tools do not fit its entry is not tried again.
            if start.is_wrong or not start.is_taken.wait(max(0.0, until - time.monotonic())):
                missing.append(self._state_of(start))
        return missing + [state for state in self.left_out if state.is_required]

    def names_of_kept(self, read: ReadServers) -> frozenset[str]:
        """Returns the names of the servers here without a problem whose entry is the same, or cannot be used now."""
        from toolwire.mcp.client import name_in_tools

        # An entry whose name in tools another one has now goes.
        taken = {name_in_tools(server.client.name) for server in read.servers}
        off = {problem.server for problem in read.problems if problem.is_off}
        wrong = {name for name in off if name_in_tools(name) not in taken}
        entries = {**dict.fromkeys(wrong), **{server.client.name: server.entry for server in read.servers}}
        return frozenset(
            name
            for name, start in self._starts.items()
            if name in entries and entries[name] in (None, start.server.entry) and not start.problems
        )

    def connect(
        self,
        read: ReadServers,
        pins: str | Path | None,
        accept: Accept,
        options: Mapping[str, Any],
        *,
        gone: Iterable[str] | None = None,
        wait_s: float | None = None,
    ) -> list[McpServerProblem]:
        """Starts all servers at the same time, in place of those that are gone. Each adds its tools once it is there.

        With None for `gone`, they are added to the servers and the entries that were read before.

        Returns the problems that were there and those of servers that are not there after `wait_s` seconds, or after
        the time of each for None. Each is a warning in the log.

        Raises:
            ConfigurationError: The extra `toolwire[mcp]` is not installed.
        """
        from toolwire.mcp.pins import McpPins, require_accept

        kept, old = require_accept(accept), frozenset(gone or ())
        found, new = [*read.problems], dict[str, "ConfiguredServer"]()
        for server in read.servers:
            there = _equal_name(server.client.name, self._starts.keys() - old)
            if there is None:
                new[server.client.name] = server
            else:
                found.append(_problem_of(server, _IS_THERE.format(there)))
        starts = [ServerStart(server=one, offer=_offer_of(one, McpPins(pins), kept, options)) for one in new.values()]
        with self._lock:
            self._left_out = {**({} if gone is not None else self._left_out), **_states_of_left_out(read)}
            former = {problem.server for problem in read.problems if problem.is_former}
            self._former = frozenset(former if gone is not None else self._former)
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
        found += [problem for start in starts for problem in start.problems]
        if any(problem.is_off for problem in found) or not all(start.is_over.is_set() for start in starts):
            self.scope().catalogue.lacks_tools()
        return found

    def _start(self, start: ServerStart) -> None:
        client = start.server.client
        # An extra that is missing is noticed here, before anything is replaced.
        client.start()
        with self._lock:
            before = self._starts.get(client.name)
            self._starts[client.name] = start
        if before is not None and self._offers.get(client.name) is not before.offer:
            before.server.client.close()
            before.end()
        client.watch_tools(lambda: self._take_start(start))
        threading.Thread(target=self._try_first, args=(start,), name="toolwire-mcp-start", daemon=True).start()

    def _try_first(self, start: ServerStart) -> None:
        """Takes the tools of a server, or notes why its first attempt to connect failed."""
        try:
            start.server.client.connect()
            self._take_start(start)
        except Exception as error:  # noqa: BLE001 - it is the server's problem, and is shown
            if not isinstance(error, ServerUnavailable):
                _LOG.exception("the tools of the MCP server %r could not be taken", start.server.client.name)
            self._note_problems(start, _problem_of(start.server, str(error)))

    def _note_problems(self, start: ServerStart, *problems: McpServerProblem) -> None:
        name = start.server.client.name
        with self._lock:
            if self._starts.get(name) is not start or self._offers.get(name) is start.offer:
                return
            start.problems = problems
            for problem in problems:
                _LOG.warning("%s", problem)
            replaced = self._take_out(name)
        start.end()
        _close(*replaced)

    def _take_start(self, start: ServerStart) -> None:
        """Adds the tools of a server that is there, or makes them those that it has now."""
        name = start.server.client.name
        with self._lock:
            if self._starts.get(name) is not start or start.is_wrong:
                return
            if self._offers.get(name) is start.offer:
                self._take_again(start.offer)
                return
            replaced, wrong = self._take_out(name), self._add_start(start)
            if not wrong:
                if start.problems:
                    _LOG.info("the MCP server %r is there now", name)
                start.problems = ()
        if wrong:
            start.server.client.close()
            self._note_problems(start, *wrong)
        else:
            start.is_taken.set()
            start.end()
        _close(*replaced)

    def _add_start(self, start: ServerStart) -> list[McpServerProblem]:
        """Adds the tools of a server of a configuration. Returns why they cannot be taken; empty if they are."""
        server = start.server
        try:
            self._add(start.offer)
        except FaultyChoices as faulty:
            start.is_wrong = True
            return [_problem_of(server, one.reason, server.place_of(one.choice, one.tool)) for one in faulty.faults]
        except (RegistrationError, ConfigurationError) as error:
            start.is_wrong = True
            return [_problem_of(server, str(error))]
        return []

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
        start.end()
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
            ConfigurationError: A choice does not fit the tools; otherwise see `Offer.take`.
            BindingError: A preset does not fit its tool.
        """
        try:
            self._add(offer)
        except FaultyChoices as faulty:
            raise faulty.faults[0].error from None
        offer.client.watch_tools(lambda: self._take_again(offer))
        return Done()

    def _add(self, offer: Offer) -> None:
        name = offer.client.name
        with self._lock:
            there = _equal_name(name, self._offers)
            if there is not None:
                raise RegistrationError(_IS_THERE.format(there))
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


def _equal_name(name: str, others: Iterable[str]) -> str | None:
    """Returns the server whose tools nobody could tell from those of a server with this name; None without one."""
    from toolwire.mcp.client import name_in_tools

    return next((other for other in others if name_in_tools(other) == name_in_tools(name)), None)


def _states_of_left_out(read: ReadServers) -> dict[str, McpServerState]:
    from toolwire.mcp.values.server_state import McpServerState

    wrong = {problem.server: problem for problem in read.problems if problem.is_off}
    disabled = [McpServerState(server=name, state="disabled") for name in read.disabled]
    states = [
        McpServerState(server=name, state="off", reason=problem.reason, is_required=problem.is_required)
        for name, problem in wrong.items()
    ]
    return {state.server: state for state in (*states, *disabled)}


def _problem_of(server: ConfiguredServer, reason: str, place: str = "") -> McpServerProblem:
    from toolwire.mcp.config import McpServerProblem

    return McpServerProblem(server=server.client.name, place=place or server.place, reason=reason, is_off=True)


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
