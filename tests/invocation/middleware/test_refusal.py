"""Failures in transit, and the errors of refused calls."""

from __future__ import annotations

import socket
import urllib.error
from typing import Any

import pytest

from tests.invocation.world import World
from toolwire.invocation.fold import failure_of_exception
from toolwire.invocation.middleware.refusal import check_above_zero, is_transport_failure, never_started
from toolwire.runtime.workers import Workers
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.failures import FAILURE_RULES
from toolwire.vocabulary.results import ToolResult

CALL = ToolCall("fetch")


def raised_from(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def raised_within(error: Exception, first: Exception) -> Exception:
    try:
        try:
            raise first
        except Exception:
            raise error  # noqa: B904 - the context is what is tested
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (socket.gaierror(), True),
        (raised_from(RuntimeError("no"), ConnectionRefusedError()), True),
        (raised_within(RuntimeError("no"), ConnectionRefusedError()), True),
        (raised_from(raised_within(RuntimeError("no"), ConnectionRefusedError()), None), False),  # type: ignore[arg-type]
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (urllib.error.HTTPError("http://localhost", 404, "not found", None, None), False),  # type: ignore[arg-type]
        (ValueError("wrong"), False),
    ],
    ids=repr,
)
def test_an_exception_is_one_when_its_server_was_not_reached(error: Exception, is_one: bool) -> None:
    assert is_transport_failure(failure_of_exception(CALL, error)) is is_one


def test_four_kinds_are_transport_failures() -> None:
    found = [kind for kind in FAILURE_RULES if is_transport_failure(ToolResult.failed(kind, "no"))]
    assert found == ["timeout", "unknown_outcome", "overloaded", "unavailable"]
    assert not is_transport_failure(ToolResult(True, 1))


def test_a_chain_of_causes_without_an_end_is_looked_at_so_far() -> None:
    error = RuntimeError("again")
    error.__cause__ = error
    assert not is_transport_failure(failure_of_exception(CALL, error))


def test_a_call_that_found_no_worker_is_known_not_to_have_started(world: World) -> None:
    world.runtime._workers = Workers(0, waiting_cap=0)
    world.add(lambda: 1, name="work", timeout_s=1)
    assert never_started(world.call("work"))
    assert not never_started(ToolResult.failed("overloaded", "so the tool says"))


@pytest.mark.parametrize("number", [0, -1, float("nan")])
def test_a_number_that_is_not_above_zero_is_refused(number: Any) -> None:
    check_above_zero("Retry", attempts=0.1)
    with pytest.raises(ConfigurationError) as caught:
        check_above_zero("Retry", attempts=number)
    assert str(caught.value) == f"Retry(attempts={number!r}): give a number above 0"
