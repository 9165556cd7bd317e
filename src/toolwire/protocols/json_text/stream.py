"""Streaming of JSON replies.

Text is passed on as soon as it cannot be the beginning of a call. Text that begins like a tag, a fence or JSON waits
until its kind is known. The content of a fence is passed on as it arrives; it is a call if it begins like one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from toolwire.protocols.json_text.layout import LANDMARK, looks_like_a_call, plainly_holds_a_call
from toolwire.protocols.json_text.parse import PYTHON_LANGUAGES
from toolwire.protocols.json_text.walk import JsonWalk
from toolwire.protocols.reading.incoming import match_end
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextDelta
from toolwire.protocols.text_stream import Parse, TextStream
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall

_HELD = 256
"""Maximum number of characters that wait until their kind is known."""

_MAYBE = re.compile(r"[<`~>\[{]")
_BEHIND_A_VALUE = re.compile(r"[\s;,\]}]*+")
_SPACE = re.compile(r"\s*+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A part of the text in which no call begins."""

    end: re.Pattern[str]
    """The end of the block. It belongs to the block."""
    shown: Literal["text", "code", "nothing"]
    start: int
    is_lines: bool = False
    """True if the end must be on its own line."""


class JsonTextStream(TextStream):
    """Parses one reply while it arrives."""

    _protocol: ClassVar[str] = "json"

    def __init__(self, parse: Parse, known: KnownTools, *, marks_end: bool) -> None:
        super().__init__(parse, known, marks_end=marks_end)
        self._text = ""
        self._at = 0
        self._calls = 0
        self._events: list[StreamEvent] = []
        self._walk: JsonWalk | None = None
        self._block: _Block | None = None
        self._is_marked = False
        self._is_in_fence = False

    def _add(self, text: str) -> list[StreamEvent]:
        # With a local variable as its only reference, the text grows in place and is not copied for each piece.
        whole, self._text = self._text, ""
        whole += text
        self._text = whole
        self._events = []
        while self._at < len(self._text) and self._advance():
            pass
        return self._events

    def _advance(self) -> bool:
        """Takes one step through the text. False if more text is needed first."""
        if self._walk is not None:
            return self._in_json(self._walk)
        if self._block is not None:
            return self._in_block(self._block)
        found = LANDMARK.search(self._text, self._at)
        if found is None:
            self._say(self._safe_end())
            return False
        self._say(found.start())
        # One more character is needed, because a line that ends here may continue.
        return found.end() < len(self._text) and self._landmark(found)

    def _safe_end(self) -> int:
        """Returns the end of the text in which no landmark can begin."""
        line = max(self._text.rfind("\n", self._at) + 1, self._at)
        maybe = _MAYBE.search(self._text, line)
        hold = line if not self._text[line:].strip() else maybe.start() if maybe else len(self._text)
        if maybe and not self._text[line : maybe.start()].strip():
            hold = line
        return hold if len(self._text) - hold <= _HELD else len(self._text)

    def _say(self, end: int) -> None:
        if end > self._at:
            self._events.append(TextDelta(text=self._text[self._at : end]))
            self._at = end

    def _landmark(self, found: re.Match[str]) -> bool:
        kind = str(found.lastgroup)
        if kind == "language":
            return self._fence(found)
        if kind in ("tag", "function", "one_line"):
            return self._tag(found)
        if kind == "json":
            return self._json(found)
        if kind in ("think", "result", "quote", "quoting", "comment"):
            name = {"quote": "\n", "comment": "-->"}.get(kind) or f"</{found[kind]}>"
            self._enter(found.end(), re.compile(re.escape(name)), "nothing" if kind == "think" else "text")
        self._at = found.end()
        return True

    def _enter(self, at: int, end: re.Pattern[str], shown: Literal["text", "code", "nothing"]) -> None:
        self._say(self._at if shown == "nothing" else at)
        self._at = at
        self._block = _Block(end=end, shown=shown, start=at)

    def _in_block(self, block: _Block) -> bool:
        found = block.end.search(self._text, self._at)
        if found is None:
            held = self._text.rfind("\n", self._at) + 1 if block.is_lines else len(self._text) - 24
            self._show(block, max(self._at, held))
            return False
        self._show(block, found.start() if block.shown == "code" else found.end())
        if block.shown == "code":
            call = ToolCall(CODE_EXECUTION, {"code": self._text[block.start : found.start()]})
            self._events.append(CallEnded(index=0, call=call))
        self._at = found.end()
        self._block = None
        return True

    def _show(self, block: _Block, end: int) -> None:
        if block.shown == "text":
            self._say(end)
        elif block.shown == "code" and end > self._at:
            piece = self._text[self._at : end]
            self._events.append(ArgumentsDelta(index=0, text=piece, parameter="code"))
        self._at = max(self._at, end)

    def _fence(self, found: re.Match[str]) -> bool:
        if self._is_in_fence:
            self._is_in_fence = False
            self._at = found.end()
            return True
        rest = self._text[found.end() : found.end() + _HELD]
        if len(rest) < _HELD and ":" not in rest and found["fence"][0] * 3 not in rest:
            return False
        if plainly_holds_a_call(rest):
            self._is_in_fence = True
            self._at = found.end()
            return True
        mark = found["fence"]
        end = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}+[ \t]*+\n", re.MULTILINE)
        is_program = not self._calls and not self._text[: found.start()].strip() and self._is_python(found)
        start = found.end() + 1
        if is_program:
            self._calls += 1
            self._events.append(CallStarted(index=0, name=CODE_EXECUTION))
            self._at = start
        self._block = _Block(end=end, shown="code" if is_program else "text", start=start, is_lines=True)
        self._say(start)
        return True

    def _is_python(self, fence: re.Match[str]) -> bool:
        is_offered = not self._known.schemas or CODE_EXECUTION in self._known.schemas
        return is_offered and fence["language"].strip().lower() in PYTHON_LANGUAGES

    def _tag(self, found: re.Match[str]) -> bool:
        start = match_end(_SPACE, self._text, found.end())
        if start >= len(self._text):
            return False
        if self._text[start] in "{[":
            self._begin(start, name=found["function"] or "", is_marked=True)
        else:
            self._say(found.end())
        return True

    def _json(self, found: re.Match[str]) -> bool:
        start = found.start("json")
        if not self._is_told(start):
            return False
        is_data = not looks_like_a_call(self._text, start)
        self._begin(start, name="", is_marked=False, is_data=is_data)
        return True

    def _begin(self, start: int, *, name: str, is_marked: bool, is_data: bool = False) -> None:
        self._at, self._is_marked = start, is_marked
        self._walk = JsonWalk(start, self._known, calls=self._calls, name=name, is_data=is_data)

    def _in_json(self, walk: JsonWalk) -> bool:
        if not walk.is_done:
            self._events.extend(walk.feed(self._text))
            if walk.is_done and not walk.has_calls:
                self._at = walk.start
                self._say(walk.at)
            self._at, self._calls = walk.at, walk.calls
        if not walk.is_done:
            return False
        start = self._at = match_end(_BEHIND_A_VALUE, self._text, self._at)
        if start >= len(self._text):
            return False
        is_value = self._text[start] in "{["
        is_on_line = is_value and not walk.is_data and "\n" not in self._text[walk.at : start]
        if is_on_line and not self._is_marked and not self._is_told(start):
            return False
        self._walk = None
        if is_value and (self._is_marked or (is_on_line and looks_like_a_call(self._text, start))):
            self._begin(start, name="", is_marked=self._is_marked)
        return True

    def _is_told(self, start: int) -> bool:
        """True if there is enough text to tell a call from data."""
        return len(self._text) - start >= _HELD or ":" in self._text[start:]
