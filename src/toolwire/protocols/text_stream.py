"""A streamed reply in a text format: its pieces, its limit and its end. A protocol's own stream adds the events."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from toolwire.protocols.base import REPLY_LIMIT_BYTES
from toolwire.protocols.reading.incoming import text_of_reply
from toolwire.protocols.streaming import StreamEvent, end_reply, refuse_more
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

Parse = Callable[[str | bytes], Reply]
"""Parses a whole reply."""


class TextStream(ABC):
    """Parses one reply while it arrives. Use it once, from one reader."""

    _protocol: ClassVar[str]

    def __init__(self, parse: Parse, known: KnownTools, *, marks_end: bool) -> None:
        """`parse` reads a whole reply of a model that knows the tools `known`.

        With `marks_end`, the caller says by `end` that the reply is complete, and until then it is not.
        """
        self._parse = parse
        self._known = known
        self._pieces: list[Any] = []
        self._has_bytes = False
        self._left = REPLY_LIMIT_BYTES
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._marks_end = marks_end
        self._has_ended = False

    @property
    def is_complete(self) -> bool | None:
        """True after `end`. Before it, False if the caller marks the end, else None."""
        return True if self._has_ended else False if self._marks_end else None

    def feed(self, delta: Any) -> list[StreamEvent]:
        """Returns the events of a piece of text or of UTF-8 bytes. None means no text.

        Raises:
            ConfigurationError: The host passed something else, or a piece after `end`.
        """
        if self._has_ended:
            refuse_more(self._has_ended)
        piece = delta if type(delta) is str else text_of_reply(delta, self._protocol)
        # The piece that exceeds the limit is kept, so that `reply` reports the problem.
        if not piece or self._left < 0:
            return []
        self._pieces.append(piece)
        self._left -= len(piece)
        if isinstance(piece, str):
            return self._add(piece)
        self._has_bytes = True
        return self._add(self._decoder.decode(piece))

    def end(self) -> list[StreamEvent]:
        """Says that the reply is complete. A text has no events at its end."""
        self._has_ended = True
        return []

    def reply(self) -> Reply:
        """Returns the reply so far. After the last piece it equals the result of `parse` for the whole reply."""
        return end_reply(self._read(), self.is_complete)

    def _read(self) -> Reply:
        if not self._has_bytes:
            return self._parse("".join(self._pieces))
        pieces = (utf8_bytes(piece) if isinstance(piece, str) else piece for piece in self._pieces)
        return self._parse(b"".join(pieces))

    @abstractmethod
    def _add(self, text: str) -> list[StreamEvent]:
        """Returns the events of more text."""
