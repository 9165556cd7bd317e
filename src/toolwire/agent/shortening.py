"""Shorter histories: long results become one line, then exchanges go, oldest first. A call and its results go together.

A history is a list of messages as a request has them. It is made of exchanges: a prompt of the user, and the steps
after it. A step is a reply with the results of its calls, so it can go without leaving a call or a result alone.
Replies that stay are unchanged, because providers sign them.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, cast

from toolwire.agent.wire_messages import (
    calls_in,
    elide_results,
    is_of_model,
    is_of_toolwire,
    reply_like,
    results_in,
    size_of,
)
from toolwire.protocols.base import CallingProtocol
from toolwire.vocabulary.errors import ConfigurationError

FULL = 0.9
"""The share of the limit above which a history is shortened."""

GOAL = 0.6
"""The share of the limit that remains. One large cut leaves the provider's prompt cache valid for many requests."""

BYTES_PER_TOKEN = 4
"""The estimate for what no provider has counted yet."""

REFUSED_SHARE = 0.5
"""The share of a request that remains after its provider refused it as too long, because its limit is unknown."""

EARLIER_LEFT_OUT = "[My earlier replies were left out here to shorten the conversation.]"
"""Stands for the steps of the first prompt where another prompt follows: many chat templates need turns."""

Shorten = Callable[[list[Any]], list[Any] | Awaitable[list[Any]]]
"""An owner's function from a history to a shorter one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """The tokens of an earlier request, as its provider counted them.

    Attributes:
        tokens: The tokens of its system prompt, its tools and its messages; above 0.
        messages: The number of messages that it had. The history begins with exactly these.
    """

    tokens: int
    messages: int


@dataclass(slots=True)
class Exchange:
    """A prompt of the user, and the steps after it.

    Attributes:
        prompt: The user's messages, usually one.
        steps: Each reply with the results of its calls, or with toolwire's words about it.
    """

    prompt: list[Any] = field(default_factory=list[Any])
    steps: list[list[Any]] = field(default_factory=list[list[Any]])


def estimate_tokens(messages: list[Any], count: TokenCount | None, before: Any) -> int:
    """Returns the tokens of a request: what its provider counted, and 4 bytes a token for the rest.

    `before` holds the other parts of the request, such as `(system, tools)`.
    """
    if count is None:
        return size_of([before, messages]) // BYTES_PER_TOKEN
    return count.tokens + size_of(messages[count.messages :]) // BYTES_PER_TOKEN


def is_too_long(messages: list[Any], *, limit_tokens: int, count: TokenCount | None, before: Any) -> bool:
    """True if a request of this history would fill more than 90 % of the limit."""
    return estimate_tokens(messages, count, before) > FULL * limit_tokens


def shorten_history(
    messages: list[Any],
    protocol: CallingProtocol,
    tools: Iterable[Any],
    *,
    limit_tokens: int | None,
    count: TokenCount | None,
    before: Any,
) -> list[Any]:
    """Returns the history at 60 % of the limit or less; the same list if that is so already, or nothing may go.

    The first prompt, the last prompt and the last step always stay. Results of the last step become a line only if the
    rest fills more than 90 % of the limit, because the model has not read them yet. Without `limit_tokens` the goal is
    half of the tokens that `messages` have now. The size of a token is that of the counted messages.
    """
    per_token = size_of([before, messages[: count.messages]]) / count.tokens if count else BYTES_PER_TOKEN
    limit = limit_tokens or estimate_tokens(messages, count, before) * REFUSED_SHARE / GOAL
    at_limit, fixed = limit * per_token, size_of(before)
    excess = size_of(messages) - (GOAL * at_limit - fixed)
    if excess <= 0:
        return messages
    exchanges = split_history(messages, protocol, tools)
    last = _last_step(exchanges)
    for step in (step for exchange in exchanges for step in exchange.steps if step is not last):
        if excess > 0:
            excess -= _elide(step)
    excess = _drop_steps(exchanges, last, excess)
    if excess > (FULL - GOAL) * at_limit:
        _elide(last)
    found = [message for one in exchanges for part in (one.prompt, *one.steps) for message in part]
    return messages if found == messages else found


async def shorten_by_owner(
    shorten: Shorten, messages: list[Any], protocol: CallingProtocol, tools: Iterable[Any], *, agent: str
) -> list[Any]:
    """Returns the history as the owner's function shortens it. The function receives a copy.

    Raises:
        ConfigurationError: The function failed, or its history is not one that a provider takes.
    """
    place = f"shorten= of the agent {agent!r}"
    try:
        given = shorten(copy.deepcopy(messages))
        found: Any = await given if isawaitable(given) else given
    except Exception as error:
        raise ConfigurationError(f"{place} failed with {type(error).__name__}: {error}") from error
    check_history(found, protocol, tools, place=place)
    return found


def check_history(messages: Any, protocol: CallingProtocol, tools: Iterable[Any], *, place: str) -> None:
    """Checks that a history is one that a provider takes. `place` names the function that gave it.

    Raises:
        ConfigurationError: The value is not a list of messages, or it is empty. Or the user's prompt is not the first
            message. Or a call has no result, or a result no call.
    """
    if fault := _find_fault(messages) or _find_unanswered_text(messages, protocol, tuple(tools)):
        raise ConfigurationError(f"{place} gave {fault}: leave out a call together with its results, and keep a prompt")


def _find_fault(messages: Any) -> str:
    if not isinstance(messages, list) or not messages:
        return f"{messages!r:.80}, not a list of messages"
    waiting: list[str] = []
    for at, message in enumerate(cast("list[Any]", messages)):
        if not isinstance(message, dict):
            return f"messages[{at}] as {message!r:.80}, not a dict"
        found = cast("dict[str, Any]", message)
        answers = results_in(found)
        if orphaned := next((answer for answer in answers if answer not in waiting), None):
            return f"messages[{at}] with a result of the call {orphaned!r}, which no reply before it makes"
        if at == 0 and is_of_model(found):
            return "a history that begins with a reply"
        for answer in answers:
            waiting.remove(answer)
        # The items of one reply follow each other, and each has a type.
        if waiting and not answers and not (is_of_model(found) and "type" in found):
            return f"messages[{at}] before the result of the call {waiting[0]!r}"
        waiting += calls_in(found)
    return f"a history without the result of the call {waiting[0]!r}" if waiting else ""


def _find_unanswered_text(messages: list[Any], protocol: CallingProtocol, tools: Sequence[Any]) -> str:
    """Returns the fault of a text protocol's calls that no message of the user answers."""
    replies = [] if protocol.is_native else [at for at, message in enumerate(messages) if is_of_model(message)]
    for at in replies:
        is_answered = at + 1 < len(messages) and not is_of_model(messages[at + 1])
        if not is_answered and _has_calls(messages[at], protocol, tools):
            return f"messages[{at}] with calls, and no results after it"
    return ""


