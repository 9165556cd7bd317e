"""The records of a run in memory, and what is read from the tables."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import update

from tests.journal.ledger.in_memory import SEALER, InMemory
from tests.journal.ledger.test_run_ledger_alone import HELD, PAID, START, done, start, step
from toolwire.journal.database.tables import NOTES, STEPS
from toolwire.journal.ledger import history as histories
from toolwire.journal.ledger.forms import WHOLE, encode_form, results_form, step_end_form
from toolwire.journal.ledger.history import KeptStep, ReplayHistory, history_of
from toolwire.journal.ledger.large_values import LARGE_BYTES
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.ledger.steps import StepEnd
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start

REFUSED = ToolResult.failed("overloaded", "too much")
STOPPED = ToolResult.failed("divergence", "it went another way")
LARGE = ToolResult(True, "x" * (LARGE_BYTES + 1))


def begun_already(key: str = "r_1/1") -> ToolResult:
    return ToolResult.failed(
        "unknown_outcome",
        "'pay' was not run again: it was begun already, and how it ended is not known.",
        data={"step": key, "is_started": True, "is_ended": False, "may_repeat": False},
    )


class Put:
    """Keeps what would be written."""

    def __init__(self) -> None:
        self.ends: list[tuple[KeptStep, StepEnd, int]] = []

    def __call__(self, kept: KeptStep, end: StepEnd, place: int) -> None:
        self.ends.append((kept, end, place))


def begin(
    history: ReplayHistory, begun: Start | None = None, now: float = 5.0, size: int = 7, refused: Any = None
) -> Any:
    return history.begin(begun or start(), now, size, refused)


def end(history: ReplayHistory, result: ToolResult = PAID, of: Any = None) -> tuple[ToolResult | None, Put]:
    return history.end(of or step(), result, put := Put()), put


def test_a_run_is_stopped_by_its_first_failure() -> None:
    history = ReplayHistory(size=0)
    assert history.stop(STOPPED) is STOPPED
    assert (history.stop(REFUSED), history.stopped) == (STOPPED, STOPPED)
    assert begin(history) is STOPPED


@pytest.mark.parametrize(
    ("parent", "begun", "is_of_tool"),
    [("", None, False), ("r_1/1", None, True), ("r_1/1", False, True), ("r_1/1", True, False), ("r_1/9", True, True)],
)
def test_a_call_is_a_tools_if_its_parent_is_no_program(parent: str, begun: bool | None, is_of_tool: bool) -> None:
    history = ReplayHistory(size=0, steps={"r_1/2": KeptStep(step=step("r_1/2"))})
    if begun is not None:
        begin(history, start(is_composite=begun))
    elif parent:
        history.steps[parent] = KeptStep(step=step())
    assert history.is_of_tool(step("r_1/1/1", parent)) is is_of_tool


def test_a_step_that_begins_is_kept_with_its_size() -> None:
    history = ReplayHistory(size=10)
    kept = begin(history)
    assert kept == KeptStep(step=step(), start=start(), started_at=5.0, is_running=True)
    assert (history.steps, history.size) == ({"r_1/1": kept}, 17)


def test_a_step_begins_once_and_not_after_its_end() -> None:
    history = ReplayHistory(size=0)
    begin(history)
    assert begin(history) == begun_already()
    end(history)
    assert begin(history, refused=REFUSED) == begun_already()
    assert begin(history, start(step("r_1/2")), refused=REFUSED) is REFUSED
    assert history.size == 7 + len(encode_form(step_end_form(step(), PAID)))


@pytest.mark.parametrize(("is_composite", "started_at"), [(False, 9.0), (True, 5.0)])
def test_a_step_in_doubt_begins_again_and_can_be_undone(is_composite: bool, started_at: float) -> None:
    history = ReplayHistory(size=0)
    first = begin(history, start(is_composite=is_composite))
    first.is_running = False
    again = begin(history, start(is_composite=is_composite, attempt=2), now=9.0)
    assert (again.before, again.started_at, again.start.attempt) == (first, started_at, 2)
    history.undo(first)
    assert history.steps["r_1/1"] is again
    history.undo(again)
    assert history.steps["r_1/1"] is first
    history.undo(first)
    assert history.steps == {}


@pytest.mark.parametrize(("size", "fits"), [(93, True), (94, False)])
def test_a_step_begins_if_the_run_has_room(size: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "RUN_LIMIT_BYTES", 100)
    history = ReplayHistory(size=size)
    found = begin(history)
    assert isinstance(found, KeptStep) is fits
    if not fits:
        assert found.failure.kind == "limit"
        assert (history.steps, history.size) == ({}, size)


def test_a_step_ends_with_its_place_and_its_size() -> None:
    history = ReplayHistory(size=0)
    kept = begin(history)
    assert end(history, of=step("r_1/2"))[0] is None
    refused, put = end(history)
    assert (refused, history.end_order) == (None, ["r_1/2", "r_1/1"])
    assert put.ends == [(kept, StepEnd(step=step(), data=encode_form(step_end_form(step(), PAID))), 2)]
    assert (kept.result, kept.is_running) == (PAID, False)
    assert history.size == 7 + sum(len(encode_form(step_end_form(step(key), PAID))) for key in ("r_1/1", "r_1/2"))
    assert [each.step.key for each in history.list_ended()] == ["r_1/2", "r_1/1"]


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_step_ends_if_the_run_has_room(more: int, is_begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode_form(step_end_form(step(), PAID)))
    history = ReplayHistory(size=0)
    if is_begun:
        begin(history, size=0)
    monkeypatch.setattr(histories, "RUN_LIMIT_BYTES", size - more)
    refused, put = end(history)
    kept = history.steps["r_1/1"]
    if not more:
        assert (refused, len(put.ends), kept.result) == (None, 1, PAID)
        return
    assert kept.result is not None
    assert kept.result.failure is not None
    assert (kept.result.failure.kind, kept.result.failure.data["size_bytes"]) == ("limit", size)
    assert kept.is_running is False
    if is_begun:
        # A step that was begun ends in any case: the call must not run again.
        assert (refused, [each.data for _, each, _ in put.ends]) == (
            None,
            [encode_form(step_end_form(step(), kept.result))],
        )
    else:
        assert (refused, put.ends, history.end_order) == (kept.result, [], [])


def test_a_large_result_is_written_once() -> None:
    history = ReplayHistory(size=0)
    _, first = end(history, LARGE)
    _, second = end(history, LARGE, step("r_1/2"))
    (_, one, _), (_, other, _) = first.ends[0], second.ends[0]
    assert (one.is_large, one.value, len(one.data) > LARGE_BYTES) == (True, LARGE.data, True)
    assert (other.is_large, len(other.data) < LARGE_BYTES) == (True, True)
    assert history.large == {"r_1/1", "r_1/2"}


def test_a_large_end_leaves_out_the_arguments_of_a_begun_step() -> None:
    history = ReplayHistory(size=0)
    begin(history)
    _, begun = end(history, LARGE)
    _, other = end(ReplayHistory(size=0), LARGE)
    assert (b'"given"' in begun.ends[0][1].data, b'"given"' in other.ends[0][1].data) == (False, True)


def test_the_outcome_of_a_run_refers_to_large_results() -> None:
    history = ReplayHistory(size=0)
    call = ToolCall("pay", {"amount": 5}, id="r_1/1", raw_text="pay 5")
    small = ToolResult(True, 1, call=call)
    assert history.outcome([small], ["pay 5"]) == encode_form(results_form([small], {}, ["pay 5"]), WHOLE)
    large = ToolResult(True, LARGE.data, call=call)
    end(history, large)
    assert history.outcome([large], ["pay 5"]) == encode_form(results_form([large], {"r_1/1": step()}, ["pay 5"]), 2)
    assert len(history.outcome([large], ["pay 5"])) < LARGE_BYTES


def test_notes_are_copies_and_count_their_size() -> None:
    history = ReplayHistory(size=1)
    places: list[int] = []
    entry = {"a": 1}
    for size in (10, 20):
        history.note("r_1/1", entry, lambda place, size=size: places.append(place) or size)
    entry["a"] = 2
    assert (history.notes, history.size, places) == ([("r_1/1", {"a": 1})] * 2, 31, [1, 2])


def test_the_steps_on_record_are_told_in_spans() -> None:
    history = ReplayHistory(size=0)
    for key in ("r_1/1", "r_1/2"):
        begin(history, start(step(key)))
    end(history)
    end(history, of=step("r_1/3"))
    history.steps["r_1/9"] = KeptStep(step=step("r_1/9"))
    assert history.spans() == [["r_1", 1, 3]]


def test_the_root_is_over_the_ended_steps_in_their_order() -> None:
    history, other = ReplayHistory(size=0), ReplayHistory(size=0)
    for key in ("r_1/1", "r_1/2"):
        end(history, of=step(key))
    for key in ("r_1/2", "r_1/1"):
        end(other, of=step(key))
    hashed = b"".join(sha256(encode_form(step_end_form(step(key), PAID))).digest() for key in ("r_1/1", "r_1/2"))
    assert history.root() == (2, f"sha256:{sha256(hashed).hexdigest()}")
    assert other.root()[1] != history.root()[1]
    assert ReplayHistory(size=0).root() == (0, f"sha256:{sha256().hexdigest()}")
    # A step that begins again after its end was lost has no result.
    history.steps["r_1/1"].result = None
    hashed = sha256(encode_form(step_end_form(step("r_1/2"), PAID))).digest()
    assert history.root() == (2, f"sha256:{sha256(hashed).hexdigest()}")


# -- read from the tables --


@pytest.fixture
def store() -> InMemory:
    found = InMemory()
    found.add_run()
    return found


def ledger_of(store: InMemory) -> RunLedger:
    history = store.now(lambda connection: history_of(connection, SEALER, "r_1"))
    return RunLedger(store, START, HELD, status="running", rev=1, history=history)  # pyright: ignore


def read(store: InMemory, run_id: str = "r_1") -> ReplayHistory:
    return store.now(lambda connection: history_of(connection, SEALER, run_id))


def test_a_history_is_read_as_it_was_written(store: InMemory) -> None:
    ledger = ledger_of(store)
    done(ledger.begin(start(step("r_1/2"))))
    done(ledger.begin(start()))
    done(ledger.settle(step("r_1/2"), PAID))
    done(ledger.settle(step("r_1/3"), LARGE))
    # The next record takes notes along.
    ledger.note("r_1/1", {"a": 1})
    ledger.note("r_1/2", {"b": 2})
    done(ledger.settle(step("r_1/4"), LARGE))
    found = read(store)
    assert found.end_order == ["r_1/2", "r_1/3", "r_1/4"]
    assert found.notes == [("r_1/1", {"a": 1}), ("r_1/2", {"b": 2})]
    assert found.large == {"r_1/3", "r_1/4"}
    doubt, begun = found.steps["r_1/1"], found.steps["r_1/2"]
    assert (doubt.start, doubt.result, doubt.step) == (start(), None, step())
    assert doubt.started_at == ledger._history.steps["r_1/1"].started_at
    assert (begun.start, begun.step, begun.started_at) == (
        start(step("r_1/2")),
        step("r_1/2"),
        ledger._history.steps["r_1/2"].started_at,
    )
    results = [found.steps[key].result for key in found.end_order]
    assert [result.data for result in results if result] == [PAID.data, LARGE.data, LARGE.data]
    assert (found.steps["r_1/3"].start, found.steps["r_1/3"].started_at, doubt.is_running) == (None, 0.0, False)
    sealed = [row[name] or b"" for row in store.rows(STEPS) for name in ("begun", "ended")]
    # A long value is compressed, and it counts as long as it is in memory.
    assert found.size > sum(map(len, [*sealed, *(row["entry"] for row in store.rows(NOTES))]))
    assert found.size == ledger._history.size
    assert found.root() == ledger._history.root()
    other = read(store, "r_2")
    assert (other.steps, other.notes, other.end_order, other.size) == ({}, [], [], 0)


@pytest.mark.parametrize(("table", "column"), [(STEPS, "begun"), (STEPS, "ended"), (NOTES, "entry")])
def test_a_record_that_was_moved_is_found(store: InMemory, table: Any, column: str) -> None:
    ledger = ledger_of(store)
    done(ledger.begin(start()))
    ledger.note("r_1/1", {"a": 1})
    done(ledger.settle(step(), PAID))
    name = "place" if table is NOTES else "key"
    moved = update(table).values({name: 7 if table is NOTES else "r_1/7"})
    store.now(lambda connection: connection.execute(moved))
    with pytest.raises(DecisionRefused) as caught:
        read(store)
    assert caught.value.code == "bad_mac"
