"""The interface of tracing: the spans of agents, requests to models, turns, calls and waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.results import Outcome


class CallSpan(Protocol):
    """The tracing span of one call.

    It is current while the call runs, so spans that the tool opens are its children.
    """

    def from_record(self) -> None:
        """Marks the call as answered from the record, without running it."""
        ...

    def end(self, outcome: Outcome, /) -> None:
        """Ends the span. Called once, in the thread or task that began it."""
        ...


class ApprovalSpan(Protocol):
    """The tracing span of one wait for a person."""

    def end(self, verdict: str, /) -> None:
        """Ends the span. Called once; an empty verdict means that no decision was made."""
        ...


class TurnSpan(Protocol):
    """The tracing span of one turn. Exactly one of its methods is called, once."""

    def end(self, outcome: Literal["answered", "refused", "suspended"], calls: int, /) -> None: ...
    def fail(self, error: BaseException, /) -> None: ...


class AgentSpan(Protocol):
    """The tracing span of one run of an agent. Exactly one of its methods is called, once, in the task that began it.

    It is current until then, so the spans of its requests and turns are its children.
    """

    def end(self, stop: str, input_tokens: int, output_tokens: int, /) -> None:
        """Ends the span. `stop` is why the run ended; the tokens are those of all its requests."""
        ...

    def fail(self, error: BaseException, /) -> None: ...


class ChatSpan(Protocol):
    """The tracing span of one request to a model, until the reply has ended. As `AgentSpan`."""

    def end(self, input_tokens: int, output_tokens: int, /) -> None: ...
    def fail(self, error: BaseException, /) -> None: ...


class Tracer(Protocol):
    """Observes calls while they run, and cannot affect them.

    It must not raise, so that no call fails because of tracing.
    """

    def call(self, call: ToolCall, *, tool: str | None, description: str, caller: Caller, run_id: str) -> CallSpan:
        """Begins the span of a call. `tool` is None if no tool has its name."""
        ...

    def approval(self, tool: str, request_id: str) -> ApprovalSpan:
        """Begins the span of a question to a person."""
        ...

    def turn(self, run_id: str, *, caller: Caller, protocol: str, given_ids: Mapping[str, str]) -> TurnSpan:
        """Begins the span of a turn. `given_ids` maps our call ids to the provider's."""
        ...

    def agent(self, name: str, *, conversation: str) -> AgentSpan:
        """Begins the span of a run of an agent. An empty `conversation` has no name."""
        ...

    def chat(self, model: str, *, provider: str, conversation: str) -> ChatSpan:
        """Begins the span of a request. Empty texts are not known: a model of one's own may have no name."""
        ...
