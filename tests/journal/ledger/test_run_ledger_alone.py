"""The ledger of a run with its tables in memory: every row that it writes, and every answer."""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from typing import Any

import pytest
from sqlalchemy import update

from tests.journal.ledger.in_memory import SEALER, InMemory
from tests.patience import PATIENCE_S
from toolwire.journal.database.tables import CONVERSATIONS, NOTES, REQUESTS, RUNS, STEPS
from toolwire.journal.ledger.asked import AskedRequest
from toolwire.journal.ledger.conversations import state_of
from toolwire.journal.ledger.forms import encode_form, results_form, start_form
from toolwire.journal.ledger.history import history_of
from toolwire.journal.ledger.leases import Lease
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.run import RUN_LIMIT_BYTES, RunStart, SuspendedRun
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.errors import StoreUnavailable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step, idempotency_key, step_of
from toolwire.vocabulary.values import digest

NOW = 1_800_000_000.0
EVE = Caller(principal="eve", agent="clerk")
START = RunStart(
    run_id="r_1",
    reply={"calls": [{"raw_text": "pay 5"}]},
    protocol="xml",
    caller=EVE,
    conversation="c_1",
    taints=("private",),
    created_at=NOW - 100,
)
PAID = ToolResult(True, {"paid": 5})
ARGUMENTS = digest({"amount": 5})


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> InMemory:
    found = InMemory()
    found.clock = clock.time
    found.add_run(conversation="c_1")
    found.add_run("r_2", conversation="c_1")
    return found


HELD = Lease(run_id="r_1", owner="me", number=1)


def opened(store: InMemory, *, lease: Lease | None = HELD, **more: Any) -> RunLedger:
    """The ledger of a run as a process that has just opened it finds it."""
    history = store.now(lambda connection: history_of(connection, SEALER, "r_1"))
    asked = more.pop("requests", ())
    history.requests = asked
    return RunLedger(store, START, lease, **{"status": "running", "rev": 1, "history": history, **more})  # pyright: ignore


@pytest.fixture
def ledger(store: InMemory) -> RunLedger:
    return opened(store)


def done(future: Future[Any]) -> Any:
    return future.result(PATIENCE_S)


def lost(store: InMemory) -> None:
    """Another process takes the run over."""
    row = update(RUNS).where(RUNS.c.run_id == "r_1").values(owner="other", lease=2)
    store.now(lambda connection: connection.execute(row))


def step(key: str = "r_1/1", parent: str = "", amount: int = 5, tool: str = "pay") -> Step:
    return step_of(ToolCall(tool, {"amount": amount}, id=key, parent=parent))


def start(of: Step | None = None, **more: Any) -> Start:
    return Start(
        **{
            "step": of or step(),
            "arguments": {"amount": 5},
            "arguments_digest": ARGUMENTS,
            "tool_digest": "sha256:tool",
            "idempotent": "no",
            "is_composite": False,
            **more,
        }
    )


def request(number: int = 1, **more: Any) -> ApprovalRequest:
    return ApprovalRequest(
        **{
            "id": f"a_{number}",
            "call_id": f"r_1/{number}",
            "tool": "pay",
            "arguments": {"amount": 5},
            "arguments_digest": ARGUMENTS,
            "reasons": (),
            "run_id": "r_1",
            "caller": EVE,
            "tool_digest": "sha256:tool",
            "created_at": NOW,
            "expires_at": NOW + 10,
            **more,
        }
    )


def run_row(store: InMemory) -> dict[str, Any]:
    row = store.rows(RUNS)[0]
    return {name: row[name] for name in ("status", "rev", "updated_at", "owner", "lease")}


def touched(rev: int, **more: Any) -> dict[str, Any]:
    return {"status": "running", "rev": rev, "updated_at": NOW, "owner": "me", "lease": 1, **more}


def diverged(now: str, key: str = "r_1/1") -> ToolResult:
    return ToolResult.failed(
        "divergence",
        f"Step {key} was 'pay' when it was recorded and is {now}: the run was stopped.",
        data={"step": key},
    )


OTHER_ARGUMENTS = diverged("the same tool with other arguments now")

# -- recall --


