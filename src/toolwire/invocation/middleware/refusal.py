"""Results for calls that a middleware refuses, and the classification of failures."""

from __future__ import annotations

import socket

from toolwire.invocation.middleware.onion import PreparedCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.results import ToolResult

TRANSPORT_KINDS: frozenset[FailureKind] = frozenset({"timeout", "unknown_outcome", "overloaded", "unavailable"})
"""Failures that do not depend on the arguments: the tool's server was not reached, or not in time."""
TRANSPORT_ERRORS = (ConnectionError, TimeoutError, socket.gaierror)
"""Exceptions of a tool that could not reach its server. They may also be the cause of its own exception."""
CAUSES_LIMIT = 10
"""Maximum number of exceptions examined in a chain."""


def failure_before_start(
    call: PreparedCall, kind: FailureKind, reason: str, retry_after_s: float, *, hint: str = ""
) -> ToolResult:
    """Returns the failed result of a call that was not started.

    `retry_after_s` gives the time until a retry makes sense.
    """
    after_s = round(max(retry_after_s, 0.0), 3)
    return ToolResult.failed(
        kind,
        f"{call.tool!r} was not started: {reason}.",
        hint=hint or f"It did not run. Try again in {max(round(after_s), 1)} s, or do without.",
        data={"is_started": False, "retry_after_s": after_s},
        call=call.call,
    )


def never_started(result: ToolResult) -> bool:
    """True if a failed call is known not to have reached its tool."""
    return result.failure is not None and result.failure.data.get("is_started") is False


def had_no_effect(result: ToolResult) -> bool:
    """True if a failed call is known not to have reached its tool, or not to have been sent by it (`CallNotSent`)."""
    return never_started(result) or (result.failure is not None and result.failure.data.get("is_sent") is False)


def is_transport_failure(result: ToolResult) -> bool:
    """True if the tool's server was not reached, or not in time. A tool's own error is not a transport failure."""
    failure = result.failure
    if failure is None:
        return False
    return failure.kind in TRANSPORT_KINDS or (failure.kind == "tool_error" and _is_unreachable(failure.exception))


def _is_unreachable(error: BaseException | None) -> bool:
    for _ in range(CAUSES_LIMIT):
        if error is None or isinstance(error, TRANSPORT_ERRORS):
            return error is not None
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def check_above_zero(what: str, **numbers: float) -> None:
    """Checks that all numbers are above 0.

    Raises:
        ConfigurationError: A number is not above 0.
    """
    for name, number in numbers.items():
        if not number > 0:
            raise ConfigurationError(f"{what}({name}={number!r}): give a number above 0")
