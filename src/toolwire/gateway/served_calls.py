"""One call of a client: a turn of the client's session, with the person at its other end."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.definition.derived import output_schema_of
from toolwire.gateway.client_line import ClientLine
from toolwire.gateway.clients import Client, Clients, owner_of
from toolwire.gateway.elicitation import ask_person, can_be_asked, decision_of, form_keys, shown_form
from toolwire.gateway.server_limits import GIVEN_NAME_CHARACTERS, STATE_BUSY_S
from toolwire.gateway.slots import SlotRefused, Slots
from toolwire.mcp.values.call_results import sendable_result
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.call_events import ToolChunk, ToolEvent
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.lone_surrogates import encodable_text

if TYPE_CHECKING:
    from toolwire.journal.store import Store

Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Events = Callable[[ToolEvent], Any]
_Asking = types.CallToolRequestParams | types.ReadResourceRequestParams | types.GetPromptRequestParams
Params = _Asking | None
"""The parameters of a request that can be continued; None for one that cannot."""

_LOG = logging.getLogger("toolwire.gateway")
_BUSY_POLL_S = 0.05
_CHANNEL = "mcp"


class UnderWay(Exception):
    """A run is still continued elsewhere."""


class ServedCalls:
    """Runs the calls of all clients of one server."""

    def __init__(self, clients: Clients, slots: Slots, waiting: Slots, store: Store | None) -> None:
        """`waiting` are the places of calls that show a form and wait for its answer."""
        self._clients, self._slots, self._waiting, self._store = clients, slots, waiting, store

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Answer:
        """Runs a call, or continues one that waited for a person.

        Raises:
            MCPError: -32602: the tool is unknown, or the state of a call that waited is not valid.
        """
        client, call = await self.called(context, params)
        answer = await self.run(context, client, client.session, call, params)
        return self.mcp_result(context, client, call, answer) if isinstance(answer, ToolResult) else answer

    async def called(self, context: Context, params: types.CallToolRequestParams) -> tuple[Client, ToolCall]:
        """Returns the client of a request, and its call by the name in the registry.

        Raises:
            MCPError: -32602: the tool is unknown.
        """
        client = await self._clients.of(context)
        is_short = len(params.name) <= GIVEN_NAME_CHARACTERS
        name = client.own_name(params.name) if is_short else None
        if name is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name!r:.80}")
        return client, ToolCall(name, params.arguments or {})

    async def run(
        self,
        context: Context,
        client: Client,
        session: Session,
        call: ToolCall,
        params: Params,
        *,
        can_ask: bool = True,
    ) -> ToolResult | types.InputRequiredResult:
        """Runs a call, or continues one that waited. Returns its result, or the forms for the client's person.

        `session` is one of the client's. `can_ask` is False for a request to which the protocol has no such answer.

        Raises:
            MCPError: -32602: The state of a call that waited is not valid.
        """
        line = ClientLine(context, self._waiting)
        try:
            with line.listening():
                return await self._answer(context, client, session, call, params, can_ask=can_ask)
        except SlotRefused as refused:
            return refused.result
        finally:
            client.share_labels()
            await line.flush()

    async def _answer(
        self, context: Context, client: Client, session: Session, call: ToolCall, params: Params, *, can_ask: bool
    ) -> ToolResult | types.InputRequiredResult:
        events = telling_progress(context) if reports_progress(client, call) else None
        closed = set[str]()
        is_asked = can_ask and can_be_asked(context)
        try:
            turn = await self.take_turn(client, session, call, params, events, closed)
            if turn.suspended is not None and not is_modern(context) and is_asked:
                turn = await self._ask_while_suspended(context, client, session, turn, events, closed)
        except UnderWay:
            return under_way_result(call)
        if turn.suspended is None:
            return turn.results[0]
        run_id, pending = turn.suspended.run_id, turn.suspended.pending
        asked = input_required(run_id, pending, closed) if is_modern(context) and is_asked else None
        if asked is not None:
            return asked
        client.wait(call, run_id)
        return waiting_result(pending)

    def mcp_result(self, context: Context, client: Client, call: ToolCall, result: ToolResult) -> types.CallToolResult:
        """Returns a result for the client.

        Raises:
            MCPError: -32602: the tool is no longer there for it.
        """
        tool = client.find(call.name)
        if tool is None and result.failure is not None and result.failure.kind == "unknown_tool":
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {result.error}")
        schema = None if tool is None else output_schema_of(tool)
        return sendable_result(call.name, result, schema, is_modern=is_modern(context))

    async def take_turn(
        self,
        client: Client,
        session: Session,
        call: ToolCall,
        params: Params,
        events: Events | None,
        closed: set[str],
        key: str | None = None,
    ) -> Turn:
        """Runs the call, or continues it. Requests that the person of this client does not decide go to `closed`.

        `key` is that of a new turn (`Session.turn`).

        Raises:
            SlotRefused: Too many calls are under way.
            UnderWay: The run is still continued elsewhere.
            MCPError: -32602: The state of a call that waited is not valid.
        """
        with self._slots.hold():
            return await self._turn(client, session, call, params, events, closed, key)

    async def _turn(
        self,
        client: Client,
        session: Session,
        call: ToolCall,
        params: Params,
        events: Events | None,
        closed: set[str],
        key: str | None,
    ) -> Turn:
        if params is not None and params.request_state is not None:
            return await self._resume_from_state(client, session, params, events, closed)
        run_id = client.run_of(call)
        if run_id is None:
            turn = await session.turn(Reply(calls=(call,)), events=events, key=key)
            if turn.suspended is None or params is None or not params.input_responses or not self._store:
                return turn
            # The client knew the questions, and sent the answers at once.
            decisions = _decisions(client, turn.suspended.pending, params, closed)
            return (
                await self._resume_run(session, turn.suspended.run_id, decisions, events, closed) if decisions else turn
            )
        turn = await self._resume_run(session, run_id, [], events, closed)
        if turn.suspended is None:
            client.forget(run_id)
        return turn

    # -- a person decides -------------------------------------------------------------------------------------------

    async def _resume_from_state(
        self, client: Client, session: Session, params: _Asking, events: Events | None, closed: set[str]
    ) -> Turn:
        """Continues the run that the client's state names, with the decisions of the client's person."""
        run_id = run_of_state(params.request_state)
        assert self._store is not None
        try:
            pending = await anyio.to_thread.run_sync(self._store.pending, run_id)
        except DecisionRefused as refused:
            raise _invalid_state(refused) from refused
        decisions = _decisions(client, pending, params, closed)
        return await self._resume_run(session, run_id, decisions, events, closed)

    async def resume_run(self, session: Session, run_id: str) -> Turn:
        """Continues a run without new decisions. Returns its recorded turn if it has ended.

        Raises:
            SlotRefused, UnderWay, MCPError: As `take_turn`.
        """
        async with self._slots.hold_next():
            return await self._resume_run(session, run_id, [], None, set())

    async def _resume_run(
        self, session: Session, run_id: str, decisions: list[Decision], events: Events | None, closed: set[str]
    ) -> Turn:
        """Resumes a run. A run that is under way elsewhere is waited for: its recorded turn is returned then."""
        until = time.monotonic() + STATE_BUSY_S
        while True:
            try:
                return await session.resume(run_id, decisions or None, events=events)
            except DecisionRefused as refused:
                if refused.code in ("run_busy", "conversation_busy"):
                    if time.monotonic() >= until:
                        raise UnderWay from refused
                    await anyio.sleep(_BUSY_POLL_S)
                elif decisions and refused.request_id:
                    # The others may count. The request waits on: for a fitting answer, or for another person.
                    _LOG.warning("a decision of an MCP client was refused: %s", refused)
                    closed.update([] if refused.code == "invalid_answer" else [refused.request_id])
                    decisions = [one for one in decisions if one.request_id != refused.request_id]
                else:
                    raise _invalid_state(refused) from refused

    async def _ask_while_suspended(
        self,
        context: Context,
        client: Client,
        session: Session,
        turn: Turn,
        events: Events | None,
        closed: set[str],
    ) -> Turn:
        """Asks the person while the call waits, until the run has ended or the person makes no choice.

        Such a call holds no slot: one whose person is away would shut out the calls of others.
        """
        while turn.suspended is not None:
            decisions = await self._ask(context, client, turn.suspended.pending, closed)
            if not decisions:
                return turn
            async with self._slots.hold_next():
                turn = await self._resume_run(session, turn.suspended.run_id, decisions, events, closed)
        return turn

    async def _ask(
        self, context: Context, client: Client, pending: Iterable[ApprovalRequest], closed: set[str]
    ) -> list[Decision]:
        """Shows the requests to the person, one after the other. Those without a decision go to `closed`."""
        try:
            with self._waiting.hold(owner_of(context.request)):
                decisions: list[Decision] = []
                for request in pending:
                    if request.id in closed:
                        continue
                    said = await ask_person(context, request)
                    found = None if said is None else decision_of(request, said, decider_of(client))
                    if found is None:
                        closed.add(request.id)
                    else:
                        decisions.append(found)
                return decisions
        except SlotRefused as refused:
            _LOG.warning("the person of an MCP client is not asked: %s", refused)
            return []


def _decisions(client: Client, pending: Iterable[ApprovalRequest], params: _Asking, closed: set[str]) -> list[Decision]:
    """Returns the decisions that filled forms hold. Requests whose form was closed go to `closed`."""
    requests = list(pending)
    given, keys = params.input_responses or {}, form_keys(requests)
    decisions: list[Decision] = []
    for request in requests:
        said = given.get(request.id) or given.get(keys[request.id])
        if isinstance(said, types.ElicitResult):
            found = decision_of(request, said, decider_of(client))
            decisions += [] if found is None else [found]
            closed.update([request.id] if said.action == "cancel" else [])
    return decisions


def run_of_state(state: str | None) -> str:
    """Returns the run of a call that waited, which the client's state names. The state was checked before."""
    return str(json.loads(state or "{}")["run"])


