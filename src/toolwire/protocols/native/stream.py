"""Streaming of native replies. Pieces are collected under the keys that the provider gives its calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.protocols.base import REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.native.assembly import Assembly
from toolwire.protocols.native.fields import opened, sent
from toolwire.protocols.native.written import Reader, Written, WrittenCall
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextDelta
from toolwire.vocabulary.calls import Problem, Reply

STREAM_LIMIT_CHARACTERS = 16_777_216
"""Maximum size of all pieces of one streamed reply, encrypted reasoning and server tools' results included.

The message of such a reply is still smaller than the largest request of the providers, which is 32 MB.
"""


@dataclass(slots=True, kw_only=True)
class _Coming:
    """A call that is still arriving."""

    index: int
    call: WrittenCall
    pieces: list[str] = field(default_factory=list[str])
    has_started: bool = False
    has_ended: bool = False

    def whole(self) -> WrittenCall:
        """Returns the call so far."""
        if self.call.arguments is None:
            return WrittenCall(name=self.call.name, id=self.call.id, arguments="".join(self.pieces))
        return self.call


class Gathering:
    """The state of a streamed reply. Methods that return an iterator yield the events for the caller."""

    def __init__(self, reader: Reader) -> None:
        self.written = Written()
        """Details of the reply other than its text and calls."""
        self._reader = reader
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[Hashable, _Coming] = {}
        self._left = REPLY_LIMIT_BYTES

    def text(self, piece: str) -> Iterator[StreamEvent]:
        """Adds text for the user."""
        if piece and self._fits(piece):
            self._texts.append(piece)
            yield TextDelta(text=piece)

    def thought(self, piece: str) -> None:
        """Adds to the model's thought."""
        if piece and self._fits(piece):
            self._thoughts.append(piece)

    def refusal(self, piece: str) -> None:
        """Adds to the model's explanation of why it declines."""
        if piece and self._fits(piece):
            self._refusals.append(piece)

    def call(self, key: Hashable, *, name: str = "", id: str = "", arguments: Any = None) -> Iterator[StreamEvent]:
        """Begins a call, or adds to it. Give `arguments` here only if the provider sends them in one piece."""
        coming = self._calls.get(key)
        if coming is None:
            if not self._fits(name):
                return
            call = WrittenCall(name="", id="", arguments=None)
            self._calls[key] = coming = _Coming(index=len(self._calls), call=call)
        coming.call.name += "" if coming.has_started else name
        coming.call.id = coming.call.id or id
        if arguments is not None:
            coming.call.arguments = arguments
        if coming.call.name and not coming.has_started:
            coming.has_started = True
            shown = self._reader.names.from_provider(coming.call.name)
            yield CallStarted(index=coming.index, name=shown, id=coming.call.id)

    def arguments(self, key: Hashable, piece: str) -> Iterator[StreamEvent]:
        """Adds a piece of a call's arguments."""
        coming = self._calls.get(key)
        if coming is not None and piece and not coming.has_ended and self._fits(piece):
            coming.pieces.append(piece)
            yield ArgumentsDelta(index=coming.index, text=piece)

    def end(self, key: Hashable) -> Iterator[StreamEvent]:
        """Marks a call as complete."""
        coming = self._calls.get(key)
        if coming is None or coming.has_ended:
            return
        coming.has_ended = True
        call, problems = self._reader.call(coming.index, coming.whole())
        is_read = all(problem.repaired for problem in problems)
        yield CallEnded(index=coming.index, call=call if is_read else None)

    def end_others(self, key: Hashable = None) -> Iterator[StreamEvent]:
        """Marks every call but this one as complete."""
        for other in self._calls:
            if other != key:
                yield from self.end(other)

    def has(self, key: Hashable) -> bool:
        """True if a call has begun under this key."""
        return key in self._calls

    def has_arguments(self, key: Hashable) -> bool:
        """True if any part of the call's arguments has arrived."""
        coming = self._calls.get(key)
        return coming is not None and bool(coming.pieces or coming.call.arguments is not None)

    def count(self) -> int:
        """Returns the number of calls that have begun."""
        return len(self._calls)

    def last(self) -> Hashable:
        """Returns the key of the newest call, or 0 if no call has begun."""
        return next(reversed(self._calls), 0)

    def reply(self) -> Reply:
        """Returns the reply so far."""
        known = self.written
        return self._reader.reply(
            Written(
                text="".join(self._texts),
                thought="".join(self._thoughts),
                calls=[coming.whole() for coming in self._calls.values()],
                failure="".join(self._refusals) or known.failure,
                cut=known.cut,
                problems=known.problems,
            )
        )

    @property
    def is_full(self) -> bool:
        """True after the reply exceeded its limit. Later pieces are dropped."""
        return self._left < 0

    def _fits(self, piece: str) -> bool:
        if self._left < 0:
            return False
        self._left -= len(piece) + 1
        if self._left >= 0:
            return True
        message = f"The reply is longer than {REPLY_LIMIT_BYTES} bytes. Write a shorter one."
        self.written.problems.append(Problem(message=message, repaired=False))
        return False


class NativeStream:
    """A stream parser for the chunks or events of a provider's SDK."""

    def __init__(
        self,
        reader: Reader,
        take: Callable[[Gathering, Mapping[str, Any]], Iterator[StreamEvent]],
        assembly: Assembly,
        with_message: Callable[[Reply, Any], Reply],
    ) -> None:
        """`assembly` collects the assistant's message. `with_message` adds it to the reply."""
        self._gathering = Gathering(reader)
        self._take = take
        self._assembly = assembly
        self._with_message = with_message
        self._left = STREAM_LIMIT_CHARACTERS

    def feed(self, delta: Any) -> list[StreamEvent]:
        """Returns the events of one piece: an SDK chunk or event, its mapping, or its JSON. None means no content.

        Raises:
            ConfigurationError: The host passed another kind of object.
        """
        if delta is None:
            return []
        try:
            piece = opened(delta)
        except Refusal as refusal:
            self._gathering.written.problems.append(refusal.problem)
            return []
        if isinstance(piece, str):
            return list(self._gathering.text(piece))
        if isinstance(piece, list) or not self._fits(piece):
            return []
        events = list(self._take(self._gathering, piece))
        # The piece that exceeds the limit is in neither the calls nor the message, so that both have the same calls.
        if not self._gathering.is_full:
            self._assembly.add(sent(delta) if not isinstance(delta, str | bytes) else piece)
        return events

    def reply(self) -> Reply:
        """Returns the reply so far."""
        return self._with_message(self._gathering.reply(), self._assembly.body())

    def _fits(self, piece: Mapping[str, Any]) -> bool:
        if self._left < 0:
            return False
        self._left -= _characters(piece)
        if self._left >= 0:
            return True
        message = f"The stream of the reply is longer than {STREAM_LIMIT_CHARACTERS:,} characters. Write less."
        self._gathering.written.problems.append(Problem(message=message, repaired=False))
        return False


def _characters(piece: Any) -> int:
    """Returns the size of all texts and bytes in a piece. The walk is a loop, so that no nesting exhausts the stack."""
    size, rest = 0, [piece]
    while rest:
        value = rest.pop()
        if isinstance(value, str | bytes):
            size += len(value)
        elif isinstance(value, Mapping):
            rest.extend(cast("Mapping[Any, Any]", value).values())
        elif isinstance(value, list | tuple):
            rest.extend(cast("list[Any]", value))
    return size
