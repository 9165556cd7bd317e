"""Streaming of ATTP replies. The program is reported line by line before the document is complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from toolwire.protocols.base import REPLY_LIMIT_BYTES
from toolwire.protocols.reading.incoming import text_given
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextStream
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply

_OPENING = re.compile(r"[ \t]*code[ \t]*=[ \t]*('''|\"\"\")")


class AttpStream(TextStream):
    """Parses one reply while it arrives. The events carry raw text; only `reply()` parses it."""

    def __init__(self, parse: Callable[[str], Reply], *, marks_end: bool = False) -> None:
        super().__init__(marks_end=marks_end)
        self._parse = parse
        self._pieces: list[str] = []
        self._left = REPLY_LIMIT_BYTES
        self._waiting = ""
        self._delimiter = ""
        self._has_header = self._is_code_over = False

    def _add(self, delta: Any) -> list[StreamEvent]:
        delta = text_given(delta, "attp")
        if isinstance(delta, bytes):
            delta = delta.decode("utf-8", "replace")
        if self._left < 0:
            return []
        # The piece that exceeds the limit is kept, so that `reply` reports the problem.
        self._pieces.append(delta)
        self._left -= len(delta)
        self._waiting += delta
        return list(self._events())

    def _read(self) -> Reply:
        return self._parse("".join(self._pieces))

    def _events(self) -> Iterator[StreamEvent]:
        if not self._delimiter:
            yield from self._look_for_code()
        if self._delimiter and not self._is_code_over:
            yield from self._code()

    def _look_for_code(self) -> Iterator[StreamEvent]:
        """Consumes whole lines up to the one that begins the program."""
        while not self._delimiter and "\n" in self._waiting:
            line, _, self._waiting = self._waiting.partition("\n")
            self._has_header = self._has_header or line.replace(" ", "").strip() == "[tool_call]"
            found = _OPENING.match(line) if self._has_header else None
            if found:
                self._delimiter = found[1]
                rest = line[found.end() :].rstrip("\r")
                self._waiting = f"{rest}\n{self._waiting}" if rest else self._waiting
                yield CallStarted(index=0, name=CODE_EXECUTION)

    def _code(self) -> Iterator[StreamEvent]:
        before, closing, rest = self._waiting.partition(self._delimiter)
        # A piece may end inside the closing quotes.
        kept = 0 if closing else len(before) - len(before.rstrip(self._delimiter[0]))
        ready = before[: len(before) - kept]
        if ready:
            yield ArgumentsDelta(index=0, text=ready, parameter="code")
        self._waiting = rest if closing else before[len(ready) :]
        if closing:
            self._is_code_over = True
            calls = self._read().calls
            yield CallEnded(index=0, call=calls[0] if calls else None)