def input_required(
    run_id: str, pending: Iterable[ApprovalRequest], closed: set[str]
) -> types.InputRequiredResult | None:
    """Returns the forms of a run that waits, but for the closed ones; None if there is none to show."""
    asked = list(pending)
    forms = {one.id: form for one in asked if one.id not in closed and (form := shown_form(one)) is not None}
    if not forms:
        return None
    keys = form_keys(asked)
    requests: types.InputRequests = {keys[one]: types.ElicitRequest(params=form) for one, form in forms.items()}
    return types.InputRequiredResult(input_requests=requests, request_state=json.dumps({"run": run_id}))


def reports_progress(client: Client, call: ToolCall) -> bool:
    """True if the tool can report progress, which only one with a context can. Events cost time."""
    tool = client.find(call.name)
    return tool is not None and tool.context_parameter is not None


def telling_progress(context: Context) -> Events:
    """Returns the reader of a turn's events that tells the client of progress. The SDK knows if it asked for it."""
    last = -1.0

    async def tell(event: ToolEvent) -> None:
        nonlocal last
        if not isinstance(event, ToolChunk) or event.progress is None or event.parent:
            return
        done, total = float(event.progress["done"]), event.progress["total"]
        # The protocol demands that progress grows, and JSON has no infinity.
        if last < done < math.inf:
            last = done
            total = None if total is None or not math.isfinite(total) else total
            await context.session.report_progress(done, total, encodable_text(event.progress["message"]) or None)

    return tell


def under_way_result(call: ToolCall) -> ToolResult:
    """Returns the failure of a call whose run is still continued elsewhere."""
    return ToolResult.failed("unavailable", f"{call.name!r} is still under way: the same call was sent before.")


def waiting_result(pending: Any) -> ToolResult:
    """Returns the failure of a call that waits for a person, whom its client cannot ask."""
    request: ApprovalRequest = pending[0]
    verb = "approve" if request.kind == "approval" else "answer"
    return ToolResult.failed(
        "approval_required",
        f"{request.tool!r} was not run: a person has to decide on request {request.id}.",
        hint=f"Tell the user: `toolwire approvals {verb} {request.id}` decides it. After that, the same call runs.",
        data={"request_id": request.id},
    )


def decider_of(client: Client) -> Decider:
    authn = "bearer" if client.is_authenticated else ""
    return Decider(principal=client.caller.principal, channel=_CHANNEL, authn=authn)


def is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _invalid_state(refused: DecisionRefused) -> MCPError:
    _LOG.warning("the state of a call that waited was refused: %s", refused)
    data: Mapping[str, str] = {"reason": "invalid_request_state", "code": refused.code}
    return MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", data=dict(data))
