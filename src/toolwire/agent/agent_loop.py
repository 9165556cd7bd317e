"""The loop of an agent and of each agent below it: ask, read, act, take, until the model has finished."""

from __future__ import annotations

import asyncio
import json
import zlib
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from toolwire.agent.agent_run import AgentRun
from toolwire.agent.result import AgentResult
from toolwire.agent.shortening import TokenCount, is_too_long, shorten_by_owner, shorten_history
from toolwire.journal.kept_reply import reply_form, reply_of
from toolwire.models.model import ENDED_EARLY, ModelFailed, Request, Usage
from toolwire.protocols.streaming import ReplyStream, TextDelta
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import Problem, Reply
from toolwire.vocabulary.errors import ConfigurationError

ATTEMPTS = 3
"""Requests for one reply whose streams break off. All other retries are those of the provider's SDK."""

NOTE_CHARACTERS = 60_000
"""Characters of a noted reply in one note, which may have 65,536 bytes: they need no escapes."""

EMPTY = Problem(message="It has no text and calls no tool. Write the answer as text, or call a tool.", repaired=False)
"""The reason why a reply without an answer is refused, such as one that is only a thought."""

INTERRUPTED = "the user stopped it"
"""The reason that the model reads for the calls of a cancelled run."""


class TimeIsUp(Exception):
    """The seconds of the budget ended while a model was asked."""


class NotesFull(Exception):
    """A sub-agent has written more replies than its call can note: about 100, or fewer that are large."""


async def drive(run: AgentRun) -> AgentResult[Any]:
    """Asks the model and runs its calls until it has finished, or until a limit or a person ends the run."""
    tracer = run.tracer
    if tracer is None:
        return await _run_turns(run)
    span = tracer.agent(run.parts.name, conversation=run.session.conversation)
    try:
        result = await _run_turns(run)
    except BaseException as error:
        span.fail(error)
        raise
    span.end(result.stop, result.usage.input, result.usage.output)
    return result


async def _run_turns(run: AgentRun) -> AgentResult[Any]:
    while True:
        if not run.noted and (limit := run.spending.stop_reason()) is not None:
            return run.result(limit)
        try:
            reply = run.noted.popleft() if run.noted else await ask(run)
        except ModelFailed as failed:
            return run.result("model", error=failed)
        except TimeIsUp:
            return run.result("seconds")
        except NotesFull:
            return run.result("turns")
        if (result := run.take(await act(run, reply))) is not None:
            return result


async def act(run: AgentRun, reply: Reply) -> Turn:
    """Runs the calls of a reply."""
    run.has_acted = run.has_acted or bool(reply.calls)
    if run.below is not None:
        return await run.session.turn(reply, deadline_s=run.spending.remaining_s, below=run.below)
    return await whole_turn(run, run.session.turn(reply, deadline_s=run.spending.remaining_s, events=run.tool_events))


async def whole_turn(run: AgentRun, turning: Coroutine[Any, Any, Turn]) -> Turn:
    """Returns the turn. If the run is cancelled, its calls are stopped, and the history gets their results.

    Raises:
        asyncio.CancelledError: The run was cancelled. The history has the turn.
    """
    task = asyncio.create_task(turning)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        run.session.interrupt(INTERRUPTED)
        # A second cancellation leaves the turn to itself.
        await asyncio.wait((task,))
        if not task.cancelled() and task.exception() is None:
            run.take(task.result())
        raise


async def ask(run: AgentRun) -> Reply:
    """Returns the model's next reply. That of a sub-agent is noted before its calls start.

    Raises:
        ModelFailed: The model gave no reply.
        TimeIsUp: The budget's seconds ended before.
        NotesFull: The reply of a sub-agent cannot be noted.
        ConfigurationError: The owner's `shorten` failed.
    """
    request, attempt, has_shortened = await _next_request(run), 1, False
    while True:
        await run.tell("reply", attempt=attempt)
        stream, total = run.session.stream(), _RequestUsage()
        try:
            await _receive_traced(run, request, stream, total)
            if (reply := stream.reply()).is_complete is False:
                raise ModelFailed("network", ENDED_EARLY, has_begun=True)
            break
        except ModelFailed as failed:
            if failed.kind == "context_length" and not has_shortened:
                request, has_shortened = await _shorter_request(run, request, failed), True
            elif failed.kind != "network" or not (total.has_begun or failed.has_begun) or attempt >= ATTEMPTS:
                raise
        finally:
            run.spending.add(total.usage, run.parts.model.price)
        attempt += 1
    reply = _refuse_empty(reply)
    run.spending.add_turn()
    if total.usage.input:
        run.history.count = TokenCount(tokens=total.usage.input, messages=len(request.messages))
    if reply.thought:
        await run.tell("thought", text=reply.thought)
    if run.below is not None:
        note_reply(run, reply)
    return reply


