"""`go_on`: the whole duty of a worker towards one run, which any engine can drive."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, cast

from toolwire.journal.queueing import TAKEOVERS
from toolwire.journal.run import RunInfo
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.runtime.runtime import default_runtime
from toolwire.session.session import Session
from toolwire.vocabulary.errors import ConfigurationError

SessionFor = Callable[[RunInfo, Store], Session]
"""Makes the session that goes on with a run. It is called once for each time that a worker takes a run."""

Outcome = Literal["finished", "suspended", "stopped", "parked", "later"]
"""finished: its results are on record. suspended: it waits for people. stopped: a person stopped it, or it cannot go
on. parked: only a person puts it back. later: it or its conversation is at work elsewhere; try again in a second.
"""

_LATER = ("run_busy", "conversation_busy")
_OVER = ("unknown_run", "expired", "divergence", "run_ended")

_LOG = logging.getLogger("toolwire.fleet")


async def go_on(store: Store, run_id: str, session_for: SessionFor) -> Outcome:
    """Begins or goes on with a run in a session of its own, until it ends or waits.

    `session_for(run, store)` makes the session. A run that has ended, or waits for a decision, is left as it is: so the
    same job may come any number of times.

    Raises:
        ConfigurationError: `run_id` is no text, or `session_for` fails or makes a session that is not this run's.
        DecisionRefused: The record of the run is damaged, or the session may not have it.
        StoreUnavailable: The store is away. Nothing is lost: try again.
    """
    if not isinstance(cast("object", run_id), str) or not run_id:
        raise ConfigurationError(f"go_on({run_id!r:.80}): give the id of a run, as Session.submit returns it")
    outcome = await _go_on(store, run_id, session_for)
    if outcome != "later":
        # Not awaited: those who wait also look at the run themselves.
        store.wake_watchers(run_id)
    return outcome


def run_go_on(store: Store, run_id: str, session_for: SessionFor) -> Outcome:
    """Runs `go_on` for blocking code, such as a task of Celery, and returns its result.

    Raises:
        ConfigurationError, DecisionRefused, StoreUnavailable: As `go_on`.
    """
    return default_runtime().portal.run(lambda: go_on(store, run_id, session_for))


async def _go_on(store: Store, run_id: str, session_for: SessionFor) -> Outcome:
    try:
        return await _resume(store, run_id, session_for)
    except DecisionRefused as refused:
        if refused.code in _LATER:
            return "later"
        if refused.code == "parked":
            return "parked"
        if refused.code not in _OVER:
            raise
        _LOG.warning("the run %s does not go on: %s", run_id, refused)
        await store.aset_aside(run_id)
        return "stopped"


async def _resume(store: Store, run_id: str, session_for: SessionFor) -> Outcome:
    run = await store.arun(run_id)
    if run.status == "finished":
        return "finished"
    if run.status in ("stopped", "diverged"):
        return "stopped"
    if run.status == "parked":
        return "parked"
    if run.is_held:
        return "later"
    if run.taken_over >= TAKEOVERS and await store.apark(run_id):
        _LOG.error("the run %s is parked: it was taken over %d times without a step", run_id, run.taken_over)
        return "parked"
    turn = await make_session(session_for, run, store).resume(run_id)
    if turn.suspended is not None:
        return "suspended"
    return "stopped" if turn.stopped else "finished"


def make_session(session_for: SessionFor, run: RunInfo, store: Store) -> Session:
    """Returns the session for a run.

    Raises:
        ConfigurationError: `session_for` failed, or its session is not this run's.
    """
    name = getattr(session_for, "__qualname__", repr(session_for))
    try:
        session = cast("object", session_for(run, store))
    except Exception as error:
        raise ConfigurationError(
            f"{name} made no session for run {run.run_id}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(session, Session):
        raise ConfigurationError(f"{name} returned {type(session).__name__}: return Session(..., store=store)")
    wrong = {
        "store=store": session.store is not store,
        "protocol=run.protocol": session.protocol.name != run.protocol,
        "caller=run.caller": session.caller != run.caller,
        "conversation=run.conversation": session.conversation != run.conversation,
    }
    missing = [option for option, is_wrong in wrong.items() if is_wrong]
    if missing:
        raise ConfigurationError(
            f"the session of {name} is not that of run {run.run_id}: write Session(..., {', '.join(missing)})"
        )
    return session