def test_a_ledger_knows_the_calls_that_a_person_was_asked_about(store: InMemory) -> None:
    asked = AskedRequest(
        id="a_1", call_id="r_1/1", asked_at=1.0, decided_at=0.0, is_used=False, is_waiting=True, is_question=False
    )
    other = AskedRequest(
        id="a_2", call_id="r_1/2?1", asked_at=1.0, decided_at=0.0, is_used=False, is_waiting=True, is_question=True
    )
    found = opened(store, requests=(asked, other), outcome=(PAID,), urls=("u",), status="finished", rev=7)
    assert found.approval_call_ids == {"r_1/1"}
    assert (found.run_id, found.start, found.status, found.rev) == ("r_1", START, "finished", 7)
    assert (found.outcome, found.urls) == ((PAID,), ("u",))
    assert (opened(store).outcome, opened(store).urls, opened(store).approval_call_ids) == (None, (), frozenset())


def test_a_new_step_is_not_known(ledger: RunLedger) -> None:
    assert ledger.recall(step()) is None


def test_an_ended_step_is_recalled_whether_or_not_it_was_begun(ledger: RunLedger) -> None:
    done(ledger.begin(start()))
    for each in (step(), step("r_1/2")):
        done(ledger.settle(each, PAID))
        assert ledger.recall(each) is PAID


def test_a_step_that_was_begun_and_not_ended_is_in_doubt_with_all_that_is_known(store: InMemory, clock: Clock) -> None:
    ledger = opened(store)
    begun = start(idempotent="key", is_composite=True, attempt=3, has_key=True)
    done(ledger.begin(begun))
    clock.now += 5
    waiting = AskedRequest(
        id="a_7", call_id="r_1/1?1", asked_at=NOW, decided_at=0.0, is_used=False, is_waiting=True, is_question=True
    )
    other = AskedRequest(
        id="a_8", call_id="r_1/2?1", asked_at=NOW, decided_at=0.0, is_used=False, is_waiting=True, is_question=True
    )
    doubt = InDoubtStep(
        idempotent="key",
        is_composite=True,
        started_at=NOW,
        attempt=3,
        idempotency_key=idempotency_key("r_1", "r_1/1", ARGUMENTS),
        has_key=True,
        is_asking=True,
        waiting=("a_7",),
    )
    assert opened(store, requests=(waiting, other)).recall(step()) == doubt


def test_a_doubt_has_no_more_than_is_known(store: InMemory) -> None:
    done(opened(store).begin(start()))
    assert opened(store).recall(step()) == InDoubtStep(
        idempotent="no",
        is_composite=False,
        started_at=NOW,
        attempt=1,
        idempotency_key=idempotency_key("r_1", "r_1/1", ARGUMENTS),
    )


@pytest.mark.parametrize(
    ("asks", "expected"),
    [(step(amount=6), OTHER_ARGUMENTS), (step(tool="read"), diverged("'read' now"))],
)
def test_a_run_that_asks_for_another_call_is_stopped_for_good(
    store: InMemory, asks: Step, expected: ToolResult
) -> None:
    ledger = opened(store)
    done(ledger.settle(step(), PAID))
    assert ledger.recall(asks) == expected
    assert ledger.status == "diverged"
    assert (ledger.recall(step()), ledger.recall(step("r_1/9"))) == (expected, expected)
    assert done(ledger.begin(start(step("r_1/9")))) == expected
    row = store.rows(RUNS)[0]
    sealed = json.loads(store.opened(row["divergence"], "runs", "r_1", "divergence"))
    assert (row["status"], sealed["result"]["error"]) == ("diverged", expected.error)
    assert store.rows(RUNS)[1]["status"] == "running"
    assert run_row(store) == touched(3, status="diverged")
    (logged,) = store.log("kind", "status", "run_id", "entry", "conversation")
    assert logged == ("run", "diverged", "r_1", '{"lease":1,"step":"r_1/1"}', "c_1")


def test_a_run_is_stopped_by_its_first_divergence(store: InMemory) -> None:
    ledger = opened(store)
    done(ledger.settle(step(), PAID))
    first = ledger._diverge(step(), step(amount=6))
    assert ledger._diverge(step("r_1/2"), step("r_1/2", amount=6)) is first
    assert len(store.log("kind")) == 1


