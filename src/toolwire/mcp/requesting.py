"""Requests of callers to one server, each sent at most once, and their fates as results."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, ElicitRequest, ErrorData, InputRequiredResult
from pydantic import ValidationError

from toolwire.mcp.asked.client_features import Given, call_of, pass_on
from toolwire.mcp.asked.server_questions import RoundTrip, next_round_trip, round_trip_of
from toolwire.mcp.asked.server_tasks import AwaitedTask, await_task
from toolwire.mcp.client_limits import LEG_S, ClientLimits
from toolwire.mcp.open_connection import OpenConnection
from toolwire.mcp.sending import SENDING, Listener, Sending
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.transports.http import fate_of
from toolwire.mcp.values.client_requests import ServerRequest
from toolwire.mcp.values.features import FEATURES, Feature
from toolwire.mcp.values.task_values import TaskMade
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import CallNotAnswered, CallNotSent
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

T = TypeVar("T")

SERVER_ERROR = "mcp_error"
"""The key in a failure's data under which it has the code of the server's own error."""


class ConnectionOwner(Protocol):
    """The owner of the connections, one after the other."""

    @property
    def reason(self) -> str: ...

    @property
    def is_broken(self) -> bool: ...

    async def ready(self) -> OpenConnection: ...


class Requesting:
    """The requests under way. All is used on the loop of the connection's owner."""

    def __init__(
        self,
        owner: ConnectionOwner,
        name: str,
        limits: ClientLimits,
        log: ServerLog,
        *,
        is_in_memory: bool = False,
        allowed: Collection[Feature] = (),
    ) -> None:
        self._owner, self._name, self._limits, self._log = owner, name, limits, log
        self._is_in_memory, self._allowed = is_in_memory, frozenset(FEATURES[feature] for feature in allowed)
        self._under_way = 0

    async def call(
        self,
        asked: ServerRequest,
        read: Callable[[Any], T],
        context: CallContext | None,
        listener: Listener | None = None,
    ) -> T:
        """Sends a request, and again with answers as often as the server needs input. Returns `read(result)`."""
        if self._under_way >= self._limits.call_limit:
            return read(_too_many(self._name, self._limits.call_limit))
        self._under_way += 1
        try:
            kept = AwaitedTask.read_kept(context)
            if kept is not None:
                return read(await self._await_task(kept, context, listener))
            round_trip = round_trip_of(context, self._log)
            while True:
                answer = await self._send_until_answered(
                    ServerRequest(round_trip.request(asked.request), asked.answer), context, listener
                )
                if isinstance(answer, TaskMade):
                    task = AwaitedTask(task_id=answer.task_id)
                    answer = await self._await_task(task, context, listener)
                if isinstance(answer, InputRequiredResult):
                    given = await self._ask_client(answer, round_trip.questions, listener)
                    if isinstance(given, ToolResult):
                        return read(given)
                    answer = next_round_trip(answer, round_trip, self._log, can_ask=context is not None, given=given)
                if not isinstance(answer, RoundTrip):
                    return read(answer)
                round_trip = answer
                if not round_trip.responses:
                    await anyio.sleep(LEG_S)
        finally:
            self._under_way -= 1

    async def _ask_client(
        self, answer: InputRequiredResult, asked: int, listener: Listener | None
    ) -> dict[str, Given] | ToolResult:
        """Returns what the client gives to the server: samples and roots, by the keys of the requests.

        `asked` is the number of questions before. The failure of the call if the server may not have one, or gets none.
        """
        found: dict[str, Given] = {}
        for number, (key, wanted) in enumerate((answer.input_requests or {}).items(), asked + 1):
            if isinstance(wanted, ElicitRequest):
                continue
            if listener is None or call_of(wanted)[0] not in self._allowed:
                return ToolResult(False, error=f"the server needs {wanted.method}, and this client does not offer it")
            given = await pass_on(listener, self._name, wanted, number)
            if isinstance(given, ErrorData):
                return ToolResult(False, error=f"the server needs {wanted.method}: {given.message}")
            found[key] = given
        return found

    async def _await_task(self, task: AwaitedTask, context: CallContext | None, listener: Listener | None) -> Any:
        until = anyio.current_time() + self._limits.call_max_s
        return await await_task(
            task,
            lambda asked: self._send_until_answered(asked, context, listener),
            self._log,
            can_ask=context is not None,
            until=until,
        )

    async def _send_until_answered(
        self, asked: ServerRequest, context: CallContext | None, listener: Listener | None
    ) -> Any:
        if self._owner.is_broken:
            # A call that waits already goes on waiting: it may come to its end before its time is over.
            raise CallNotSent(f"the MCP server {self._name!r} cannot be reached: {self._owner.reason}")
        sending = Sending(
            self._limits,
            None if context is None else lambda question: context.ask(question.message, question.schema),
            listener,
        )
        with sending.scope:
            while True:
                connection = await self._owner.ready()
                sent = await self._send_once(connection, asked, sending)
                if sent is not None:
                    return sent
        waited = f"no answer came within {sending.elapsed_s:.0f} s"
        if sending.is_sent:
            raise CallNotAnswered(waited)
        raise CallNotSent(f"{waited}, because {self._owner.reason}")

    async def _send_once(self, connection: OpenConnection, asked: ServerRequest, sending: Sending) -> Any:
        """Sends the request and returns the result. None if it was certainly not sent: the connection has ended."""
        assert connection.client is not None
        SENDING.set(sending)
        # The transport of a server in this process has no streams that could note it.
        sending.is_sent = self._is_in_memory
        connection.under_way.add(sending)

        async def renew(progress: float, total: float | None, message: str | None) -> None:
            sending.renew()
            if sending.listener is not None:
                sending.listener.tell_progress(progress, total, message)

        try:
            return await connection.client.session.send_request(asked.request, asked.answer, progress_callback=renew)
        except MCPError as error:
            return _handle_error(connection, error, sending)
        except ValidationError as error:
            return _misfit(error)
        finally:
            connection.under_way.discard(sending)
            if connection.ended.is_set():
                connection.end()


def _handle_error(connection: OpenConnection, error: MCPError, sending: Sending) -> ToolResult | None:
    fate = fate_of(error)
    if fate == "refused":
        raise CallNotSent(error.error.message)
    if fate in ("not_connected", "no_session"):
        sending.is_sent = False
        connection.error = error.error.message
        connection.end()
        return None
    message, code = error.error.message, error.error.code
    # A server may use this code for errors of its own.
    if code == CONNECTION_CLOSED and (connection.ended.is_set() or message.startswith(_LOST)):
        connection.end()
        if not sending.is_sent:
            return None
        raise CallNotAnswered("the connection was lost")
    if fate == "not_answered":
        raise CallNotAnswered(message)
    if code == PARSE_ERROR:
        return ToolResult.failed("invalid_result", f"The server's answer cannot be read: {message}.")
    told = f"the server refused the call: {message} ({code})"
    return ToolResult(False, error=told, metadata={SERVER_ERROR: code})


_LOST = ("Connection closed", "SSE stream ")
"""The beginnings of the SDK's messages about an answer that can no longer come."""


def _too_many(name: str, limit: int) -> ToolResult:
    message = f"The call was not sent: the MCP server {name!r} has {count_of(limit, 'call')} under way."
    return ToolResult.failed("overloaded", message, data={"is_started": False, "limit": limit})


def _misfit(error: ValidationError) -> ToolResult:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return ToolResult.failed("invalid_result", f"The server's answer is not a result of MCP: {place}: {first['msg']}.")
