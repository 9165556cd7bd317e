"""Tasks of a server: a call that has become one is awaited by looking at it, until it ends or asks a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequest, ElicitResult, TextContent
from pydantic import ValidationError

from toolwire.mcp.asked.server_questions import DECLINED, answer_of, question_of
from toolwire.mcp.client_limits import (
    CANCEL_S,
    QUESTIONS,
    ROUND_TRIPS,
    TASK_ID_CHARACTERS,
    TASK_POLL_MAX_S,
    TASK_POLL_MIN_S,
    TASK_POLL_S,
)
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.values.client_requests import ServerRequest, task_request
from toolwire.mcp.values.task_values import CANCEL, GET, TASKS_EXTENSION, UPDATE, TaskMade
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import CallNotAnswered, CallNotSent
from toolwire.vocabulary.questions import InputRequired, Question
from toolwire.vocabulary.results import ToolResult

Send = Callable[[ServerRequest], Awaitable[Any]]
"""Sends a request and returns its answer, or the `ToolResult` of one that the server refused."""

_TASK = "task"


class TasksOffer(ClientExtension):
    """Tells servers with 2026-07-28 that this client takes tasks. The SDK tells no older one of a claim."""

    identifier = TASKS_EXTENSION

    def claims(self) -> list[ResultClaim[Any]]:
        """Returns the claim of a call's answer that is a task."""
        return [ResultClaim(result_type="task", model=TaskMade, resolve=_resolve)]


