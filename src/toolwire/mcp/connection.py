"""The connection to one server: one task in a thread of its own keeps it, and makes a new one when it is lost.

A call is sent at most once. A call that was not sent waits for the next connection as long as it has time.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import AsyncGenerator, Callable, Collection
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation, LoggingMessageNotificationParams
from mcp_types import Tool as McpTool
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcp import Client
from toolwire.mcp.asked.server_tasks import TasksOffer
from toolwire.mcp.client_limits import BREAKER, LOGGED_LOSSES, OFFERS_S, ClientLimits
from toolwire.mcp.offered.list_changes import ServerNews
from toolwire.mcp.offered.listing import TOOLS, OfferKind, list_entries
from toolwire.mcp.offered.subscriptions import Subscriptions
from toolwire.mcp.open_connection import OpenConnection
from toolwire.mcp.reconnecting import Attempts, note_error
from toolwire.mcp.requesting import Requesting
from toolwire.mcp.sending import LISTENER
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.transports.streams import offering
from toolwire.mcp.values.client_requests import ServerRequest
from toolwire.mcp.values.features import Feature
from toolwire.runtime.portal import Portal
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import CallNotSent, ServerUnavailable

T = TypeVar("T")

Open = Callable[[Callable[..., None]], Any]
"""Returns the server for the SDK's `Client`, made anew for each connection.

