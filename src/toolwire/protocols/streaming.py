"""A reply while it comes in: what each piece of it meant, and the reply that all pieces make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from toolwire.vocabulary.calls import Reply, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More text for the user."""

    text: str
    """What came, never empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A call has begun: its name is known, its arguments are to come."""

    index: int
    """The call's place among the reply's calls, from 0."""
    name: str
    """The tool's name, as the registry has it."""
    id: str = ""
    """The provider's id of the call; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsDelta:
    """More of a call's arguments, as the model writes them: neither read nor repaired."""

    index: int
    """The place of the call it belongs to."""
    text: str
    """What came, never empty."""
    parameter: str = ""
    """The parameter it belongs to, in formats that write each on its own; empty in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A call is complete. It may be shown, not run: what comes after it may refuse the whole reply."""

    index: int
    """The call's place among the reply's calls, from 0."""
    call: ToolCall | None
    """The call as `reply()` will have it; None when its arguments cannot be read: the reply's problems say why."""


StreamEvent = TextDelta | CallStarted | ArgumentsDelta | CallEnded


class ReplyStream(Protocol):
    """One reply while it comes in. Used once, by one reader."""

    def feed(self, delta: Any) -> list[StreamEvent]:
        """What this piece means: text, or natively an SDK's chunk or event, or the mapping of one. Never raises.

        Past the limit of a reply nothing more is kept, and `reply()` says so.
        """
        ...

    def reply(self) -> Reply:
        """The reply as far as it has come; after its last piece, what `parse` gives for the whole."""
        ...