async def _resolve(made: TaskMade, _: ClaimContext) -> CallToolResult:
    """Answers the SDK's own calls, which toolwire does not use: its calls await their tasks by `await_task`."""
    text = TextContent(text=f"the call has become the task {made.task_id!r}")
    return CallToolResult(content=[text], is_error=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTask:
    """A task, as far as a call has come with it. A store keeps it while a person is asked."""

    task_id: str
    rounds: int = 0
    """How often it has asked a person."""
    answered: tuple[str, ...] = ()
    """The keys of the questions that have their answer: a server may go on showing them for a while."""
    responses: Mapping[str, ElicitResult] | None = None
    """Answers that the server does not have yet."""

    @classmethod
    def read_kept(cls, context: CallContext | None) -> AwaitedTask | None:
        """Returns the task with which this pass of a call goes on; None if it has none."""
        kept = cast("Mapping[str, Any] | None", None if context is None else context.state)
        if context is None or kept is None or _TASK not in kept:
            return None
        return cls(
            task_id=kept[_TASK],
            rounds=kept["rounds"],
            answered=tuple(kept["answered"]),
            responses={
                **dict.fromkeys(kept["declined"], DECLINED),
                **{name: answer_of(answer) for name, answer in context.answers.items()},
            },
        )


async def await_task(
    task: AwaitedTask, send: Send, log: ServerLog, *, can_ask: bool, until: float
) -> CallToolResult | InputRequired | ToolResult:
    """Returns the result of a task, or the questions that come before it, or its failure.

    `until` is the time of the event loop at which it is given up. A wait that is cancelled cancels the task.

    Raises:
        CallNotAnswered: Its time is over. The server was told that the task is not wanted any more.
    """
    if len(task.task_id) > TASK_ID_CHARACTERS:
        said = f"The server's task has an id of more than {TASK_ID_CHARACTERS:,} characters."
        return ToolResult.failed("invalid_result", said)
    try:
        refused = await _answer(task, send)
        if refused is not None:
            return refused
        while anyio.current_time() < until:
            said = await _look(task, send)
            if isinstance(said, ToolResult):
                return said
            ended = _outcome(said)
            if ended is None:
                ended = _questions(said, task, log, can_ask=can_ask)
            if isinstance(ended, AwaitedTask):
                task = ended
                await _answer(task, send)
            elif ended is not None:
                if isinstance(ended, ToolResult) and said.get("status") == "input_required":
                    # The call is given up, and the server's task with it.
                    await _cancel(task, send)
                return ended
            await anyio.sleep(_pause_s(said))
    except anyio.get_cancelled_exc_class():
        await _cancel(task, send)
        raise
    await _cancel(task, send)
    raise CallNotAnswered("its task has not ended in time, and was cancelled")


async def _answer(task: AwaitedTask, send: Send) -> ToolResult | None:
    """Sends the answers that the server does not have. Returns the failure of a server that refuses them."""
    if not task.responses:
        return None
    answers = {name: said.model_dump(by_alias=True, exclude_none=True) for name, said in task.responses.items()}
    refused = await send(task_request(UPDATE, task.task_id, inputResponses=answers))
    return refused if isinstance(refused, ToolResult) else None


async def _look(task: AwaitedTask, send: Send) -> Mapping[str, Any] | ToolResult:
    """Returns the state of a task, or the failure of a server that does not tell it.

    A lost connection is no end of it: it is looked at again.
    """
    try:
        return await send(task_request(GET, task.task_id))
    except (CallNotAnswered, CallNotSent):
        return {}


def _outcome(said: Mapping[str, Any]) -> CallToolResult | ToolResult | None:
    """Returns the result of a task that has ended; None for one that goes on."""
    match said.get("status"):
        case "completed":
            try:
                return CallToolResult.model_validate(said.get("result"), by_name=False)
            except ValidationError:
                return ToolResult.failed("invalid_result", "The result of the server's task is not a result of MCP.")
        case "failed":
            error = said.get("error")
            told: Mapping[str, Any] = cast("Any", error) if isinstance(error, Mapping) else {}
            return ToolResult(False, error=f"the server's task failed: {told.get('message')} ({told.get('code')})")
        case "cancelled":
            return ToolResult(False, error=f"the server cancelled its task: {said.get('statusMessage') or 'no reason'}")
        case _:
            return None


def _questions(
    said: Mapping[str, Any], task: AwaitedTask, log: ServerLog, *, can_ask: bool
) -> InputRequired | AwaitedTask | ToolResult | None:
    """Returns what is to be asked. An `AwaitedTask` has questions that are declined at once; None is nothing new."""
    wanted = said.get("inputRequests")
    if said.get("status") != "input_required" or not isinstance(wanted, Mapping):
        return None
    asked = cast("Mapping[object, Any]", wanted)
    new = {str(name): request for name, request in asked.items() if str(name) not in task.answered}
    if not new:
        return None
    if task.rounds >= ROUND_TRIPS:
        return ToolResult.failed("limit", f"The call was given up: its server asked for input {ROUND_TRIPS} times.")
    questions: dict[str, Question] = {}
    for number, (name, request) in enumerate(new.items(), len(task.answered) + 1):
        question = _question(request, log, number=number) if can_ask and number <= QUESTIONS else None
        if question is not None:
            questions[name] = question
    if not can_ask:
        log.warning("its question was declined: this call has no person")
    answered = (*task.answered, *new)
    if questions:
        declined = [name for name in new if name not in questions]
        kept = {_TASK: task.task_id, "rounds": task.rounds + 1, "answered": list(answered), "declined": declined}
        return InputRequired(questions, kept)
    return AwaitedTask(
        task_id=task.task_id, rounds=task.rounds + 1, answered=answered, responses=dict.fromkeys(new, DECLINED)
    )


def _question(request: Any, log: ServerLog, *, number: int) -> Question | None:
    try:
        asked = ElicitRequest.model_validate(request, by_name=False)
    except ValidationError:
        log.warning("its request for input was declined: this client answers forms alone")
        return None
    return question_of(asked.params, log, number=number)


async def _cancel(task: AwaitedTask, send: Send) -> None:
    with anyio.move_on_after(CANCEL_S, shield=True):
        try:
            await send(task_request(CANCEL, task.task_id))
        except (CallNotAnswered, CallNotSent, MCPError):
            return


def _pause_s(said: Mapping[str, Any]) -> float:
    named = said.get("pollIntervalMs")
    if not isinstance(named, int | float) or isinstance(named, bool):
        return TASK_POLL_S
    return min(TASK_POLL_MAX_S, max(TASK_POLL_MIN_S, named / 1000))
