"""The parts of a reply's text: prose, thinking, fences, quotations, and JSON that may hold calls.

The text is walked once from front to back. Each JSON value is skipped as a whole, so that the content of its strings
does not count. Fences, quoted lines and results are skipped too, so that no call is taken from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from toolwire.protocols.base import CALL_LIMIT, Refusal, too_many_calls
from toolwire.protocols.reading.call_forms import FIRST_KEYS
from toolwire.protocols.reading.incoming import THINKING, line_of, match_end
from toolwire.protocols.reading.lenient_json import JsonReader
from toolwire.protocols.reading.strict_json import load_prefix
from toolwire.vocabulary.calls import Problem

DAMAGED_LIMIT = 16
"""Maximum number of unreadable JSON-like lines that are not calls. After that, JSON without a tag is prose."""

RECOGNISED_LIMIT = 16_384
"""Number of characters of a reply that format detection reads."""

_UNQUOTED = r"(?<![`\"'“‘「])"
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "「": "」"}
_LINE = rf"(?:^|{'|'.join(f'(?<=</{name}>)' for name in THINKING.split('|'))})"
"""The beginning of a line. It also matches after thinking, which models close without a line break."""
LANDMARK = re.compile(
    rf"""
      {_LINE}\ {{0,3}}(?P<fence>`{{3,}}+|~{{3,}}+)(?P<language>[^\n`]*+)$
    | {_LINE}\ {{0,3}}(?P<one_line>`{{3,}}+|~{{3,}}+)[ \t]*+\w*+[ \t]*+(?=[\[{{<])
    | ^[ \t]*+(?P<quote>>)
    | {_UNQUOTED}<(?P<think>{THINKING})>
    | {_UNQUOTED}</(?P<thought>{THINKING})>
    | {_UNQUOTED}<(?P<result>tool_response|tool_result|tool_output|function_results?)\b[^>\n]*+>
    | {_UNQUOTED}<(?P<quoting>code|pre|example|blockquote)(?:\s[^<>\n]*+)?+>
    | (?P<comment><!--)
    | (?<=[`\"'“‘「])(?P<quoted><tool_call>)
    | {_UNQUOTED}(?P<tag><tool_call>|<\|tool_call\|>|<\|python_tag\|>|\[TOOL_CALLS\])
    | {_UNQUOTED}<function=(?P<function>[^>\s]{{1,128}}+)>
    | (?P<closing></tool_call>|<\|/tool_call\|>|<\|eo[mt]_id\|>|<\|im_end\|>)
    | {_LINE}[ \t]*+(?P<json>[\[{{])(?=\s*+["'“”\[{{\]}}0-9-]|\s*+[A-Za-z_]++\s*+[:：])
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""Matches the beginning of everything that is not plain prose."""

_LIKE_A_CALL = re.compile(rf"[\[{{](?:\s*+[\[{{]){{0,2}}+\s*+[\"'“”]?(?:{'|'.join(FIRST_KEYS)})[\"'“”]?\s*+[:：]")
_PLAINLY = re.compile(
    rf"\s*+(?:<(?P<think>{THINKING})>.*?</(?P=think)>\s*+)?+(?:(?:`{{3,}}+|~{{3,}}+)[^\n]*+\n\s*+)?+"
    rf"(?:<tool_call>\s*+[\[{{]|<\|tool_call\|>|<\|python_tag\|>|\[TOOL_CALLS\]|<function=[^>\s]+>\s*+\{{|{_LIKE_A_CALL.pattern})",
    re.DOTALL | re.IGNORECASE,
)
_MESSAGE = re.compile(r'\s*+\{\s*+"(?:role|id|index|status|object)"')
_TAG_END = re.compile(
    r"(?P<extra>\s*+[\]}]++)?+\s*+(?P<end></tool_call>|<\|/tool_call\|>|</function>|<\|eo[mt]_id\|>)?+",
    re.IGNORECASE,
)
_NEXT_VALUE = re.compile(r"[\s;,]*+(?=[\[{])")
_NEXT_ON_LINE = re.compile(r"[ \t;,]*+(?=[\[{])")
"""What may stand between two calls without tags on one line."""
_SPACE = re.compile(r"\s*+")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPiece:
    """A JSON value in a reply."""

    value: Any
    raw: str
    problems: tuple[Problem, ...] = ()
    """The mistakes that were repaired."""
    is_marked: bool
    """True if the value follows a tag that only calls have."""
    function: str = ""
    """The tool's name, if the tag gives it."""
    start: int
    """The position where the value begins in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FencePiece:
    """A fenced block with its content unparsed."""

    language: str
    """The first word after the opening mark, in lower case."""
    content: str
    raw: str
    is_closed: bool
    start: int
    """The position of the opening mark in the text."""


@dataclass(slots=True, kw_only=True)
class JsonLayout:
    """The parts of a reply, in order. Prose is plain text."""

    pieces: list[JsonPiece | FencePiece | str] = field(default_factory=list[JsonPiece | FencePiece | str])
    results: list[int] = field(default_factory=list[int])
    """The positions of the results between tags that the model wrote itself."""
    thought: str = ""
    problems: list[Problem] = field(default_factory=list[Problem])


def find_layout(text: str, *, has_fences: bool = True) -> JsonLayout:
    """Returns the parts of a reply, or with `has_fences=False` those of a fence's content.

    Raises:
        Refusal: Thinking never ends, a call is in text that may be thinking, or JSON like a call cannot be read.
    """
    return _Walk(text, has_fences=has_fences).layout()


def plainly_holds_a_call(text: str) -> bool:
    """True if the text begins with a call, after any thinking and an opening fence."""
    return _PLAINLY.match(text[:RECOGNISED_LIMIT]) is not None


def is_plainly_in_this_format(reply: str | bytes) -> bool:
    """True if the reply begins with a call and is not a provider's API message, which may also hold one."""
    head = reply[:RECOGNISED_LIMIT]
    text = head if isinstance(head, str) else head.decode("utf-8", "replace")
    return plainly_holds_a_call(text) and _MESSAGE.match(text) is None


def looks_like_a_call(text: str, position: int) -> bool:
    """True if the JSON at this position begins with one of a call's keys."""
    return _LIKE_A_CALL.match(text, position) is not None


def next_on_line(text: str, position: int) -> int | None:
    """Returns the position of the call that follows another one on its line, or None."""
    found = _NEXT_ON_LINE.match(text, position)
    return found.end() if found and _LIKE_A_CALL.match(text, found.end()) else None


class _Walk:
    def __init__(self, text: str, *, has_fences: bool) -> None:
        self.text = text
        self.found = JsonLayout()
        self._has_fences = has_fences
        self._prose_from = 0
        self._reader = JsonReader(text)
        self._marked_left = CALL_LIMIT
        self._damaged_left = DAMAGED_LIMIT
        self._unclosed = set[str]()
        """Closing marks that do not occur in the rest of the text."""
        self._steps: dict[str, Callable[[re.Match[str]], int]] = {
            "language": self._fence,
            "one_line": self._fence_on_one_line,
            "quote": lambda found: self._line_end(found.end()),
            "think": self._think,
            "thought": self._thought_out,
            "result": self._result,
            "quoting": lambda found: self._behind(f"</{found['quoting']}>", found.end()),
            "comment": lambda found: self._behind("-->", found.end()),
            "quoted": self._skip_quoted,
            "tag": self._tag,
            "function": self._function,
            "closing": self._closing,
            "json": self._json,
        }

    def layout(self) -> JsonLayout:
        position = 0
        while found := LANDMARK.search(self.text, position):
            position = max(self._steps[str(found.lastgroup)](found), found.end())
        self._prose(len(self.text))
        return self.found

    def _prose(self, end: int) -> None:
        prose = self.text[self._prose_from : end].strip()
        if prose:
            self.found.pieces.append(prose)

    def _take(self, start: int, end: int, *pieces: JsonPiece | FencePiece) -> int:
        self._prose(start)
        self.found.pieces.extend(pieces)
        self._prose_from = end
        return end

    def _fence(self, found: re.Match[str]) -> int:
        if not self._has_fences:
            return found.end()
        mark, start = found["fence"], found.end() + 1
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}+[ \t]*+$", re.MULTILINE).search(
            self.text, start
        )
        end = closing.start() if closing else len(self.text)
        piece = FencePiece(
            language=found["language"].strip().lower().split(" ")[0],
            content=self.text[start:end],
            raw=self.text[found.start() : closing.end() if closing else end],
            is_closed=closing is not None,
            start=found.start(),
        )
        return self._take(found.start(), closing.end() if closing else end, piece)

    def _fence_on_one_line(self, found: re.Match[str]) -> int:
        end = self._line_end(found.end())
        line_ = self.text[found.end() : end].rstrip()
        if not self._has_fences or not line_.endswith(found["one_line"]):
            return found.end()
        piece = FencePiece(
            language="json",
            content=line_.removesuffix(found["one_line"]),
            raw=self.text[found.start() : end],
            is_closed=True,
            start=found.start(),
        )
        return self._take(found.start(), end, piece)

    def _think(self, found: re.Match[str]) -> int:
        name = found["think"]
        closing = self.text.find(f"</{name}>", found.end())
        if closing < 0:
            raise Refusal(
                f"<{name}> is never closed, so the reply is all thinking. Write the call or the answer after it.",
                place=line_of(self.text, found.start()),
            )
        self._think_of(self.text[found.end() : closing])
        return self._take(found.start(), closing + len(name) + 3)

    def _thought_out(self, found: re.Match[str]) -> int:
        """Takes all text before a lone closing tag as thinking.

        Some chat templates put the opening tag into the prompt.
        """
        if any(isinstance(piece, JsonPiece) for piece in self.found.pieces):
            raise Refusal(
                f"{found[0]} stands behind a call: what is before it may be thinking. Write the call after it.",
                place=line_of(self.text, found.start()),
            )
        self._prose(found.start())
        self._think_of("\n".join(piece if isinstance(piece, str) else piece.raw for piece in self.found.pieces))
        self.found.pieces.clear()
        self.found.results.clear()
        self._prose_from = found.end()
        return found.end()

    def _think_of(self, thought: str) -> None:
        self.found.thought = "\n".join(part for part in (self.found.thought, thought.strip()) if part)

    def _result(self, found: re.Match[str]) -> int:
        self.found.results.append(found.start())
        closing = self.text.find(f"</{found['result']}>", found.end())
        return len(self.text) if closing < 0 else closing

    def _behind(self, closing: str, position: int) -> int:
        """Returns the position behind a quotation, or this position if it is not closed."""
        end = -1 if closing in self._unclosed else self.text.find(closing, position)
        if end < 0:
            self._unclosed.add(closing)
        return position if end < 0 else end + len(closing)

    def _skip_quoted(self, found: re.Match[str]) -> int:
        end = self._behind("</tool_call>", found.end())
        return end if self.text[end : end + 1] == _QUOTES[self.text[found.start() - 1]] else found.end()

    def _closing(self, found: re.Match[str]) -> int:
        return self._take(found.start(), found.end())

    def _tag(self, found: re.Match[str]) -> int:
        start = match_end(_SPACE, self.text, found.end())
        if self.text[start : start + 1] not in ("{", "["):
            if self._begins_line(found.start()) and self.text[start : start + 1] not in ("", "<"):
                raise Refusal(
                    f"No JSON follows {found[0]}. "
                    'Write {"name": the tool\'s name, "arguments": {its parameters}} there.',
                    place=line_of(self.text, found.start()),
                )
            return found.end()
        return self._values_after_mark(found.start(), start)

    def _function(self, found: re.Match[str]) -> int:
        start = match_end(_SPACE, self.text, found.end())
        if self.text[start : start + 1] != "{":
            return found.end()
        return self._values_after_mark(found.start(), start, function=found["function"])

    def _values_after_mark(self, start: int, position: int, function: str = "") -> int:
        pieces: list[JsonPiece] = []
        while True:
            self._marked_left -= 1
            if self._marked_left < 0:
                raise too_many_calls()
            piece, position = self._value(position, is_marked=True, function=function)
            pieces.append(piece)
            ending = _TAG_END.match(self.text, position)
            position = ending.end() if ending else position
            if ending and ending["extra"]:
                self._note("Extra closing brackets were left out.", position)
            following = _NEXT_VALUE.match(self.text, position)
            if function or following is None or (ending and ending["end"]):
                return self._take(start, position, *pieces)
            position = following.end()

    def _json(self, found: re.Match[str]) -> int:
        start = found.start("json")
        if self._damaged_left <= 0:
            return found.end()
        if not _LIKE_A_CALL.match(self.text, start):
            return self._data(start)
        pieces: list[JsonPiece] = []
        position = start
        while True:
            piece, position = self._value(position, is_marked=False)
            pieces.append(piece)
            ending = _TAG_END.match(self.text, position)
            if ending and (ending["end"] or ending["extra"]):
                position = ending.end()
            if ending and ending["end"]:
                return self._take(found.start(), position, *(replace(piece, is_marked=True) for piece in pieces))
            following = next_on_line(self.text, position)
            if following is None:
                return self._take(found.start(), position, *pieces)
            position = following

    def _data(self, start: int) -> int:
        """Skips JSON that is not a call. It is prose, with everything inside it."""
        try:
            return load_prefix(self.text, start)[1]
        except (json.JSONDecodeError, Refusal):
            self._damaged_left -= 1
            blank = self.text.find("\n\n", start)
            return len(self.text) if blank < 0 else blank

    def _value(self, start: int, *, is_marked: bool, function: str = "") -> tuple[JsonPiece, int]:
        value, end, problems = self._reader.read(start)
        piece = JsonPiece(
            value=value,
            raw=self.text[start:end],
            problems=problems,
            is_marked=is_marked,
            function=function,
            start=start,
        )
        return piece, end

    def _note(self, message: str, position: int) -> None:
        self.found.problems.append(Problem(message=message, repaired=True, place=line_of(self.text, position)))

    def _line_end(self, position: int) -> int:
        end = self.text.find("\n", position)
        return len(self.text) if end < 0 else end

    def _begins_line(self, position: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, position) + 1 : position].strip()
