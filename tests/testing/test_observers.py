"""The kit for observers passes the logs of toolwire, and names the fault of a wrong one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.testing.kits.observers import OBSERVER_CHECKS, check_observer
from toolwire import ToolEvent
from toolwire.facade.observing.event_observer import EventObserver
from toolwire.journal.log.memory_log import ExecutionLog
from toolwire.testing import PortFails


@pytest.mark.parametrize("check", OBSERVER_CHECKS)
def test_the_log_in_memory_passes(check: str) -> None:
    OBSERVER_CHECKS[check](ExecutionLog)


@pytest.mark.parametrize("check", OBSERVER_CHECKS)
def test_an_observer_that_makes_events_passes(check: str) -> None:
    events = list[ToolEvent]()
    OBSERVER_CHECKS[check](lambda: EventObserver(events.append))
    assert events


class ReadsPieces:
    """Takes it that each part has a piece."""

    def ended(self, record: Any) -> None:
        pass

    def parts(self, call: Any, invocation_id: str) -> Any:
        return lambda part: part.pieces[0]


class ReadsData:
    def ended(self, record: Any) -> None:
        len(record.result.data)


class Sorts:
    def ended(self, record: Any) -> None:
        if isinstance(record.result.data, dict) and "rows" in record.result.data:
            record.result.data["rows"].pop()


class IsOfOneThread:
    def __init__(self) -> None:
        self.owner = threading.get_ident()

    def ended(self, record: Any) -> None:
        if threading.get_ident() != self.owner:
            raise RuntimeError("made in another thread")


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (ReadsPieces, ["takes all that comes before"]),
        (ReadsData, ["takes every end", "is told from several threads"]),
        (Sorts, ["changes nothing"]),
        (IsOfOneThread, ["is told from several threads"]),
    ],
)
def test_a_wrong_observer_is_told_by_what_it_does(kind: Any, broken: list[str]) -> None:
    with pytest.raises(PortFails) as failed:
        check_observer(kind)
    assert [line.partition(": ")[0] for line in str(failed.value).splitlines()] == broken