def test_a_divergence_of_a_run_that_was_taken_over_is_not_recorded(
    store: InMemory, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = opened(store)
    done(ledger.settle(step(), PAID))
    lost(store)
    assert ledger.recall(step(amount=6)) == OTHER_ARGUMENTS
    assert (store.rows(RUNS)[0]["divergence"], store.log("kind")) == (None, [])
    assert LOST in [(record.name, record.levelno, record.getMessage()) for record in caplog.records]


LOST = (
    "toolwire.store",
    logging.ERROR,
    "run r_1 was taken over by another process; what runs of it here is not recorded",
)


def test_another_call_of_a_tool_diverges_alone(store: InMemory) -> None:
    ledger = opened(store)
    inner = step("r_1/1/1", parent="r_1/1")
    done(ledger.begin(start()))
    done(ledger.settle(inner, PAID))
    changed = step("r_1/1/1", parent="r_1/1", amount=6)
    assert ledger.recall(changed) == diverged("the same tool with other arguments now", "r_1/1/1")
    assert (ledger.recall(inner), ledger.status, store.rows(RUNS)[0]["divergence"]) == (PAID, "running", None)


def test_another_call_of_a_program_stops_the_run(store: InMemory) -> None:
    ledger = opened(store)
    inner = step("r_1/1/1", parent="r_1/1")
    done(ledger.begin(start(is_composite=True)))
    done(ledger.settle(inner, PAID))
    ledger.recall(step("r_1/1/1", parent="r_1/1", amount=6))
    assert ledger.status == "diverged"


def test_the_ended_calls_of_a_step_are_listed_as_they_ended(store: InMemory) -> None:
    ledger = opened(store)
    for key, parent in (("r_1/1/2", "r_1/1"), ("r_1/2", ""), ("r_1/1/1", "r_1/1")):
        done(ledger.settle(step(key, parent), ToolResult(True, key)))
    done(ledger.begin(start(step("r_1/1/3", "r_1/1"))))
    for each in (ledger, opened(store)):
        found = [(one.key, result.data) for one, result in each.steps_below("r_1/1")]
        assert found == [("r_1/1/2", "r_1/1/2"), ("r_1/1/1", "r_1/1/1")]
        assert each.steps_below("r_1/9") == []


def test_notes_are_listed_by_their_parent_in_order(store: InMemory) -> None:
    ledger = opened(store)
    for parent, entry in (("r_1/1", {"a": 1}), ("r_1/2", {"b": 2}), ("r_1/1", {"c": 3})):
        ledger.note(parent, entry)
    assert store.rows(NOTES) == []
    # The next record takes them along.
    done(ledger.use_answers([]))
    assert [(row["run_id"], row["place"], row["parent"]) for row in store.rows(NOTES)] == [
        ("r_1", 1, "r_1/1"),
        ("r_1", 2, "r_1/2"),
        ("r_1", 3, "r_1/1"),
    ]
    for each in (ledger, opened(store)):
        assert (each.notes("r_1/1"), each.notes("r_1/2")) == ([{"a": 1}, {"c": 3}], [{"b": 2}])
    assert run_row(store) == touched(3)
    assert ledger._history.size == sum(len(encode_form({"entry": entry})) for entry in ({"a": 1}, {"b": 2}, {"c": 3}))


def test_a_note_counts_among_the_bytes_of_its_run(store: InMemory) -> None:
    ledger = opened(store)
    ledger._history.size = RUN_LIMIT_BYTES - 200
    ledger.note("r_1/1", {"text": "x" * 200})
    result = done(ledger.begin(start()))
    assert isinstance(result, ToolResult)
    assert result.failure is not None
    assert result.failure.kind == "limit"


def test_long_results_are_kept_under_the_lease_of_the_run(store: InMemory, ledger: RunLedger) -> None:
    pages = ledger.pages
    assert (pages._database, pages._start) == (store, START)
    store.now(pages._touch)
    assert run_row(store) == touched(2)


# -- ask and decide --


def busy(future: Future[Any]) -> tuple[str, str]:
    with pytest.raises(DecisionRefused) as caught:
        done(future)
    return caught.value.code, str(caught.value)


BUSY = ("run_busy", "run 'r_1' was taken over by another process")


def test_a_request_is_recorded_under_the_lease(store: InMemory, ledger: RunLedger) -> None:
    assert done(ledger.ask(request())) == (request(), None)
    assert (len(store.rows(REQUESTS)), run_row(store)) == (1, touched(2))
    lost(store)
    assert busy(ledger.ask(request(2))) == BUSY
    assert len(store.rows(REQUESTS)) == 1


def test_the_first_decision_counts(store: InMemory, ledger: RunLedger) -> None:
    done(ledger.ask(request()))
    first = done(ledger.decide(request(), Decision(verdict="deny", by=Decider(channel="model"), reason="no")))
    assert (first.verdict, first.request_id, first.at) == ("deny", "a_1", NOW)
    assert done(ledger.decide(request(), Decision(verdict="approve"))) == first


def test_a_decider_of_a_ledger_has_been_checked_by_the_policy(ledger: RunLedger) -> None:
    done(ledger.ask(request()))
    decision = Decision(verdict="approve", by=Decider(channel="model"))
    assert done(ledger.decide(request(), decision)).verdict == "approve"


def test_a_decision_that_cannot_count_is_refused(ledger: RunLedger) -> None:
    done(ledger.ask(request()))
    decision = Decision(verdict="approve", seen_arguments_digest="sha256:0")
    code, message = busy(ledger.decide(request(), decision))
    assert (code, message) == ("approval_mismatch", "the decision is for other arguments than the request's")
    assert busy(ledger.decide(request(9), decision))[0] == "unknown_request"


def test_answers_are_used_under_the_lease(store: InMemory, ledger: RunLedger) -> None:
    asked = request(kind="question", question="How many?", answer_schema={"type": "integer"})
    done(ledger.ask(asked))
    done(ledger.decide(asked, Decision(verdict="answer", answer=3)))
    assert done(ledger.use_answers(["a_1"])) is None
    assert (store.rows(REQUESTS)[0]["state"], store.rows(RUNS)[0]["rev"]) == ("done", 4)
    lost(store)
    assert busy(ledger.use_answers(["a_1"])) == BUSY


def test_an_error_of_the_database_is_raised(store: InMemory, ledger: RunLedger) -> None:
    def fails(_: Any) -> None:
        raise OSError("the disk is away")

    with pytest.raises(OSError, match="the disk is away"):
        done(ledger._run(fails))


# -- begin --


def begun(store: InMemory) -> list[tuple[Any, ...]]:
    return [(row["run_id"], row["key"], row["started_at"], row["attempt"]) for row in store.rows(STEPS)]


def test_a_step_is_recorded_before_it_runs(store: InMemory, ledger: RunLedger) -> None:
    assert done(ledger.begin(start(attempt=2))) == NOW
    assert (begun(store), run_row(store)) == ([("r_1", "r_1/1", NOW, 2)], touched(2))
    form = store.opened(store.rows(STEPS)[0]["begun"], "steps", "r_1", "r_1/1", "begun")
    assert form.encode() == encode_form(start_form(start(attempt=2)))
    assert ledger._history.size == len(form)


def may_have_run(why: str) -> ToolResult:
    return ToolResult.failed(
        "unknown_outcome",
        f"'pay' was not run again: {why}, and how it ended is not known.",
        data={"step": "r_1/1", "is_started": True, "is_ended": False, "may_repeat": False},
    )


BEGUN_ALREADY = may_have_run("it was begun already")
BEGUN_ELSEWHERE = may_have_run("another caller has begun it meanwhile")
GIVEN_UP = ToolResult.failed("interrupted", "Run r_1 was given up here; another process may continue it.")


def test_a_step_begins_once(store: InMemory, ledger: RunLedger) -> None:
    done(ledger.begin(start()))
    assert done(ledger.begin(start())) == BEGUN_ALREADY
    done(ledger.settle(step(), PAID))
    assert done(ledger.begin(start())) == BEGUN_ALREADY


def test_a_step_that_another_ledger_has_begun_does_not_begin(store: InMemory) -> None:
    first, second = opened(store), opened(store)
    done(first.begin(start()))
    assert done(second.begin(start())) == BEGUN_ELSEWHERE
    # The mark is gone, so the record decides.
    assert "r_1/1" not in second._history.steps


def test_a_step_does_not_begin_in_a_run_that_was_taken_over(store: InMemory, ledger: RunLedger) -> None:
    lost(store)
    assert done(ledger.begin(start())) == GIVEN_UP
    assert (begun(store), ledger._history.steps) == ([], {})
    assert done(ledger.begin(start(request_id="a_1"))) == GIVEN_UP


def test_a_step_that_the_new_holder_has_begun_may_have_run(store: InMemory, ledger: RunLedger) -> None:
    done(opened(store).begin(start()))
    lost(store)
    assert done(ledger.begin(start())) == BEGUN_ELSEWHERE
    assert done(ledger.begin(start(step("r_1/2")))) == GIVEN_UP


def test_a_step_without_a_lease_does_not_begin(store: InMemory) -> None:
    assert done(opened(store, lease=None).begin(start())) == GIVEN_UP
    assert begun(store) == []


def test_a_step_does_not_begin_while_too_much_waits_to_be_written(store: InMemory, ledger: RunLedger) -> None:
    store.writer.is_full = True
    assert done(ledger.begin(start())) == ToolResult.failed(
        "overloaded", "The store cannot keep up: too many calls wait to be recorded."
    )
    assert begun(store) == []


def test_a_step_that_cannot_be_written_does_not_begin(store: InMemory, ledger: RunLedger) -> None:
    store.failure = StoreUnavailable("the store here could not be written: it is full")
    assert done(ledger.begin(start())) == ToolResult.failed(
        "unavailable", "'pay' was not run: the store here could not be written: it is full."
    )
    store.failure = None
    assert done(ledger.begin(start())) == NOW


@pytest.mark.parametrize("is_composite", [True, False])
def test_a_step_in_doubt_begins_again(store: InMemory, clock: Clock, is_composite: bool) -> None:
    done(opened(store).begin(start(is_composite=is_composite)))
    clock.now += 5
    again = start(is_composite=is_composite, attempt=2)
    ledger = opened(store)
    began = NOW if is_composite else NOW + 5
    assert done(ledger.begin(again)) == began
    assert begun(store) == [("r_1", "r_1/1", began, 2)]
    form = store.opened(store.rows(STEPS)[0]["begun"], "steps", "r_1", "r_1/1", "begun")
    assert (json.loads(form)["attempt"], store.rows(RUNS)[0]["rev"]) == (2, 3)


def test_a_step_that_begins_again_keeps_its_earlier_state_if_it_is_refused(store: InMemory) -> None:
    done(opened(store).begin(start()))
    first, second = opened(store), opened(store)
    done(first.begin(start(attempt=2)))
    assert done(second.begin(start(attempt=1))) == BEGUN_ELSEWHERE
    assert isinstance(second.recall(step()), InDoubtStep)
    lost(store)
    assert done(second.begin(start(attempt=3))) == BEGUN_ELSEWHERE


def test_an_approval_is_used_by_the_step_that_begins(store: InMemory, ledger: RunLedger) -> None:
    done(ledger.ask(request()))
    assert done(ledger.begin(start(request_id="a_1"))) == ToolResult.failed(
        "denied", "'pay' was not run: no one approved it.", data={"request_id": "a_1"}
    )
    assert (begun(store), ledger._history.steps) == ([], {})
    done(ledger.decide(request(), Decision(verdict="approve")))
    assert done(ledger.begin(start(request_id="a_1"))) == NOW
    assert (begun(store), store.rows(REQUESTS)[0]["state"]) == ([("r_1", "r_1/1", NOW, 1)], "reserved")
    again = opened(store)
    assert done(again.begin(start(request_id="a_1", attempt=2))) == NOW
    done(again.settle(step(), PAID))
    assert store.rows(REQUESTS)[0]["state"] == "done"


def test_an_approval_stays_if_its_step_was_begun_elsewhere(store: InMemory) -> None:
    ledger, other = opened(store), opened(store)
    done(ledger.ask(request()))
    done(ledger.decide(request(), Decision(verdict="approve")))
    done(other.begin(start()))
    assert done(ledger.begin(start(request_id="a_1"))) == BEGUN_ELSEWHERE
    assert store.rows(REQUESTS)[0]["state"] == "approved"


# -- settle --


def test_the_end_of_a_step_is_recorded(store: InMemory, ledger: RunLedger, clock: Clock) -> None:
    done(ledger.begin(start()))
    clock.now += 5
    assert done(ledger.settle(step(), PAID)) is PAID
    done(ledger.settle(step("r_1/2"), PAID))
    assert [(row["place"], row["ended_at"], row["run_id"]) for row in store.rows(STEPS)] == [
        (1, NOW + 5, "r_1"),
        (2, NOW + 5, "r_1"),
    ]
    assert run_row(store) == touched(4, updated_at=NOW + 5)
    assert [opened(store).recall(one).data for one in (step(), step("r_1/2"))] == [{"paid": 5}, {"paid": 5}]  # pyright: ignore


def test_a_step_that_no_one_approved_uses_no_approval(store: InMemory, ledger: RunLedger) -> None:
    for number in (1, 2):
        done(ledger.ask(request(number)))
        done(ledger.decide(request(number), Decision(verdict="approve")))
        done(ledger.begin(start(step(f"r_1/{number}"), request_id=f"a_{number}")))
    done(ledger.begin(start(step("r_1/3"))))
    done(ledger.settle(step("r_1/3"), PAID))
    assert [row["state"] for row in store.rows(REQUESTS)] == ["reserved", "reserved"]
    done(ledger.settle(step("r_1/2"), PAID))
    assert [row["state"] for row in store.rows(REQUESTS)] == ["reserved", "done"]


def test_the_end_of_a_step_in_a_run_that_was_taken_over_is_lost_and_told(
    store: InMemory, ledger: RunLedger, caplog: pytest.LogCaptureFixture
) -> None:
    done(ledger.begin(start()))
    lost(store)
    assert done(ledger.settle(step(), PAID)) is PAID
    assert store.rows(STEPS)[0]["ended"] is None
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [LOST]


def test_the_end_of_a_step_that_cannot_be_written_raises(store: InMemory, ledger: RunLedger) -> None:
    store.failure = StoreUnavailable("it is full")
    with pytest.raises(StoreUnavailable, match="it is full"):
        done(ledger.settle(step(), PAID))


def test_a_ledger_without_a_lease_writes_nothing(store: InMemory) -> None:
    ledger = opened(store, lease=None)
    assert done(ledger.settle(step(), PAID)) is PAID
    ledger.note("r_1/1", {})
    assert (store.rows(STEPS), store.rows(NOTES)) == ([], [])
    assert busy(ledger.ask(request())) == BUSY


def test_a_result_for_which_the_run_has_no_room_is_not_kept(store: InMemory, ledger: RunLedger) -> None:
    call = ToolCall("pay", {"amount": 5}, id="r_1/1")
    ledger._history.size = RUN_LIMIT_BYTES
    result = done(ledger.settle(step(), ToolResult(True, 1, call=call)))
    assert result.failure is not None
    size = result.failure.data["size_bytes"]
    assert result == ToolResult.failed(
        "limit",
        f"'pay' ran, but its result of {size:,} bytes was not kept: a turn may have 256 MB on record.",
        hint="It may have taken effect. Ask for less at a time.",
        data={"limit_bytes": RUN_LIMIT_BYTES, "size_bytes": size, "is_started": True},
        call=call,
    )
    assert store.rows(STEPS) == []


def test_a_step_for_which_the_run_has_no_room_does_not_begin(store: InMemory, ledger: RunLedger) -> None:
    size = len(encode_form(start_form(start())))
    ledger._history.size = RUN_LIMIT_BYTES - size + 1
    assert done(ledger.begin(start())) == ToolResult.failed(
        "limit",
        "'pay' was not run: this turn has 256 MB on record, and may have no more.",
        hint="It did not run. Ask for it again in your next message, and for less at a time.",
        data={"limit_bytes": RUN_LIMIT_BYTES, "is_started": False},
        call=ToolCall("pay", {"amount": 5}, id="r_1/1"),
    )
    ledger._history.size -= 1
    assert done(ledger.begin(start())) == NOW


def test_an_interrupted_step_runs_here_no_more(ledger: RunLedger) -> None:
    done(ledger.begin(start()))
    ledger.abandon(step("r_1/9"))
    assert done(ledger.begin(start(attempt=2))) == BEGUN_ALREADY
    ledger.abandon(step())
    assert ledger._history.steps["r_1/1"].is_running is False
    assert isinstance(ledger.recall(step()), InDoubtStep)
    assert done(ledger.begin(start(attempt=2))) == NOW


# -- the run --


def test_a_finished_run_is_recorded_and_released(store: InMemory) -> None:
    ledger = opened(store, urls=("u_1",))
    done(ledger.begin(start()))
    done(ledger.settle(step(), PAID))
    done(ledger.ask(request(7)))
    done(ledger.ask(request(8, run_id="r_2")))
    assert done(ledger.finish([PAID], ["private", "untrusted"], ["u_1", "u_2"])) is None
    row = store.rows(RUNS)[0]
    expected = encode_form(results_form([PAID], {}, ["pay 5"]))
    assert store.opened(row["outcome"], "runs", "r_1", "outcome").encode() == expected
    assert (row["status"], row["owner"], row["updated_at"]) == ("finished", "", NOW)
    assert (ledger.rev, row["rev"], ledger.status, ledger.outcome) == (7, 7, "finished", (PAID,))
    assert [each["state"] for each in store.rows(REQUESTS)] == ["superseded", "pending"]
    other = store.rows(RUNS)[1]
    assert (other["status"], other["owner"], other["outcome"]) == ("running", "me", None)
    assert store.log("kind", "run_id", "status", "entry", "conversation")[-1] == (
        "run",
        "r_1",
        "finished",
        '{"lease":1,"steps":[["r_1",1,1]]}',
        "c_1",
    )
    (conversation,) = store.rows(CONVERSATIONS)
    state = state_of(SEALER, "c_1", conversation["state"])
    assert (state.taints, state.urls, state.caller) == ({"private", "untrusted"}, ("u_2",), EVE)
    assert len(store.statements) > 0
    store.statements.clear()
    assert done(ledger.release()) is None
    assert store.statements == []


def test_a_run_that_has_read_nothing_changes_no_conversation(store: InMemory, ledger: RunLedger) -> None:
    done(ledger.finish([]))
    assert store.rows(CONVERSATIONS) == []


def test_a_run_that_a_person_stopped_ends_as_stopped(store: InMemory, ledger: RunLedger) -> None:
    done(ledger.ask(request()))
    done(ledger.decide(request(), Decision(verdict="stop_run")))
    done(ledger.finish([]))
    assert (ledger.status, store.rows(RUNS)[0]["status"]) == ("stopped", "stopped")


def test_a_run_that_diverged_stays_so(store: InMemory, ledger: RunLedger) -> None:
    done(ledger.settle(step(), PAID))
    ledger.recall(step(amount=6))
    done(ledger.finish([PAID]))
    assert (ledger.status, store.rows(RUNS)[0]["status"]) == ("diverged", "diverged")


def test_a_run_that_was_taken_over_is_not_finished(store: InMemory, ledger: RunLedger) -> None:
    lost(store)
    assert busy(ledger.finish([])) == BUSY
    assert busy(ledger.suspend()) == BUSY
    assert (ledger.outcome, ledger.status, store.rows(RUNS)[0]["outcome"]) == (None, "running", None)


def test_a_run_that_waits_is_recorded_and_released(store: InMemory) -> None:
    ledger = opened(store)
    done(ledger.settle(step(), PAID))
    done(ledger.ask(request(2)))
    done(ledger.ask(request(3, expires_at=NOW - 1)))
    done(ledger.ask(request(4, run_id="r_2")))
    suspended = done(ledger.suspend(["untrusted"], ["u_2"]))
    head, root = opened(store)._history.root()
    assert suspended is not None
    assert suspended == SuspendedRun(start=START, rev=6, head=head, root=root, pending=(request(2),))
    assert (suspended.key, head) == (SEALER.wire_key, 1)
    assert run_row(store) == touched(6, status="suspended", owner="")
    assert (ledger.status, ledger.rev) == ("suspended", 6)
    assert store.log("status", "entry")[-1] == ("suspended", '{"lease":1,"steps":[["r_1",1,1]]}')
    state = state_of(SEALER, "c_1", store.rows(CONVERSATIONS)[0]["state"])
    assert (state.taints, state.urls) == ({"untrusted"}, ("u_2",))


def test_a_run_is_released_once(store: InMemory, ledger: RunLedger) -> None:
    assert done(ledger.release()) is None
    assert [row["owner"] for row in store.rows(RUNS)] == ["", "me"]
    store.statements.clear()
    assert done(ledger.release()) is None
    assert store.statements == []


def test_a_run_that_another_process_holds_is_not_released(store: InMemory, ledger: RunLedger) -> None:
    lost(store)
    done(ledger.release())
    assert store.rows(RUNS)[0]["owner"] == "other"


def test_a_ledger_without_a_lease_has_nothing_to_release(store: InMemory) -> None:
    ledger = opened(store, lease=None)
    store.statements.clear()
    assert done(ledger.release()) is None
    assert store.statements == []
