"""Results in pages: the entry `read_result`, and the memory that holds the whole results."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from toolwire.builtin.read_result import read_result_tool
from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Tool
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import READ_RESULT, Caller
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.kept_text import KeptText, Spill

BYTES_LIMIT = 16 * 1024 * 1024
"""Bytes of text kept in total. Hundreds of long results fit; it is little beside the memory of the tools that gave
them.
"""
ENTRIES_LIMIT = 200
"""Number of results kept: more than a model returns to."""
_ID_BYTES = 16


def pages_entry(spill: Spill | None) -> Entry:
    """Returns the tool `read_result`; without `spill`, results are kept in the session's store or in memory."""
    kept_in = MemorySpill() if spill is None else spill
    tool = _reader(kept_in, is_given=spill is not None)
    return Entry(
        name=READ_RESULT,
        tool=tool,
        handle=tool,
        spill=kept_in,
        is_spill_given=spill is not None,
        rebind=_rebind_pages,
    )


def _rebind_pages(entry: Entry, _: Callable[[], Scope], __: bool) -> Entry:
    """Texts that are kept in memory belong to one catalogue alone. A spill that the owner gave separates callers
    itself, and is shared.
    """
    if entry.is_spill_given or not isinstance(entry.spill, MemorySpill):
        return entry
    kept_in = entry.spill.empty_copy()
    tool = _reader(kept_in, is_given=False)
    return replace(entry, tool=tool, handle=tool, spill=kept_in, disabled=None)


def _reader(kept_in: Spill, *, is_given: bool) -> Tool:
    def find(id: str, context: CallContext) -> KeptText | None:
        scope = context.scope if isinstance(context.scope, Scope) else None
        kept = kept_in.find(id, context.caller)
        if kept is None and scope is not None and scope.pages is not None and not is_given:
            # Calls in the background are not on record. Their results are in memory also beside a store.
            kept = scope.pages.find(id, context.caller)
        if kept is not None and scope is not None and scope.run is not None:
            # A run that reads on in a result takes over the result's labels.
            scope.run.read(kept.labels)
        return kept

    return read_result_tool(find)


class MemorySpill:
    """Keeps results up to two limits, then drops the least recently read one.

    Thread-safe.
    """

    def __init__(self, bytes_limit: int = BYTES_LIMIT, *, entries_limit: int = ENTRIES_LIMIT) -> None:
        self.bytes_limit = bytes_limit
        self.entries_limit = entries_limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[KeptText, Caller, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def empty_copy(self) -> MemorySpill:
        """Returns an empty spill with the same limits."""
        return MemorySpill(self.bytes_limit, entries_limit=self.entries_limit)

    def keep(self, kept: KeptText, caller: Caller, /) -> Future[str | None]:
        """Keeps a text and returns its id; the future is already done.

        The id is None if the text alone exceeds `bytes_limit`.
        """
        found: Future[str | None] = Future()
        size = len(kept.text.encode("utf-8", "replace"))
        if size > self.bytes_limit:
            found.set_result(None)
            return found
        new_id = secrets.token_hex(_ID_BYTES)
        with self._lock:
            self._kept[new_id] = (kept, caller, size)
            self._bytes += size
            while self._bytes > self.bytes_limit or len(self._kept) > self.entries_limit:
                _, (_, _, freed) = self._kept.popitem(last=False)
                self._bytes -= freed
        found.set_result(new_id)
        return found

    def find(self, id: str, caller: Caller, /) -> KeptText | None:
        """Returns the text, or None if it is gone or was kept for another caller."""
        with self._lock:
            kept = self._kept.get(id)
            if kept is None or kept[1] != caller:
                return None
            self._kept.move_to_end(id)
            return kept[0]