def _refuse_empty(reply: Reply) -> Reply:
    """Returns the reply, refused if it says nothing. A provider that stopped it has said why."""
    has_said = reply.calls or reply.text.strip() or reply.failure is not None or reply.is_refused
    if has_said or reply.ended in ("filter", "failed", "paused"):
        return reply
    return replace(reply, problems=(*reply.problems, EMPTY))


class _RequestUsage:
    """What one request has given so far."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.has_begun = False


async def _receive_traced(run: AgentRun, request: Request, stream: ReplyStream, total: _RequestUsage) -> None:
    if run.tracer is None:
        await _receive(run, request, stream, total)
        return
    model = run.parts.model
    name, provider = getattr(model, "name", ""), getattr(model, "provider", "")
    span = run.tracer.chat(name, provider=provider, conversation=run.session.conversation)
    try:
        await _receive(run, request, stream, total)
    except BaseException as error:
        span.fail(error)
        raise
    span.end(total.usage.input, total.usage.output)


async def _receive(run: AgentRun, request: Request, stream: ReplyStream, total: _RequestUsage) -> None:
    """Gives the pieces of one reply to the stream, and their texts to the reader."""
    limit = asyncio.timeout(run.spending.remaining_s)
    try:
        async with limit, _closing(run.parts.model.stream(request)) as pieces:
            async for piece in pieces:
                total.has_begun = True
                if isinstance(piece, Usage):
                    total.usage += piece
                    continue
                for event in stream.feed(piece):
                    if isinstance(event, TextDelta):
                        await run.tell("text", text=event.text)
    except TimeoutError:
        if limit.expired():
            raise TimeIsUp from None
        raise


async def _next_request(run: AgentRun) -> Request:
    """Returns the next request. A text protocol describes its tools in the system prompt, behind the instructions."""
    described, system, tools = run.session.instructions, run.parts.instructions, list[Any]()
    if isinstance(described, str):
        system = f"{system}\n\n{described}" if system else described
    else:
        tools = described
    if others := [name for name in run.parts.team if name != run.parts.name]:
        system = f"{system}\n\nThe agents of your team: {', '.join(others)}.".lstrip()
    history, limit_tokens = run.history, run.parts.limit_tokens
    if limit_tokens is not None and is_too_long(
        history.view, limit_tokens=limit_tokens, count=history.count, before=(system, tools)
    ):
        await _shorten(run, limit_tokens, (system, tools))
    return Request(system=system, messages=list(history.view), tools=tools)


async def _shorter_request(run: AgentRun, request: Request, failed: ModelFailed) -> Request:
    """Returns the request with a shorter history, because its provider takes less than the limit.

    Raises:
        ModelFailed: It cannot be shorter.
    """
    await _shorten(run, None, (request.system, request.tools))
    if run.history.view == request.messages:
        raise failed
    return replace(request, messages=list(run.history.view))


async def _shorten(run: AgentRun, limit_tokens: int | None, before: tuple[str, list[Any]]) -> None:
    history, protocol, tools = run.history, run.session.protocol, run.session.tools
    if run.parts.shorten is not None:
        name = run.parts.name
        view = await shorten_by_owner(run.parts.shorten, history.view, protocol, tools, agent=name)
    else:
        # A provider that refuses the history has shown that its earlier count does not tell the size of the rest.
        count = None if limit_tokens is None else history.count
        view = shorten_history(history.view, protocol, tools, limit_tokens=limit_tokens, count=count, before=before)
    if view is not history.view:
        history.shorten(view)


@asynccontextmanager
async def _closing(pieces: AsyncIterator[Any]) -> AsyncGenerator[AsyncIterator[Any]]:
    """Closes the stream at the end, and with it the provider's connection. An iterator may have no `aclose`."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


def note_reply(run: AgentRun, reply: Reply) -> None:
    """Notes a reply of a sub-agent for the next pass of its tool, before its calls start.

    Raises:
        NotesFull: The notes of the call are full.
    """
    assert run.below is not None
    text = b64encode(zlib.compress(json.dumps(reply_form(reply)).encode())).decode()
    pieces = [text[at : at + NOTE_CHARACTERS] for at in range(0, len(text), NOTE_CHARACTERS)]
    for number, piece in enumerate(pieces, 1):
        try:
            run.below.note({"reply": piece, "part": number, "of": len(pieces)})
        except ConfigurationError as error:
            raise NotesFull from error


def read_notes(notes: Sequence[Any]) -> deque[Reply]:
    """Returns the replies that earlier passes of a sub-agent's tool have noted. A crash may have cut one."""
    replies, text = deque[Reply](), ""
    for note in notes:
        text = note["reply"] if note["part"] == 1 else text + note["reply"]
        if note["part"] == note["of"]:
            replies.append(reply_of(json.loads(zlib.decompress(b64decode(text)))))
    return replies
