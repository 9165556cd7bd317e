"""A call with large arguments does not hold the event loop: work on them is done beside it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from toolwire import Rule, Session
from toolwire.invocation.ports.asynchronous import AsynchronousPorts
from toolwire.invocation.ports.offload import OFFLOAD_BYTES, is_large_value
from toolwire.runtime.runtime import default_runtime
from toolwire.vocabulary.calls import Reply, ToolCall

LOOP_STEP_S = 0.2
"""Processor seconds that one step of the event loop's thread may take."""

SIZE = 3_600_000


def take(rows: list[str], text: str) -> int:
    """Takes rows and a text."""
    return len(rows) + len(text)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Processor seconds of each step of the event loop."""
    found: list[float] = []
    run = asyncio.events.Handle._run

    def measured(handle: asyncio.events.Handle) -> None:
        before = time.thread_time()
        run(handle)
        found.append(time.thread_time() - before)

    monkeypatch.setattr(asyncio.events.Handle, "_run", measured)
    return found


LARGE = [
    pytest.param({"rows": [], "text": "x" * SIZE}, id="one-text"),
    pytest.param({"rows": ["x" * 10] * (SIZE // 13), "text": ""}, id="many-texts"),
]


async def turn(path: Path, arguments: dict[str, Any], steps: list[float]) -> float:
    """The longest step of the loop while the call is made."""
    rule = Rule(effect="auto", tool="take", when=[{"path": "/arguments/text", "op": "!=", "value": "no"}])
    session = Session([take], protocol="openai", store=f"sqlite:///{path}/runs.db", policy=[rule])
    await session.turn(Reply(calls=(ToolCall("take", {"rows": ["a"], "text": "b"}),)))
    steps.clear()
    found = await session.turn(Reply(calls=(ToolCall("take", arguments),)))
    await asyncio.sleep(0)
    assert found.results[0].data == len(arguments["rows"]) + len(arguments["text"])
    return max(steps)


@pytest.mark.threat(70)
@pytest.mark.parametrize("arguments", LARGE)
def test_a_call_with_large_arguments_holds_the_loop_for_no_time(
    tmp_path: Path, arguments: dict[str, Any], steps: list[float]
) -> None:
    # A step in which the garbage collector looks through the objects of all earlier tests is longer by that.
    assert any(asyncio.run(turn(tmp_path, arguments, steps)) < LOOP_STEP_S for _ in range(3))


@pytest.mark.threat(70)
@pytest.mark.parametrize("arguments", LARGE)
def test_on_the_loop_the_same_work_takes_longer(
    tmp_path: Path, arguments: dict[str, Any], steps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def aside(_: object, function: Any) -> Any:
        return function()

    beside = asyncio.run(turn(tmp_path, arguments, steps))
    monkeypatch.setattr(AsynchronousPorts, "offload", aside)
    assert asyncio.run(turn(tmp_path, arguments, steps)) > 3 * beside


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"text": "x" * (OFFLOAD_BYTES - 12)}, False),
        ({"text": "x" * (OFFLOAD_BYTES + 1)}, True),
        ({"rows": [1] * (OFFLOAD_BYTES // 8 - 3)}, False),
        ({"rows": [1] * (OFFLOAD_BYTES // 8 + 1)}, True),
        ({"rows": [["x" * 1_000] * 10] * 10}, True),
        ({str(n): n for n in range(OFFLOAD_BYTES // 8 + 1)}, True),
        ({}, False),
        ({"rows": [[[]]], "n": 1, "none": None}, False),
    ],
)
def test_values_of_more_than_64_kb_are_large(value: Any, expected: bool) -> None:
    assert OFFLOAD_BYTES == 65_536
    assert is_large_value(value) is expected


async def test_a_cancelled_call_waits_for_the_work_that_goes_on_beside_it() -> None:
    ports, began, ended = AsynchronousPorts(default_runtime()), asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(began.set)
        for _ in range(200_000):
            pass
        ended.append("work")

    task = asyncio.create_task(ports.offload(work))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["work"]
