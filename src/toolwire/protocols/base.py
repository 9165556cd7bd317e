"""What every protocol offers, and the limits that hold before any of them parses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from toolwire.protocols.streaming import ReplyStream
from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

Language = Literal["en", "zh"]
Thought = Literal["short", "full"]

REPLY_LIMIT_BYTES = 262_144
"""Bytes of one reply, in UTF-8."""

CODE_LIMIT_BYTES = 65_536
"""Bytes of one program, in UTF-8; the sandbox takes no more either."""

CALL_LIMIT = 64
"""Calls of one reply."""

DEPTH_LIMIT = 64
"""Levels of nested arrays and tables in a reply: parsers recurse."""

SEGMENT_LIMIT = 64
"""Segments of one dotted key: parsers take time that grows with their square."""

DIGIT_LIMIT = 4_300
"""Digits of one integer: Python refuses to read more."""


class CallingProtocol(Protocol):
    """A model's calling format. Pure: the same arguments give the same answer, and nothing is read or written.

    A *text* protocol's model is told of tools in its system prompt and writes calls into its text. A *native* one's
    takes tools, calls and results in fields of its API; what is made for it are plain dicts, as the SDKs take them.
    """

    @property
    def name(self) -> str:
        """The name by which `get` finds it."""
        ...

    @property
    def is_native(self) -> bool:
        """Whether tools, calls and results have fields of their own in the provider's API."""
        ...

    @property
    def writes_programs(self) -> bool:
        """Whether its prompt speaks of programs by itself, so that `code_execution` is not listed among the tools."""
        ...

    def describe(
        self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short"
    ) -> str | list[dict[str, Any]]:
        """Text: the whole system prompt. Native: the request's tools, in which language and thought have no say.

        Raises:
            ConfigurationError: an unknown language or thought, or two tools whose names a provider could not tell
                apart.
        """
        ...

    def recognises(self, reply: Any) -> bool:
        """Whether a reply is plainly in this format. Cheap; a reply may be parsed by a protocol that says no."""
        ...

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """What a model's reply asks for. Nothing that a model writes makes it raise: `problems` says what is wrong.

        A reply is text, bytes in UTF-8, None for a message without content or, natively, also a mapping or the SDK's
        own object: a whole response or the message in it.

        Raises:
            ConfigurationError: the host gave something else, such as another provider's object.
        """
        ...

    def stream(self, tools: Iterable[Any] = ()) -> ReplyStream:
        """Reads a reply while it comes in. However it is cut, its end gives what `parse` gives for the whole."""
        ...

    def render(self, calls: Sequence[ToolCall]) -> str | dict[str, Any] | list[dict[str, Any]]:
        """The reply by which a model would make these calls; natively what `parse` and a request's history take."""
        ...

    def format(self, results: Sequence[ToolResult]) -> str | list[dict[str, Any]]:
        """What the model reads when its calls have ended; natively the messages to append after its own."""
        ...

    def refuse(self, reply: Reply) -> str | list[dict[str, Any]]:
        """What the model reads when its reply makes no call, in the form of `format`; empty for a reply that does."""
        ...

    def grammar(self, tools: Iterable[Any]) -> str:
        """GBNF that lets a model write nothing but calls of these tools that can be read.

        Raises:
            ConfigurationError: a native protocol, whose provider sees to that itself.
        """
        ...


class Refusal(Exception):
    """A reply that cannot be read. Raised and caught inside `protocols`: no `parse` lets it out."""

    def __init__(self, message: str, *, place: str = "", text: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(message=message, repaired=False, place=place)
        """Why, where, and what to write."""
        self.text = text
        """What the reply says to the user, when it is nothing but that."""
