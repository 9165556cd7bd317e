"""One turn: the results of a model's reply, and the messages that the model reads next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict

from toolwire.journal.run import SuspendedRun
from toolwire.permission.approval import ApprovalRequest
from toolwire.permission.rendering import render
from toolwire.session.runs.wire import suspended_to_json
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.results import ToolResult, result_html
from toolwire.vocabulary.texts.counting import count_of

_STOPPED = ("filter", "failed")
"""The ends of a reply after which asking again would not help, and which give no answer."""


_JSON = frozenset({str, int, float, bool, list, dict, type(None)})
"""The types of an answer. The instance of a model has another."""


class Message(TypedDict):
    """One message for the model, in the form that text models take."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Suspended(SuspendedRun):
    """A run that waits for decisions.

    `run_id` identifies it, `pending` lists its requests, and `to_json()` makes its portable form.
    """

    @classmethod
    def of(cls, run: SuspendedRun) -> Suspended:
        """Converts a run to this class."""
        return cls(**{field.name: getattr(run, field.name) for field in fields(run)})

    def to_json(self) -> str:
        """Returns the signed portable form, which `Session.resume` accepts. The store remains the authority."""
        return suspended_to_json(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Turn:
    """The results of one reply.

    Attributes:
        reply: The reply as it was read. Its `problems` list every repair, or the reasons for a refusal.
        results: One result for each call, in order. Empty if the reply made no calls.
        messages: The messages for the model, to be appended after `reply.message`, its own. A text protocol gives one
            `Message`; a native one gives the provider's form. Empty if the reply was final: a `fail`, or plain text.
        suspended: The suspended run if calls wait for a person, else None. Its `pending` lists the requests, and
            `Session.resume` continues the run. `results` and `messages` are empty until then.
        told: The results as a text protocol writes them, or its refusal; None for a native protocol.
        final: With `Session(finish=...)`, the value of the call by which the model ended: its answer, a JSON value, or
            the instance of the model. None until then. A suspended turn may have it too.
        has_final: True if the model has ended by a call. `final` may then be None too: an answer may be null.
        run_id: The id of the run: with a store, what `Session.resume` takes. Empty if the reply made no calls.
        stopped: The reason for which a person or the host stopped the run in this pass. Empty if neither did.
    """

    reply: Reply
    results: tuple[ToolResult, ...] = ()
    messages: list[Any] = field(default_factory=list[Any])
    suspended: Suspended | None = None
    told: str | None = None
    final: Any = None
    has_final: bool = False
    run_id: str = ""
    stopped: str = ""

    @classmethod
    def from_results(
        cls,
        reply: Reply,
        results: Sequence[ToolResult],
        answer: str | Sequence[dict[str, Any]],
        *,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        final: Any = None,
        has_final: bool = False,
        run_id: str = "",
    ) -> Turn:
        """Makes a turn from its results and from the protocol's answer to them, or to a refused reply.

        A text answer stands between the lines `before` and `after` in the message for the model.
        """
        turn = cls(reply=reply, results=tuple(results), final=final, has_final=has_final, run_id=run_id)
        if not isinstance(answer, str):
            return replace(turn, messages=list(answer))
        body = answer.removesuffix("\n") if after else answer
        message = Message(role="user", content="\n".join([*before, body, *after]))
        return replace(turn, messages=[message], told=answer)

    def __repr__(self) -> str:
        if self.suspended is not None:
            return f"<Turn {self.suspended!r}>"
        if self.reply.ended in _STOPPED:
            return f"<Turn stopped by the provider ({self.reply.ended}): see reply.problems>"
        if self.reply.ended == "paused" and not self.reply.calls:
            return "<Turn paused: append reply.message and ask again>"
        if self.is_final:
            ended = self.final if self.has_final else self.answer
            return f"<Turn final: {ended!r:.80}>"
        if self.reply.is_refused:
            return "<Turn refused: see reply.problems>"
        failed = sum(not result.success for result in self.results)
        return f"<Turn: {count_of(len(self.results), 'result')}, {failed} failed>"

    def _repr_html_(self) -> str:
        """Returns the turn as HTML, which notebooks show: its results, requests or answer. All texts are escaped."""
        from toolwire.vocabulary.html_display import html_table, html_text

        texts = [repr(self)] if self.answer is None else [self.answer]
        if self.suspended is not None:
            texts += map(_request_text, self.suspended.pending)
        parts = [html_text(text) for text in texts]
        if problems := [(one.place, one.message) for one in self.reply.problems if not one.repaired]:
            parts.append(html_table(problems, head=("place", "problem")))
        return "".join([*parts, *map(result_html, self.results)])

    @property
    def is_final(self) -> bool:
        """True if the model has finished: its reply was readable and makes no calls, or a call ended the turn.

        `answer` is then its final answer. A suspended turn is not final, nor is one whose reply the provider paused. A
        reply that a content filter stopped, or that the provider failed to finish, is final without an answer.
        """
        if self.has_final:
            return self.suspended is None
        if self.reply.ended in _STOPPED:
            return True
        return not self.reply.calls and not self.reply.is_refused and self.reply.ended != "paused"

    @property
    def answer(self) -> str | None:
        """The model's final answer for the user: its text, or the message of a `fail`. None unless `is_final`.

        It is `final` if that is a text, and the JSON of any other value. None if the turn ended with the instance of a
        model, or if the provider stopped the reply (`reply.ended` is `filter` or `failed`): `reply.problems` says why.
        """
        if not self.is_final or self.reply.ended in _STOPPED:
            return None
        if self.has_final:
            final: Any = self.final
            return show(final) if type(final) in _JSON else None
        return self.reply.text if self.reply.failure is None else self.reply.failure

    @property
    def text(self) -> str:
        """The results or the refusal as one text, without images and other content.

        It lacks the lines that `messages` adds to guide the model's next reply.
        """
        if self.told is not None:
            return self.told
        if self.results:
            return "\n".join(result.text for result in self.results)
        contents = [message.get("content") for message in self.messages]
        texts = [content for content in contents if isinstance(content, str)]
        if len(texts) == len(contents):
            return "\n".join(texts)
        reasons = [problem.message for problem in self.reply.problems if not problem.repaired]
        return "\n".join(reasons)


def _request_text(request: ApprovalRequest) -> str:
    try:
        return render(request, now=time.time())
    except Unrepresentable as error:
        return f"the call of request {request.id} cannot be shown: {error}"


def result_for_provider(result: ToolResult, call: ToolCall) -> ToolResult:
    """Returns the result under the provider's id of its call. A model may repeat an id, but a run must not."""
    if not call.id:
        return result
    return ToolResult(
        result.success,
        result.data,
        result.error,
        result.metadata,
        content=result.blocks,
        failure=result.failure,
        call=call,
    )
