"""Observers are notified of a call's end: last, once, and regardless of their own errors."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from tests.invocation.world import Recording, World
from toolwire.invocation.ports.ports import CallRecord
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


class Noting:
    """An observer that notes its name in a shared list."""

    def __init__(self, name: str, events: list[str]) -> None:
        self.name = name
        self.events = events

    def ended(self, _: CallRecord, /) -> None:
        self.events.append(self.name)


class Broken:
    """An observer that cannot do its work."""

    def ended(self, _: CallRecord, /) -> None:
        raise OSError("disk full")


def test_observers_are_told_once_in_their_order_after_everything_else(world: World) -> None:
    events: list[str] = []

    class Data(dict[str, Any]):
        """Notes when it is made into text, which is the last that happens to a result."""

        def items(self) -> Any:
            events.append("shown")
            return super().items()

    def work() -> Data:
        events.append("run")
        return Data(a=1)

    world.add(work)
    world.observers = (Noting("first", events), Noting("second", events))
    world.call("work")
    assert events == ["run", "shown", "first", "second"]
    assert len(world.recording.records) == 1


def test_a_record_says_what_was_called_and_how_it_ended(world: World) -> None:
    entry = world.add(lambda n: n * 2, name="double")
    world.run_id = "r_9"
    before = time.time()
    call = ToolCall("double", {"n": 2}, id="r_9/1", parent="r_8")
    result = world.make(call)
    (record,) = world.recording.records
    assert (record.call, record.entry, record.run_id) == (call, entry, "r_9")
    assert record.result is result
    assert result == ToolResult(True, 4, call=call)
    assert before <= record.started_at <= time.time()
    assert 0 <= record.duration_s < 5


def test_a_call_outside_of_a_run_is_its_own_run(world: World) -> None:
    world.add(lambda: None, name="work")
    world.call("work")
    world.call("wrok")
    assert [(record.run_id, record.entry is None) for record in world.recording.records] == [
        ("r_1", False),
        ("r_1", True),
    ]


def test_an_observer_that_raises_is_logged_and_changes_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.add(lambda: "done", name="work")
    after = Recording()
    world.observers = (Broken(), after)
    assert world.call("work").text == "done"
    assert len(after.records) == 1
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        ("toolwire.observers", logging.ERROR, "an observer failed on the record of call r_1")
    ]


def test_a_record_keeps_the_models_arguments_though_a_tool_changes_its_own(world: World) -> None:
    def work(rows: list[dict[str, Any]], anything: Any) -> None:
        rows[0]["n"] = anything["deep"].pop()
        rows.clear()

    world.add(work)
    arguments = {"rows": [{"n": 1}], "anything": {"deep": [2]}}
    result = world.call("work", **arguments)
    given = {"rows": [{"n": 1}], "anything": {"deep": [2]}}
    assert (arguments, world.recording.records[0].call.arguments) == (given, given)
    assert (result.success, result.call) == (True, ToolCall("work", given, id="r_1"))
