"""Streaming of one JSON value: the calls that begin in it, and their arguments as they are written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.call_forms import ARGUMENT_KEYS, call_of_tool, calls_of
from toolwire.protocols.reading.repair import read_json
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import ToolCall

_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_OUTSIDE = re.compile(r'[^"{}\[\]:,]*+')


@dataclass(slots=True, kw_only=True)
class _Frame:
    """An open object or array outside of any arguments."""

    start: int
    is_object: bool
    key: str = ""
    """The key of the current value; empty before its colon."""
    last: str = ""
    """The last string, with its quotes."""
    name: str = ""
    arguments_from: int = -1
    """The start of the arguments that were not passed on yet; -1 if there are none."""
    arguments_end: int = -1
    """The end of the arguments, if the call's name follows them."""
    has_begun: bool = False
    """True if some of the arguments were passed on."""
    index: int = -1
    """The position of the call in the reply; -1 until it has begun."""


class JsonWalk:
    """Reads on with each piece. It follows strict JSON, and may report too little of damaged JSON."""

    def __init__(self, start: int, known: KnownTools, *, calls: int, name: str = "", is_data: bool = False) -> None:
        """`name` is the tool's name if a tag gave it; the value is then its arguments.

        `is_data` suppresses all calls.
        """
        self.start = self.at = start
        self.calls = calls
        """Number of calls that the reply has begun so far."""
        self.has_calls = False
        """True if one of the calls began in this value."""
        self.is_done = False
        self._known = known
        self._name = name
        self.is_data = is_data
        self._frames: list[_Frame] = []
        self._string_from = -1
        self._inside = -1
        """Number of open levels inside a call's arguments; -1 outside of them."""
        self._events: list[StreamEvent] = []
        if name:
            self._frames.append(_Frame(start=start, is_object=True, name=name, arguments_from=start))
            self._inside = 0

    def feed(self, text: str) -> list[StreamEvent]:
        """Returns the events of the new text. `text` is all text so far."""
        self._events = []
        while self.at < len(text) and not self.is_done:
            if not (self._in_string(text) if self._string_from >= 0 else self._outside(text)):
                break
        if self._frames and self._inside >= 0:
            self._pass_on(text, self.at)
        return self._events

    def _in_string(self, text: str) -> bool:
        found = _IN_STRING.match(text, self.at)
        self.at = found.end() if found else self.at
        if self.at >= len(text) or text[self.at] == "\\":
            return False
        self.at += 1
        if self._inside < 0 and self._frames:
            self._frames[-1].last = text[self._string_from : self.at]
        self._string_from = -1
        return True

    def _outside(self, text: str) -> bool:
        found = _OUTSIDE.match(text, self.at)
        self.at = found.end() if found else self.at
        if self.at >= len(text):
            return False
        mark = text[self.at]
        if mark == '"':
            self._string_from = self.at
        elif self._inside >= 0:
            self._in_arguments(text, mark)
        else:
            self._in_structure(text, mark)
        self.at += 1
        return True

    def _in_arguments(self, text: str, mark: str) -> None:
        if mark in "{[":
            self._inside += 1
        elif mark in "}]" and self._inside:
            self._inside -= 1
            if self._name and not self._inside:
                self._pass_on(text, self.at + 1)
                self._close(text)
        elif not self._inside and mark in ",}]":
            self._pass_on(text, self.at)
            self._inside = -1
            self._in_structure(text, mark)

    def _in_structure(self, text: str, mark: str) -> None:
        if mark in "{[":
            self._frames.append(_Frame(start=self.at, is_object=mark == "{"))
            return
        frame = self._frames[-1]
        if mark == ":":
            frame.key, frame.last = _string(frame.last), ""
            if frame.is_object and frame.key in ARGUMENT_KEYS and not self.is_data:
                frame.arguments_from, self._inside = self.at + 1, 0
            return
        if frame.key in ("name", "action") and frame.last and not frame.name:
            frame.name = _string(frame.last)
            self._pass_on(text, frame.arguments_end)
        frame.key = frame.last = ""
        if mark != ",":
            self._close(text)

    def _pass_on(self, text: str, end: int) -> None:
        """Passes on the arguments up to `end`, once the call's name is known."""
        frame = self._frames[-1]
        if frame.arguments_from < 0 or not frame.name:
            frame.arguments_end = end
            return
        if frame.index < 0:
            frame.index = self.calls
            self.calls += 1
            self.has_calls = True
            self._events.append(CallStarted(index=frame.index, name=self._known.name(frame.name)))
        piece = text[frame.arguments_from : end]
        if not frame.has_begun:
            piece = piece.lstrip()
        if piece:
            frame.has_begun = True
            self._events.append(ArgumentsDelta(index=frame.index, text=piece))
        frame.arguments_from = end

    def _close(self, text: str) -> None:
        frame = self._frames.pop()
        if frame.index >= 0:
            self._events.append(CallEnded(index=frame.index, call=self._call(text[frame.start : self.at + 1])))
        self.is_done = not self._frames
        self._inside = -1

    def _call(self, raw: str) -> ToolCall | None:
        try:
            value = read_json(raw)[0]
            if self._name:
                return call_of_tool(self._name, value, raw, self._known).calls[0]
            found = calls_of(value, raw, self._known, is_marked=True)
        except Refusal:
            return None
        return found.calls[0] if found else None


def _string(source: str) -> str:
    try:
        value = json.loads(source) if source else ""
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
