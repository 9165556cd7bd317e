"""The events of a streamed reply, the interface of a stream parser, and the end of a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError


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


BROKEN_OFF = Problem(
    message="The reply broke off before its end, so that it may not be whole. Write the whole reply.", repaired=False
)
"""The reason why a reply is refused whose stream did not come to its end."""


class ReplyStream(Protocol):
    """Parses one reply while it arrives. Use it once, from one reader."""

    @property
    def is_complete(self) -> bool | None:
        """True if the reply has ended, False if its stream has not come to its end, None if nobody can tell.

        A provider's stream marks its end. A text has no mark: it is complete after `end`.
        """
        ...

    def feed(self, delta: Any) -> list[StreamEvent]:
        """Returns the events of one piece. Never raises for a model's mistake.

        A piece is text or, with a native protocol, an SDK chunk, an SDK event or a mapping of one. After the reply
        exceeds its size limit, further pieces are dropped and `reply()` reports the problem.

        Raises:
            ConfigurationError: The host passed another kind of object, or a piece after `end`.
        """
        ...

    def end(self) -> list[StreamEvent]:
        """Says that the input has ended, and returns the last events."""
        ...

    def reply(self) -> Reply:
        """Returns the reply so far. After the last piece it equals the result of `parse` for the whole reply.

        It is refused while `is_complete` is False.
        """
        ...


def refuse_more(has_ended: bool) -> None:
    """Refuses a piece after the end of the input.

    Raises:
        ConfigurationError: The input has ended.
    """
    if has_ended:
        raise ConfigurationError("the stream has ended, by its `end`: use a new stream for each reply")


def end_reply(reply: Reply, is_complete: bool | None) -> Reply:
    """Returns the reply of a stream. One that is not complete is refused."""
    if is_complete is not False:
        return replace(reply, is_complete=is_complete)
    problems = (*reply.problems, BROKEN_OFF)
    refused = reply.calls or reply.refused_calls
    return replace(reply, calls=(), refused_calls=refused, problems=problems, ended=None, is_complete=False)
