"""Handling of a call that began before a crash and has no recorded end. It is never silently run a second time."""

from __future__ import annotations

import datetime
import logging
from typing import Any

from toolwire.invocation.scope import Prepared, Scope
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.effects import Reconcile
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Doubt

_LOG = logging.getLogger("toolwire.ledger")

DONE_ALREADY = "It had been done before a crash; what it answered was lost."


async def reconciled(prepared: Prepared, scope: Scope, doubt: Doubt) -> Doubt | ToolResult | None:
    """Returns None if the call may run again, a result if it was done, or the doubt if only a person can decide.

    A composite may run again, because its calls have their own records. So may an idempotent tool. The owner's
    `reconcile` function can report that the call was done.
    """
    effects = prepared.entry.tool.effects
    # The declaration at that time and today's must both allow it.
    if prepared.entry.composite is not None and doubt.is_composite:
        return None
    may_repeat = doubt.idempotent == effects.idempotent and effects.idempotent != "no"
    found = None
    if effects.reconcile is not None and effects.idempotent != "natural":
        found = await _found(effects.reconcile, prepared, scope, doubt)
    if found == "done":
        block = TextBlock(type="text", text=DONE_ALREADY)
        return ToolResult(True, None, None, {"reconciled": True}, content=(block,), call=prepared.call)
    if may_repeat:
        prepared.attempt = doubt.attempt
        return None
    # A tool that received no key left no trace of it, so not finding the key proves nothing.
    if found == "not_done" and (doubt.has_key or doubt.idempotent == "key"):
        prepared.attempt = doubt.attempt + 1
        return None
    return doubt


async def _found(reconcile: Reconcile, prepared: Prepared, scope: Scope, doubt: Doubt) -> Any:
    try:
        return await scope.ports.ask(reconcile, doubt.idempotency_key)
    except Exception:  # noqa: BLE001 - the owner's code: if it fails, the outcome stays unknown
        _LOG.exception("reconcile of %r failed on key %s", prepared.call.name, doubt.idempotency_key)
        return None


def evidence(doubt: Doubt) -> str:
    """Describes the earlier attempt for the person who decides."""
    began = datetime.datetime.fromtimestamp(doubt.started_at, datetime.UTC).isoformat(timespec="seconds")
    return (
        f"this may already have run: attempt {doubt.attempt} began {began}, and how it ended was lost in a crash "
        f"(idempotency key {doubt.idempotency_key})"
    )
