"""What the adapters share: the sessions of a framework's conversations, and a call that runs once in one of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from toolwire.facade.store_opening import resolve_store
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.permission.rendering import render
from toolwire.session.runs.turn_keys import keyed_run_id
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable

SESSIONS = 200
"""Sessions that an adapter keeps open: as many conversations as a process has at a time. Another one is made again."""
_OWN = {
    "protocol": "the framework has its own",
    "conversation": "the framework names it",
    "finish": "the framework ends",
}

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
        for name, why in _OWN.items():
            if name in options:
                raise ConfigurationError(f"{name}={options[name]!r:.80}: leave it out, because {why}")
        if store is None:
            raise ConfigurationError("store=None: give a store, such as store='sqlite:///runs.db'")
        self.store = resolve_store(store)
        self._make = partial(Session, tools, protocol="openai", store=self.store, **options)
        self._open, self._lock = OrderedDict[str, Session](), threading.Lock()

    def of(self, conversation: str) -> Session:
        """Returns the session of a conversation. A new one waits for the store."""
        with self._lock:
            session = self._open.pop(conversation, None) or self._make(conversation=conversation)
            self._open[conversation] = session
            if len(self._open) > SESSIONS:
                self._open.popitem(last=False)
            return session


async def take_call(
    session: Session,
    key: str,
    call_id: str,
    name: str,
    arguments: Mapping[str, Any],
    decide: Callable[[Sequence[ApprovalRequest]], Iterable[Any]] | None = None,
) -> Turn:
    """Runs one call once under its key, and returns its turn. `decide` gives decisions on the requests that wait."""
    turn = await unless_cancelled(session, session.turn(message_of(call_id, name, arguments), key=key))
    if turn.suspended is None or decide is None:
        return turn
    decisions = list(decide(turn.suspended.pending))
    return await unless_cancelled(session, session.resume(turn.run_id, decisions)) if decisions else turn


def key_of(call_id: str, began: Any) -> str:
    """Returns the key of a call: its id, and what tells it from a later call with the same id."""
    named = json.dumps([call_id, began], sort_keys=True, default=str)
    return f"{call_id[:100]} {hashlib.sha256(named.encode()).hexdigest()}"


def message_of(call_id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the message of a model that makes this call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
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


def is_on_record(session: Session, store: Store, key: str) -> bool:
    """Returns whether a call with this key was taken before. Waits for the store."""
    try:
        store.run(keyed_run_id(session.conversation, key))
    except DecisionRefused as refused:
        if refused.code != "unknown_run":
            raise
        return False
    return True


def refusal_text(refused: DecisionRefused) -> str:
    """Returns what the model is told of a refused call."""
    return f"{refused.code}: {FOR_THE_MODEL[refused.code]}"


def request_data(request: ApprovalRequest) -> dict[str, Any]:
    """Returns a request as a framework hands it to its application: JSON, with the text to show."""
    try:
        text = render(request, now=time.time())
    except Unrepresentable as error:
        text = f"This call cannot be shown, and so not be approved: {error}"
    data: dict[str, Any] = {"id": request.id, "kind": request.kind, "tool": request.tool}
    return {**data, "arguments": dict(request.arguments), "text": text}


def text_for_model(turn: Turn) -> str:
    """Returns what the model is told of a call without images and sounds."""
    content = turn.messages[0].get("content") if turn.messages else None
    return content if isinstance(content, str) else turn.text
