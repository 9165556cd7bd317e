"""Results in pages: the entry `read_result`, and the spill that it reads from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolwire.builtin.read_result import read_result_tool
from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Tool
from toolwire.invocation.scope import Scope
from toolwire.journal.spill import MemorySpill
from toolwire.vocabulary.calls import READ_RESULT
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.kept_text import KeptText, Spill


def pages_entry(spill: Spill | None) -> Entry:
    """Returns the tool `read_result`; without `spill`, results are kept in memory."""
    kept_in = MemorySpill() if spill is None else spill
    tool = _reader(kept_in)
    return Entry(name=READ_RESULT, tool=tool, handle=tool, spill=kept_in, rebind=_rebound)


def _rebound(entry: Entry, _: Callable[[], Scope], __: bool) -> Entry:
    """Texts that are kept in memory belong to one catalogue alone. A spill that the owner gave separates callers
    itself, and is shared.
    """
    if not isinstance(entry.spill, MemorySpill):
        return entry
    kept_in = entry.spill.apart()
    tool = _reader(kept_in)
    return replace(entry, tool=tool, handle=tool, spill=kept_in, disabled=None)


def _reader(kept_in: Spill) -> Tool:
    def find(id: str, context: CallContext) -> KeptText | None:
        kept = kept_in.find(id, context.caller)
        if kept is not None and isinstance(context.scope, Scope) and context.scope.run is not None:
            # A run that reads on in a result takes over the result's labels.
            context.scope.run.read(kept.labels)
        return kept

    return read_result_tool(find)
