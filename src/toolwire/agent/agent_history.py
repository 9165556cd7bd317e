"""The messages of one conversation, and the form in which its document keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolwire.agent.result import Stop
from toolwire.agent.shortening import TokenCount
from toolwire.session.session import Session
from toolwire.session.turn import Turn
from toolwire.vocabulary.errors import ConfigurationError

FORM = "toolwire.agent/1"
"""Marks a document that an agent wrote, and the version of its form."""

RUNS_KEPT = 200
"""Number of the latest runs that a document names. A run writes the document at its end, long before so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEnd:
    """The answer with which a conversation ended."""

    stop: Stop
    text: str | None
    run_id: str
    """The run whose call was the end, which has the output on record; empty if the model ended by text."""


class History:
    """The messages of one conversation. `messages` is all of it, and `view` the part that the model reads."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.view: list[Any] = []
        self.runs: list[str] = []
        """The ids of the latest runs whose calls and results are in `messages`."""
        self.ended: ConversationEnd | None = None
        """The last answer; None while the model has not finished."""
        self.count: TokenCount | None = None
        """The provider's count of the last request."""
        self._replaced_count = 0
        """Number of the messages that `view` has in another form, or not at all."""

    def add_prompt(self, messages: Sequence[Any]) -> None:
        """Adds the messages of a user's prompt."""
        self._add(messages)
        self.ended = None

    def take(self, turn: Turn) -> None:
        """Adds a turn that has ended: the model's message and the answer to it."""
        said = turn.reply.message
        if isinstance(said, str):
            said = {"role": "assistant", "content": said}
        self._add([*(said if isinstance(said, list) else [] if said is None else [said]), *turn.messages])
        self.ended = None
        if turn.run_id:
            self.runs.append(turn.run_id)

    def shorten(self, view: Sequence[Any]) -> None:
        """Replaces the messages that the model reads."""
        self.view, self._replaced_count, self.count = list(view), len(self.messages), None

    def document(self, protocol: str) -> dict[str, Any]:
        """Returns the history in JSON types, with the name of its messages' protocol."""
        shortened = None
        if self._replaced_count:
            kept = len(self.view) - (len(self.messages) - self._replaced_count)
            shortened = {"count": self._replaced_count, "messages": self.view[:kept]}
        ended, count = self.ended, self.count
        return {
            "form": FORM,
            "protocol": protocol,
            "messages": self.messages,
            "shortened": shortened,
            "runs": self.runs[-RUNS_KEPT:],
            "ended": None if ended is None else [ended.stop, ended.text, ended.run_id],
            "count": None if count is None else [count.tokens, count.messages],
        }

    @classmethod
    def read(cls, document: object, session: Session) -> History:
        """Returns the history of the session's conversation from its document; None is that of a new one.

        Raises:
            ConfigurationError: The document is not an agent's, or is one of another protocol.
        """
        protocol, conversation = session.protocol.name, session.conversation
        history = cls()
        if document is None:
            return history
        form = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
        if form.get("form") != FORM:
            raise ConfigurationError(
                f"conversation {conversation!r} has a document that is not in the form {FORM!r} of an agent: give "
                "another conversation=, or save that document under another name"
            )
        if form["protocol"] != protocol:
            raise ConfigurationError(
                f"conversation {conversation!r} is in the protocol {form['protocol']!r}, and this model speaks "
                f"{protocol!r}: go on with a model of the first, or give another conversation="
            )
        history.messages, history.runs = list(form["messages"]), list(form["runs"])
        history.view = list(history.messages)
        if form["shortened"] is not None:
            history._replaced_count = form["shortened"]["count"]
            history.view = [*form["shortened"]["messages"], *history.messages[history._replaced_count :]]
        if form["ended"] is not None:
            stop, text, run_id = form["ended"]
            history.ended = ConversationEnd(stop=stop, text=text, run_id=run_id)
        if form["count"] is not None:
            tokens, messages = form["count"]
            history.count = TokenCount(tokens=tokens, messages=messages)
        return history

    def _add(self, messages: Sequence[Any]) -> None:
        self.messages += messages
        self.view += messages