It calls the function when it ends, with the reason and the last line of its stderr, if they are known.
"""

CLOSE_S = 10.0
"""Seconds that `close` waits for a server to end: more than the steps of ending its process take together."""


class Connection:
    """A shared part of the runtime (`runtime.runtime.SharedPart`). Any thread may use it."""

    def __init__(
        self,
        name: str,
        open_server: Open,
        limits: ClientLimits,
        log: ServerLog,
        news: ServerNews,
        *,
        is_in_memory: bool = False,
        protocol: str | None = None,
        allowed: Collection[Feature] = (),
    ) -> None:
        """`news` has the functions that are called in other threads when the server's lists are others than before.

        `protocol` is the only version to offer; None offers the newest. `allowed` are the features of clients that the
        server may use.
        """
        self._name, self._open, self._limits, self._log, self._news = name, open_server, limits, log, news
        self._protocol, self._allowed, self._told_error = protocol, allowed, ""
        # What the SDK logs names no server. The thread does.
        self._portal = Portal(f"toolwire.mcp.{name}")
        # All that follows is used on the portal's loop alone.
        self._current: OpenConnection | None = None
        self._attempts = Attempts()
        self._capabilities: Any = None
        self._announced: tuple[McpTool, ...] | None = None
        self._known: dict[OfferKind, tuple[Any, ...]] = {}
        self._subscriptions = Subscriptions(log, news)
        self._calls = Requesting(self, name, limits, log, is_in_memory=is_in_memory, allowed=allowed)
        self._closing, self._changed = anyio.Event(), anyio.Event()
        self._keeper = self._portal.start(self._keep)

    def tools(self) -> list[McpTool]:
        """Returns the server's tools. Blocks until it is connected.

        Raises:
            ServerUnavailable: It cannot be reached.
        """
        return self._portal.run(self._tools)

    def call(
        self, asked: ServerRequest, read: Callable[[Any], T], future: Future[T], context: CallContext | None = None
    ) -> None:
        """Sends a request and sets the future to `read(result)`. Cancelling the future also tells the server.

        The result is the SDK's, a `ToolResult` of a request without one, or with a `context` the questions of the
        server as `InputRequired`.
        """
        self._portal.start(partial(self._calls.call, asked, read, context, LISTENER.get()), future)

    def list_offers(self, kind: OfferKind) -> Future[tuple[Any, ...]]:
        """Returns a list of the server; empty if it has none of that kind.

        While the server cannot be reached, and if it does not answer in time, it is the last list that it gave.
        """
        return self._portal.start(partial(self._read_offers, kind))

    def subscribe(self, uri: str, *, is_wanted: bool) -> Future[None]:
        """Asks for news of a resource, or no longer. Lasts over later connections.

        The future raises an `MCPError` if the server refuses it.
        """
        return self._portal.start(partial(self._change_subscription, uri, is_wanted=is_wanted))

    @property
    def capabilities(self) -> Any:
        """The server's capabilities, as the SDK has them, at its last connection; None before the first."""
        return self._capabilities

    @property
    def reason(self) -> str:
        """The reason why there was no connection at last."""
        return self._attempts.error

    @property
    def is_broken(self) -> bool:
        """True if so many attempts failed that new calls do not wait for a connection."""
        return self._attempts.failures >= BREAKER and not self._attempts.is_refused and not self.is_connected

    @property
    def is_connected(self) -> bool:
        """True if calls can be sent at once."""
        connection = self._current
        return connection is not None and connection.client is not None and not connection.ended.is_set()

    def close(self) -> None:
        """Ends the connection, and the server's process if it has one. Calls under way fail."""
        try:
            self._portal.start(self._close)
        except RuntimeError:
            return
        try:
            self._keeper.result(CLOSE_S)
        except TimeoutError:
            self._log.warning("it did not end in time and is left behind")
        self._portal.close()

    def after_fork(self) -> None:
        """Does nothing: in a forked child the thread does not exist, and the server belongs to the parent."""

    # -- keeping it ---------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        async with anyio.create_task_group() as opened:
            while not self._closing.is_set():
                connection = self._current = OpenConnection(self._name, self._limits.call_limit, self._log, self._news)
                opened.start_soon(self._run, connection)
                await connection.ended.wait()
                self._note_end(connection)
                if not self._closing.is_set():
                    await self._attempts.pause(connection)

    async def _run(self, connection: OpenConnection) -> None:
        try:
            limit = connection.opening
            limit.deadline = anyio.current_time() + self._limits.connect_s
            with limit:
                async with self._open_client(connection) as client:
                    connection.tools = tuple(await list_entries(TOOLS, client, self._limits, self._log))
                    limit.deadline = math.inf
                    connection.client, connection.since = client, anyio.current_time()
                    self._capabilities = client.server_capabilities
                    self._notify()
                    async with anyio.create_task_group() as following:
                        following.start_soon(connection.changes.listen, client, self._log)
                        following.start_soon(self._follow, connection, client)
                        following.start_soon(self._follow_offers, connection)
                        following.start_soon(self._subscriptions.follow, client)
                        await connection.is_idle.wait()
                        following.cancel_scope.cancel()
            if limit.cancelled_caught:
                connection.error = f"it did not answer within {self._limits.connect_s:g} s"
        except Exception as error:  # noqa: BLE001 - the SDK lets errors of any transport pass
            note_error(connection, error)
        finally:
            connection.end()

    @asynccontextmanager
    async def _open_client(self, connection: OpenConnection) -> AsyncGenerator[Client]:
        info = Implementation(name="toolwire", version=version("toolwire"))
        async with Client(
            offering(self._protocol, self._open(connection.end)),
            mode="legacy" if self._protocol in HANDSHAKE_PROTOCOL_VERSIONS else self._protocol or "auto",
            cache=None,
            extensions=[TasksOffer()],
            client_info=info,
            message_handler=connection.changes.take_message,
            elicitation_callback=connection.answer_question,
            sampling_callback=connection.answer_sampling if "sampling" in self._allowed else None,
            list_roots_callback=connection.answer_roots if "roots" in self._allowed else None,
            logging_callback=self._on_log_message,
            log_level="info",
        ) as client:
            yield client

    async def _on_log_message(self, params: LoggingMessageNotificationParams) -> None:
        level = logging.getLevelNamesMapping().get(params.level.upper(), logging.WARNING)
        self._log.line(level, params.data if isinstance(params.data, str) else json.dumps(params.data))
        sending = None if self._current is None else self._current.sending_of_message()
        if sending is not None and sending.listener is not None:
            sending.listener.tell_log(params.level, params.data, params.logger)

    async def _follow(self, connection: OpenConnection, client: Client) -> None:
        """Announces the tools of the first connection, and later each change of them."""
        while True:
            if self._announced != connection.tools:
                await anyio.to_thread.run_sync(self._news.tools_changed, abandon_on_cancel=True)
            self._announced = connection.tools
            await connection.changes.next()
            try:
                with anyio.fail_after(self._limits.connect_s):
                    connection.tools = tuple(await list_entries(TOOLS, client, self._limits, self._log))
            except (MCPError, ValidationError, TimeoutError) as error:
                self._log.warning(f"its changed tools cannot be listed: {error}")

    async def _follow_offers(self, connection: OpenConnection) -> None:
        """Tells of other lists of this connection than those that were given out, and later of each change of them."""
        kinds = frozenset(self._known)
        while True:
            if kinds:
                connection.offers = {kind: offers for kind, offers in connection.offers.items() if kind not in kinds}
                await anyio.to_thread.run_sync(self._news.offers_changed, kinds, abandon_on_cancel=True)
            kinds = await connection.changes.next_offers()

    async def _read_offers(self, kind: OfferKind) -> tuple[Any, ...]:
        connection = self._current
        if connection is None or connection.client is None or connection.ended.is_set():
            return self._known.get(kind, ())
        if kind not in connection.offers:
            try:
                with anyio.fail_after(OFFERS_S):
                    connection.offers[kind] = tuple(
                        await list_entries(kind, connection.client, self._limits, self._log)
                    )
            except (MCPError, ValidationError, TimeoutError) as error:
                why = str(error) or f"no answer came within {OFFERS_S:g} s"
                self._log.warning(f"its {kind.name} cannot be listed: {why}")
                return self._known.get(kind, ())
            self._known[kind] = connection.offers[kind]
        return connection.offers[kind]

    async def _change_subscription(self, uri: str, *, is_wanted: bool) -> None:
        connection = self._current
        client = None if connection is None or connection.ended.is_set() else connection.client
        with anyio.fail_after(OFFERS_S):
            await self._subscriptions.change(client, uri, is_wanted=is_wanted)

    def _note_end(self, connection: OpenConnection) -> None:
        self._attempts.note_end(connection)
        what = "no connection was made" if connection.client is None else "the connection is lost"
        told = f"the MCP server {self._name!r}: {what}: {self._attempts.error}"
        # A server that is down is tried for ever, and a log needs no line for each attempt.
        is_lost = connection.client is not None and self._attempts.failures <= LOGGED_LOSSES
        is_new = is_lost or told != self._told_error
        if not self._closing.is_set() and is_new:
            self._told_error = told
            self._log.warning(f"{told}{self._attempts.last_words}")
        self._notify()

    async def _close(self) -> None:
        self._closing.set()
        connection = self._current
        if connection is not None:
            connection.ended.set()
            connection.is_idle.set()
            if connection.client is None:
                connection.opening.cancel()
        self._attempts.hurry()
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _tools(self) -> list[McpTool]:
        ended = self._attempts.ended
        while True:
            connection = self._current
            if connection is not None and connection.client is not None and not connection.ended.is_set():
                return list(connection.tools)
            is_refused = self._is_refused_since(ended)
            if self._closing.is_set() or is_refused or (self._attempts.failures and not self._attempts.is_refused):
                why = f"{self._attempts.error}{self._attempts.last_words}"
                raise ServerUnavailable(f"the MCP server {self._name!r} cannot be used: {why}")
            await self._changed.wait()

    def _is_refused_since(self, ended: int) -> bool:
        """Returns True if the server refused an attempt after so many. After an older refusal it is asked once more."""
        if self._attempts.is_refused and self._attempts.ended == ended:
            self._attempts.hurry()
            return False
        return self._attempts.is_refused

    async def ready(self) -> OpenConnection:
        """Returns the connection of now, and waits for it.

        Raises:
            CallNotSent: The connection was closed by its owner, or the server refused this client.
        """
        ended = self._attempts.ended
        while True:
            connection = self._current
            if self._closing.is_set():
                raise CallNotSent(f"the connection to the MCP server {self._name!r} was closed")
            if connection is not None and connection.client is not None and not connection.ended.is_set():
                return connection
            if self._is_refused_since(ended):
                raise CallNotSent(f"the MCP server {self._name!r} cannot be used: {self._attempts.error}")
            await self._changed.wait()
