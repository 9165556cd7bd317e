"""One call of a client: a turn of the client's session, with the person at its other end."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.definition.tool import Tool
from toolwire.gateway.asking.elicitation import ask_person, can_be_asked, decision_of, form_keys, shown_form
from toolwire.gateway.call_claims import CallClaim, CallClaims
from toolwire.gateway.client_line import ClientLine
from toolwire.gateway.clients import Client, Clients, owner_of
from toolwire.gateway.code_mode import RUN_PROGRAM
from toolwire.gateway.held_calls import Answer as HeldAnswer
from toolwire.gateway.held_calls import HeldCall, HeldCalls, is_of_held
from toolwire.gateway.hidden_characters import own_words, remove_hidden_in_result
from toolwire.gateway.server_limits import GIVEN_NAME_CHARACTERS, STATE_BUSY_S
from toolwire.gateway.slots import SlotRefused, Slots
from toolwire.mcp.values.call_results import output_schema_for_clients, sendable_result
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.session.session import Session
from toolwire.session.turn import Suspended, Turn
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


@dataclass(frozen=True, slots=True)
class Asking:
    """How one call is made: what its client sent, and how its person is asked."""

    params: Params
    events: Events | None
    is_asked: bool
    task_key: str


class _UnderWay(Exception):
    """Another process still works on the run of the call, or on the client's conversation."""


