"""After a crash: a call that was begun and never ended. It is never silently run a second time."""

from __future__ import annotations

import datetime
import logging

from toolwire.invocation.scope import Prepared, Scope
from toolwire.vocabulary.content import TextBlock
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.steps import Doubt

_LOG = logging.getLogger("toolwire.ledger")

DONE_ALREADY = "It had been done before a crash; what it answered was lost."


async def reconciled(prepared: Prepared, scope: Scope, doubt: Doubt) -> Doubt | ToolResult | None:
    """None where it may simply run (again): a composite's own calls are each on record, a keyed tool knows its key.

    A result when its owner's `reconcile` says that it was done; the same doubt when only a person can clear it.
    """
    effects = prepared.entry.tool.effects
    # Both what it was then and what it is today must allow it.
    if prepared.entry.composite is not None and doubt.is_composite:
        return None
    if doubt.idempotent == effects.idempotent and effects.idempotent != "no":
        prepared.attempt = doubt.attempt
        return None
    if effects.reconcile is None:
        return doubt
    try:
        found = await scope.ports.ask(effects.reconcile, doubt.idempotency_key)
    except Exception:  # noqa: BLE001 - the owner's code: if it breaks, nothing is known
        _LOG.exception("reconcile of %r failed on key %s", prepared.call.name, doubt.idempotency_key)
        return doubt
    match found:
        case "done":
            block = TextBlock(type="text", text=DONE_ALREADY)
            return ToolResult(True, None, None, {"reconciled": True}, content=(block,), call=prepared.call)
        case "not_done":
            prepared.attempt = doubt.attempt + 1
            return None
        case _:
            return doubt


def evidence(doubt: Doubt) -> str:
    """What is known of the attempt before, for the person who is asked."""
    began = datetime.datetime.fromtimestamp(doubt.started_at, datetime.UTC).isoformat(timespec="seconds")
    return (
        f"this may already have run: attempt {doubt.attempt} began {began}, and how it ended was lost in a crash "
        f"(idempotency key {doubt.idempotency_key})"
    )
