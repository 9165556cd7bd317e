"""The connection to one server: one task in a thread of its own keeps it, and makes a new one when it is lost.

A call is sent at most once. A call that was not sent waits for the next connection as long as it has time.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    Implementation,
    InputRequiredResult,
    LoggingMessageNotificationParams,
)
from mcp_types import Tool as McpTool
from pydantic import ValidationError

from mcp import Client
from toolwire.mcp.client_limits import LEG_S, ClientLimits
from toolwire.mcp.http import fate_of
from toolwire.mcp.line import Line
from toolwire.mcp.listing import listed
from toolwire.mcp.reconnecting import Attempts, note_error
from toolwire.mcp.sending import SENDING, Sending
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.server_questions import ANSWER, Leg, leg_of, next_leg
from toolwire.runtime.portal import Portal
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import CallNotAnswered, CallNotSent, ServerUnavailable
from toolwire.vocabulary.results import ToolResult

T = TypeVar("T")

Open = Callable[[Callable[[], None]], Any]
"""Returns the server for the SDK's `Client`, made anew for each connection. It calls the function when it ends."""

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
        tools_changed: Callable[[], None],
        *,
        is_in_memory: bool = False,
    ) -> None:
        """`tools_changed` is called in another thread whenever the server's tools are not those of before."""
        self._name, self._open, self._limits, self._log = name, open_server, limits, log
        self._tools_changed, self._is_in_memory = tools_changed, is_in_memory
        self._portal = Portal()
        # All that follows is used on the portal's loop alone.
        self._line: Line | None = None
        self._attempts = Attempts()
        self._announced: tuple[McpTool, ...] | None = None
        self._under_way = 0
        self._closing, self._changed = anyio.Event(), anyio.Event()
        self._keeper = self._portal.start(self._keep)

    def tools(self) -> list[McpTool]:
        """Returns the server's tools. Blocks until it is connected.

        Raises:
            ServerUnavailable: It cannot be reached.
        """
        return self._portal.run(self._tools)

    def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        read: Callable[[Any], T],
        future: Future[T],
        context: CallContext | None = None,
    ) -> None:
        """Calls a tool and sets the future to `read(result)`. Cancelling the future also tells the server.

        The result is the SDK's `CallToolResult`, a `ToolResult` of a call without one, or with a `context` the
        questions of the server as `InputRequired`.
        """
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        self._portal.start(partial(self._called, request, read, context), future)

    @property
    def is_connected(self) -> bool:
        """True if calls can be sent at once."""
        line = self._line
        return line is not None and line.client is not None and not line.ended.is_set()

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
        async with anyio.create_task_group() as lines:
            while not self._closing.is_set():
                line = self._line = Line(self._limits.call_limit, self._log)
                lines.start_soon(self._run, line)
                await line.ended.wait()
                self._note_end(line)
                if not self._closing.is_set():
                    await self._attempts.pause(line)

    async def _run(self, line: Line) -> None:
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._limits.connect_s) as limit:
                async with self._opened(line) as client:
                    line.tools = tuple(await listed(client, self._limits, self._log))
                    limit.deadline = math.inf
                    line.client, line.since = client, anyio.current_time()
                    self._notify()
                    async with anyio.create_task_group() as following:
                        following.start_soon(line.changes.listen, client, self._log)
                        following.start_soon(self._follow, line, client)
                        await line.is_idle.wait()
                        following.cancel_scope.cancel()
            if limit.cancelled_caught:
                line.error = f"it did not answer within {self._limits.connect_s:g} s"
        except Exception as error:  # noqa: BLE001 - the SDK lets errors of any transport pass
            note_error(line, error)
        finally:
            line.end()

    @asynccontextmanager
    async def _opened(self, line: Line) -> AsyncGenerator[Client]:
        info = Implementation(name="toolwire", version=version("toolwire"))
        async with Client(
            self._open(line.end),
            cache=None,
            client_info=info,
            message_handler=line.changes.take_message,
            elicitation_callback=line.asked,
            logging_callback=self._logged,
            log_level="info",
        ) as client:
            yield client

    async def _logged(self, params: LoggingMessageNotificationParams) -> None:
        level = logging.getLevelNamesMapping().get(params.level.upper(), logging.WARNING)
        self._log.line(level, params.data if isinstance(params.data, str) else json.dumps(params.data))

    async def _follow(self, line: Line, client: Client) -> None:
        """Announces the tools of this connection, and later each change of them."""
        while True:
            if self._announced is not None and self._announced != line.tools:
                await anyio.to_thread.run_sync(self._tools_changed, abandon_on_cancel=True)
            self._announced = line.tools
            await line.changes.next()
            try:
                with anyio.fail_after(self._limits.connect_s):
                    line.tools = tuple(await listed(client, self._limits, self._log))
            except (MCPError, ValidationError, TimeoutError) as error:
                self._log.warning(f"its changed tools cannot be listed: {error}")

    def _note_end(self, line: Line) -> None:
        self._attempts.note_end(line)
        if not self._closing.is_set():
            what = "no connection was made" if line.client is None else "the connection is lost"
            self._log.warning(f"the MCP server {self._name!r}: {what}: {self._attempts.error}")
        self._notify()

    async def _close(self) -> None:
        self._closing.set()
        line = self._line
        if line is not None:
            line.ended.set()
            line.is_idle.set()
        self._attempts.hurry()
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _tools(self) -> list[McpTool]:
        ended = self._attempts.ended
        while True:
            line = self._line
            if line is not None and line.client is not None and not line.ended.is_set():
                return list(line.tools)
            is_refused = self._is_refused_since(ended)
            if self._closing.is_set() or is_refused or (self._attempts.failures and not self._attempts.is_refused):
                raise ServerUnavailable(f"the MCP server {self._name!r} cannot be used: {self._attempts.error}")
            await self._changed.wait()

    def _is_refused_since(self, ended: int) -> bool:
        """Returns True if the server refused an attempt after so many. After an older refusal it is asked once more."""
        if self._attempts.is_refused and self._attempts.ended == ended:
            self._attempts.hurry()
            return False
        return self._attempts.is_refused

    # -- calling ------------------------------------------------------------------------------------------------

    async def _called(self, request: CallToolRequest, read: Callable[[Any], T], context: CallContext | None) -> T:
        if self._under_way >= self._limits.call_limit:
            return read(_too_many(self._name, self._limits.call_limit))
        self._under_way += 1
        try:
            leg = leg_of(context, self._log)
            while True:
                answer = await self._answered(leg.request(request), context)
                if isinstance(answer, InputRequiredResult):
                    answer = next_leg(answer, leg, self._log, can_ask=context is not None)
                if not isinstance(answer, Leg):
                    return read(answer)
                leg = answer
                if not leg.responses:
                    await anyio.sleep(LEG_S)
        finally:
            self._under_way -= 1

    async def _answered(self, request: CallToolRequest, context: CallContext | None) -> Any:
        if self._attempts.is_hopeless and not self.is_connected:
            # A call that waits already goes on waiting: it may come to its end before its time is over.
            raise CallNotSent(f"the MCP server {self._name!r} cannot be reached: {self._attempts.error}")
        sending = Sending(
            self._limits, None if context is None else lambda question: context.ask(question.message, question.schema)
        )
        with sending.scope:
            while True:
                line = await self._ready()
                sent = await self._sent(line, request, sending)
                if sent is not None:
                    return sent
        waited = f"no answer came within {sending.waited_s:.0f} s"
        raise CallNotAnswered(waited) if sending.is_sent else CallNotSent(f"{waited}, because {self._attempts.error}")

    async def _sent(self, line: Line, request: CallToolRequest, sending: Sending) -> Any:
        """Sends the request and returns the result. None if it was certainly not sent: the line has then ended."""
        assert line.client is not None
        SENDING.set(sending)
        # The transport of a server in this process has no streams that could note it.
        sending.is_sent = self._is_in_memory
        line.under_way.add(sending)

        async def renew(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            sending.renew()

        try:
            return await line.client.session.send_request(request, ANSWER, progress_callback=renew)
        except MCPError as error:
            return self._failed(line, error, sending)
        except ValidationError as error:
            return _misfit(error)
        finally:
            line.under_way.discard(sending)
            if line.ended.is_set():
                line.end()

    def _failed(self, line: Line, error: MCPError, sending: Sending) -> ToolResult | None:
        fate = fate_of(error)
        if fate == "refused":
            raise CallNotSent(error.error.message)
        if fate in ("not_connected", "no_session"):
            sending.is_sent = False
            line.error = error.error.message
            line.end()
            return None
        message, code = error.error.message, error.error.code
        # A server may use this code for errors of its own.
        if code == CONNECTION_CLOSED and (line.ended.is_set() or message.startswith(_LOST)):
            line.end()
            if not sending.is_sent:
                return None
            raise CallNotAnswered("the connection was lost")
        if fate == "not_answered":
            raise CallNotAnswered(message)
        if code == PARSE_ERROR:
            return ToolResult.failed("invalid_result", f"The server's answer cannot be read: {message}.")
        return ToolResult(False, error=f"the server refused the call: {message} ({code})")

    async def _ready(self) -> Line:
        ended = self._attempts.ended
        while True:
            line = self._line
            if self._closing.is_set():
                raise CallNotSent(f"the connection to the MCP server {self._name!r} was closed")
            if line is not None and line.client is not None and not line.ended.is_set():
                return line
            if self._is_refused_since(ended):
                raise CallNotSent(f"the MCP server {self._name!r} cannot be used: {self._attempts.error}")
            await self._changed.wait()


_LOST = ("Connection closed", "SSE stream ")
"""The beginnings of the SDK's messages about an answer that can no longer come."""


def _too_many(name: str, limit: int) -> ToolResult:
    message = f"The call was not sent: {limit} calls of the MCP server {name!r} are under way."
    return ToolResult.failed("overloaded", message, data={"is_started": False, "limit": limit})


def _misfit(error: ValidationError) -> ToolResult:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return ToolResult.failed("invalid_result", f"The server's answer is not a result of MCP: {place}: {first['msg']}.")
