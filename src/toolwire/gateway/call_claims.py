"""A call finds the run of an earlier equal call that waits for a person. That run may have a decision by now.

The run is in the store. So a call finds it in a new session, after a restart of the server, and in another process.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio

from toolwire.invocation.ports.offload import is_large_value
from toolwire.permission.approval import REQUEST_LIFE_S, ApprovalRequest
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import StoreUnavailable
from toolwire.vocabulary.values import digest, plain_value

if TYPE_CHECKING:
    from toolwire.journal.store import Store

_LOG = logging.getLogger("toolwire.gateway")

Owner = tuple[str, ...]
"""For whom a call is made: what an equal call must have in common with it."""


@dataclass(eq=False, kw_only=True)
class CallClaim:
    """One call, from its start to its answer."""

    key: str = ""
    """The key of the call in the store; empty if no later call is known as equal."""
    run_id: str = ""
    """The run of an earlier call that this one continues; empty for a new call."""
    pending: Sequence[ApprovalRequest] = ()
    """The undecided requests of an earlier call, if the client cannot be asked."""
    turn: Turn | None = None
    """The call's turn so far; None before it has one."""
    has_forms: bool = False
    """True if the client got forms, with a state by which it continues the call itself."""
    is_useless: bool = False
    """True if the earlier run cannot be continued any more."""

    @property
    def leaves_something(self) -> bool:
        """True if the store has to know how the call ended."""
        is_suspended = self.turn is not None and self.turn.suspended is not None
        # A client with the state of its forms continues the call by that, so that an equal one is another call.
        return bool(self.key) and (bool(self.run_id) or (is_suspended and not self.has_forms))


class CallClaims:
    """The calls of one server that wait for a person."""

    def __init__(self, store: Store | None, server: str) -> None:
        """`server` is the name of the server. Without a store no call waits."""
        self._store, self._server = store, server
        self._secret = b"" if store is None else hmac.digest(store.wire_key, b"toolwire waiting calls 1", "sha256")

    async def key_of(self, owner: Owner | None, session: Session, call: ToolCall) -> str:
        """Returns the key of a call; empty if it has no owner, or its tool is not there.

        It covers the owner, the server, the definition of the tool and the arguments. It has a secret of the store,
        because short arguments could be guessed from a plain digest.
        """
        entry = session._scope.catalogue.find(call.name)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if owner is None or entry is None or self._store is None:
            return ""
        make = partial(self._make_key, owner, call, entry.tool.digest)
        return await anyio.to_thread.run_sync(make) if is_large_value(call.arguments) else make()

    def _make_key(self, owner: Owner, call: ToolCall, tool_digest: str) -> str:
        what = digest([self._server, list(owner), call.name, tool_digest, plain_value(dict(call.arguments))])
        return hmac.digest(self._secret, what.encode("ascii"), "sha256").hex()

    @asynccontextmanager
    async def hold(self, key: str, *, is_new: bool, can_ask: bool) -> AsyncGenerator[CallClaim]:
        """Yields the call's claim of an earlier run, and at the end records its own run for the next call.

        A call that `is_new` looks for nothing. A client that cannot be asked does not claim a run without a decision.
        """
        claim = CallClaim(key=key) if is_new or not key else await self._find(key, can_ask=can_ask)
        try:
            yield claim
        finally:
            if claim.leaves_something:
                # Also for a call whose client is gone.
                with anyio.CancelScope(shield=True):
                    await self._leave(claim)

    async def _find(self, key: str, *, can_ask: bool) -> CallClaim:
        assert self._store is not None
        reading = self._store.waiting_calls(key)
        # SQLite was read already. Every call comes here, and the loop would take as long as a third of the read.
        for found in reading.result() if reading.done() else await asyncio.wrap_future(reading):
            if not (found.is_decided or can_ask):
                pending = await self._store.apending(found.run_id)
                if pending:
                    return CallClaim(key=key, pending=pending)
            # A claim that was made is also ended.
            claimed, is_mine = self._store.claim_waiting_call(key, found.run_id), False
            with anyio.CancelScope(shield=True):
                is_mine = await asyncio.wrap_future(claimed)
            if is_mine:
                return CallClaim(key=key, run_id=found.run_id)
        return CallClaim(key=key)

    async def _leave(self, claim: CallClaim) -> None:
        """Keeps, frees or forgets the run of a call that was suspended, or that continued another one."""
        assert self._store is not None
        try:
            await asyncio.wrap_future(self._record(self._store, claim))
        except StoreUnavailable:
            # The answer of the call counts. The next equal call is asked about anew.
            _LOG.exception("an equal call cannot find the call that waits for a person")

    def _record(self, store: Store, claim: CallClaim) -> Future[None]:
        turn, key, run_id = claim.turn, claim.key, claim.run_id
        if turn is None and not claim.is_useless:
            return store.free_waiting_call(key, run_id)
        if turn is None or turn.suspended is None:
            return store.forget_waiting_call(key, run_id)
        # All may be decided by now.
        last = store.clock() + REQUEST_LIFE_S
        expires_at = max((request.expires_at for request in turn.suspended.pending), default=last)
        return store.keep_waiting_call(key, turn.suspended.run_id, expires_at=expires_at)
