"""Where an agent's conversations are kept between runs: in a store, or in this process."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from toolwire.agent.history import History
from toolwire.journal.conversation_info import refuse_other
from toolwire.journal.run import RunInfo
from toolwire.journal.store import RUNS_LISTED, Store
from toolwire.permission.approval import DecisionRefused
from toolwire.session.session import Session
from toolwire.vocabulary.calls import Caller

CONVERSATIONS_KEPT = 1_000
"""Number of conversations that an agent without a store keeps. The one that was used least recently goes first."""

T = TypeVar("T")
_LOG = logging.getLogger("toolwire.agents")


class Memory(Protocol):
    """Keeps conversations."""

    def hold(self, conversation: str, caller: Caller) -> Any:
        """Returns an asynchronous context in which no other run works on the conversation.

        Raises:
            DecisionRefused: `conversation_busy` or `not_permitted`.
        """
        ...

    async def load(self, conversation: str, caller: Caller, protocol: str) -> History:
        """Returns the history that was saved last, or a new one.

        Raises:
            ConfigurationError: It is not an agent's, or one of another protocol.
        """
        ...

    async def save(self, session: Session, history: History, output: Any) -> None:
        """Keeps the history. `output` is the value with which the model ended."""
        ...

    async def unheld_runs(self, conversation: str, history: History) -> Sequence[RunInfo]:
        """Returns the runs on record that the history lacks, the oldest first."""
        ...

    def last_session(self, conversation: str) -> Session | None:
        """Returns the session of the last run if nothing else knows what it has read."""
        ...

    async def output(self, session: Session, history: History) -> Any:
        """Returns the value with which the model ended."""
        ...


class ProcessMemory:
    """Keeps conversations in this process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Caller, dict[str, Any], Session, Any]] = OrderedDict()
        self._held = set[str]()

    @asynccontextmanager
    async def hold(self, conversation: str, caller: Caller) -> AsyncGenerator[None]:
        if conversation in self._held:
            raise DecisionRefused(
                "conversation_busy", f"conversation {conversation!r} is in use: try again when that run has ended"
            )
        if conversation in self._kept:
            refuse_other(conversation, self._kept[conversation][0], caller)
        self._held.add(conversation)
        try:
            yield
        finally:
            self._held.discard(conversation)

    async def load(self, conversation: str, caller: Caller, protocol: str) -> History:
        known = self._kept.get(conversation)
        return History.read(None if known is None else known[1], protocol, conversation)

    async def save(self, session: Session, history: History, output: Any) -> None:
        document = history.document()
        # Later runs add to the lists of the history that they have read.
        name = session.conversation
        owner = self._kept.pop(name, (session.caller,))[0]
        self._kept[name] = owner, {**document, "messages": list(history.messages)}, session, output
        if len(self._kept) > CONVERSATIONS_KEPT:
            gone, _ = self._kept.popitem(last=False)
            _LOG.warning("conversation %r is forgotten: give the agent a store= to keep more", gone)

    async def unheld_runs(self, conversation: str, history: History) -> Sequence[RunInfo]:
        return ()

    def last_session(self, conversation: str) -> Session | None:
        return self._kept[conversation][2] if conversation in self._kept else None

    async def output(self, session: Session, history: History) -> Any:
        return self._kept[session.conversation][3]


class StoreMemory:
    """Keeps conversations as documents of a store. What runs have done since is read from the runs themselves."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions = dict[str, int]()

    @asynccontextmanager
    async def hold(self, conversation: str, caller: Caller) -> AsyncGenerator[None]:
        lease = await _arrived(self._store.hold_conversation(conversation, caller=caller))
        try:
            yield
        finally:
            self._versions.pop(conversation, None)
            await _arrived(lease.release())

    async def load(self, conversation: str, caller: Caller, protocol: str) -> History:
        document = await self._store.adocument(conversation, caller=caller)
        self._versions[conversation] = document.version
        return History.read(document.value, protocol, conversation)

    async def save(self, session: Session, history: History, output: Any) -> None:
        name = session.conversation
        self._versions[name] = await self._store.asave_document(
            name, history.document(), version=self._versions[name], caller=session.caller
        )

    async def unheld_runs(self, conversation: str, history: History) -> Sequence[RunInfo]:
        known, limit = set(history.runs), RUNS_LISTED
        while True:
            found = await self._store.aruns(conversation=conversation, limit=limit)
            new = [run for run in found if run.run_id not in known]
            if len(found) < limit or len(new) < len(found):
                return new[::-1]
            limit *= 2

    def last_session(self, conversation: str) -> Session | None:
        return None

    async def output(self, session: Session, history: History) -> Any:
        ended = history.ended
        return None if ended is None or not ended.run_id else (await session.resume(ended.run_id)).final


async def _arrived(future: Any) -> Any:
    return await asyncio.shield(asyncio.wrap_future(future))
