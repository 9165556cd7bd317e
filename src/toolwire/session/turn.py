"""One turn: what a model's reply led to, and what the model reads next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.results import ToolResult


class Message(TypedDict):
    """One message for the model, in the form that text models take."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a reply led to."""

    reply: Reply
    """The reply as it was read; its `problems` list every repair, or why it was refused."""
    results: tuple[ToolResult, ...] = ()
    """One for each call, in order; empty when nothing was called."""
    messages: tuple[Message, ...] = ()
    """What the model reads next; empty when the reply was an end: a `fail`, or plain text."""

    @property
    def text(self) -> str:
        """The messages' text, as one."""
        return "\n".join(message["content"] for message in self.messages)
