"""Seconds by a tool's name."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.invocation.middleware.time_limit import TimeLimit
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult


def test_a_name_counts_before_a_pattern_and_the_first_pattern_that_fits(world: World) -> None:
    seen: dict[str, Any] = {}

    @colourless
    async def look(call: PreparedCall, call_next: CallNext) -> ToolResult:
        seen[call.tool] = call.deadline
        return ToolResult(True, None, call=call.call)

    for name in ("fetch_page", "fetch_file", "fetch", "other"):
        world.add(lambda: 1, name=name)
    limit = TimeLimit({"fetch_*": 100, "*f*": 200, "fetch_file": 300})
    world.middleware = (limit, look)
    for name in ("fetch_page", "fetch_file", "fetch", "other"):
        world.call(name)
    first = seen["fetch_page"]
    assert [round((seen[name] - first) / 100) for name in ("fetch_page", "fetch_file", "fetch")] == [0, 2, 1]
    assert seen["other"] is None


def test_an_async_tool_that_takes_longer_is_stopped(world: World) -> None:
    async def fetch() -> None:
        await asyncio.Event().wait()

    world.add(fetch)
    world.middleware = (TimeLimit({"fetch": 0.02}),)
    # The time before the tool starts counts too, so a busy machine leaves less of it.
    assert re.fullmatch(r"'fetch' took longer than 0\.0\d+ s and was stopped\.", world.call("fetch").error or "")


def test_the_outcome_of_a_sync_tool_beyond_its_limit_is_unknown(world: World, release: threading.Event) -> None:
    world.add(lambda: release.wait(PATIENCE_S), name="fetch")
    world.middleware = (TimeLimit({"fetch": 0.02}),)
    assert outcome(world.call("fetch")) == "unknown_outcome"


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        TimeLimit({"fetch_*": 0})
    assert str(caught.value) == "TimeLimit(fetch_*=0): give a number above 0"
