"""Each way in which a call can fail today, from the call to the text that a model reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import get_args

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.definition.from_function import from_function
from toolwire.runtime.workers import Workers
from toolwire.vocabulary.failures import FAILURE_RULES, FailureKind

Setting = Callable[[World, threading.Event], None]


LATE = FAILURE_RULES["timeout"].hint


def search(query: str) -> str:
    """Searches."""
    return query


def misspelt(world: World, _: threading.Event) -> None:
    world.add(search, name="serach")


def of_another_type(world: World, _: threading.Event) -> None:
    world.add(lambda query, limit: query, name="search")


def forbidden(world: World, _: threading.Event) -> None:
    world.add(search, permission="deny")


def unanswered(world: World, _: threading.Event) -> None:
    world.add(search, permission="confirm")


def raising(world: World, _: threading.Event) -> None:
    def fail(query: str) -> str:
        raise LookupError(f"nothing about {query}")

    world.add(fail, name="search")


def unwritable(world: World, _: threading.Event) -> None:
    world.add(lambda query: {"found": {query: object()}}, name="search")


def slow(world: World, _: threading.Event) -> None:
    async def wait(query: str) -> None:
        await asyncio.Event().wait()

    world.add(wait, name="search", timeout_s=0.02)


def stuck(world: World, release: threading.Event) -> None:
    def wait(query: str) -> None:
        release.wait(PATIENCE_S)

    world.add(wait, name="search", timeout_s=0.02)


def crowded(world: World, release: threading.Event) -> None:
    world.runtime._workers = Workers(cap=1)
    world.runtime.workers.start(lambda: release.wait(PATIENCE_S))
    world.add(search, timeout_s=0.02)


def without_state(world: World, _: threading.Event) -> None:
    tool = from_function(lambda query, key: query, name="search")
    tool.bindings.bind("key", "keys.search")
    world.add(tool)


HAPPENS: dict[str, tuple[Setting, str]] = {
    "unknown_tool": (misspelt, "There is no tool named 'search'.\nDid you mean 'serach'?"),
    "invalid_arguments": (
        of_another_type,
        (
            "The arguments of 'search' are wrong:\n"
            "- 'limit' is missing: give any value.\n"
            "Correct them and call 'search' again. It takes: query (required), limit (required)."
        ),
    ),
    "denied": (
        forbidden,
        (
            "'search' may not be run: the permission of 'search' is deny.\n"
            "Do not call it again; find another way or tell the user."
        ),
    ),
    "approval_required": (
        unanswered,
        (
            "'search' was not run: a person has to allow it, and no answer came.\n"
            "It did not run. Tell the user that a person has to allow this call."
        ),
    ),
    "tool_error": (
        raising,
        "LookupError: nothing about x\nRead the error; change the arguments or try another tool.",
    ),
    "invalid_result": (
        unwritable,
        (
            "'search' ran, but its result cannot be shown: "
            "a value of type object cannot be written as JSON at found.x.\n"
            "It may have taken effect."
        ),
    ),
    "timeout": (
        slow,
        f"'search' took longer than 0.02 s and was stopped.\n{LATE}",
    ),
    "unknown_outcome": (
        stuck,
        (
            "'search' took longer than 0.02 s and cannot be stopped; its result will be ignored.\n"
            "It may have taken effect. Check that before you repeat the call."
        ),
    ),
    "overloaded": (
        crowded,
        ("'search' was not started: no worker was free within 0.02 s.\nToo much is running at once. Try again later."),
    ),
    "unavailable": (
        without_state,
        (
            "'search' cannot run: 'key' is set by the host, but its state has no 'keys.search'.\n"
            "The owner of the tool has to fix this; the arguments were not the cause."
        ),
    ),
}
TO_OBSERVERS_ALONE = {"interrupted"}
"""A cancelled call has no result: see test_cancellation."""
LATER = {
    *("inactive_tool", "approval_expired", "approval_mismatch", "limit", "divergence", "internal"),
}
"""Kinds that no step gives yet; tests/vocabulary/test_failures.py holds their rules."""


@pytest.mark.parametrize("kind", HAPPENS)
def test_a_failure_is_read_by_the_model_word_for_word(world: World, release: threading.Event, kind: str) -> None:
    set_up, text = HAPPENS[kind]
    set_up(world, release)
    result = world.call("search", query="x")
    assert (outcome(result), result.text) == (kind, text)
    assert result.content == [{"type": "text", "text": text}]
    assert (result.success, result.data) == (False, None)
    assert world.recording.story == [("r_1", "", kind)]


def test_every_kind_is_accounted_for() -> None:
    assert {*HAPPENS, *TO_OBSERVERS_ALONE, *LATER} == set(get_args(FailureKind))
