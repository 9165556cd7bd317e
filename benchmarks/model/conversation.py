"""One task in one format: the model's replies go through `Session.turn`, and it reads `turn.messages`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.model.engines import RETRY_TEMPERATURE, Answer, Engine
from benchmarks.model.tasks import Task, tools_of
from toolwire import Session, Turn
from toolwire.vocabulary.calls import Reply, ToolCall

TRIES = 3
"""Replies that may solve a task: the first one and two more."""

REPLIES_AFTER = 2
"""Replies in which a loop must end after its task is solved."""

COPY_CHARACTERS = 15
"""Shortest answer that counts as copied from the prompt: shorter ones, such as a name, may be right."""

Ending = Literal["text", "copy", "fail", "calls"]
"""The reply that ended a solved loop: plain text, plain text copied from the prompt, a `fail`, or none, because the
model went on calling."""


@dataclass(frozen=True)
class Format:
    """A calling format, with or without its grammar.

    The grammar holds replies until one is answered without a failure: it does not allow plain text.
    """

    protocol: str
    has_grammar: bool = False

    @property
    def name(self) -> str:
        """The name in tables and options: `json`, `json+grammar`."""
        return f"{self.protocol}+grammar" if self.has_grammar else self.protocol


FORMATS = tuple(Format(protocol, has_grammar) for protocol in ("json", "attp", "xml") for has_grammar in (False, True))


@dataclass(kw_only=True)
class Outcome:
    """The record of one conversation.

    Attributes:
        replies: The model's replies, in order.
        read: The text that the model read after each reply; empty after a final one.
        is_readable: The first reply was not refused.
        solved_at: The number of the reply that solved the task, from 1; None if none of the tries did.
        next_tries: For each try after a failure that the model read of: whether it solved the task.
        repeated: Tries after a failure that were equal to the reply before.
        ending: How the loop of a solved task ended.
        first: The first answer, with its tokens.
    """

    task: str
    format: str
    replies: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    is_readable: bool = False
    solved_at: int | None = None
    next_tries: list[bool] = field(default_factory=list)
    repeated: int = 0
    ending: Ending | None = None
    first: Answer | None = None

    def saved(self) -> dict[str, Any]:
        """Returns the conversation as JSON types."""
        kept = ("task", "format", "solved_at", "ending", "replies", "read")
        return {name: getattr(self, name) for name in kept}


def session_for(task: Task, protocol: str, ran: list[ToolCall]) -> Session:
    """Returns a session with the task's tools. `ran` receives the calls that run."""
    language: Any = task.group.language
    return Session(tools_of(task, ran), protocol=protocol, language=language)


async def converse(task: Task, form: Format, engine: Engine) -> Outcome:
    """Lets the model solve the task, and returns the record."""
    ran: list[ToolCall] = []
    session = session_for(task, form.protocol, ran)
    grammar = session.protocol.grammar(session.tools) if form.has_grammar else None
    messages: list[Mapping[str, str]] = [
        {"role": "system", "content": session.system_prompt},
        {"role": "user", "content": task.request},
    ]
    outcome, has_failed = Outcome(task=task.id, format=form.name), False
    while len(outcome.replies) < (TRIES if outcome.solved_at is None else outcome.solved_at + REPLIES_AFTER):
        answer = engine(messages, grammar, temperature=RETRY_TEMPERATURE if has_failed else 0)
        turn = await session.turn(answer.text)
        _note(outcome, answer, turn, has_failed=has_failed)
        if outcome.solved_at is None and task.is_solved(ran, at_once=not outcome.replies[1:]):
            outcome.solved_at, outcome.ending = len(outcome.replies), "calls"
            outcome.next_tries[-1:] = [True] if has_failed else []
        if turn.is_final:
            if outcome.solved_at is not None:
                outcome.ending = _ending(turn.reply, session.system_prompt)
            break
        has_failed = _failed(turn)
        grammar = grammar if has_failed else None
        messages += [{"role": "assistant", "content": turn.reply.message or ""}, *turn.messages]
    return outcome


def _note(outcome: Outcome, answer: Answer, turn: Turn, *, has_failed: bool) -> None:
    if not outcome.replies:
        outcome.first, outcome.is_readable = answer, not turn.reply.is_refused
    elif has_failed:
        outcome.repeated += answer.text == outcome.replies[-1]
        if outcome.solved_at is None:
            outcome.next_tries.append(False)
    outcome.replies.append(answer.text)
    outcome.read.append(read_next(turn))


def read_next(turn: Turn) -> str:
    """Returns the text of the turn's messages."""
    return "\n".join(message["content"] for message in turn.messages)


def _ending(final: Reply, system_prompt: str) -> Ending:
    if final.failure is not None or not final.text.strip():
        return "fail"
    text = final.text.strip().casefold()
    return "copy" if len(text) >= COPY_CHARACTERS and text in system_prompt.casefold() else "text"


def _failed(turn: Turn) -> bool:
    return turn.reply.is_refused or not all(result.success for result in turn.results)
