"""One task in one format: the model's replies go through `Session.turn`, and it reads `turn.messages`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from benchmarks.model.engines import RETRY_TEMPERATURE, RETRY_VARIES, Answer, Engine
from benchmarks.model.tasks import Task, tools_of
from toolwire import Session, Turn
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply, ToolCall

TRIES = 3
"""Replies that may solve a task: the first one and two more."""

REPLIES_AFTER = 2
"""Replies in which a loop must end after its task is solved."""

COPY_CHARACTERS = 15
"""Shortest answer that counts as copied from the prompt: shorter ones, such as a name, may be right."""

Ending = Literal["text", "copy", "fail", "calls"]
"""The reply that ended a solved loop: plain text or the call by which a model answers, plain text copied from the
prompt, a `fail`, or none, because the model went on calling."""


Form = Literal["", "joined", "answer", "keep"]
"""A form of programs that is tried.

- `joined`: the programs of one reply run as one program.
- `answer`: the example of the prompt gives its answer from the program, as `answer(value)`.
- `keep`: a program has the variables of earlier ones.
"""


@dataclass(frozen=True)
class Format:
    """A calling format, with or without its grammar, and in a form that is tried.

    The grammar holds replies until one is answered without a failure: it does not allow plain text.
    """

    protocol: str
    has_grammar: bool = False
    form: Form = ""

    @property
    def name(self) -> str:
        """The name in tables and options: `json`, `json+grammar`, `attp+joined`."""
        return "+".join(part for part in (self.protocol, self.form, "grammar" if self.has_grammar else "") if part)


FORMATS = tuple(Format(protocol, has_grammar) for protocol in ("json", "attp", "xml") for has_grammar in (False, True))
TRIED = tuple(Format("attp", form=form) for form in ("joined", "answer", "keep"))
"""Formats that are measured only where they are named."""


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


def session_for(task: Task, protocol: str, ran: list[ToolCall], form: Form = "") -> Session:
    """Returns a session with the task's tools. `ran` receives the calls that run."""
    options: dict[str, Any] = {"language": task.group.language}
    if form == "answer":
        options["finish"] = "answer"
    if form == "keep":
        options["variables"] = "keep"
    return Session(tools_of(task, ran), protocol=protocol, **options)


def prompt_of(session: Session, form: Form) -> str:
    """Returns the system prompt of a session in this form."""
    return _ANSWERS.sub(r"answer(\1\2)", session.system_prompt) if form == "answer" else session.system_prompt


def read_reply(text: str, session: Session, form: Form) -> Any:
    """Returns what a session in this form takes as the reply: with `joined`, one program in place of several."""
    if form != "joined":
        return text
    reply = session.protocol.parse(text, session.tools)
    if len(reply.calls) < 2 or any(call.name != CODE_EXECUTION for call in reply.calls):
        return reply
    code = "\n".join(str(call.arguments["code"]) for call in reply.calls)
    return replace(reply, calls=(ToolCall(CODE_EXECUTION, {"code": code}),))


_ANSWERS = re.compile(r"\banswer\(answer=(?:str\((.*?)\)|(.*?))\)$", re.MULTILINE)
"""The last line of an example in the prompt."""


async def converse(task: Task, form: Format, engine: Engine) -> Outcome:
    """Lets the model solve the task, and returns the record."""
    ran: list[ToolCall] = []
    session = session_for(task, form.protocol, ran, form.form)
    prompt = prompt_of(session, form.form)
    grammar = session.protocol.grammar(session.tools) if form.has_grammar else None
    messages: list[Mapping[str, str]] = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": task.request},
    ]
    outcome, has_failed = Outcome(task=task.id, format=form.name), False
    while len(outcome.replies) < (TRIES if outcome.solved_at is None else outcome.solved_at + REPLIES_AFTER):
        is_varied = has_failed and form.protocol == RETRY_VARIES
        answer = engine(messages, grammar, temperature=RETRY_TEMPERATURE if is_varied else 0)
        turn = await session.turn(read_reply(answer.text, session, form.form))
        _note(outcome, answer, turn, has_failed=has_failed)
        if outcome.solved_at is None and task.is_solved(ran, at_once=not outcome.replies[1:]):
            outcome.solved_at, outcome.ending = len(outcome.replies), "calls"
            outcome.next_tries[-1:] = [True] if has_failed else []
        if turn.is_final:
            if outcome.solved_at is not None:
                outcome.ending = "text" if turn.has_final else _ending(turn.reply, prompt)
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
