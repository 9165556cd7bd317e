"""Leases on conversations. One run at a time holds a conversation, from its first request to its end.

Turns of plain sessions take no such lease, and one that is held does not stop them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection, select, update

from toolwire.journal.conversation_info import refuse_other
from toolwire.journal.database.driver import run_many
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import CONVERSATIONS, OWNERS
from toolwire.journal.database.work import has_succeeded
from toolwire.journal.ledger.conversations import lock_conversation, refuse_busy
from toolwire.journal.ledger.leases import Owner, living_holder
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import Caller


class ConversationLease:
    """A conversation that this process holds, as `Store.hold_conversation` returns it.

    Keep the object until the run has ended: a lease that is dropped frees its conversation.

    Attributes:
        conversation: The name of the conversation.
    """

    def __init__(self, conversation: str, end: Callable[[], Future[None] | None]) -> None:
        self.conversation = conversation
        self._end = weakref.finalize(self, end)
        self._end.atexit = False

    def release(self) -> Future[None]:
        """Frees the conversation. Does nothing if the lease has ended, or the store was closed.

        The future raises `StoreUnavailable` if this could not be written. This process can then hold the conversation
        again, and frees it for others when the database is back.
        """
        written: Future[None] | None = self._end()
        if written is None:
            written = Future()
            written.set_result(None)
        return written


class HeldConversations:
    """The conversations that one opening of a store holds.

    A row that names this opening counts only while the opening has a lease: a release may have failed, or a commit may
    not have said whether it was made. Jobs run in the writer's thread, one after the other.
    """

    def __init__(self, owner: Owner, sealer: Sealer, run: Callable[..., Future[Any]]) -> None:
        """`run` queues a job for the writer of the database, as `Database.run` does."""
        self._owner, self._sealer, self._run = owner, sealer, run
        self._leases: dict[str, object] = {}
        """One mark for each conversation that is held: that of its lease."""
        self._unfreed: set[str] = set()
        """Conversations without a lease whose row may still name this opening."""

    def __bool__(self) -> bool:
        return bool(self._leases)

    def hold(self, conversation: str, caller: Caller, now: float, *, held_until: float) -> Future[ConversationLease]:
        """Takes the lease of a conversation; see `Store.hold_conversation`."""
        mark = object()

        def end() -> Future[None] | None:
            if self._leases.get(conversation) is not mark:
                return None
            del self._leases[conversation]
            return self._free(conversation)

        lease = ConversationLease(conversation, end)

        def job(connection: Connection) -> ConversationLease:
            # The mark is its own if the writer rolled the job back and runs it again.
            is_free_here = self._leases.get(conversation, mark) is mark
            state = lock_conversation(connection, self._sealer, conversation, caller, now)
            refuse_other(conversation, state.caller, caller)
            refuse_busy(connection, conversation, self._owner, now)
            _take(connection, conversation, self._owner, now, held_until=held_until, is_free_here=is_free_here)
            self._leases[conversation] = mark
            return lease

        return self._run(job, locks=(conversation,))

    def free_the_rest(self) -> None:
        """Frees the conversations whose release could not be written."""
        for conversation in tuple(self._unfreed):
            self._free(conversation)

    def leave(self, connection: Connection) -> None:
        """Frees every conversation of an opening that is closed."""
        self._write_free(connection, {*self._leases, *self._unfreed})

    def clear(self) -> None:
        """Ends the leases of an opening that was closed. Releasing them does nothing more."""
        self._leases.clear()

    def _free(self, conversation: str) -> Future[None]:
        self._unfreed.add(conversation)

        def job(connection: Connection) -> None:
            # Another thread of this process may have taken it by now.
            if conversation not in self._leases:
                self._write_free(connection, [conversation])

        written = self._run(job, locks=(conversation,))
        written.add_done_callback(lambda it: self._unfreed.discard(conversation) if has_succeeded(it) else None)
        return written

    def _write_free(self, connection: Connection, conversations: Iterable[str]) -> None:
        rows = [(conversation, str(self._owner)) for conversation in sorted(conversations)]
        if rows:
            run_many(connection, _FREE, rows)


_FREE = "UPDATE conversations SET held_by = '' WHERE conversation = ? AND held_by = ?"


def _take(
    connection: Connection, conversation: str, owner: Owner, now: float, *, held_until: float, is_free_here: bool
) -> None:
    """Writes the owner of a locked conversation.

    Raises:
        DecisionRefused: `conversation_busy`.
    """
    row = CONVERSATIONS.c.conversation == conversation
    both = CONVERSATIONS.outerjoin(OWNERS, OWNERS.c.owner == CONVERSATIONS.c.held_by)
    columns = select(CONVERSATIONS.c.held_by, CONVERSATIONS.c.held_until, OWNERS.c.alive_until)
    found = connection.execute(columns.select_from(both).where(row)).one()
    if found.held_by and not (found.held_by == str(owner) and is_free_here):
        holder = living_holder(found.held_by, lease_until=found.held_until, alive_until=found.alive_until, now=now)
        if holder:
            raise DecisionRefused(
                "conversation_busy",
                f"conversation {conversation!r} is held by a run of {holder}: try again when that run has ended",
            )
    connection.execute(update(CONVERSATIONS).where(row).values(held_by=str(owner), held_until=held_until))
