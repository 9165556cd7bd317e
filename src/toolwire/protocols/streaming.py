"""The events of a streamed reply, and the interface of a stream parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from toolwire.vocabulary.calls import Reply, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More text for the user.

    Attributes:
        text: The new text, never empty.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A call has begun. Its name is known; its arguments follow.

    Attributes:
        index: The position of the call in the reply, from 0.
        name: The tool's name in the registry.
        id: The provider's id of the call; empty if the provider gave none.
    """

    index: int
    name: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsDelta:
    """More of a call's arguments as the model wrote them, neither parsed nor repaired.

    Attributes:
        index: The position of the call in the reply, from 0.
        text: The new text, never empty.
        parameter: The parameter that the text belongs to, in formats that write each parameter separately. Empty in
            JSON.
    """

    index: int
    text: str
    parameter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A call is complete. Show it, but do not run it yet: later text may cause the whole reply to be refused.

    Attributes:
        index: The position of the call in the reply, from 0.
        call: The call as `reply()` will return it. None if its arguments cannot be read; the reply's problems say why.
    """

    index: int
    call: ToolCall | None


StreamEvent = TextDelta | CallStarted | ArgumentsDelta | CallEnded


class ReplyStream(Protocol):
    """Parses one reply while it arrives. Use it once, from one reader."""

    def feed(self, delta: Any) -> list[StreamEvent]:
        """Returns the events of one piece. Never raises for a model's mistake.

        A piece is text or, with a native protocol, an SDK chunk, an SDK event or a mapping of one. After the reply
        exceeds its size limit, further pieces are dropped and `reply()` reports the problem.
        """
        ...

    def reply(self) -> Reply:
        """Returns the reply so far. After the last piece it equals the result of `parse` for the whole reply."""
        ...
