"""The limits of a file: how many calls a client makes, and how many a tool of a server takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal

from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.invocation.middleware.onion import CallNext, Middleware, PreparedCall
from toolwire.invocation.middleware.rate_limit import RateLimit
from toolwire.mcp.values.call_limits import CallLimits
from toolwire.mcp.values.features import FEATURES
from toolwire.vocabulary.results import ToolResult

LimitsOf = Callable[[str], CallLimits | None]

_Group = tuple[Literal["client", "server"], str, CallLimits]

GROUPS = 1_000
"""Groups whose state is kept. A file has fewer; changed limits leave old ones behind, which are then dropped."""


class FileLimits:
    """A middleware that applies the limits of a file as they are at each call."""

    def __init__(self, of_client: LimitsOf, of_server: LimitsOf) -> None:
        """The functions return the limits of a principal over all its calls, and those of each tool of a server."""
        self._of_client, self._of_server = of_client, of_server
        self._lock = threading.Lock()
        self._made: dict[_Group, list[Middleware]] = {}

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        client, server = call.scope.caller.principal, call.tool.partition("/")[0]
        layers: list[Any] = []
        for_client, for_server = self._of_client(client), self._of_server(server)
        if for_client is not None and not call.is_composite:
            of_client = self._layers(("client", client, for_client))
            # The call that waits for such a request holds a place of the client already.
            is_below = call.tool.partition("/")[2] in FEATURES.values()
            layers += [layer for layer in of_client if not (is_below and isinstance(layer, Concurrency))]
        if for_server is not None:
            layers += self._layers(("server", server, for_server))
        for layer in reversed(layers):
            call_next = _before(layer, call_next)
        return await call_next(call)

    def _layers(self, group: _Group) -> list[Middleware]:
        with self._lock:
            if group not in self._made:
                if len(self._made) >= GROUPS:
                    self._made.clear()
                self._made[group] = _layers_of(group)
            return self._made[group]


def _layers_of(group: _Group) -> list[Middleware]:
    kind, name, limits = group

    def name_of(_: PreparedCall) -> str:
        return name

    key: Any = {"key": name_of} if kind == "client" else {}
    layers: list[Middleware] = []
    if limits.calls is not None:
        layers.append(RateLimit(limits.calls, per_s=limits.per_s, **key))
    if limits.concurrency is not None:
        layers.append(Concurrency(limits.concurrency, **key))
    return layers


def _before(layer: Middleware, call_next: CallNext) -> CallNext:
    async def run(call: PreparedCall, /) -> ToolResult:
        return await layer(call, call_next)

    return run
