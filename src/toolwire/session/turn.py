"""One turn: what a model's reply led to, and what the model reads next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from toolwire.session.suspended import Suspended
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
    messages: tuple[Mapping[str, Any], ...] = ()
    """What the model reads next, to be appended after its own message: a `Message`, or whatever a native protocol's
    provider takes. Empty when the reply was an end: a `fail`, or plain text."""

    suspended: Suspended | None = None
    """Set when calls wait for a person: its `pending` says which, `session.resume` goes on. `results` and `messages`
    are empty until then."""

    @classmethod
    def ended(cls, reply: Reply, results: Sequence[ToolResult], answer: str | Sequence[dict[str, Any]]) -> Turn:
        """A turn whose model reads what its protocol made of the results, or of a refused reply."""
        messages = (Message(role="user", content=answer),) if isinstance(answer, str) else tuple(answer)
        return cls(reply=reply, results=tuple(results), messages=cast("tuple[Mapping[str, Any], ...]", messages))

    @property
    def is_final(self) -> bool:
        """Whether the model has ended: its reply could be read and makes no call. `answer` is then its last word."""
        return not self.reply.calls and not self.reply.is_refused

    @property
    def answer(self) -> str | None:
        """The model's last word for the user: its text, or the message of a `fail`. None unless `is_final`."""
        if not self.is_final:
            return None
        return self.reply.text if self.reply.failure is None else self.reply.failure

    @property
    def text(self) -> str:
        """What the model reads next as one text, without images and what else is no text."""
        contents = [message.get("content") for message in self.messages]
        texts = [content for content in contents if isinstance(content, str)]
        if len(texts) == len(contents):
            return "\n".join(texts)
        reasons = [problem.message for problem in self.reply.problems if not problem.repaired]
        return "\n".join(result.text for result in self.results) or "\n".join(reasons)
