"""Calls of clients that take tasks. A task is a run of the store: each process with that store can tell of it.

A call becomes a task when it takes long, or waits for a person. Questions of a call that has not taken long are asked
at once, in the call's own answer, as the extension wishes.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH
from pydantic import ValidationError
from starlette.requests import Request

from toolwire.gateway.asking.elicitation import can_be_asked, decision_of, shown_form
from toolwire.gateway.clients import Client, Clients
from toolwire.gateway.held_calls import Answer as HeldAnswer
from toolwire.gateway.held_calls import HeldCall, is_of_held
from toolwire.gateway.served_calls import (
    Answer,
    ServedCalls,
    decider_of,
    how_to_decide,
    is_modern,
    run_of_state,
)
from toolwire.gateway.slots import SlotRefused
from toolwire.mcp.asked.client_features import answer_type_of
from toolwire.mcp.values.task_values import (
    CANCEL,
    GET,
    TASKS_EXTENSION,
    UPDATE,
    TaskParams,
    UpdateTaskParams,
    has_tasks,
)
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest, DecisionRefused
from toolwire.session.runs.turn_keys import keyed_run_id
from toolwire.session.turn import Suspended
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.journal.run import RunInfo
    from toolwire.journal.store import Store

Context = ServerRequestContext[Any, Any]

POLL_S = 1.0
"""Seconds between two looks of a client at its task. A look reads one row."""
PERSON_POLL_S = 5.0
"""The same while a person has to decide, which takes longer than a second."""
LOOK_S = 0.2
"""Seconds that a look waits for a run that can go on, so that a short rest of it needs no second look."""
RECORDED_POLL_S = 0.01
"""Seconds between two looks for the record of a run that has begun: a commit takes milliseconds."""

_ENDED = {"finished", "stopped", "diverged", "parked"}
_PROOF_DIGITS = 32
_LOG = logging.getLogger("toolwire.gateway")


class ServedTasks:
    """The calls of one server that become tasks, and the requests about them."""

    def __init__(self, calls: ServedCalls, clients: Clients, store: Store, task_s: float) -> None:
        """`task_s` are the seconds after which a call becomes a task."""
        self._calls, self._clients, self._store, self._task_s = calls, clients, store, task_s
        self._work: dict[str, HeldCall] = {}
        """The calls that this process works on, by their runs."""

    def add_to(self, server: Server[Any]) -> None:
        """Declares the extension, and serves its requests."""
        server.extensions[TASKS_EXTENSION] = {}
        server.add_request_handler(GET, TaskParams, self.get)
        server.add_request_handler(UPDATE, UpdateTaskParams, self.update)
        server.add_request_handler(CANCEL, TaskParams, self.cancel)

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Answer | dict[str, Any]:
        """Runs a call as `ServedCalls.call`, or returns a task.

        Raises:
            MCPError: As `ServedCalls.call`.
        """
        if not _takes_tasks(context):
            return await self._calls.call(context, params)
        client, call = await self._calls.read_call(context, params)
        held = self._calls.held.find(params.request_state)
        if held is not None:
            held.give(params.input_responses)
        elif is_of_held(params.request_state):
            return await self._calls.call(context, params)
        else:
            key = secrets.token_hex(16)
            is_new = params.request_state is None
            run_id = keyed_run_id(client.session.conversation, key) if is_new else run_of_state(params.request_state)
            held = self._calls.held.take_up(params.request_state, params.input_responses, run_id)
            self._begin(held, self._calls.run_task(context, client, call, params, held, key))
        answer = await held.next_answer(self._task_s)
        run = None
        while answer is None and (run := await anyio.to_thread.run_sync(self._find_run, held.run_id)) is None:
            answer = await held.next_answer(RECORDED_POLL_S)
        if answer is None and run is not None:
            held.leave()
            return self._created(run, client.caller)
        if isinstance(answer, Suspended):
            return self._created(await anyio.to_thread.run_sync(self._store.run, answer.run_id), client.caller)
        assert answer is not None
        return self._calls.mcp_result(context, client, call, answer) if isinstance(answer, ToolResult) else answer

    def _begin(self, held: HeldCall, work: Coroutine[Any, Any, HeldAnswer]) -> None:
        async def run() -> HeldAnswer:
            try:
                return await work
            finally:
                if self._work.get(held.run_id) is held:
                    del self._work[held.run_id]

        self._work[held.run_id] = held
        self._calls.held.start(held, run())

    def _find_run(self, run_id: str) -> RunInfo | None:
        try:
            return self._store.run(run_id)
        except DecisionRefused:
            return None

    # -- requests about a task --------------------------------------------------------------------------------------

    async def get(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Tells how far a task is. An idle run that can go on goes on here.

        Raises:
            MCPError: -32602: there is no such task of this client. -32021: the client does not take tasks.
        """
        client, run = await self._find(context, params)
        held = self._go_on(context, client, run)
        if held is not None:
            await self._wait_shortly(held)
            run = await anyio.to_thread.run_sync(self._store.run, run.run_id)
        said = {"resultType": "complete", **await self._details(context, client, run)}
        waits = run.pending or "inputRequests" in said
        return {**said, **_times(run, PERSON_POLL_S if waits else POLL_S), "taskId": params.task_id}

    def _go_on(self, context: Context, client: Client, run: RunInfo) -> HeldCall | None:
        """Continues an idle run that can go on. Returns the work; None for any other run."""
        if run.status in _ENDED or run.pending or run.is_held or run.run_id in self._work:
            return None
        held = HeldCall(run.run_id)
        self._begin(held, self._calls.go_on(context, client, held))
        held.leave()
        return held

    async def _wait_shortly(self, held: HeldCall) -> None:
        try:
            await held.next_answer(LOOK_S)
        except (MCPError, SlotRefused):
            # Logged. The record has the end of the run.
            return

    async def _details(self, context: Context, client: Client, run: RunInfo) -> dict[str, Any]:
        if run.status == "stopped":
            return {"status": "cancelled"}
        if run.status in _ENDED:
            return await self._outcome(context, client, run)
        held = self._work.get(run.run_id)
        if held is not None and held.wanted:
            return {"status": "input_required", "inputRequests": _as_json(held.wanted)}
        if run.pending and not run.is_held:
            pending = await anyio.to_thread.run_sync(self._store.pending, run.run_id)
            return _questions(context, pending)
        return {"status": "working", **({"statusMessage": held.said} if held is not None and held.said else {})}

    async def _outcome(self, context: Context, client: Client, run: RunInfo) -> dict[str, Any]:
        try:
            ended = await self._calls.go_on(context, client, HeldCall(run.run_id))
            assert isinstance(ended, ToolResult)
            (call,) = (await anyio.to_thread.run_sync(self._store.reply, run.run_id)).calls
            result = self._calls.mcp_result(context, client, call, ended)
        except MCPError as error:
            told = error.error.model_dump(by_alias=True, exclude_none=True)
            return {"status": "failed", "statusMessage": error.error.message, "error": told}
        return {"status": "completed", "result": result.model_dump(by_alias=True, exclude_none=True, mode="json")}

    async def update(self, context: Context, params: UpdateTaskParams) -> dict[str, Any]:
        """Takes answers of the client's person. Those to unknown questions are ignored, as the extension wishes.

        Raises:
            MCPError: As `get`.
        """
        client, run = await self._find(context, params)
        held = self._work.get(run.run_id)
        for key, wanted in held.wanted.items() if held is not None else ():
            if held is not None and key in params.input_responses:
                held.give({key: _answer_to(wanted, params.input_responses[key])})
        pending = await anyio.to_thread.run_sync(self._store.pending, run.run_id)
        for request in pending:
            given = params.input_responses.get(request.id)
            said = None if given is None else _read(types.ElicitResult, given)
            decision = None if said is None else decision_of(request, said, decider_of(client))
            if decision is None:
                continue
            try:
                await anyio.to_thread.run_sync(self._store.decide, request.id, decision)
            except DecisionRefused as refused:
                _LOG.warning("a decision of an MCP client was refused: %s", refused)
        self._go_on(context, client, await anyio.to_thread.run_sync(self._store.run, run.run_id))
        return {}

    async def cancel(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Stops a task. One that has ended stays as it is.

        Raises:
            MCPError: As `get`.
        """
        client, run = await self._find(context, params)
        try:
            await anyio.to_thread.run_sync(
                lambda: self._store.stop(run.run_id, by=decider_of(client), reason="the client cancelled the task")
            )
        except DecisionRefused as refused:
            if refused.code != "run_ended":
                raise MCPError(types.INVALID_PARAMS, str(refused)) from refused
        return {}

    async def _find(self, context: Context, params: TaskParams) -> tuple[Client, RunInfo]:
        """Returns the client of a request, and the run of its task."""
        require_tasks(context)
        request = context.request
        named = request.headers.get(MCP_NAME_HEADER) if isinstance(request, Request) else None
        if named is not None and decode_header_value(named) != params.task_id:
            raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match the task of the request")
        client = await self._clients.of(context)
        run_id = params.task_id.partition(".")[0]
        if not hmac.compare_digest(self._task_id(run_id, client.caller).encode(), params.task_id.encode()):
            raise _unknown_task()
        try:
            return client, await anyio.to_thread.run_sync(self._store.run, run_id)
        except DecisionRefused as refused:
            raise _unknown_task() from refused

    def _created(self, run: RunInfo, caller: Caller) -> dict[str, Any]:
        """Returns the answer to a call that has become a task. `tasks/get` tells its state."""
        task_id = self._task_id(run.run_id, caller)
        return {"resultType": "task", "taskId": task_id, "status": "working", **_times(run, POLL_S)}

    def _task_id(self, run_id: str, caller: Caller) -> str:
        """Returns the id of a run's task. It proves that this caller was given it, in each process with the store."""
        named = json.dumps(["task 1", run_id, caller.principal, caller.agent, caller.tenant]).encode()
        return f"{run_id}.{hmac.digest(self._store.wire_key, named, 'sha256').hex()[:_PROOF_DIGITS]}"


def _questions(context: Context, pending: list[ApprovalRequest]) -> dict[str, Any]:
    """Returns the forms of a task that waits. A client without forms is told who can decide."""
    forms = {one.id: form for one in pending if (form := shown_form(one)) is not None} if can_be_asked(context) else {}
    if forms:
        asked = {name: types.ElicitRequest(params=form) for name, form in forms.items()}
        return {"status": "input_required", "inputRequests": _as_json(asked)}
    if not pending:
        return {"status": "working"}
    return {"status": "working", "statusMessage": f"a person has to decide: {how_to_decide(pending[0])}"}


def _as_json(requests: Mapping[str, types.InputRequest]) -> dict[str, Any]:
    return {
        name: request.model_dump(by_alias=True, exclude_none=True, mode="json") for name, request in requests.items()
    }


def _answer_to(wanted: types.InputRequest, given: Any) -> Any:
    answer_type = types.ElicitResult if isinstance(wanted, types.ElicitRequest) else answer_type_of(wanted.method)
    return _read(answer_type, given)


def _read(answer_type: Any, given: Any) -> Any:
    try:
        return answer_type.model_validate(given, by_name=False)
    except ValidationError as error:
        raise MCPError(types.INVALID_PARAMS, "inputResponses has an answer that is none to its request") from error


def _times(run: RunInfo, poll_s: float) -> dict[str, Any]:
    moments = {"createdAt": run.created_at, "lastUpdatedAt": run.updated_at}
    told: dict[str, Any] = {
        name: datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for name, moment in moments.items()
    }
    return {**told, "ttlMs": int(REQUEST_LIFE_S * 1000), "pollIntervalMs": int(poll_s * 1000)}


def _takes_tasks(context: Context) -> bool:
    return is_modern(context) and has_tasks(context.session.client_capabilities)


def require_tasks(context: Context) -> None:
    """Refuses a request whose client does not take tasks.

    Raises:
        MCPError: -32021: it has not declared the extension. -32601: its protocol has no such request.
    """
    if _takes_tasks(context):
        return
    if not is_modern(context):
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    wanted: Mapping[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    said = f"the request does not declare the extension {TASKS_EXTENSION}"
    raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, said, data=dict(wanted))


def _unknown_task() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "there is no such task of this client, or it has expired")
