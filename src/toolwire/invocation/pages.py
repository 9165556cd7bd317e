"""Paging of long results: the whole text is kept, and the model gets the first page."""

from __future__ import annotations

from toolwire.catalogue.entry import Entry
from toolwire.invocation.fold import replaced
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import READ_RESULT
from toolwire.vocabulary.kept_text import KeptText
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.text import page_of


async def first_page(cut: ToolResult, whole: str, entry: Entry, scope: Scope) -> ToolResult:
    """Returns the result with its first page and a note on how to read on.

    If the model has no tool for reading on, the truncated result is returned unchanged.
    """
    reader, limit_bytes = scope.catalogue.find(READ_RESULT), scope.result_limit_bytes
    if reader is None or reader.spill is None or entry.name == READ_RESULT or limit_bytes is None:
        return cut
    is_denied = scope.policy.judge(reader.name, reader.permission or reader.tool.permission).effect == "deny"
    if is_denied or reader.disabled is not None:
        return cut
    kept = KeptText(text=whole, page_bytes=limit_bytes, labels=entry.tool.effects.labels)
    kept_as = await scope.ports.arrived(reader.spill.keep(kept, scope.caller))
    if kept_as is None:
        return cut
    page = page_of(whole, 0, limit_bytes)
    shown = page.removesuffix("\n")
    told = f"{shown}\n[the first {len(page):,} of {len(whole):,} characters; {reading_on(kept_as, len(page))}]"
    others = [block for block in cut.blocks if block["type"] != "text"]
    return replaced(cut, (TextBlock(type="text", text=told), *others)).with_metadata(result_id=kept_as)


def reading_on(id: str, offset: int) -> str:
    """Returns the call with which a model gets the next page."""
    return f"call {READ_RESULT} with id={id!r} and offset={offset} to read on"
