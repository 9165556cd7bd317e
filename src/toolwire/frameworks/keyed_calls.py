"""Shared by the adapters: the sessions of a framework's conversations, and calls that run once in one of them."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.facade.store_opening import resolve_store
from toolwire.journal.conversation_info import check_name
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.permission.rendering import render
from toolwire.session.runs.wire import decisions_of
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.blocks import block_for_model
from toolwire.vocabulary.call_events import ToolEvent
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable

SESSIONS = 200
"""Sessions that an adapter keeps open: as many conversations as a process has at a time. Another one is made again."""
_OWN = {
    "protocol": "the framework has its own",
    "conversation": "the framework names it",
    "finish": "the framework ends",
}
_OPTIONS = [name for name in inspect.signature(Session).parameters if name not in ("tools", "store", *_OWN)]

FOR_THE_MODEL = {
    "conversation_busy": "nothing was run, because another call of this conversation is at work. Make this call again "
    "when that one has ended.",
    "run_busy": "this call is at work elsewhere, and its result goes there. Do not make it again: tell the user.",
    "run_ended": "this call was made long ago, and its result was deleted. It does not run again. Ask the user before "
    "you make a new one.",
    "divergence": "this call is on record as another one, or its program no longer follows its record, so it does not "
    "go on. Ask the user before you make a new one.",
}
"""What the model reads of a refused call, without the names of runs and machines. Other refusals are of a decision, for
the application."""


class Sessions:
    """The sessions over the same tools, one for each conversation."""

    def __init__(self, tools: Any, store: Any, options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            if name in _OWN:
                raise ConfigurationError(f"{name}={value!r:.80}: leave it out, because {_OWN[name]}")
            if name not in _OPTIONS:
                raise ConfigurationError(
                    f"{name}={value!r:.80}: there is no such option{suggestion(nearest(name, _OPTIONS))}"
                )
        if store is None:
            raise ConfigurationError("store=None: give a store, such as store='sqlite:///runs.db'")
        # Each conversation has a session, and a generator would give its items to the first one alone.
        tools, *values = (
            list(cast("Any", one)) if isinstance(one, Iterator) else one for one in (tools, *options.values())
        )
        make = partial(Session, tools, protocol="openai", **dict(zip(options, values, strict=True)))
        # Wrong tools and options are refused here, and not at the first call of a model.
        make()
        self.store = resolve_store(store)
        self._make = partial(make, store=self.store)
        self._open, self._lock = OrderedDict[str, Session](), threading.Lock()

    def of(self, conversation: str) -> Session:
        """Returns the session of a conversation. A new one waits for the store.

        Raises:
            ConfigurationError: The name is not one of a conversation.
        """
        return self._keep(
            conversation, self._open.get(conversation) or self._make(conversation=check_name(conversation))
        )

    async def wait_for(self, conversation: str) -> Session:
        """Returns the session of a conversation. A new one is made in a thread."""
        session = self._open.get(conversation)
        return self._keep(conversation, session) if session else await asyncio.to_thread(self.of, conversation)

    def _keep(self, conversation: str, session: Session) -> Session:
        """Returns the session that is kept, as the one that was used last. Another thread may have made it too."""
        with self._lock:
            kept = self._open.setdefault(conversation, session)
            self._open.move_to_end(conversation)
            if len(self._open) > SESSIONS:
                self._open.popitem(last=False)
            return kept


async def take_call(
    session: Session,
    key: str,
    call_id: str,
    name: str,
    arguments: Mapping[str, Any] | str,
    decide: Callable[[Sequence[ApprovalRequest]], list[Decision]] | None = None,
    events: Callable[[ToolEvent], Any] | None = None,
) -> Turn:
    """Runs one call once under its key, and returns its turn.

    `decide` gives decisions on the requests that wait. It may wait for the store.
    """
    called = message_of(call_id, name, arguments)
    turn = await unless_cancelled(session, session.turn(called, key=key, events=events))
    if turn.suspended is None or decide is None:
        return turn
    decisions = await asyncio.to_thread(decide, turn.suspended.pending)
    return await unless_cancelled(session, session.resume(turn.run_id, decisions)) if decisions else turn


def key_of(call_id: str, began: Any) -> str:
    """Returns the key of a call: its id, and what tells it from a later call with the same id."""
    named = json.dumps([call_id, began], sort_keys=True, default=str)
    return f"{call_id[:100]} {hashlib.sha256(named.encode()).hexdigest()}"


def message_of(call_id: str, name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Returns the message of a model that makes this call. Arguments that are a text are the model's own."""
    function = {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


async def unless_cancelled(session: Session, turn: Coroutine[Any, Any, Turn]) -> Turn:
    """Awaits a turn. If this is cancelled, the turn is interrupted, and its end is on record."""
    running = asyncio.ensure_future(turn)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        session.interrupt("its run was cancelled")
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()
        raise


def refusal_text(refused: DecisionRefused, error: type[Exception]) -> str:
    """Returns what the model is told of a refused call.

    Raises:
        error: The refusal is for the application.
    """
    if refused.code not in FOR_THE_MODEL:
        raise error(str(refused)) from refused
    return f"{refused.code}: {FOR_THE_MODEL[refused.code]}"


def request_data(request: ApprovalRequest) -> dict[str, Any]:
    """Returns a request as a framework hands it to its application: JSON, with the text to show."""
    try:
        text = render(request, now=time.time())
    except Unrepresentable as error:
        text = f"This call cannot be shown, and so not be approved: {error}"
    data: dict[str, Any] = {"id": request.id, "kind": request.kind, "tool": request.tool}
    return {**data, "arguments": dict(request.arguments), "text": text}


def read_decisions(given: Any, pending: Sequence[ApprovalRequest], written: str) -> list[Decision]:
    """Reads the decisions that an application gives, one at least.

    `written` is the code by which it gives them, with `{}` in their place.

    Raises:
        DecisionRefused: It gives no readable decision. The text says what to write.
    """
    why, first = "it must be a list of decisions", pending[0]
    try:
        is_readable = bool(given) and isinstance(given, str | list | Mapping)
        if is_readable and (found := decisions_of(first.run_id, cast("Any", given))):
            return found
    except DecisionRefused as refused:
        why = str(refused)
    verdict = "'answer', 'answer': ..." if first.kind == "question" else "'approve'"
    right = written.format(f"[{{'request_id': {first.id!r}, 'verdict': {verdict}}}]")
    raise DecisionRefused("malformed", f"{written.format(f'{given!r:.80}')}: {why}. Write {right}")


def is_success(turn: Turn) -> bool:
    """Returns whether the one call of a turn has a result."""
    return bool(turn.results) and turn.results[0].success


def content_for_model(turn: Turn, part_of: Callable[[Any], Any]) -> Any:
    """Returns the result of a call for the model: text, or if there are images or sounds, a part for each block."""
    shown: list[Any] = [block_for_model(block) for block in turn.results[0].content] if is_success(turn) else []
    if any(block["type"] != "text" for block in shown):
        return [part_of(block) for block in shown]
    content = turn.messages[0].get("content") if turn.messages else None
    return content if isinstance(content, str) else turn.text
