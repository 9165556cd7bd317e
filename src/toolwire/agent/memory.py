"""Where an agent's conversations are kept between runs: in a store, or in this process."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwire.agent.agent_history import History
from toolwire.journal.conversation_info import refuse_other
from toolwire.journal.run import RunInfo
from toolwire.permission.approval import DecisionRefused
from toolwire.runtime.wakes import wait_for_future
from toolwire.session.session import Session
from toolwire.vocabulary.calls import Caller

if TYPE_CHECKING:
    # A database takes half a second to import: only agents with a store pay for it.
    from toolwire.journal.store import Store

RUNS_READ = 100
"""Number of the latest runs that are read at first. A history lacks few of them."""

CONVERSATIONS_KEPT = 1_000
"""Number of conversations that an agent without a store keeps. The one that was used least recently goes first."""

_LOG = logging.getLogger("toolwire.agents")


class ProcessMemory:
    """Keeps conversations in this process. A session names the conversation, its caller and its protocol."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Conversation] = OrderedDict()
        self._held = set[str]()

    @asynccontextmanager
    async def hold(self, session: Session) -> AsyncGenerator[None]:
        """Lets no other run work on the conversation.

        Raises:
            DecisionRefused: `conversation_busy` or `not_permitted`.
        """
        name = session.conversation
        if name in self._held:
            raise DecisionRefused(
                "conversation_busy", f"conversation {name!r} is in use: try again when that run has ended"
            )
        if name in self._kept:
            refuse_other(name, self._kept[name].owner, session.caller)
        self._held.add(name)
        try:
            yield
        finally:
            self._held.discard(name)

    async def load(self, session: Session) -> History:
        """Returns the history that was saved last, or a new one.

        Raises:
            ConfigurationError: It is not an agent's, or one of another protocol.
        """
        known = self._kept.get(session.conversation)
        return History.read(None if known is None else known.document, session)

    async def save(self, session: Session, history: History, output: Any) -> None:
        """Keeps the history. `output` is the value with which the model ended."""
        name = session.conversation
        before = self._kept.pop(name, None)
        # Later runs add to the list of the history that they have read.
        document = {**history.document(session.protocol.name), "messages": list(history.messages)}
        owner = session.caller if before is None else before.owner
        self._kept[name] = _Conversation(owner=owner, document=document, session=session, output=output)
        if len(self._kept) > CONVERSATIONS_KEPT:
            gone, _ = self._kept.popitem(last=False)
            _LOG.warning("conversation %r is forgotten: give the agent a store= to keep more", gone)

    async def restore_rules(self, session: Session, history: History) -> None:
        """Restores the rules that people kept in earlier runs. Those of this process come from the last session."""

    async def unheld_runs(self, session: Session, history: History) -> Sequence[RunInfo]:  # noqa: ARG002 - has no runs
        """Returns the runs on record that the history lacks, the oldest first."""
        return ()

    def last_session(self, session: Session) -> Session | None:
        """Returns the session of the last run; None if the store knows the labels that it has read."""
        known = self._kept.get(session.conversation)
        return None if known is None else known.session

    async def output(self, session: Session, history: History) -> Any:  # noqa: ARG002 - keeps the value itself
        """Returns the value with which the model ended."""
        return self._kept[session.conversation].output


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    """One conversation in this process."""

    owner: Caller
    document: dict[str, Any]
    session: Session
    output: Any


class StoreMemory:
    """Works as `ProcessMemory`, by documents of a store. Later turns are read from their runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions = dict[str, int]()

    @asynccontextmanager
    async def hold(self, session: Session) -> AsyncGenerator[None]:
        name = session.conversation
        lease = await wait_for_future(self._store.hold_conversation(name, caller=session.caller))
        try:
            yield
        finally:
            self._versions.pop(name, None)
            await wait_for_future(lease.release())

    async def load(self, session: Session) -> History:
        document = await self._store.adocument(session.conversation, caller=session.caller)
        self._versions[session.conversation] = document.version
        return History.read(document.value, session)

    async def save(self, session: Session, history: History, output: Any) -> None:  # noqa: ARG002 - the run has it
        name, value = session.conversation, history.document(session.protocol.name)
        version = self._versions[name]
        self._versions[name] = await self._store.asave_document(name, value, version=version, caller=session.caller)

    async def restore_rules(self, session: Session, history: History) -> None:
        if history.runs:
            restore = session._restore_rules  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            await asyncio.to_thread(restore, history.runs)

    async def unheld_runs(self, session: Session, history: History) -> Sequence[RunInfo]:
        known, limit = set(history.runs), RUNS_READ
        while True:
            found = await self._store.aruns(conversation=session.conversation, limit=limit)
            new = [run for run in found if run.run_id not in known]
            if len(found) < limit or len(new) < len(found):
                return new[::-1]
            limit *= 2

    def last_session(self, session: Session) -> Session | None:  # noqa: ARG002 - the store knows what was read
        return None

    async def output(self, session: Session, history: History) -> Any:
        ended = history.ended
        return None if ended is None or not ended.run_id else (await session.resume(ended.run_id)).final


Memory = ProcessMemory | StoreMemory
