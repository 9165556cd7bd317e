"""The limits of a file: how many calls a client makes and a tool of a server takes, and how long results are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Literal

from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.invocation.middleware.keys import by_tool
from toolwire.invocation.middleware.onion import CallNext, Middleware, PreparedCall
from toolwire.invocation.middleware.rate_limit import RateLimit
from toolwire.invocation.postprocess import first_page, postprocess
from toolwire.mcp.values.call_limits import CallLimits
from toolwire.mcp.values.features import FEATURES
from toolwire.vocabulary.calls import READ_RESULT, Caller
from toolwire.vocabulary.results import ToolResult

LimitsOf = Callable[[Caller], CallLimits | None]
ServerLimitsOf = Callable[[str], CallLimits | None]

_Group = tuple[Literal["client", "server"], CallLimits]

GROUPS = 1_000
"""Kinds of limits whose state is kept. A file has fewer; changed limits leave old ones behind, which are dropped."""


class FileLimits:
    """A middleware that applies the limits of a file as they are at each call."""

    def __init__(self, of_client: LimitsOf, of_server: ServerLimitsOf) -> None:
        """The functions return the limits of a caller over all its calls, and those of each tool of a server."""
        self._of_client, self._of_server = of_client, of_server
        self._lock = threading.Lock()
        self._made: dict[_Group, list[Middleware]] = {}

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        layers: list[Any] = []
        for_client, for_server = self._of_client(call.caller), self._of_server(_server_of(call))
        if for_client is not None and not call.is_composite:
            of_client = self._layers(("client", for_client))
            # The call that waits for such a request holds a place of the client already.
            is_below = call.tool.partition("/")[2] in FEATURES.values()
            layers += [layer for layer in of_client if not (is_below and isinstance(layer, Concurrency))]
        if for_server is not None:
            layers += self._layers(("server", for_server))
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


class ResultLimits:
    """A middleware that applies the limits of a file to the text of each result: a longer one comes in pages."""

    def __init__(self, of_client: LimitsOf, of_server: ServerLimitsOf) -> None:
        """As `FileLimits`."""
        self._of_client, self._of_server = of_client, of_server

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        found = (self._of_client(call.caller), self._of_server(_server_of(call)))
        sizes = [one.result_bytes for one in found if one is not None and one.result_bytes is not None]
        own = call.scope.result_limit_bytes
        # A program gets whole data, and the pages of a result are short already.
        if not sizes or own is None or call.tool == READ_RESULT:
            return await call_next(call)
        scope, entry = replace(call.scope, result_limit_bytes=min(own, *sizes)), call.prepared.entry
        result = await call_next(PreparedCall(call.prepared, scope, call.rewritten))
        # What a program printed and its result are cut apart, by the scope.
        shown = result if call.is_composite else postprocess(call.call, entry, result, scope.result_limit_bytes)
        is_cut = shown is not result and "is_cut" in shown.metadata
        return await first_page(shown, result, entry, scope) if is_cut else shown


def _server_of(call: PreparedCall) -> str:
    """Returns the server behind the call; empty for a tool of this process."""
    server, mark, _ = call.tool.partition("/")
    return server if mark else ""


def _by_caller(call: PreparedCall) -> Hashable:
    return call.caller.tenant, call.caller.principal


def _layers_of(group: _Group) -> list[Middleware]:
    kind, limits = group
    key = _by_caller if kind == "client" else by_tool
    layers: list[Middleware] = []
    if limits.calls is not None:
        layers.append(RateLimit(limits.calls, per_s=limits.per_s, key=key))
    if limits.concurrency is not None:
        layers.append(Concurrency(limits.concurrency, key=key))
    return layers


def _before(layer: Middleware, call_next: CallNext) -> CallNext:
    async def run(call: PreparedCall, /) -> ToolResult:
        return await layer(call, call_next)

    return run