class ServedCalls:
    """Runs the calls of all clients of one server."""

    def __init__(self, clients: Clients, slots: Slots, waiting: Slots, store: Store | None, server: str) -> None:
        """`waiting` are the places of calls that show a form and wait for its answer. `server` is the server's name."""
        self._clients, self._slots, self._waiting, self._store = clients, slots, waiting, store
        self._claims = CallClaims(store, server)
        self.held = HeldCalls()

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Answer:
        """Runs a call, or continues one that waited for a person.

        Raises:
            MCPError: -32602: the tool is unknown, or the state of a call that waited is not valid.
        """
        client, call = await self.read_call(context, params)
        held = self.held.find(params.request_state)
        if held is not None or is_of_held(params.request_state):
            answer = await self.held.go_on(held, params.input_responses)
        elif _may_be_held(context, client.find(call.name), has_store=self._store is not None):
            waiting = self.held.take_up(params.request_state, params.input_responses)
            work = self.run(context, client, client.session, call, params, held=waiting)
            answer = await self.held.run(waiting, work)
        else:
            answer = await self.run(context, client, client.session, call, params)
        assert not isinstance(answer, Suspended)
        return self.mcp_result(context, client, call, answer) if isinstance(answer, ToolResult) else answer

    async def read_call(self, context: Context, params: types.CallToolRequestParams) -> tuple[Client, ToolCall]:
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
        held: HeldCall | None = None,
    ) -> ToolResult | types.InputRequiredResult:
        """Runs a call, or continues one that waited. Returns its result, or the forms for the client's person.

        `session` is one of the client's. `can_ask` is False for a request to which the protocol has no such answer.
        With `held`, a server behind may have questions while it works on the call.

        Raises:
            MCPError: -32602: The state of a call that waited is not valid.
        """
        answer = await self._run(context, client, session, call, params, can_ask=can_ask, held=held)
        assert not isinstance(answer, Suspended)
        return answer

    async def run_task(
        self, context: Context, client: Client, call: ToolCall, params: Params, held: HeldCall, key: str
    ) -> HeldAnswer:
        """Runs a call that may become a task, as `run`. It is `Suspended` then. `key` is that of its turn.

        Raises:
            MCPError: As `run`.
        """
        return await self._run(context, client, client.session, call, params, can_ask=True, held=held, task_key=key)

    async def _run(
        self,
        context: Context,
        client: Client,
        session: Session,
        call: ToolCall,
        params: Params,
        *,
        can_ask: bool,
        held: HeldCall | None,
        task_key: str = "",
    ) -> HeldAnswer:
        try:
            async with self._hearing(context, client, held):
                events = _telling_progress(context, held) if _reports_progress(client, call) else None
                asking = Asking(params, events, is_asked=can_ask and can_be_asked(context), task_key=task_key)
                return _for_client(session, call.name, await self._answer(context, client, session, call, asking))
        except SlotRefused as refused:
            return refused.result

    async def go_on(self, context: Context, client: Client, held: HeldCall) -> HeldAnswer:
        """Continues the run of a task. Returns its recorded result if it has ended.

        Raises:
            MCPError: -32602: The run cannot be continued.
        """
        try:
            async with self._hearing(context, client, held), self._slots.hold_next():
                turn = await self._resume_run(client.session, held.run_id, [], None, set())
        except DecisionRefused as refused:
            raise _invalid_state(refused) from refused
        name = turn.reply.calls[0].name
        return _for_client(client.session, name, turn.results[0]) if turn.suspended is None else turn.suspended

    @asynccontextmanager
    async def _hearing(self, context: Context, client: Client, held: HeldCall | None) -> AsyncGenerator[None]:
        """Lets the client hear of what servers behind do in the block."""

        async def make_call(wanted: ToolCall) -> ToolResult:
            requests = await self._clients.requests_of(client)
            can_ask = not is_modern(context)
            made = await self.run(context, client, requests, wanted, None, can_ask=can_ask, held=held)
            assert isinstance(made, ToolResult)
            return made

        line = ClientLine(context, self._waiting, make_call, held, decider_of(client))
        try:
            with line.listening():
                yield
        finally:
            client.share_labels()
            await line.flush()

    async def _answer(
        self, context: Context, client: Client, session: Session, call: ToolCall, asking: Asking
    ) -> HeldAnswer:
        params, is_asked = asking.params, asking.is_asked
        # A task has an id of its own, by which its client continues it.
        owner = None if asking.task_key else client.owner_in(context)
        key = await self._claims.key_of(owner, session, call)
        has_state = params is not None and params.request_state is not None
        async with self._claims.hold(key, is_new=has_state, can_ask=is_asked) as claim:
            if claim.pending:
                return waiting_result(claim.pending)
            try:
                return await self._answer_claimed(context, client, session, call, asking, claim)
            except DecisionRefused as refused:
                if not claim.run_id:
                    raise _invalid_state(refused) from refused
                _LOG.warning("the run of an earlier equal call cannot be continued: %s", refused)
                claim.is_useless = True
                return ToolResult.failed(
                    "unavailable",
                    f"{call.name!r} was not run: an earlier decision on the same call cannot be used any more.",
                    hint="Send the call again: a person is asked about it anew.",
                )
            except _UnderWay:
                if has_state or claim.run_id:
                    said = f"{call.name!r} is still under way: the same call was sent before."
                else:
                    said = f"{call.name!r} was not run: another server still works on an earlier call of this client."
                return ToolResult.failed("unavailable", said, hint="Send the call again when that has ended.")

    async def _answer_claimed(
        self, context: Context, client: Client, session: Session, call: ToolCall, asking: Asking, claim: CallClaim
    ) -> HeldAnswer:
        is_asked, events = asking.is_asked, asking.events
        closed = set[str]()
        with self._slots.hold():
            turn = claim.turn = await self._turn(client, session, call, asking, closed, claim)
        if turn.suspended is not None and not is_modern(context) and is_asked:
            turn = claim.turn = await self._ask_while_suspended(context, client, session, turn, events, closed)
        if turn.suspended is None:
            return turn.results[0]
        run_id, pending = turn.suspended.run_id, turn.suspended.pending
        # A quick call asks its questions at once. A decision makes a task of it: the person may be away.
        may_ask = not asking.task_key or all(request.kind == "question" for request in pending)
        if is_modern(context) and is_asked and may_ask:
            asked = [request for request in pending if request.id not in closed]
            forms = {request.id: form for request in asked if (form := shown_form(request)) is not None}
            if forms:
                claim.has_forms, keys = True, form_keys(pending)
                requests: types.InputRequests = {
                    keys[one]: types.ElicitRequest(params=form) for one, form in forms.items()
                }
                return types.InputRequiredResult(input_requests=requests, request_state=json.dumps({"run": run_id}))
        if asking.task_key:
            return turn.suspended
        return waiting_result(pending) if claim.key else await self._give_up(run_id, pending, has_state=is_asked)

    async def _give_up(self, run_id: str, pending: Sequence[ApprovalRequest], *, has_state: bool) -> ToolResult:
        """Returns the failure of a call whose decision its client could not find. Nobody need decide on it.

        With the state of its forms the client may still continue it.
        """
        assert self._store is not None
        if not has_state:
            await self._store.astop(run_id, by=Decider(channel=_CHANNEL), reason="its client has no token")
        return ToolResult.failed(
            "approval_required",
            f"{pending[0].tool!r} was not run: a person has to decide on it, and without a token nothing tells this "
            "client from others that send the same call.",
            hint="Tell the user: this client needs a token of the server, and then the call can wait for a decision.",
        )

    def mcp_result(self, context: Context, client: Client, call: ToolCall, result: ToolResult) -> types.CallToolResult:
        """Returns a result for the client.

        Raises:
            MCPError: -32602: the tool is no longer there for it.
        """
        tool = client.find(call.name)
        if tool is None and result.failure is not None and result.failure.kind == "unknown_tool":
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {result.error}")
        schema = None if tool is None else output_schema_for_clients(tool)
        sent = sendable_result(call.name, result, schema, version=context.protocol_version)
        # A server behind may answer without content, and then there is no text for a model either.
        is_empty = result.success and not result.blocks and tool is not None and tool.asker
        return sent.model_copy(update={"content": []}) if is_empty else sent

    async def _turn(
        self, client: Client, session: Session, call: ToolCall, asking: Asking, closed: set[str], claim: CallClaim
    ) -> Turn:
        """Runs the call, or continues it. Requests that the person of this client does not decide go to `closed`."""
        params, events = asking.params, asking.events
        if params is not None and params.request_state is not None:
            return await self._resume_from_state(client, session, params, events, closed)
        if claim.run_id:
            return await self._resume_run(session, claim.run_id, [], events, closed)
        reply, key = Reply(calls=(call,)), asking.task_key or None
        turn = await _wait_until_free(lambda: session.turn(reply, events=events, key=key))
        if turn.suspended is None or params is None or not params.input_responses or not self._store:
            return turn
        # The client knew the questions, and sent the answers at once.
        decisions = _decisions(client, turn.suspended.pending, params, closed)
        return await self._resume_run(session, turn.suspended.run_id, decisions, events, closed) if decisions else turn

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

    async def _resume_run(
        self, session: Session, run_id: str, decisions: list[Decision], events: Events | None, closed: set[str]
    ) -> Turn:
        """Resumes a run. A run that is under way elsewhere is waited for: its recorded turn is returned then.

        Raises:
            DecisionRefused: The run cannot be resumed.
        """
        while True:
            given = decisions or None
            try:
                return await _wait_until_free(lambda given=given: session.resume(run_id, given, events=events))
            except DecisionRefused as refused:
                if not (decisions and refused.request_id):
                    raise
                # The others may count. The request waits on: for a fitting answer, or for another person.
                _LOG.warning("a decision of an MCP client was refused: %s", refused)
                closed.update([] if refused.code == "invalid_answer" else [refused.request_id])
                decisions = [one for one in decisions if one.request_id != refused.request_id]

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


