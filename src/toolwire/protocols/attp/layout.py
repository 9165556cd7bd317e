"""The position of the document in a damaged reply: after thinking, in a fence, or between prose.

Lines are classified by how they begin, even inside strings. Only `[tool_call]` and the five known keys count as
structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import THINKING, line_of
from toolwire.vocabulary.calls import Problem

_FLAGS = re.MULTILINE | re.IGNORECASE | re.VERBOSE
_HEADER_LINE = r"""
    (?P<header> (?:\[{1,2}|\{)[ \t]*+["']?tool[ _-]?calls?["']?[ \t]*+(?:\]{0,2}|\}) | <tool_calls?> )
    [ \t]*+(?:\#[^\n]*+)?+$
"""
HEADER = re.compile(rf"^[ \t]*+{_HEADER_LINE}", _FLAGS)

STRUCTURE = re.compile(
    rf"""^[ \t]*+(?:
        {_HEADER_LINE}
      | (?P<dotted>["']?tool[ _-]?calls?["']?[ \t]*+\.[ \t]*+)?+
        ["']?(?P<key>thought|status|target|code|message)["']?[ \t]*+=(?!=)
    )""",
    _FLAGS,
)
"""Matches a line that belongs to an ATTP document."""

_NEUTRAL = re.compile(r"(?:[ \t]*+(?:#[^\n]*+|</tool_calls?>[ \t]*+)?+(?:\n|\Z))*+", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^\n`]*+)$", re.MULTILINE)
_THINKING = re.compile(rf"<({THINKING})>", re.IGNORECASE)
_THOUGHT_OUT = re.compile(rf"</(?:{THINKING})>", re.IGNORECASE)

_REQUEST = re.compile(r"[ \t]*+(?:Request|请求)[ \t]*+[:：]")
"""Matches the line with which the prompt's examples begin. A model that goes on after its reply writes one."""

Following = Literal["structure", "closing fence", "end", "request", "something else"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttpLayout:
    """A reply and the position of its document."""

    text: str
    """The reply, with thinking replaced by empty lines."""
    start: int
    """The position of the document's first line."""
    fence: str
    """The opening mark of the fence around the document, such as three backquotes. Empty without a fence."""
    fence_start: int
    """The position of the opening fence; equal to `start` without a fence."""
    problems: tuple[Problem, ...]
    """The text before the document that was dropped."""

    @property
    def prose_before(self) -> str:
        """Returns the prose before the document."""
        return self.text[: self.fence_start].strip()

    def next_line(self, position: int) -> int:
        """Returns the first line from `position` that is neither blank nor a comment. `position` must begin a line."""
        found = _NEUTRAL.match(self.text, position)
        return found.end() if found else position

    def next_header(self, position: int) -> int:
        """Returns the position of the next [tool_call] line, or the end of the reply."""
        found = HEADER.search(self.text, position)
        return found.start() if found else len(self.text)

    def following(self, position: int) -> Following:
        """Returns the kind of text after a value. `position` is the start of the line after it."""
        position = self.next_line(position)
        if position >= len(self.text):
            return "end"
        if STRUCTURE.match(self.text, position):
            return "structure"
        if is_request(self.text, position):
            return "request"
        return "closing fence" if self.closes(position) else "something else"

    def closes(self, position: int) -> bool:
        """True if the line that begins here closes the document's fence."""
        found = _FENCE.match(self.text, position) if self.fence else None
        return found is not None and found[1].startswith(self.fence) and not found[2].strip()

    def closings(self, position: int) -> Iterator[int]:
        """Yields the start of every later line that could close the document's fence."""
        return (found.start() for found in _FENCE.finditer(self.text, position) if self.closes(found.start()))


def is_fence(text: str, position: int) -> bool:
    """True if the line that begins here opens or closes a fence."""
    return _FENCE.match(text, position) is not None


def is_request(text: str, position: int = 0) -> bool:
    """True if the line that begins here is the request of another example."""
    return _REQUEST.match(text, position) is not None


def line_end(text: str, position: int) -> int:
    """Returns the start of the next line."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def find_layout(text: str) -> AttpLayout:
    """Finds the document of a reply.

    Raises:
        Refusal: The reply has no document, or the document is inside thinking.
    """
    text, problems = without_thinking(text)
    found = STRUCTURE.search(text)
    if found is None:
        prose = text.strip()
        what = "The reply is neither a document nor plain prose" if prose else "The reply is empty"
        raise Refusal(f"{what}. Write one TOML document: `thought`, then [tool_call] with status and code.", text=prose)
    start = fence_start = found.start()
    opening = _open_fence(text, start)
    if opening is not None:
        start, fence_start = line_end(text, opening.end()), opening.start()
        problems.append(_repair("The code fence around the reply was left out.", text, fence_start))
    if text[:fence_start].strip():
        problems.append(Problem(message="The text before the document was left out.", repaired=True, place="line 1"))
    return AttpLayout(
        text=text,
        start=start,
        fence="" if opening is None else opening[1],
        fence_start=fence_start,
        problems=tuple(problems),
    )


def _open_fence(text: str, end: int) -> re.Match[str] | None:
    """Returns the fence that is open at `end`."""
    opening: re.Match[str] | None = None
    for mark in _FENCE.finditer(text, 0, end):
        if opening is None:
            opening = mark
        elif mark[1].startswith(opening[1]) and not mark[2].strip():
            opening = None
    return opening


def without_thinking(text: str) -> tuple[str, list[Problem]]:
    """Returns the reply with thinking replaced by empty lines, and the repairs that this needed.

    Raises:
        Refusal: The thinking never ends, or a document is in text that may be thinking.
    """
    position, problems = _behind_thinking(text)
    return "\n" * text.count("\n", 0, position) + text[position:], problems


def _behind_thinking(text: str) -> tuple[int, list[Problem]]:
    position, problems = 0, list[Problem]()
    first = _first_structure(text, 0)
    while (opening := _THINKING.search(text, position)) and opening.start() < first:
        closing = text.find(f"</{opening[1]}>", opening.end())
        if closing < 0:
            raise Refusal(
                f"<{opening[1]}> is never closed, so the reply is all thinking. Write the TOML document after it.",
                place=line_of(text, opening.start()),
            )
        position = closing + len(opening[0]) + 1
        if not problems:  # only one: counting the line of each would take quadratic time
            problems.append(_repair(f"The text in <{opening[1]}> was left out.", text, opening.start()))
        if position > first:
            first = _first_structure(text, position)
    closing = None if problems else _THOUGHT_OUT.search(text)
    if closing is None:
        return position, problems
    if first < closing.start():
        raise Refusal(
            f"{closing[0]} stands behind a document: what is before it may be thinking. Write one document after it.",
            place=line_of(text, closing.start()),
        )
    return closing.end(), [_repair(f"The text up to {closing[0]} was left out.", text, closing.start())]


def _first_structure(text: str, position: int) -> int:
    found = STRUCTURE.search(text, position)
    return found.start() if found else len(text)


def _repair(message: str, text: str, position: int) -> Problem:
    return Problem(message=message, repaired=True, place=line_of(text, position))
