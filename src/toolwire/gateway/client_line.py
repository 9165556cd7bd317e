"""The client of a running call: it hears of progress and log messages, in their order, and its person is asked."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, cast

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.definition.texts.outside_texts import visible_value
from toolwire.gateway.asking.elicitation import ask_for_server, can_be_asked, decision_of, shown_form
from toolwire.gateway.asking.wanted_features import send_wanted
from toolwire.gateway.clients import connection_of, owner_of
from toolwire.gateway.held_calls import HeldCall, MakeCall
from toolwire.gateway.slots import SlotRefused, Slots
from toolwire.mcp.sending import LISTENER
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.questions import Question
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.invisible import visible_text

Context = ServerRequestContext[Any, Any]

LOG_LEVELS: tuple[LoggingLevel, ...] = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""The levels of log messages, from the least severe."""

MESSAGES = 100
"""Log messages of one call that wait for a slow client. Further ones are left out: the server's log has them too."""

LEVEL_KEY = "toolwire.log_level"
"""The key in a connection's state under which the level is that a client of the handshake protocols asked for."""

_LOG = logging.getLogger("toolwire.gateway")


class ClientLine:
    """The client of one call. The messages are sent by one task, which begins with the first of them."""

    def __init__(self, context: Context, forms: Slots, make_call: MakeCall, held: HeldCall | None, by: Decider) -> None:
        """`forms` are the places of calls that wait for the client. `make_call` makes a call of this client.

        `held` is the call by protocol 2026-07-28 that may wait for the client's next request; None for one that may
        not, and for other protocols. `by` is the person who decides at this client.
        """
        self._held, self._by = held, by
        self._forms, self._make_call, self._variables = forms, make_call, copy_context()
        self._context, self._loop = context, asyncio.get_running_loop()
        self._waiting = deque[tuple[str, Any, str | None]]()
        self._progress: tuple[float, float | None, str | None] | None = None
        self._last = -math.inf
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def listening(self) -> Generator[None]:
        """Makes this client the one that hears of the calls in the block."""
        before = LISTENER.set(self)
        try:
            yield
        finally:
            LISTENER.reset(before)

    def tell_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tells of progress. Of several that wait, the last one is sent."""
        self._in_loop(lambda: self._set_progress(done, total, message))

    def tell_log(self, level: str, data: Any, logger: str | None) -> None:
        """Passes a log message on."""
        self._in_loop(lambda: self._add_message(level, data, logger))

    @property
    def can_ask(self) -> bool:
        """True if the client shows forms, and its call can wait for them."""
        return self._can_send and can_be_asked(self._context)

    @property
    def _can_send(self) -> bool:
        return self._held is not None or self._context.protocol_version not in MODERN_PROTOCOL_VERSIONS

    def ask(self, server: str, question: Question) -> Future[Any]:
        """Asks the client's person for a server behind this one. See `ask_for_server`."""
        return self._start(self._ask(server, question))

    def decide(self, request: ApprovalRequest) -> Future[Decision | None]:
        """Asks the client's person to decide on a request of this call. None if no decision comes."""
        return self._start(self._decide(request))

    def pass_on(self, call: ToolCall) -> Future[ToolResult]:
        """Makes the call by which a server's request goes to this client. One that was begun goes on."""
        return self._start(self._pass_on(call))

    def begin(self, calls: Sequence[ToolCall]) -> Future[list[ToolResult | None]]:
        """Begins such calls. None is the result of one that waits for the client's next request.

        A client that answers while its call waits is asked one request after another, up to the first refusal.
        """
        return self._start(self._begin(calls))

    def send(self, method: str, arguments: Mapping[str, Any]) -> Future[ToolResult]:
        """Sends the request of such a call to the client."""
        return self._start(self._send_wanted(method, arguments))

    def _start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Starts work on the client's loop, with the token of its request."""
        return self._variables.copy().run(asyncio.run_coroutine_threadsafe, work, self._loop)

    async def _pass_on(self, call: ToolCall) -> ToolResult:
        return await (self._make_call(call) if self._held is None else self._held.pass_on(call, self._make_call))

    async def _begin(self, calls: Sequence[ToolCall]) -> list[ToolResult | None]:
        if self._held is not None and not self._held.is_left:
            return await self._held.begin(calls, self._make_call)
        results: list[ToolResult | None] = []
        for call in calls:
            results.append(made := await self._pass_on(call))
            if not made.success:
                break
        return results

    async def _send_wanted(self, method: str, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            with self._forms.hold(owner_of(self._context.request)):
                capabilities = self._context.session.client_capabilities if self._can_send else None
                return await send_wanted(capabilities, self._send_to_client, method, arguments)
        except SlotRefused as refused:
            return refused.result

    async def _send_to_client(self, request: Any, answer_type: type[Any]) -> Any:
        if self._held is not None:
            return await self._held.ask(request)
        related = ServerMessageMetadata(related_request_id=self._context.request_id)
        return await self._context.session.send_request(request, answer_type, metadata=related)

    async def _ask(self, server: str, question: Question) -> Any:
        try:
            with self._forms.hold(owner_of(self._context.request)):
                return await ask_for_server(self._send_to_client, server, question)
        except SlotRefused as refused:
            _LOG.warning("the person of an MCP client is not asked: %s", refused)
            return None

    async def _decide(self, request: ApprovalRequest) -> Decision | None:
        form = shown_form(request)
        if form is None:
            return None
        if not self.can_ask:
            _LOG.warning("%r needs a person, and its MCP client shows no forms: give the server a store", request.tool)
            return None
        try:
            with self._forms.hold(owner_of(self._context.request)):
                said = await self._send_to_client(types.ElicitRequest(params=form), types.ElicitResult)
        except (SlotRefused, MCPError) as error:
            _LOG.warning("the person of an MCP client gave no answer to request %s: %s", request.id, error)
            return None
        return decision_of(request, said, self._by) if isinstance(said, types.ElicitResult) else None

    async def flush(self) -> None:
        """Returns once all messages are sent. The result must not come before them."""
        if self._task is not None:
            await self._task

    def _in_loop(self, action: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            # The server has ended.
            _LOG.debug("a message of a server came after the end of the loop")

    def _set_progress(self, done: float, total: float | None, message: str | None) -> None:
        # The protocol demands that progress grows, and JSON has no infinity.
        if not self._last < done < math.inf:
            return
        self._last = done
        if self._held is not None:
            self._held.hear(message)
        self._progress = (done, total if total is None or math.isfinite(total) else None, message)
        self._send_soon()

    def _add_message(self, level: str, data: Any, logger: str | None) -> None:
        if len(self._waiting) < MESSAGES and self._wants(level):
            self._waiting.append((level, data, logger))
            self._send_soon()

    def _wants(self, level: str) -> bool:
        """True if the client asked for messages of that level: in its request, or once in an older protocol."""
        version = self._context.protocol_version
        if level not in allowed_log_levels(version, cast("Any", self._context.meta)):
            return False
        least: Any = connection_of(self._context).state.get(LEVEL_KEY, "info")
        return version in MODERN_PROTOCOL_VERSIONS or LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)

    def _send_soon(self) -> None:
        if self._held is not None and self._held.is_left:
            # The protocol has no such messages for a task.
            self._waiting.clear()
            self._progress = None
        elif self._task is None or self._task.done():
            self._task = self._loop.create_task(self._send())

    async def _send(self) -> None:
        session = self._context.session
        try:
            while self._waiting or self._progress is not None:
                progress, self._progress = self._progress, None
                if progress is not None:
                    done, total, message = progress
                    await session.report_progress(done, total, visible_text(message or "") or None)
                while self._waiting:
                    level, data, logger = self._waiting.popleft()
                    params = LoggingMessageNotificationParams(
                        level=cast("LoggingLevel", level), data=visible_value(data), logger=logger
                    )
                    message = LoggingMessageNotification(params=params)
                    await session.send_notification(message, related_request_id=self._context.request_id)
        except Exception:  # noqa: BLE001 - the client is gone; its call ends by itself
            _LOG.debug("a client did not take the messages of its call", exc_info=True)


async def ask_client(request: ApprovalRequest) -> Decision | None:
    """Asks the person of the client whose call runs. It is the approver of a server without a store."""
    line = LISTENER.get()
    return await asyncio.wrap_future(line.decide(request)) if isinstance(line, ClientLine) else None
