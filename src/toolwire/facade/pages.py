"""Results in pages: the entry `read_result`, and the spill that it reads from."""

from __future__ import annotations

from dataclasses import replace

from toolwire.builtin.read_result import read_result_tool
from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.invocation.scope import Scope
from toolwire.journal.spill import MemorySpill
from toolwire.vocabulary.calls import READ_RESULT
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.kept_text import KeptText, Spill


def pages_entry(spill: Spill | None) -> Entry:
    """Returns the tool `read_result`; without `spill`, results are kept in memory."""
    kept_in = MemorySpill() if spill is None else spill

    def find(id: str, context: CallContext) -> KeptText | None:
        kept = kept_in.find(id, context.caller)
        if kept is not None and isinstance(context.scope, Scope) and context.scope.run is not None:
            # A run that reads on in a result takes over the result's labels.
            context.scope.run.read(kept.labels)
        return kept

    tool = read_result_tool(find)
    return Entry(name=READ_RESULT, tool=tool, handle=tool, spill=kept_in)


def apart(entry: Entry) -> Entry:
    """Returns the entry for another set of tools: texts that are kept in memory belong to one set alone.

    A spill that the owner gave is shared, since it separates callers itself.
    """
    if isinstance(entry.spill, MemorySpill):
        return replace(pages_entry(entry.spill.apart()), permission=entry.permission, group=entry.group)
    return entry


def keep_apart(catalogue: Catalogue) -> None:
    """Gives a session's catalogue its own `read_result`, if it has one."""
    entry = catalogue.find(READ_RESULT)
    if entry is not None and entry.spill is not None:
        catalogue.add(apart(entry), replace=True)
