"""Streaming of native replies: the pieces become the provider's own message, and the reply is read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from toolwire.protocols.base import Refusal
from toolwire.protocols.native.assembly import Assembly
from toolwire.protocols.native.fields import describe_object, read_body
from toolwire.protocols.native.written import Reader
from toolwire.protocols.streaming import StreamEvent, TextDelta, end_reply, refuse_more
from toolwire.vocabulary.calls import Problem, Reply
from toolwire.vocabulary.errors import ConfigurationError

STREAM_LIMIT_CHARACTERS = 16_777_216
"""Maximum size of all pieces of one streamed reply, encrypted reasoning and server tools' results included.

The message of such a reply is still smaller than the largest request of the providers, which is 32 MB.
"""

_SSE_LINE = re.compile(r"(?:data|event|id|retry):|: ")
"""The beginning of a raw line of server-sent events, whose data is the chunk."""

_DONE = "[DONE]"
"""The last line of a stream of server-sent events, which SDKs leave out."""

_REPEATING = frozenset(
    {"content.delta", "content.done", "refusal.delta", "refusal.done", "tool_calls.function.arguments.delta"}
    | {"tool_calls.function.arguments.done", "logprobs.content.delta", "logprobs.content.done"}
    | {"logprobs.refusal.delta", "logprobs.refusal.done"}
    | {"text", "citation", "thinking", "signature", "input_json"}
)
"""Events of the SDKs' helpers that repeat what other events hold. Each has the whole text so far."""

_CONTENT = frozenset(
    {"choices", "candidates", "delta", "content", "content_block", "message", "output", "item", "chunk"}
)
"""Keys of a piece that holds a part of some API's reply."""


class _Provider(Protocol):
    """The part of a native protocol that a stream needs."""

    name: str
    reads: str

    def read(self, body: Any, reader: Reader, faults: Sequence[Problem] = ()) -> Reply | None: ...

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply: ...


class NativeStream:
    """A stream parser for the chunks or events of a provider's SDK."""

    def __init__(self, provider: _Provider, assembly: Assembly, reader: Reader, *, marks_end: bool) -> None:
        self._provider = provider
        self._assembly = assembly
        self._reader = reader
        self._marks_end = marks_end
        self._left = STREAM_LIMIT_CHARACTERS
        self._faults: list[Problem] = []
        self._texts: list[str] = []
        """Pieces of plain text. A server that sends them has no calls."""
        self._knows_any = self._has_input_ended = False
        self._is_raw = False
        """True if the host feeds raw lines of server-sent events, which begin with one."""
        self._first_unknown = "nothing"
        self._unknown_content = ""
        """The first piece with content that no assembly takes, in words."""

    @property
    def is_complete(self) -> bool:
        """True if the provider has ended the reply. With `marks_end=False` the end of the input counts.

        A reply above the limit is refused as too long, and not as one that broke off: nobody reads to its end.
        """
        return self._assembly.is_ended or not self._marks_end or self._left < 0

    def feed(self, delta: Any) -> list[StreamEvent]:
        """Returns the events of one piece: an SDK chunk or event, its mapping, or its JSON. None means no content.

        Raises:
            ConfigurationError: The host passed another kind of object, or a piece after `end`.
        """
        refuse_more(self._has_input_ended)
        if delta is None:
            return []
        kind = cast("Any", delta).get("type") if isinstance(delta, Mapping) else getattr(delta, "type", None)
        if isinstance(kind, str) and kind in _REPEATING:
            self._note_unknown(f"an event of the type {kind!r}")
            return []
        try:
            piece = read_body(_chunk_in(delta) if kind == "chunk" else delta)
        except Refusal as refusal:
            self._faults.append(refusal.problem)
            return []
        if isinstance(piece, str):
            return self._add_text(piece)
        if isinstance(piece, list) or not self._assembly.knows(piece):
            is_content = isinstance(piece, list) or kind == "chunk" or not _CONTENT.isdisjoint(piece)
            self._note_unknown(describe_object(delta, piece), is_content=is_content)
            return []
        self._knows_any = True
        return list(self._assembly.add(piece)) if self._fits(piece) else []

    def end(self) -> list[StreamEvent]:
        """Says that nothing more comes, and returns the last events. It does not end the reply for its provider."""
        self._has_input_ended = True
        return list(self._assembly.end())

    def reply(self) -> Reply:
        """Returns the reply so far. One that the provider has not ended is refused.

        Raises:
            ConfigurationError: No piece belonged to a reply of this provider.
        """
        if not (self._knows_any or self._texts or self._faults):
            raise ConfigurationError(
                f"the stream of the protocol {self._provider.name!r} was fed with {self._first_unknown}: give it each "
                "chunk or event of its provider's SDK, or take the protocol of the provider that sent them"
            )
        return end_reply(self._read(), self.is_complete)

    def _read(self) -> Reply:
        if self._texts and not self._knows_any:
            return self._provider.parse("".join(self._texts), self._reader.known)
        faults = [*self._faults, *self._assembly.faults()]
        if self._unknown_content:
            message = f"The stream has a piece that was not read: {self._unknown_content}."
            faults.append(Problem(message=message, repaired=False))
        if self._texts:
            faults.append(Problem(message="A piece of the stream is text, and the others are not.", repaired=False))
        found = self._provider.read(self._assembly.body(), self._reader, faults)
        assert found is not None, "an assembly makes what its provider's protocol reads"
        return found

    def _add_text(self, text: str) -> list[StreamEvent]:
        if text.strip() == _DONE:
            self._assembly.is_ended = self._assembly.is_ended or self._knows_any
            return []
        self._is_raw = self._is_raw or (not self._texts and _SSE_LINE.match(text) is not None)
        if self._is_raw:
            self._note_unknown("a line of server-sent events")
            return []
        self._texts.append(text)
        return [TextDelta(text=text)] if text else []

    def _note_unknown(self, piece: str, *, is_content: bool = False) -> None:
        """Notes a piece that this provider does not send. Gateways send news, and these have no content."""
        if is_content:
            self._unknown_content = self._unknown_content or piece
        if self._first_unknown == "nothing":
            self._first_unknown = piece

    def _fits(self, piece: Mapping[str, Any]) -> bool:
        if self._left < 0:
            return False
        self._left -= _characters(piece)
        if self._left >= 0:
            return True
        message = f"The stream of the reply is longer than {STREAM_LIMIT_CHARACTERS:,} characters. Write less."
        self._faults.append(Problem(message=message, repaired=False))
        return False


def _chunk_in(event: Any) -> Any:
    """Returns the chunk in an event of the helper of OpenAI's SDK, whose snapshot of the whole reply is not needed."""
    return cast("Any", event).get("chunk") if isinstance(event, Mapping) else getattr(event, "chunk", None)


def _characters(piece: Any) -> int:
    """Returns the size of all texts and bytes in a piece. The walk is a loop, so that no nesting exhausts the stack."""
    size, rest = 0, [piece]
    while rest:
        value = rest.pop()
        if type(value) is str or isinstance(value, str | bytes):
            size += len(value)
        elif type(value) is dict or isinstance(value, Mapping):
            rest.extend(cast("Mapping[Any, Any]", value).values())
        elif isinstance(value, list | tuple):
            rest.extend(cast("list[Any]", value))
    return size
