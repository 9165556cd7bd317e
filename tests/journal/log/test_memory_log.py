"""The history of calls, for reading."""

from __future__ import annotations

import datetime
import enum
import gc
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolwire.facade.registry import ToolRegistry
from toolwire.journal.log.memory_log import LOG_ENTRIES, LOG_LIMIT_BYTES, VALUE_LIMIT_BYTES, ExecutionLog, LogEntry
from toolwire.vocabulary.calls import NOBODY, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)


class FakeRecord:
    """An observer's notification, made by hand. `minute` is when it began, after noon."""

    def __init__(
        self,
        name: str = "add",
        arguments: dict[str, Any] | None = None,
        result: ToolResult | None = None,
        *,
        id: str = "r_1",
        run_id: str = "r_1",
        minute: int = 0,
    ) -> None:
        self.call, self.log_url = ToolCall(name, arguments or {}, id=id, parent="r_0"), ""
        self.result = result or ToolResult(True, 3)
        self.run_id = run_id
        self.started_at = NOON.timestamp() + 60 * minute
        self.duration_s = 0.25
        self.is_from_record = False
        self.caller, self.conversation = NOBODY, ""


def log_of(*records: FakeRecord, entries: int = LOG_ENTRIES) -> ExecutionLog:
    log = ExecutionLog(entries)
    for record in records:
        log.ended(record)
    return log


def ids(entries: list[LogEntry]) -> list[str]:
    return [entry.id for entry in entries]


def test_an_entry_says_what_was_called_and_how_it_ended() -> None:
    log = log_of(FakeRecord("add", {"a": 1}, id="tr_7/1", run_id="tr_7", minute=3))
    assert log.get_entries() == [
        LogEntry(
            id="tr_7/1",
            invocation_id="tr_7",
            parent="r_0",
            tool_name="add",
            timestamp=NOON + datetime.timedelta(minutes=3),
            status="success",
            duration_ms=250.0,
            arguments={"a": 1},
            result=3,
            error=None,
        )
    ]


def test_a_failed_call_has_its_kind_for_a_status_and_no_result() -> None:
    (entry,) = log_of(FakeRecord(result=ToolResult.failed("denied", "No."))).get_entries()
    assert (entry.status, entry.result, entry.error) == ("denied", None, "No.")


HISTORY = log_of(
    FakeRecord("add", id="a", run_id="one", minute=0),
    FakeRecord("pay", id="b", run_id="one", minute=1, result=ToolResult.failed("denied", "No.")),
    FakeRecord("add", id="c", run_id="two", minute=2),
    FakeRecord("add", id="d", run_id="two", minute=3, result=ToolResult.failed("tool_error", "Oops.")),
)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "dcba"),
        ({"invocation_id": "one"}, "ba"),
        ({"invocation_id": "none"}, ""),
        ({"tool_name": "add"}, "dca"),
        ({"status": "success"}, "ca"),
        ({"status": "denied"}, "b"),
        ({"since": NOON + datetime.timedelta(minutes=2)}, "dc"),
        ({"since": datetime.datetime(2024, 5, 1, 12, 2)}, "dc"),
        (
            {"since": datetime.datetime(2024, 5, 1, 14, 2, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))},
            "d",
        ),
        ({"since": NOON.timestamp() + 120}, "dc"),
        ({"since": NOON.timestamp() + 120.5}, "d"),
        ({"limit": 0}, ""),
        ({"limit": 2}, "dc"),
        ({"limit": 99}, "dcba"),
        ({"tool_name": "add", "status": "success", "limit": 1}, "c"),
        ({"invocation_id": "one", "tool_name": "add", "since": NOON + datetime.timedelta(minutes=1)}, ""),
    ],
)
def test_entries_are_given_newest_first_and_every_filter_must_fit(filters: dict[str, Any], expected: str) -> None:
    assert "".join(ids(HISTORY.get_entries(**filters))) == expected


def test_a_limit_below_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        HISTORY.get_entries(limit=-1)
    assert str(caught.value) == "limit=-1: give how many entries at most, or None for all"


def test_only_the_newest_entries_are_kept() -> None:
    log = log_of(*[FakeRecord(id=str(number)) for number in range(5)], entries=3)
    assert (ids(log.get_entries()), len(log)) == (["4", "3", "2"], 3)
    assert LOG_ENTRIES == 10_000


