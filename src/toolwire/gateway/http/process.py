"""Serves HTTP with uvicorn until a signal, and lets calls under way end."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import time
from collections.abc import Callable
from typing import Any, cast

import uvicorn

from toolwire.gateway.http.app import PATH, Access, http_app
from toolwire.gateway.http.connections import Port, PortConnection
from toolwire.gateway.http.header_guard import LOOPBACK
from toolwire.gateway.sdk_server import SdkServer
from toolwire.gateway.served_metrics import flush_telemetry
from toolwire.gateway.server_limits import ServerLimits
from toolwire.gateway.slots import Slots
from toolwire.vocabulary.errors import ConfigurationError

_LOG = logging.getLogger("toolwire.gateway")
DRAIN_POLL_S = 0.05
LAST_S = 1
"""Seconds for responses to leave once no call is under way."""
BACKLOG = 2_048
"""Connections that wait in the kernel until they are accepted."""
ACCEPTED = 16
"""Connections that are accepted before those accepted earlier are admitted or refused. Each has a file until then."""


class _Draining(uvicorn.Server):
    """A uvicorn server that first lets calls end. uvicorn alone would wait for streams that never end."""

    def __init__(self, config: uvicorn.Config, server: SdkServer, slots: Slots, drain_s: float) -> None:
        super().__init__(config)
        self._server, self._slots, self._drain_s = server, slots, drain_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts connections from now on. More may wait in the kernel than are accepted at a time."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuses new calls, waits for those under way, and ends the server."""
        await drain(self._slots, self._drain_s)
        self._server.end_listening()
        await super().shutdown(sockets)
        # uvicorn lets the signal end the process, without the exit of Python.
        await asyncio.to_thread(flush_telemetry)


async def drain(slots: Slots, drain_s: float) -> None:
    """Refuses new calls, and returns once none is under way or the time is over."""
    slots.close()
    until = time.monotonic() + drain_s
    while slots.in_use and time.monotonic() < until:  # noqa: ASYNC110 - calls end in several threads
        await asyncio.sleep(DRAIN_POLL_S)
    if slots.in_use:
        _LOG.warning("%d calls were still under way after %g seconds, and are cancelled", slots.in_use, drain_s)


def run_http(
    server: SdkServer,
    slots: Slots,
    access: Access,
    limits: ServerLimits,
    host: str,
    port: int | socket.socket,
    on_start: Callable[[str], Any] | None,
) -> None:
    """Serves until a signal.

    Raises:
        ConfigurationError: The address cannot be used.
    """
    shown = f"[{host}]" if ":" in host else host
    if shown not in LOOPBACK and access.token is None and access.verifier is None:
        _LOG.warning("the server at %s takes calls of everyone who reaches it: give it a token", host)
    app = http_app(server, access, limits)
    listening = _listening(host, port)
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", functools.partial(PortConnection, Port(limits))),
        backlog=ACCEPTED,
        lifespan="on",
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_S,
    )
    if on_start is not None:
        on_start(f"http://{shown}:{listening.getsockname()[1]}{PATH}")
    with listening:
        _Draining(config, server, slots, limits.drain_s).run(sockets=[listening])


def _listening(host: str, port: int | socket.socket) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        is_open = isinstance(port, socket.socket)
        listening = port if is_open else socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(f"the address {host}:{port} cannot be used: {error}") from error
    # asyncio sets this only for sockets whose protocol number is given. Without it the body of an answer waits 40 ms
    # for the acknowledgement of its head. Accepted connections inherit it.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
