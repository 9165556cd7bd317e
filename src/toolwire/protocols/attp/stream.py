"""Streaming of ATTP replies. The program is reported line by line before the document is complete.

A program behind the first one is reported when it is complete. Only then is it clear that it is a call of the reply.
"""

from __future__ import annotations

import re
from typing import ClassVar

from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent
from toolwire.protocols.text_stream import Parse, TextStream
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall

LATER_LIMIT = 65_536
"""Maximum number of characters that are read again for the events of later programs: ten replies of usual length.

Beyond it only `reply()` has the later programs, so that the time of a stream grows with its length alone.
"""

_OPENING = re.compile(r"[ \t]*code[ \t]*=[ \t]*('''|\"\"\")")


class AttpStream(TextStream):
    """Parses one reply while it arrives. The events carry raw text; only `reply()` parses it."""

    _protocol: ClassVar[str] = "attp"
    _waiting = ""
    _delimiter = ""
    _has_header = False
    _reported = 0
    """Number of calls whose end has been reported."""
    _is_later = False
    """True after the first program."""
    _later_left = LATER_LIMIT

    def __init__(self, parse: Parse, known: KnownTools, *, marks_end: bool) -> None:
        super().__init__(parse, known, marks_end=marks_end)
        self._texts: list[str] = []

    def _add(self, text: str) -> list[StreamEvent]:
        events = list[StreamEvent]()
        if self._later_left > 0:
            self._texts.append(text)
            self._waiting += text
        while self._later_left > 0:
            if not self._delimiter:
                events += self._look_for_code()
            if not self._delimiter:
                break
            events += self._read_code()
            if self._delimiter:
                break
        return events

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
                return [] if self._is_later else [CallStarted(index=0, name=CODE_EXECUTION)]
        return []

    def _read_code(self) -> list[StreamEvent]:
        before, closing, self._waiting = self._waiting.partition(self._delimiter)
        # A piece may end inside the closing quotes.
        ready = before if closing else before.rstrip(self._delimiter[0])
        self._waiting = self._waiting or before[len(ready) :]
        events = list[StreamEvent]()
        if ready and not self._is_later:
            events.append(ArgumentsDelta(index=0, text=ready, parameter="code"))
        if closing:
            self._delimiter, self._has_header = "", False
            events += self._end_of_code()
        return events

    def _end_of_code(self) -> list[StreamEvent]:
        """Reports the call of the program that has ended, if the reply so far has it."""
        # What has come behind the program may be the beginning of a line.
        text = "".join(self._texts).removesuffix(self._waiting)
        calls = self._parse(text).calls
        if not self._is_later:
            self._is_later, self._reported = True, 1
            return [CallEnded(index=0, call=calls[0] if calls else None)]
        self._later_left -= len(text)
        later = list(enumerate(calls))[self._reported :]
        self._reported = max(self._reported, len(calls))
        return [event for index, call in later for event in _whole_call(index, call)]


def _whole_call(index: int, call: ToolCall) -> list[StreamEvent]:
    code = str(call.arguments["code"])
    return [
        CallStarted(index=index, name=call.name),
        ArgumentsDelta(index=index, text=code, parameter="code"),
        CallEnded(index=index, call=call),
    ]
