"""The budget of an agent's run, its events and its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from toolwire.models.model import ModelFailed, Usage
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.vocabulary.call_events import ToolEvent

Output = TypeVar("Output", default=Any)

Stop = Literal[
    "answered",
    "declined",
    "suspended",
    "stopped",
    "interrupted",
    "unreadable",
    "turns",
    "tokens",
    "cost",
    "seconds",
    "model",
]
"""Why a run ended. answered: the model has finished. declined: it said that it cannot do the task, or a content filter
stopped it. suspended: calls wait for a person. stopped: a person ended it. interrupted: its task was cancelled. `run`
raises that, and the conversation has this stop until the next prompt. unreadable: four replies in a row could not be
read. turns, tokens, cost, seconds: the budget is used up. model: the model failed. After the last six,
`run(conversation=...)` goes on where the run ended."""

TURNS = 20
"""Replies of a run, by default: enough for most tasks, and few enough to notice a model that goes round in circles."""
SECONDS = 600.0
"""Seconds of a run, by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a run, its sub-agents included. None: no limit.

    It is checked before each request, so that the last reply may go beyond `tokens` and `cost`.

    Attributes:
        turns: Requests to models.
        tokens: Tokens of all requests and replies, as the providers count them.
        cost: The cost in the currency of the models' `price`.
        seconds: Seconds of a run. They also end a model that is silent, and tools that run.
    """

    turns: int | None = TURNS
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = SECONDS

    def __post_init__(self) -> None:
        for name in ("turns", "tokens", "cost", "seconds"):
            value: object = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
            if value is not None and not is_number:
                raise ConfigurationError(f"Budget({name}={value!r:.40}): write a number that is not negative, or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult(Generic[Output]):
    """The end of a run.

    Attributes:
        stop: Why it ended.
        text: The model's answer or its refusal, in words. None without one.
        output: With `Agent(output=...)`, the value with which the model ended. None if it ended otherwise.
        pending: The requests that wait for a person, those of sub-agents included. `caller.agent` is the agent.
        usage: The tokens of this run, its sub-agents included.
        conversation: The name of the conversation, to go on with.
        messages: The whole conversation, in the form of the model's protocol.
        error: The error of the model if `stop` is `model`, else None.
    """

    stop: Stop
    text: str | None = None
    output: Output | None = None
    pending: Sequence[ApprovalRequest] = ()
    usage: Usage = field(default_factory=Usage)
    conversation: str = ""
    messages: list[Any] = field(default_factory=list[Any], repr=False)
    error: ModelFailed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One event of a run, as `Agent.stream` gives it.

    Attributes:
        type: `reply`: a request begins. `text`: more text for the user. `thought`: the model's reasoning, if its
            provider shows it. `tool`: an event of a call. `stopped`: the run of the agent has ended.
        agent: The names of the agent and of those above it, the outermost first.
        text: The text of `text` and `thought`.
        attempt: Of `reply`. Above 1, the texts since the last `reply` are void: its stream broke off.
        tool: The event of `tool`.
        result: The result of `stopped`.
    """

    type: Literal["reply", "text", "thought", "tool", "stopped"]
    agent: tuple[str, ...]
    text: str = ""
    attempt: int = 1
    tool: ToolEvent | None = None
    result: AgentResult[Any] | None = None
