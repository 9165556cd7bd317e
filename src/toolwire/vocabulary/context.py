"""The context of a running tool: facts about its call, calls of other tools, and questions to a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.questions import Question
from toolwire.vocabulary.results import ToolResult

CallPort = Callable[[str, dict[str, Any]], Awaitable[ToolResult]]
"""Calls the named tool with these raw arguments, as a child of the running call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a running tool."""

    done: float
    """Units of work that are done."""
    total: float | None = None
    """Units of work in total; None if unknown."""
    message: str = ""
    """The current activity, for a person."""


class Interrupted(BaseException):
    """Raised inside a tool that must not go on now. Do not catch it.

    `emit` and `progress` raise it if the output is not wanted any more, `ask` and `call` if a question waits.
    """


EmitPort = Callable[[Any], Awaitable[None]]
"""Passes a part of the output, or a `Progress`, to the reader."""


AskPort = Callable[[Question], Any]
"""Asks a person. An async tool gets a coroutine of the answer, a sync tool the answer itself."""


class _Done:
    """An awaitable that is already done."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


DONE: Awaitable[None] = _Done()
"""The return value of `emit` in a sync tool, which has waited already."""


def silent(_: Any) -> Awaitable[None]:
    """Discards the part: the call has no reader."""
    return DONE


class CallContext:
    """The context of one call, passed to a tool that annotates a parameter with this class.

    The model does not see that parameter. A context must not be used after its call has ended.

    Attributes:
        call_id: The id of the running call, a path as `run/2/1`.
        caller: The caller for which the call is made.
        deadline: End of the time limit, as a value of `time.monotonic()`; None without a limit.
        answers: After `InputRequired`, the answers by the names of the questions. A declined question has a
            `QuestionDeclined` as its answer. Empty at the first call.
        state: After `InputRequired`, its state. None at the first call.
        idempotency_key: For a tool that is idempotent by key or has a `reconcile`: the same text whenever this call is
            made, even after a crash. `reconcile` receives it too. Empty for other tools.
    """

    __slots__ = (
        *("_ask", "_call", "_emit", "_note", "_notes", "_scope", "_using"),
        *("answers", "call_id", "caller", "deadline", "idempotency_key", "state"),
    )

    def __init__(
        self,
        *,
        call_id: str,
        call: CallPort,
        emit: EmitPort = silent,
        ask: AskPort | None = None,
        note: Callable[[Any], None] | None = None,
        notes: Callable[[], Sequence[Any]] = tuple,
        answers: Mapping[str, Any] | None = None,
        state: Any = None,
        caller: Caller = NOBODY,
        deadline: float | None = None,
        idempotency_key: str = "",
        scope: Callable[[], Any] | None = None,
        using: Callable[[Any, str | None], CallContext] | None = None,
    ) -> None:
        self._call = call
        self._emit = emit
        self._ask = ask
        self._note = note
        self._notes = notes
        self.answers: Mapping[str, Any] = {} if answers is None else answers
        self.state = state
        self.call_id = call_id
        self.caller = caller
        self.deadline = deadline
        self.idempotency_key = idempotency_key
        self._scope = scope
        self._using = using

    @property
    def scope(self) -> Any:
        """Internal state for toolwire's own tools; None in a context that you create."""
        return None if self._scope is None else self._scope()

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """Calls another tool and returns its result. The call is validated, authorized and recorded like any other.

        It never raises for a missing, denied or failed call; the result describes the failure.
        """
        return await self._call(name, arguments)

    def using(self, tools: Any, /, *, agent: str | None = None) -> CallContext:
        """Returns a context whose `call` calls the tools of another `ToolRegistry` or `Toolkit`, below this call.

        This run's policy and that of `tools` judge each call, and the stricter verdict counts. A change of the latter
        counts at the next call, and one of the former at the next call of this tool. The approver is this run's, or
        that of `tools` if this run has none. The caller, the deadline and the labels of data that was read are this
        run's. `agent` names another agent that acts for the same principal: rules judge its calls, and what this run's
        policy denies to the present agent stays denied. Bound values come from `tools` alone. At most 5 catalogues may
        be below each other.

        If a call waits for a person and the run has a store, the turn is suspended. After the decision the tool is
        called again from its start. Its earlier calls then return their recorded results, so it must make the same
        calls in the same order.

        Raises:
            ConfigurationError: `tools` or `agent` is something else, they are too deep, or this context belongs to no
                call.
        """
        if self._using is None:
            raise ConfigurationError("this context has no run: context.using(...) works in the call of a tool")
        return self._using(tools, agent)

    def ask(self, message: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Asks a person and returns the answer. `schema` is a JSON schema of the answer; None accepts any text.

        An async tool awaits it; a sync tool gets the answer itself. The answer has been checked against the schema.
        The wait does not count towards the tool's time limit.

        If the answer comes after the turn has ended, the tool is called again from its start. Then its earlier
        questions return their recorded answers, so it must ask the same questions in the same order.

        Raises:
            QuestionDeclined: The person declined to answer.
            ConfigurationError: The message or the schema is wrong, or this context belongs to no call.
        """
        if self._ask is None:
            raise ConfigurationError("this context cannot ask: give CallContext(ask=) a function that answers")
        return self._ask(Question(message) if schema is None else Question(message, schema))

    @property
    def notes(self) -> Sequence[Any]:
        """The notes of this call, those of its earlier passes first. Empty in a context that you create."""
        return self._notes()

    def note(self, value: Any) -> None:
        """Keeps a value in JSON types for the next pass of this call: at most 64 KB each, and 100 a call.

        A tool is called again from its start after a question, an approval below it, or a crash. With a store, the note
        is durable before the next call that the tool makes starts; without one it lasts as long as this call.

        Raises:
            ConfigurationError: The value is not JSON or too long, the call has too many notes, or this context belongs
                to no call.
        """
        if self._note is None:
            raise ConfigurationError("this context keeps no notes: context.note(...) works in the call of a tool")
        self._note(value)

    def emit(self, part: Any, /) -> Awaitable[None]:
        """Emits a part of the output before the end: text, a block, a `ToolResponse` or any other value.

        An async tool awaits it. It waits for the reader; without a reader the part is kept for the result.
        """
        return self._emit(part)

    def progress(self, done: float, total: float | None = None, message: str = "") -> Awaitable[None]:
        """Reports progress, which is not part of the output. An async tool awaits it."""
        return self._emit(Progress(done=done, total=total, message=message))