async def _wait_until_free(run: Callable[[], Awaitable[Turn]]) -> Turn:
    """Returns what `run` returns, as soon as no other process works on its run or its conversation.

    Raises:
        _UnderWay: One still does after `STATE_BUSY_S`.
    """
    until = time.monotonic() + STATE_BUSY_S
    while True:
        try:
            return await run()
        except DecisionRefused as refused:
            if refused.code not in ("run_busy", "conversation_busy"):
                raise
            if time.monotonic() >= until:
                raise _UnderWay from refused
        await anyio.sleep(_BUSY_POLL_S)


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


def _for_client(session: Session, name: str, answer: HeldAnswer) -> HeldAnswer:
    entry = session._scope.tools.find(name)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if not isinstance(answer, ToolResult) or entry is None or not entry.tool.is_outside:
        return answer
    return remove_hidden_in_result(name, own_words(answer) if entry.tool.asker else answer)


def _reports_progress(client: Client, call: ToolCall) -> bool:
    """True if the tool can report progress, which only one with a context can. Events cost time."""
    tool = client.find(call.name)
    return tool is not None and tool.context_parameter is not None


def _telling_progress(context: Context, held: HeldCall | None) -> Events:
    """Returns the reader of a turn's events that tells the client of progress. The SDK knows if it asked for it."""
    last = -1.0

    async def tell(event: ToolEvent) -> None:
        nonlocal last
        if not isinstance(event, ToolChunk) or event.progress is None or event.parent:
            return
        done, total = float(event.progress["done"]), event.progress["total"]
        if held is not None:
            held.hear(encodable_text(event.progress["message"]))
            if held.is_left:
                return
        # The protocol demands that progress grows, and JSON has no infinity.
        if last < done < math.inf:
            last = done
            total = None if total is None or not math.isfinite(total) else total
            await context.session.report_progress(done, total, encodable_text(event.progress["message"]) or None)

    return tell


def how_to_decide(request: ApprovalRequest) -> str:
    """Returns the command by which an operator decides on a request."""
    return f"`toolwire approvals {'approve' if request.kind == 'approval' else 'answer'} {request.id}` decides it"


def waiting_result(pending: Any) -> ToolResult:
    """Returns the failure of a call that waits for a person, whom its client cannot ask."""
    request: ApprovalRequest = pending[0]
    return ToolResult.failed(
        "approval_required",
        f"{request.tool!r} was not run: a person has to decide on request {request.id}.",
        hint=f"Tell the user: {how_to_decide(request)}. After that, the same call runs.",
        data={"request_id": request.id},
    )


def decider_of(client: Client) -> Decider:
    authn = "bearer" if client.is_authenticated else ""
    return Decider(principal=client.caller.principal, channel=_CHANNEL, authn=authn)


def _may_be_held(context: Context, tool: Tool | None, *, has_store: bool) -> bool:
    """True if the client may be asked while the call runs, and answers with its next request.

    A server behind may ask. Without a store a call cannot be suspended, so that any of them may wait for its person.
    """
    can = context.session.client_capabilities
    is_able = can is not None and any(one is not None for one in (can.elicitation, can.sampling, can.roots))
    may_ask = tool is not None and (not has_store or tool.asker != "" or tool.name == RUN_PROGRAM)
    return is_able and may_ask and is_modern(context)


def is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _invalid_state(refused: DecisionRefused) -> MCPError:
    _LOG.warning("the state of a call that waited was refused: %s", refused)
    data: Mapping[str, str] = {"reason": "invalid_request_state", "code": refused.code}
    return MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", data=dict(data))