def test_nothing_is_left_when_it_is_cleared() -> None:
    log = log_of(FakeRecord())
    log.clear()
    assert (log.get_entries(), len(log)) == ([], 0)


def test_later_changes_do_not_reach_the_log() -> None:
    arguments, data = {"rows": [1]}, {"found": [1]}
    log = log_of(FakeRecord(arguments=arguments, result=ToolResult(True, data)))
    arguments["rows"].append(2)
    data["found"].append(2)
    (entry,) = log.get_entries()
    assert (entry.arguments, entry.result) == ({"rows": [1]}, {"found": [1]})


def test_changes_to_a_read_entry_do_not_reach_the_log() -> None:
    log = log_of(FakeRecord(arguments={"rows": [1]}, result=ToolResult(True, {"found": [1]})))
    entry = log.get_entries()[0]
    entry.arguments["rows"].append(2)
    entry.result["found"].append(2)
    (again,) = log.get_entries()
    assert (again.arguments, again.result) == ({"rows": [1]}, {"found": [1]})


def test_values_that_json_lacks_are_written_as_json_has_them() -> None:
    record = FakeRecord(arguments={"day": NOON.date()}, result=ToolResult(True, {b"x"}))
    (entry,) = log_of(record).get_entries()
    assert (entry.arguments, entry.result) == ({"day": "2024-05-01"}, ["eA=="])


class Hostile:
    """Something whose text must not be asked for."""

    def __repr__(self) -> str:
        raise ValueError


def test_a_value_that_json_cannot_hold_is_told_of_and_the_others_are_kept() -> None:
    record = FakeRecord(arguments={"file": Hostile(), "n": 1}, result=ToolResult(True, [1, 10**5000]))
    (entry,) = log_of(record).get_entries()
    assert entry.arguments == {"file": "<a value of type Hostile cannot be written as JSON>", "n": 1}
    assert entry.result == "<an integer of more than 4,200 digits cannot be written as JSON at [1]>"


