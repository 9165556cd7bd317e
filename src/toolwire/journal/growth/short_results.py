"""Shortens the results of a run that ended to what the model read of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import Connection, func, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import RUNS, STEPS
from toolwire.journal.ledger.forms import (
    REFERRING,
    WHOLE,
    encode_form,
    read_form,
    read_results,
    read_run,
    result_form,
    results_form,
    shorten_form,
    step_end_form,
    texts_of,
)
from toolwire.journal.ledger.history import KeptStep, history_of
from toolwire.journal.ledger.large_values import LargeValues
from toolwire.vocabulary.blocks import ContentBlock, TextBlock, text_of
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest_of_tagged, in_order

DROPPED = "dropped"
"""The key of `ToolResult.metadata` that says that a result is no longer whole: its digest, and its bytes as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewValue:
    """A sealed value that replaces a longer one.

    Attributes:
        key: The key of the step; empty for the outcome of the run.
        sealed: The new value.
        freed: Bytes by which it is shorter.
    """

    key: str
    sealed: bytes
    freed: int


def shorten_run(connection: Connection, sealer: Sealer, run_id: str) -> Iterator[NewValue]:
    """Yields the new values of a run that ended, in the order in which they must be written.

    A record refers only to records that are written later, so the run can be read after each of them.

    Raises:
        DecisionRefused: `bad_mac`: a record was changed in the database.
    """
    history = history_of(connection, sealer, run_id)
    short = {key: _shorten(history.steps[key]) for key in history.end_order}
    columns = select(STEPS.c.key, func.length(STEPS.c.ended)).where(STEPS.c.run_id == run_id)
    sizes = {str(row[0]): int(row[1] or 0) for row in connection.execute(columns)}
    row = connection.execute(select(RUNS.c.start, RUNS.c.outcome).where(RUNS.c.run_id == run_id)).one()
    if row.outcome is not None:
        texts = texts_of(read_form(sealer.open(row.start, "runs", run_id, "start"), read_run))
        whole = {key: kept.result for key, kept in history.steps.items()}
        written = sealer.open(row.outcome, "runs", run_id, "outcome")
        results = read_form(written, lambda form: read_results(form, whole, texts))
        short_results = [_what_was_read(result) for result in results]
        steps = {
            result.call.id: history.steps[result.call.id].step
            for result in short_results
            if result.call is not None
            and result.call.id in short
            and result_form(result) == result_form(short[result.call.id])
        }
        form = encode_form(results_form(short_results, steps, texts), REFERRING if steps else WHOLE)
        sealed = sealer.seal(form, "runs", run_id, "outcome")
        yield NewValue(key="", sealed=sealed, freed=len(row.outcome) - len(sealed))
    for key in reversed(history.end_order):
        kept = history.steps[key]
        form = shorten_form(step_end_form(kept.step, short[key]), LargeValues(), is_begun=kept.start is not None)
        sealed = sealer.seal(encode_form(form, REFERRING), "steps", run_id, key, "ended")
        yield NewValue(key=key, sealed=sealed, freed=sizes[key] - len(sealed))


def _shorten(kept: KeptStep) -> ToolResult:
    """Returns the result of a step without what no model has read."""
    result = cast("ToolResult", kept.result)
    if not kept.step.parent:
        return _what_was_read(result)
    # A program or a tool has received it, and it goes on with the record of its own end.
    return _mark(result, replace(result, data=None, blocks=(), metadata={}))


def _what_was_read(result: ToolResult) -> ToolResult:
    """Returns a result of a call of the model with what the model read: its blocks as texts, or else its data."""
    program = result.metadata.get("program")
    error: Any = cast("Mapping[str, Any]", program).get("error") if isinstance(program, Mapping) else None
    # By the error of a program the model is told the right form of its call.
    metadata = {} if error is None else {"program": {"error": error}}
    if not result.blocks:
        return _mark(result, replace(result, metadata=metadata))
    return _mark(result, replace(result, data=None, blocks=tuple(map(_as_text, result.blocks)), metadata=metadata))


def _as_text(block: ContentBlock) -> TextBlock:
    return TextBlock(type="text", text=text_of([block]))


def _mark(whole: ToolResult, short: ToolResult) -> ToolResult:
    if DROPPED in whole.metadata:
        return short.with_metadata(**{DROPPED: whole.metadata[DROPPED]})
    before = result_form(whole)
    if before == result_form(short):
        return whole
    facts = {"digest": digest_of_tagged(in_order(before)), "bytes": len(encode_form(before))}
    return short.with_metadata(**{DROPPED: facts})
