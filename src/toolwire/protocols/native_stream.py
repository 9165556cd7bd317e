"""A native reply while it comes in: pieces are gathered under the keys that the provider gives its calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwire.protocols.base import REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.native import Reader, Written, WrittenCall
from toolwire.protocols.native_fields import opened
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextDelta
from toolwire.vocabulary.calls import Problem, Reply


@dataclass(slots=True, kw_only=True)
class _Coming:
    """A call while it comes in."""

    index: int
    call: WrittenCall
    pieces: list[str] = field(default_factory=list[str])
    has_started: bool = False
    has_ended: bool = False

    def whole(self) -> WrittenCall:
        """The call as far as it has come."""
        if self.call.arguments is None:
            return WrittenCall(name=self.call.name, id=self.call.id, arguments="".join(self.pieces))
        return self.call


class Gathering:
    """What has come of a reply. Each method gives the events that it means."""

    def __init__(self, reader: Reader) -> None:
        self.written = Written()
        """What is known of the reply beside its text and calls."""
        self._reader = reader
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[Hashable, _Coming] = {}
        self._left = REPLY_LIMIT_BYTES

    def text(self, piece: str) -> Iterator[StreamEvent]:
        """More text."""
        if piece and self._fits(piece):
            self._texts.append(piece)
            yield TextDelta(text=piece)

    def thought(self, piece: str) -> None:
        """More of what the model is thinking."""
        if piece and self._fits(piece):
            self._thoughts.append(piece)

    def refusal(self, piece: str) -> None:
        """More of why the model declines."""
        if piece and self._fits(piece):
            self._refusals.append(piece)

    def call(self, key: Hashable, *, name: str = "", id: str = "", arguments: Any = None) -> Iterator[StreamEvent]:
        """A call begins, or more is known of it. `arguments` come whole here, or piece by piece."""
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
        """More of a call's arguments."""
        coming = self._calls.get(key)
        if coming is not None and piece and not coming.has_ended and self._fits(piece):
            coming.pieces.append(piece)
            yield ArgumentsDelta(index=coming.index, text=piece)

    def end(self, key: Hashable) -> Iterator[StreamEvent]:
        """A call is complete."""
        coming = self._calls.get(key)
        if coming is None or coming.has_ended:
            return
        coming.has_ended = True
        call, problems = self._reader.call(coming.index, coming.whole())
        is_read = all(problem.repaired for problem in problems)
        yield CallEnded(index=coming.index, call=call if is_read else None)

    def end_others(self, key: Hashable = None) -> Iterator[StreamEvent]:
        """Every call but this one is complete."""
        for other in self._calls:
            if other != key:
                yield from self.end(other)

    def has(self, key: Hashable) -> bool:
        """Whether a call has begun under this key."""
        return key in self._calls

    def has_arguments(self, key: Hashable) -> bool:
        """Whether anything has come of that call's arguments."""
        coming = self._calls.get(key)
        return coming is not None and bool(coming.pieces or coming.call.arguments is not None)

    def count(self) -> int:
        """How many calls have begun."""
        return len(self._calls)

    def last(self) -> Hashable:
        """The key of the call that began last; 0 before the first."""
        return next(reversed(self._calls), 0)

    def reply(self) -> Reply:
        """The reply as far as it has come."""
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
    """A stream that a provider's own pieces are fed to."""

    def __init__(self, reader: Reader, take: Callable[[Gathering, Mapping[str, Any]], Iterator[StreamEvent]]) -> None:
        self._gathering = Gathering(reader)
        self._take = take

    def feed(self, delta: Any) -> list[StreamEvent]:
        """What this piece means: an SDK's chunk or event, its mapping, or its JSON; None is nothing.

        Raises:
            ConfigurationError: the host gave nothing of these.
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
        return [] if isinstance(piece, list) else list(self._take(self._gathering, piece))

    def reply(self) -> Reply:
        """The reply as far as it has come."""
        return self._gathering.reply()