def test_the_log_is_read_while_calls_end() -> None:
    log, sizes = ExecutionLog(entries=100), []

    def end() -> None:
        for _ in range(500):
            log.ended(FakeRecord())

    writers = [threading.Thread(target=end) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        sizes.append(len(log.get_entries(limit=3)))
    assert (len(log), all(size <= 3 for size in sizes)) == (100, True)


def test_a_value_too_large_to_keep_is_said_and_not_kept() -> None:
    log = ExecutionLog()
    for size in (VALUE_LIMIT_BYTES, VALUE_LIMIT_BYTES + 1):
        log.ended(FakeRecord("note", {"text": "x" * size, "n": 1}, ToolResult(True, "y" * size)))
    too_large, kept = log.get_entries()
    assert (too_large.arguments, too_large.result) == (
        {"text": "<not kept: more than 65536 bytes>", "n": 1},
        "<not kept: more than 65536 bytes>",
    )
    assert (kept.arguments["text"], kept.result) == ("x" * VALUE_LIMIT_BYTES, "y" * VALUE_LIMIT_BYTES)


class Word(str):
    """A text of the host's own class."""

    __slots__ = ()


class Colour(enum.StrEnum):
    """A text that is a member of an enumeration."""

    RED = "red"


def held_bytes(log: ExecutionLog, records: Iterator[FakeRecord]) -> int:
    """Bytes of memory that the log takes once the calls ended."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for record in records:
            log.ended(record)
        del record
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


LONG = 60_000
"""Bytes of JSON of a value that the log keeps whole."""


@pytest.mark.threat(70)
def test_ten_thousand_long_results_take_at_most_64_mb() -> None:
    log = ExecutionLog()
    held = held_bytes(log, (FakeRecord(id=str(n), result=ToolResult(True, f"{n}" + "x" * LONG)) for n in range(10_000)))
    assert LOG_LIMIT_BYTES == 64 * 1024 * 1024
    assert 0.9 * LOG_LIMIT_BYTES < held <= LOG_LIMIT_BYTES
    entries = log.get_entries()
    assert [entry.id for entry in entries] == [str(9_999 - n) for n in range(len(entries))]
    assert entries[0].result == "9999" + "x" * LONG


@pytest.mark.threat(70)
@pytest.mark.parametrize(
    "value",
    [
        pytest.param([{}] * 1_000, id="many-mappings"),
        pytest.param([[]] * 1_000, id="many-lists"),
        pytest.param([0.5] * 1_000, id="many-numbers"),
        pytest.param("\u00e9" * 1_500 + "\U0001f600", id="wide-text"),
        pytest.param(10**4000, id="a-long-number"),
    ],
)
def test_the_budget_counts_memory_whatever_the_values_are(value: Any) -> None:
    limit = 32 * 1024
    for record in (
        lambda: FakeRecord(result=ToolResult(True, value)),
        lambda: FakeRecord(arguments={"value": value}),
    ):
        log = ExecutionLog(bytes_limit=limit)
        held_bytes(log, (record() for _ in range(3)))
        log.clear()
        # The least of some rounds counts: a thread of an earlier test can only add to the memory that is traced.
        rounds = (held_bytes(log, (record() for _ in range(25))) for _ in range(5))
        held = next((held for held in rounds if held <= 1.05 * limit), None)
        assert held is not None
        assert held > 0.7 * limit


@pytest.mark.threat(70)
@pytest.mark.parametrize(
    "record",
    [
        pytest.param(lambda n: FakeRecord(result=ToolResult.failed("tool_error", f"{n}" + "x" * 100_000)), id="errors"),
        pytest.param(lambda n: FakeRecord(arguments={f"{n}{'x' * 100_000}": 1}), id="names-of-arguments"),
        pytest.param(lambda n: FakeRecord(arguments={f"{n}_{i}": i for i in range(2_000)}), id="many-arguments"),
        pytest.param(lambda n: FakeRecord(f"{n}" + "x" * 100_000), id="names-of-tools"),
        pytest.param(lambda n: FakeRecord(id=f"{n}" + "x" * 100_000), id="ids"),
    ],
)
def test_no_part_of_a_call_is_kept_beyond_the_budget(record: Callable[[int], FakeRecord]) -> None:
    log = ExecutionLog(bytes_limit=256 * 1024)
    assert held_bytes(log, map(record, range(10))) <= 256 * 1024


def test_short_calls_are_kept_by_number_and_not_by_bytes() -> None:
    log = log_of(*[FakeRecord("add", {"a": n, "text": "x" * 200}, ToolResult(True, [n])) for n in range(10_100)])
    assert (len(log), log.get_entries()[-1].result) == (10_000, [100])


def test_the_log_of_a_registry_has_the_budget() -> None:
    registry = ToolRegistry()
    registry.register(lambda n: f"{n}" + "x" * LONG, name="long")
    log = registry.enable_logging()
    for n in range(1_200):
        registry.invoke("long", {"n": n})
    assert 1_000 < len(log) < LOG_LIMIT_BYTES / LONG


def test_a_long_error_is_cut_and_says_so() -> None:
    whole, cut = "x" * VALUE_LIMIT_BYTES, "x" * (VALUE_LIMIT_BYTES + 1)
    log = log_of(*[FakeRecord(result=ToolResult.failed("tool_error", error)) for error in (whole, cut)])
    assert [entry.error for entry in log.get_entries()] == [f"{whole}<cut: more than 65536 bytes>", whole]


def test_very_many_arguments_are_counted_and_not_kept() -> None:
    (entry,) = log_of(FakeRecord(arguments={str(n): n for n in range(10_000)})).get_entries()
    assert entry.arguments == {"*": "<not kept: 10,000 arguments, together more than 65536 bytes>"}


def test_texts_of_classes_of_the_hosts_own_are_kept_as_texts() -> None:
    result = ToolResult(False, error=Word("Oops."), metadata={"approval": {"by": Word("ann"), "colour": Colour.RED}})
    entry = log_of(
        FakeRecord(arguments={"name": Word("ann"), "colour": Colour.RED}, result=result),
    ).get_entries()[0]
    assert (entry.arguments, entry.error) == ({"name": "ann", "colour": "red"}, "Oops.")
    assert entry.approval == {"by": "ann", "colour": "red"}


def test_a_text_with_a_lone_surrogate_is_kept() -> None:
    (entry,) = log_of(FakeRecord(arguments={"a": "\ud83d"}, result=ToolResult(True, ["\ud83d"]))).get_entries()
    assert (entry.arguments, entry.result) == ({"a": "\ud83d"}, ["\ud83d"])