def split_history(messages: list[Any], protocol: CallingProtocol, tools: Iterable[Any]) -> list[Exchange]:
    """Splits a history into exchanges.

    Messages of a text protocol do not say whether they hold results. A message is results if the reply before it makes
    calls of these tools.
    """
    exchanges, known = [Exchange()], tuple(tools)
    previous: Any = None
    for message in messages:
        steps = exchanges[-1].steps
        if is_of_model(message):
            if steps and previous is not None and is_of_model(previous):
                steps[-1].append(message)
            else:
                steps.append([message])
        elif steps and _is_of_step(message, previous, protocol, known):
            steps[-1].append(message)
        elif steps:
            exchanges.append(Exchange(prompt=[message]))
        else:
            exchanges[-1].prompt.append(message)
        previous = message
    return exchanges


def _is_of_step(message: Any, previous: Any, protocol: CallingProtocol, tools: Sequence[Any]) -> bool:
    """True for results, their images, and words of toolwire about a reply that could not be read. Else a prompt."""
    if results_in(message) or is_of_toolwire(message):
        return True
    return not protocol.is_native and is_of_model(previous) and _has_calls(previous, protocol, tools)


def _has_calls(message: Mapping[str, Any], protocol: CallingProtocol, tools: Sequence[Any]) -> bool:
    """True for a reply of a text protocol that makes calls of these tools."""
    return bool(protocol.parse(message.get("content"), tools).calls)


def _last_step(exchanges: list[Exchange]) -> list[Any]:
    """Returns the step that the next reply follows, or whose results the model has not read. Empty if there is none."""
    steps = [step for exchange in exchanges for step in exchange.steps]
    is_unread = bool(exchanges[-1].steps) or (bool(steps) and not is_of_model(steps[-1][-1]))
    return steps[-1] if is_unread else []


def _elide(step: list[Any]) -> int:
    """Puts lines in place of the long results of a step. Returns the number of bytes that this saves."""
    before = size_of(step)
    step[:] = [message if is_of_model(message) else elide_results(message) for message in step]
    return before - size_of(step)


def _drop_steps(exchanges: list[Exchange], last: list[Any], excess: float) -> float:
    """Removes steps before the last one, oldest first, until nothing is in excess. Returns the excess."""
    first = exchanges[0]
    notice = [reply_like(first.prompt, EARLIER_LEFT_OUT)]
    for exchange in exchanges:
        while excess > 0 and exchange.steps and exchange.steps[0] is not last and exchange.steps != [notice]:
            excess -= size_of(exchange.steps.pop(0))
            if exchange is first and not exchange.steps:
                exchange.steps.append(notice)
                excess += size_of(notice)
            elif not exchange.steps:
                excess -= size_of(exchange.prompt)
                exchange.prompt.clear()
    return excess
