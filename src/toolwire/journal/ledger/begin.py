"""Begins a step that needs a query first, and explains why a step was not begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.ledger.approvals import use
from toolwire.journal.ledger.forms import call_of
from toolwire.journal.ledger.leases import Lease, LeaseLost, check_lease
from toolwire.journal.ledger.steps import BEGUN, begin_again, is_step_begun
from toolwire.journal.run import RUN_LIMIT_BYTES
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step


class MustNotRun(Exception):
    """The step was not begun. `result` gives the reason."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error)
        self.result = result


def begin(
    connection: Connection,
    sealer: Sealer,
    lease: Lease,
    start: Start,
    row: Mapping[str, Any],
    *,
    now: float,
    is_again: bool,
) -> float:
    """Begins the step, uses up its approval, and returns its start time.

    Raises:
        MustNotRun: The approval does not allow it, or the step was begun elsewhere in the meantime.
        LeaseLost: Another process holds the run.
    """
    check_lease(connection, lease, now)
    if start.request_id:
        refused = use(connection, sealer, start, is_again=is_again)
        if refused is not None:
            raise MustNotRun(refused)
    if not is_again:
        BEGUN.write(connection, [row])
    elif not begin_again(connection, row):
        raise MustNotRun(may_have_run(start.step, "another caller has begun it meanwhile"))
    return row["started_at"]


def why_not(connection: Connection, error: Exception, run_id: str, step: Step) -> ToolResult:
    """Returns the result of a step that was not begun. Raises any other error again."""
    if isinstance(error, MustNotRun):
        return error.result
    is_lost = isinstance(error, LeaseLost)
    if isinstance(error, IntegrityError) or (is_lost and is_step_begun(connection, run_id, step.key)):
        return may_have_run(step, "another caller has begun it meanwhile")
    if is_lost:
        return takeover_failure(run_id)
    raise error


def may_have_run(step: Step, why: str) -> ToolResult:
    """Returns the failure for a step that has been begun before; its outcome is unknown here."""
    return ToolResult.failed(
        "unknown_outcome",
        f"{step.tool!r} was not run again: {why}, and how it ended is not known.",
        data={"step": step.key, **stop_facts(is_started=True, may_repeat=False)},
    )


def takeover_failure(run_id: str) -> ToolResult:
    """Returns the failure for a run that this process no longer holds."""
    return ToolResult.failed("interrupted", f"Run {run_id} was given up here; another process may continue it.")


def stop_failure(step: Step, why: str, *, is_again: bool) -> ToolResult:
    """Returns the failure for a step that does not begin, because the run was stopped. `is_again`: it began before."""
    message = f"{step.tool!r} was not run: {why}."
    if is_again:
        message = f"{step.tool!r} began before and was not run again: {why}."
    return ToolResult.failed(
        "unknown_outcome" if is_again else "interrupted",
        message,
        hint="Make no more calls; tell the user.",
        data=stop_facts(is_started=is_again, may_repeat=not is_again),
    )


def too_much_to_begin(step: Step) -> ToolResult:
    """Returns the failure for a run that has no room for another call."""
    return ToolResult.failed(
        "limit",
        f"{step.tool!r} was not run: this turn has {_LIMIT_MB} MB on record, and may have no more.",
        hint="It did not run. Ask for it again in your next message, and for less at a time.",
        data={"limit_bytes": RUN_LIMIT_BYTES, "is_started": False},
        call=call_of(step),
    )


def too_much_to_keep(step: Step, call: ToolCall | None, size: int) -> ToolResult:
    """Returns the failure for a call that ran, in a run that has no room for its result."""
    return ToolResult.failed(
        "limit",
        f"{step.tool!r} ran, but its result of {size:,} bytes was not kept: a turn may have {_LIMIT_MB} MB on record.",
        hint="It may have taken effect. Ask for less at a time.",
        data={"limit_bytes": RUN_LIMIT_BYTES, "size_bytes": size, "is_started": True},
        call=call,
    )


_LIMIT_MB = RUN_LIMIT_BYTES // 1024 // 1024


def divergence(kept: Step, step: Step) -> ToolResult:
    """Returns the failure for a run that asks for another step than the one on record."""
    changed = f"{step.tool!r} now" if step.tool != kept.tool else "the same tool with other arguments now"
    return ToolResult.failed(
        "divergence",
        f"Step {step.key} was {kept.tool!r} when it was recorded and is {changed}: the run was stopped.",
        data={"step": step.key},
    )
