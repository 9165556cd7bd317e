"""The events of calls that are still arriving. They are a view: the calls of a reply are read from its message."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from toolwire.protocols.native.written import Reader, WrittenCall, with_made_id
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent


class LiveCalls:
    """Makes the events of a stream's calls. A key stands for one call."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._indexes: dict[Hashable, int] = {}
        self._ended: set[Hashable] = set()
        self._owners: dict[str, Hashable] = {}

    def start(self, key: Hashable, *, name: str, id: str) -> Iterator[StreamEvent]:
        """Begins a call whose name is known, once. Its index counts the calls as they begin."""
        if key not in self._indexes:
            self._indexes[key] = len(self._indexes)
            self._owners.setdefault(id, key)
            yield CallStarted(index=self._indexes[key], name=self._reader.names.from_provider(name), id=id)

    def add_arguments(self, key: Hashable, text: str) -> Iterator[StreamEvent]:
        """Passes on a piece of a call's arguments."""
        if text and key in self._indexes:
            yield ArgumentsDelta(index=self._indexes[key], text=text)

    def end(self, key: Hashable, call: WrittenCall) -> Iterator[StreamEvent]:
        """Ends a call that has begun, once."""
        if key not in self._indexes or key in self._ended:
            return
        self._ended.add(key)
        is_first = self._owners.setdefault(call.id, key) == key
        index = self._indexes[key]
        found, problems = self._reader.call(index, call if is_first or not call.id else with_made_id(index, call))
        is_read = all(problem.repaired for problem in problems)
        yield CallEnded(index=self._indexes[key], call=found if is_read else None)

    def knows(self, name: str) -> bool:
        """True if a tool has this name in the provider's form."""
        return self._reader.names.from_provider(name) in self._reader.known.by_name
