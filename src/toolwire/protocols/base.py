"""What every protocol offers, and the limits that hold before any of them parses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

Language = Literal["en", "zh"]
Thought = Literal["short", "full"]

REPLY_LIMIT_BYTES = 262_144
"""Bytes of one reply, in UTF-8."""

CODE_LIMIT_BYTES = 65_536
"""Bytes of one program, in UTF-8; the sandbox takes no more either."""

DEPTH_LIMIT = 64
"""Levels of nested arrays and tables in a reply: parsers recurse."""

SEGMENT_LIMIT = 64
"""Segments of one dotted key: parsers take time that grows with their square."""

DIGIT_LIMIT = 4_300
"""Digits of one integer: Python refuses to read more."""


class CallingProtocol(Protocol):
    """A model's calling format. Pure: the same arguments give the same answer, and nothing is read or written."""

    @property
    def name(self) -> str:
        """The name by which `get` finds it."""
        ...

    def describe(self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
        """The system prompt that tells a model of these tools and how to call them.

        Raises:
            ConfigurationError: an unknown language or thought.
        """
        ...

    def parse(self, reply: str | bytes, tools: Iterable[Any] = ()) -> Reply:
        """What a model's reply asks for. Nothing in a reply makes it raise: what cannot be read is in `problems`."""
        ...

    def render(self, calls: Sequence[ToolCall]) -> str:
        """The reply by which a model would make these calls."""
        ...

    def format(self, results: Sequence[ToolResult]) -> str:
        """What the model reads when its calls have ended."""
        ...

    def refuse(self, reply: Reply) -> str:
        """What the model reads when its reply makes no call; empty for a reply that does."""
        ...


class Refusal(Exception):
    """A reply that cannot be read. Raised and caught inside `protocols`: no `parse` lets it out."""

    def __init__(self, message: str, *, place: str = "", text: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(message=message, repaired=False, place=place)
        """Why, where, and what to write."""
        self.text = text
        """What the reply says to the user, when it is nothing but that."""
