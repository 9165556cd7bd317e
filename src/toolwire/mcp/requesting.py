"""Requests of callers to one server, each sent at most once, and their fates as results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, ElicitRequest, ErrorData, InputRequiredResult
from pydantic import ValidationError

from toolwire.mcp.asked.client_features import Given, Wanted, begin, call_of, pass_on, too_many
from toolwire.mcp.asked.older_asking import hint_about_asking, with_hint_about_asking
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
                if round_trip.wanted:
                    complete = await self._await_client(round_trip, round_trip.wanted, listener)
                    if isinstance(complete, ToolResult):
                        return read(complete)
                    round_trip = complete
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
                if not round_trip.responses and not round_trip.wanted:
                    await anyio.sleep(LEG_S)
        finally:
            self._under_way -= 1

    async def _ask_client(
        self, answer: InputRequiredResult, asked: int, listener: Listener | None
    ) -> dict[str, Given | None] | ToolResult:
        """Asks the client for samples and roots, and returns them by the keys of the requests. None is yet to come.

        `asked` is the number of questions before. The failure of the call if the server may not have one, or gets none.
        """
        wanted: dict[str, Wanted] = {}
        for number, (key, one) in enumerate((answer.input_requests or {}).items(), asked + 1):
            if isinstance(one, ElicitRequest):
                continue
            if listener is None or call_of(one)[0] not in self._allowed:
                return _not_given(one, ", and this client does not offer it")
            if (refused := too_many(number)) is not None:
                return _not_given(one, f": {refused.message}")
            wanted[key] = one
        found: dict[str, Given | None] = {}
        if listener is not None and wanted:
            for key, given in (await begin(listener, self._name, wanted)).items():
                if isinstance(given, ErrorData):
                    return _not_given(wanted[key], f": {given.message}")
                found[key] = given
        return found

    async def _await_client(
        self, round_trip: RoundTrip, wanted: Mapping[str, Wanted], listener: Listener | None
    ) -> RoundTrip | ToolResult:
        """Returns the round trip with the answers of the client that were yet to come, or the failure of the call."""
        responses = dict(round_trip.responses or {})
        if listener is None:
            return _not_given(next(iter(wanted.values())), ", and this call has no client")
        given = await asyncio.gather(*(pass_on(listener, self._name, one) for one in wanted.values()))
        for (key, one), answer in zip(wanted.items(), given, strict=True):
            if isinstance(answer, ErrorData):
                return _not_given(one, f": {answer.message}")
            responses[key] = answer
        return replace(round_trip, responses=responses, wanted=None)

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

        protocol = connection.client.protocol_version
        try:
            answer = await connection.client.session.send_request(asked.request, asked.answer, progress_callback=renew)
            return with_hint_about_asking(answer, self._name, protocol)
        except MCPError as error:
            hint = hint_about_asking(error.error.message, self._name, protocol)
            return _handle_error(connection, error, sending, hint)
        except ValidationError as error:
            return _misfit(error)
        finally:
            connection.under_way.discard(sending)
            if connection.ended.is_set():
                connection.end()


def _handle_error(connection: OpenConnection, error: MCPError, sending: Sending, hint: str) -> ToolResult | None:
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
    told = f"the server refused the call: {message} ({code})" + (f". {hint}" if hint else "")
    return ToolResult(False, error=told, metadata={SERVER_ERROR: code})


_LOST = ("Connection closed", "SSE stream ")
"""The beginnings of the SDK's messages about an answer that can no longer come."""


def _not_given(wanted: Wanted, reason: str) -> ToolResult:
    return ToolResult(False, error=f"the server needs {wanted.method}{reason}")


def _too_many(name: str, limit: int) -> ToolResult:
    message = f"The call was not sent: the MCP server {name!r} has {count_of(limit, 'call')} under way."
    return ToolResult.failed("overloaded", message, data={"is_started": False, "limit": limit})


def _misfit(error: ValidationError) -> ToolResult:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return ToolResult.failed("invalid_result", f"The server's answer is not a result of MCP: {place}: {first['msg']}.")
