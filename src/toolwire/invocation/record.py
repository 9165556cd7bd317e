"""The ledger's part of the path: the lookup before a call starts, and the records around it."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Tool
from toolwire.invocation.ports.ports import Ledger
from toolwire.invocation.scope import Scope, read_again, read_result
from toolwire.invocation.validate import Prepared
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.effects import Reconcile
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.failures import REPEATABLE, stop_facts
from toolwire.vocabulary.results import Outcome, ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step, idempotency_key, step_of
from toolwire.vocabulary.values import digest
from toolwire.vocabulary.variables import change_of


def recall(call: ToolCall, scope: Scope, ledger: Ledger) -> ToolResult | tuple[Step, ToolResult | InDoubtStep | None]:
    """Returns the call as a step with its recorded result or its doubt; or the failure of a call that cannot run.

    This comes before everything else. The record does not depend on the tools and rules of today.
    """
    try:
        step = step_of(call)
    except Unrepresentable as error:
        return _unrecordable(call, error)
    known = ledger.recall(step)
    if isinstance(known, ToolResult):
        read_again(call.name, known, scope, call.arguments)
        entry = scope.tools.find(call.name)
        # Other tools that make calls were called again for as long as one of these waited.
        if entry is not None and (entry.composite is not None or entry.tool.is_delegating):
            read_below(call.id, entry, scope)
        if scope.end is not None:
            scope.end.recall(call, known, scope)
        if scope.variables is not None and call.name == CODE_EXECUTION and "variables" in known.metadata:
            scope.variables.change(call.id, change_of(known.metadata["variables"]))
        return step, known
    if scope.run is not None and scope.run.stopped is not None:
        return not_run(call, scope.run.stopped, known)
    return step, known


def read_below(key: str, entry: Entry | None, scope: Scope) -> None:
    """Adds the labels and URLs of the recorded calls below a call that ended: those of a program, or of a sub-agent.

    A run whose process was killed has them nowhere else.
    """
    if scope.ledger is None:
        return

    def find_own(name: str) -> Tool | None:
        found = scope.tools.find(name)
        return None if found is None else found.tool

    find = entry.tool.inner_tools().get if entry is not None and entry.tool.is_delegating else find_own
    _read_steps(key, find, scope, scope.ledger)


def _read_steps(key: str, find: Callable[[str], Tool | None], scope: Scope, ledger: Ledger) -> None:
    for step, result in ledger.steps_below(key):
        tool = find(step.tool)
        read_result(tool, step.tool, result, scope, step.given)
        if tool is not None and tool.is_delegating:
            _read_steps(step.key, tool.inner_tools().get, scope, ledger)
        elif step.tool == CODE_EXECUTION:
            _read_steps(step.key, find, scope, ledger)


def not_run(call: ToolCall, why: str, doubt: InDoubtStep | None) -> ToolResult:
    """Returns the result of a call that a stopped run leaves. With a `doubt`, it had begun before."""
    if doubt is None:
        data = stop_facts(is_started=False, may_repeat=True)
        message, hint = f"{call.name!r} was not run: {why}.", "Make no more calls; tell the user."
        return ToolResult.failed("interrupted", message, hint=hint, data=data, call=call)
    return in_doubt(call, why, doubt)


def in_doubt(call: ToolCall, why: str, doubt: InDoubtStep, data: Mapping[str, Any] | None = None) -> ToolResult:
    """Returns the result of a call that began before, and does not run again. `why` says what keeps it from that."""
    may_repeat = doubt.idempotent == "natural"
    return ToolResult.failed(
        "unknown_outcome",
        f"{call.name!r} began before, and its end is not on record; it was not run again: {why}.",
        hint=REPEATABLE if may_repeat else "",
        data={**(data or {}), **stop_facts(is_started=True, may_repeat=may_repeat)},
        call=call,
    )


def begin(prepared: Prepared, step: Step, scope: Scope, ledger: Ledger) -> Future[Any] | ToolResult | None:
    """Records the start of the call before it runs, and gives the start time, or a result if it must not run.

    None: its start needs no record, and that of its run is on record.
    """
    if not _begins_on_record(prepared):
        return ledger.record_start()
    if prepared.request_id:
        # The ledger compares the start with the request that a person saw, so an outdated canonical form must not be
        # used.
        prepared.look_again()
    try:
        arguments = arguments_for_record(prepared, scope)
    except Unrepresentable as error:
        return _unrecordable(prepared.call, error)
    start = _start(prepared, step, arguments)
    if prepared.entry.tool.effects.has_key:
        prepared.idempotency_key = idempotency_key(ledger.run_id, step.key, start.arguments_digest)
    return ledger.begin(start)


def needs_start(tool: Tool) -> bool:
    """True if each start of the tool is recorded, because a second one might change something."""
    return tool.effects.idempotent != "natural" and not tool.is_delegating


def _begins_on_record(prepared: Prepared) -> bool:
    entry = prepared.entry
    return needs_start(entry.tool) or entry.composite is not None or bool(prepared.request_id)


def _start(prepared: Prepared, step: Step, arguments: Mapping[str, Any]) -> Start:
    tool = prepared.entry.tool
    return Start(
        step=step,
        arguments=arguments,
        arguments_digest=digest(arguments),
        tool_digest=tool.digest,
        idempotent=tool.effects.idempotent,
        is_composite=prepared.entry.composite is not None,
        request_id=prepared.request_id,
        attempt=prepared.attempt,
        has_key=tool.effects.has_key,
    )


def record_begun(prepared: Prepared, step: Step, scope: Scope, ledger: Ledger) -> None:
    """Records that a stopped call had begun, if its start needed no record. Does not wait."""
    if not _begins_on_record(prepared):
        with suppress(Unrepresentable):
            ledger.begin(_start(prepared, step, arguments_for_record(prepared, scope)))


def arguments_for_record(prepared: Prepared, scope: Scope) -> Mapping[str, Any]:
    """Returns the arguments for the record: their canonical form.

    Without a canonical form, and if no decision was made about the call, the model's own arguments are recorded.

    Raises:
        Unrepresentable: A decision was made about the arguments, but they no longer have a canonical form.
    """
    try:
        return prepared.canonical(scope)
    except Unrepresentable:
        if prepared.request_id:
            raise
        return cast("dict[str, Any]", step_of(prepared.asked).given)


def is_divergence(outcome: Outcome) -> bool:
    """True if the call differs from the recorded one."""
    return isinstance(outcome, ToolResult) and outcome.failure is not None and outcome.failure.kind == "divergence"


def _unrecordable(call: ToolCall, error: Unrepresentable) -> ToolResult:
    return ToolResult.failed(
        "invalid_arguments", f"The arguments of {call.name!r} cannot be recorded: {error}.", call=call
    )


_LOG = logging.getLogger("toolwire.ledger")


def refuse_rerun(call: ToolCall, reason: str) -> ToolResult:
    """Returns the result of a call that began before, and that a person did not let run again."""
    data = {"reason": reason, **stop_facts(is_started=True, may_repeat=False)}
    message = f"{call.name!r} began before, and its end is not on record; it may not be run again: {reason}."
    hint = "It may have taken effect. Do not call it again; tell the user."
    return ToolResult.failed("denied", message, hint=hint, data=data, call=call)


DONE_ALREADY = "It was done already; its result is not on record."


async def resolve_doubt(prepared: Prepared, scope: Scope, doubt: InDoubtStep) -> InDoubtStep | ToolResult | None:
    """Returns None if the call may run again, a result if it was done, or the doubt if only a person can decide.

    A composite and a delegating tool may run again, because their calls have their own records. So may an idempotent
    tool, and a tool that waited for an answer. The owner's `reconcile` function can report that the call was done.
    """
    effects = prepared.entry.tool.effects
    if doubt.is_asking:
        prepared.attempt = doubt.attempt
        return None
    # The declaration at that time and today's must both allow it.
    if prepared.entry.composite is not None and doubt.is_composite:
        return None
    may_repeat = doubt.idempotent == effects.idempotent and effects.idempotent != "no"
    may_repeat = may_repeat or prepared.entry.tool.is_delegating
    found = None
    if effects.reconcile is not None and effects.idempotent != "natural":
        found = await _ask_reconcile(effects.reconcile, prepared, scope, doubt)
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


async def _ask_reconcile(reconcile: Reconcile, prepared: Prepared, scope: Scope, doubt: InDoubtStep) -> Any:
    try:
        return await scope.ports.ask(reconcile, doubt.idempotency_key)
    except Exception:  # noqa: BLE001 - the owner's code: if it fails, the outcome stays unknown
        _LOG.exception("reconcile of %r failed on key %s", prepared.call.name, doubt.idempotency_key)
        return None


def evidence(doubt: InDoubtStep) -> str:
    """Describes the earlier attempt for the person who decides."""
    began = datetime.datetime.fromtimestamp(doubt.started_at, datetime.UTC).isoformat(timespec="seconds")
    return (
        f"this may already have run: attempt {doubt.attempt} began {began}, and its end is not on record "
        f"(idempotency key {doubt.idempotency_key})"
    )
