"""Streaming of ATTP replies. The program is reported line by line before the document is complete."""

from __future__ import annotations

import re
from typing import ClassVar

from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent
from toolwire.protocols.text_stream import TextStream
from toolwire.vocabulary.calls import CODE_EXECUTION

_OPENING = re.compile(r"[ \t]*code[ \t]*=[ \t]*('''|\"\"\")")


class AttpStream(TextStream):
    """Parses one reply while it arrives. The events carry raw text; only `reply()` parses it."""

    _protocol: ClassVar[str] = "attp"
    _waiting = ""
    _delimiter = ""
    _has_header = False
    _is_code_over = False

    def _add(self, text: str) -> list[StreamEvent]:
        if self._is_code_over:
            return []
        self._waiting += text
        begun = [] if self._delimiter else self._look_for_code()
        return begun + self._read_code() if self._delimiter else begun

    def _look_for_code(self) -> list[StreamEvent]:
        """Consumes whole lines up to the one that begins the program."""
        while "\n" in self._waiting:
            line, _, self._waiting = self._waiting.partition("\n")
            self._has_header = self._has_header or line.replace(" ", "").strip() == "[tool_call]"
            found = _OPENING.match(line) if self._has_header else None
            if found:
                self._delimiter = found[1]
                rest = line[found.end() :].rstrip("\r")
                self._waiting = f"{rest}\n{self._waiting}" if rest else self._waiting
                return [CallStarted(index=0, name=CODE_EXECUTION)]
        return []

    def _read_code(self) -> list[StreamEvent]:
        before, closing, self._waiting = self._waiting.partition(self._delimiter)
        # A piece may end inside the closing quotes.
        ready = before if closing else before.rstrip(self._delimiter[0])
        self._waiting = self._waiting or before[len(ready) :]
        events: list[StreamEvent] = [ArgumentsDelta(index=0, text=ready, parameter="code")] if ready else []
        if closing:
            self._is_code_over = True
            calls = self._read().calls
            events.append(CallEnded(index=0, call=calls[0] if calls else None))
        return events
