"""The last steps of a result: the run has read it, and it must be representable and short enough for a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from toolwire.catalogue.entry import Entry
from toolwire.invocation.judge import is_denied
from toolwire.invocation.owners_fault import owners_fault
from toolwire.invocation.ports.offload import needs_thread, offload_if
from toolwire.invocation.scope import Run, Scope
from toolwire.invocation.validate import Prepared
from toolwire.permission.seen_urls import urls_in
from toolwire.vocabulary.blocks import TextBlock, is_media
from toolwire.vocabulary.calls import POLL_CALL, READ_RESULT, ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.kept_text import KeptText
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.cuts import cut_text, page_of
from toolwire.vocabulary.values import tag

OWNERS_LIMIT = 200
"""Maximum number of characters of a value that only its owner reads."""

_SHORT = frozenset({float, bool, type(None)})
_SHORT_INT = 1 << 64
"""Longer integers may exceed the limits of JSON or of a model."""


def has_read(prepared: Prepared, result: ToolResult, run: Run) -> None:
    """Adds the labels and URLs of a result to those that the run has read.

    The URLs of a tool that makes calls do not count: a model may have written them, and its calls' own results count.
    A background call's URLs count once.
    """
    tool = prepared.entry.tool
    run.read(tool.effects.labels)
    data = result.data
    if not result.success or prepared.is_composite or prepared.entry.name in _SAID_BEFORE:
        return
    # Most results hold no URL and must cost nothing.
    if (type(data) in _WITHOUT_URLS and not result.blocks) or (type(data) is str and "://" not in data):
        return
    run.saw(urls_in(result, prepared.call.arguments))


_WITHOUT_URLS = frozenset({int, float, bool, type(None)})
_SAID_BEFORE = frozenset({READ_RESULT, POLL_CALL})
"""Tools whose results were results of other calls."""


def postprocess(call: ToolCall, entry: Entry, result: ToolResult, limit_bytes: int | None) -> ToolResult:
    """Returns the result in the form that may be shown. Its data stay whole; its text is cut at `limit_bytes`.

    Without a limit, the result goes to a program, which accepts every tagged type, even a dict with tuples as keys. An
    error message is never cut here, because its end is often the important part. The output before it is cut.
    """
    if not result.blocks and (result.failure is not None or _is_short(result.data)):
        return result
    if result.failure is not None:
        return _before_failure(result, limit_bytes)
    try:
        if limit_bytes is None:
            tag(result.data)
            return result
        text = result.text if result.blocks else show(result.data)
    except Unrepresentable as error:
        return owners_fault(
            "invalid_result",
            f"{entry.name!r} ran, but its result cannot be shown: {error}.",
            hint="It may have taken effect.",
            for_owner=f"return a value that JSON can hold, not {_owners_text(result.data)}.",
            data={"path": error.path},
            metadata=result.metadata,
            call=call,
        )
    shown = cut_text(text, limit_bytes)
    return result if shown is text else _with_text(result, shown)


def _owners_text(data: Any) -> str:
    """Returns the value as its owner reads it, cut at `OWNERS_LIMIT` characters."""
    try:
        text = repr(data)
    except Exception:  # noqa: BLE001 - the `__repr__` of a value is the tool's code as well
        return f"a {type(data).__name__}"
    return text if len(text) <= OWNERS_LIMIT else f"{text[:OWNERS_LIMIT]}..."


async def check_promise(result: ToolResult, prepared: Prepared, scope: Scope) -> ToolResult:
    """Returns the result of an outside tool. One that does not fit the tool's output schema becomes a failure.

    The failure keeps the data and the blocks.
    """
    entry = prepared.entry
    check = entry.tool.output_check
    if check is None or not result.success:
        return result
    is_large = needs_thread(result.data, scope.ports)
    misfit = await offload_if(scope.ports, is_large, partial(check, result.data))
    if misfit is None:
        return result
    failed = owners_fault(
        "invalid_result",
        f"{entry.name!r} ran, but its result does not fit its output schema: {misfit}",
        hint="It may have taken effect.",
        for_owner="return what the output schema promises, or correct the schema.",
        metadata=result.metadata,
        call=prepared.call,
    )
    return replace(failed, data=result.data, blocks=result.blocks)


def _before_failure(result: ToolResult, limit_bytes: int | None) -> ToolResult:
    """Handles a failed result whose tool gave output before the failure."""
    try:
        text = _text_before_failure(result)
    except Unrepresentable:
        return replace(result, blocks=())
    shown = text if limit_bytes is None else cut_text(text, limit_bytes)
    return result if shown is text else _with_text(result, shown)


def _text_before_failure(result: ToolResult) -> str:
    return ToolResult(True, content=result.blocks).text


def _is_short(data: Any) -> bool:
    """True if the value is so small that no check is needed, as with most tools."""
    return type(data) in _SHORT or (type(data) is int and -_SHORT_INT < data < _SHORT_INT)


def _with_text(result: ToolResult, shown: str) -> ToolResult:
    pictures = filter(is_media, result.blocks)
    return replace(result, blocks=(TextBlock(type="text", text=shown), *pictures)).with_metadata(is_cut=True)


async def first_page(cut: ToolResult, whole_result: ToolResult, entry: Entry, scope: Scope) -> ToolResult:
    """Returns the result with its first page and a note on how to read on. A failed result pages its earlier output.

    If the model has no tool for reading on, the truncated result is returned unchanged.
    """
    reader, limit_bytes = scope.tools.find(READ_RESULT), scope.result_limit_bytes
    if reader is None or reader.spill is None or entry.name == READ_RESULT or limit_bytes is None:
        return cut
    if is_denied(reader, scope.policy) or reader.disabled is not None:
        return cut
    whole = whole_result.text if whole_result.failure is None else _text_before_failure(whole_result)
    kept = KeptText(text=whole, page_bytes=limit_bytes, labels=entry.tool.effects.labels)
    spill = reader.spill if reader.is_spill_given or scope.pages is None else scope.pages
    kept_as = await scope.ports.wait_for(spill.keep(kept, scope.caller))
    if kept_as is None:
        return cut
    page = page_of(whole, 0, limit_bytes)
    shown = page.removesuffix("\n")
    told = f"{shown}\n[the first {len(page):,} of {len(whole):,} characters; {reading_on(kept_as, len(page))}]"
    others = filter(is_media, cut.blocks)
    return replace(cut, blocks=(TextBlock(type="text", text=told), *others)).with_metadata(result_id=kept_as)


def reading_on(id: str, offset: int) -> str:
    """Returns the call with which a model gets the next page."""
    return f"call {READ_RESULT} with id={id!r} and offset={offset} to read on"
