"""The parts of every text for a model: the reasons for a refusal, and no lone surrogates, which UTF-8 cannot encode."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from toolwire.protocols.base import Language
from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.texts.lone_surrogates import encodable

_Protocol = TypeVar("_Protocol", bound=type)

NOT_RUN = "Your reply was not run."
"""The first line of each refusal."""

ENDINGS: dict[Language, str] = {
    "en": "If this answers the request, reply with the answer in plain text.",
    "zh": "如果这已经能回答请求，就直接用文字回答。",
}
FINISHES: dict[Language, str] = {
    "en": "If this answers the request, call `{}`: it ends your work.",
    "zh": "如果这已经能回答请求，就调用 `{}` 结束。",
}
"""Stand in place of `ENDINGS` if a tool ends the work."""

WRITES = ("tools_text", "render", "format", "refuse", "right_form", "grammar")
"""The protocol methods whose result goes to a provider, beside those of one kind of protocol."""


def is_ending(text: str) -> bool:
    """True for a line that says how to end."""
    return text in ENDINGS.values() or any(text.startswith(line.partition("`")[0]) for line in FINISHES.values())


def unrun_text(reply: Reply) -> str:
    """Tells the model that nothing was run: because the model gave up, or for the reasons of `refusal_text`."""
    if reply.failure is not None:
        return f"Nothing was run: you replied that the task cannot be done.\n{reply.failure}".rstrip()
    return refusal_text(reply)


def refusal_text(reply: Reply) -> str:
    """Tells the model why its reply was refused. Empty if the reply was not refused."""
    if not reply.is_refused:
        return ""
    reasons = [
        f"- {problem.place}: {problem.message}" if problem.place else f"- {problem.message}"
        for problem in reply.problems
        if not problem.repaired
    ]
    return "\n".join([NOT_RUN, *reasons])


def writes_encodable(protocol: _Protocol) -> _Protocol:
    """Class decorator that replaces each lone surrogate in a native protocol's output with U+FFFD."""
    # Each tool's declaration is cleaned once. Cleaning all of `describe` again takes as long as describing them.
    for name in (*WRITES, "prompt", "text_message"):
        setattr(protocol, name, encodable_result(getattr(protocol, name)))
    return protocol


def encodable_result(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with each lone surrogate in its result replaced with U+FFFD."""

    @wraps(method)
    def write(*arguments: Any, **options: Any) -> Any:
        return encodable(method(*arguments, **options))

    return write
