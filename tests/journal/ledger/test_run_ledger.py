"""A run's ledger, in this process and in the next."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pytest

from tests.journal.world import PAID, done, on_record, request, run_start, start, started, step
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.run import SuspendedRun
from toolwire.journal.store import Store
from toolwire.permission.approval import Decision, DecisionRefused
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import InDoubtStep
from toolwire.vocabulary.values import digest


def again(store: Store, run_id: str) -> Any:
    return done(store.reopen(run_id))


def kind(result: object) -> str:
    assert isinstance(result, ToolResult)
    assert result.failure is not None
    return result.failure.kind


def test_a_run_is_reopened_as_it_was_started(store: Store) -> None:
    asked = run_start(
        reply={"calls": [{"arguments": {"$t": "dict", "v": [[1, 2]]}, "raw_text": "pay(1)\ud800\x00"}]},
        tools={"pay": "sha256:1"},
        taints=("private",),
        policy_digest="sha256:2",
        engine="0.1.0",
        expires_at=4e9,
    )
    ledger = on_record(store, asked)
    assert (ledger.start, ledger.status, ledger.rev, ledger.outcome) == (asked, "running", 1, None)
    done(ledger.release())
    found = again(store, asked.run_id)
    assert (found.start, found.status, found.rev, found.outcome) == (asked, "running", 2, None)


def test_a_new_step_is_not_known(store: Store) -> None:
    assert started(store).recall(step()) is None


def test_a_step_that_ended_is_recalled_now_and_after_a_restart(store: Store) -> None:
    ledger = started(store)
    assert isinstance(done(ledger.begin(start(step()))), float)
    done(ledger.settle(step(), PAID))
    assert ledger.recall(step()) is PAID
    done(ledger.release())
    found = again(store, ledger.run_id).recall(step())
    assert found.data == {"paid": 5}
    assert found.call == ToolCall("pay", {"amount": 5}, id="1")


RESULTS = [
    ToolResult(True, None),
    ToolResult(True, {"when": datetime.datetime(2024, 5, 1, 12), "sum": decimal.Decimal("1.10"), "raw": b"\x00\xff"}),
    ToolResult(True, ({1, 2}, (3, 4), float("inf"), {5: "six"}, "\x00 \ud800 é")),
    ToolResult(True, "text", None, {"truncated": True, "tags": ("a", "b")}, content=[TextBlock(type="text", text="t")]),
    ToolResult.failed("invalid_arguments", "no", hint="do", path="a.b[0]", data={"errors": [{"path": "a"}]}),
    ToolResult(False, None, "broke"),
]


@pytest.mark.parametrize("result", RESULTS, ids=range(len(RESULTS)))
def test_results_come_back_without_loss(store: Store, result: ToolResult) -> None:
    ledger = started(store)
    done(ledger.settle(step(), result))
    done(ledger.release())
    found = again(store, ledger.run_id).recall(step())
    assert (found.success, found.data, found.error, dict(found.metadata), found.blocks, found.failure) == (
        result.success,
        result.data,
        result.error,
        dict(result.metadata),
        result.blocks,
        result.failure,
    )


def test_the_deepest_data_that_a_result_may_have_come_back(store: Store) -> None:
    data: Any = 1
    for _ in range(63):
        data = [data]
    ledger = started(store)
    done(ledger.settle(step(), ToolResult(True, data)))
    done(ledger.release())
    assert again(store, ledger.run_id).recall(step()).data == data


def test_a_value_without_a_written_form_is_left_out_and_named(store: Store) -> None:
    ledger = started(store)
    done(ledger.settle(step(), ToolResult(True, object(), None, {"host": object(), "kept": 1})))
    done(ledger.release())
    found = again(store, ledger.run_id).recall(step())
    assert (found.data, found.text, found.metadata) == (
        None,
        "<a value of type object cannot be written as JSON>",
        {"kept": 1},
    )


@pytest.mark.parametrize("idempotent", ["no", "key"])
def test_a_step_that_was_begun_and_never_ended_is_in_doubt(store: Store, idempotent: Any) -> None:
    ledger = started(store)
    began = done(ledger.begin(start(step("1/1"), idempotent=idempotent)))
    done(ledger.release())
    assert again(store, ledger.run_id).recall(step("1/1")) == InDoubtStep(
        idempotent=idempotent,
        is_composite=False,
        started_at=began,
        attempt=1,
        idempotency_key=f"{ledger.run_id}:1/1:{digest({'amount': 5})[7:23]}",
    )


def test_a_step_is_never_begun_twice_at_once(store: Store) -> None:
    ledger = started(store)
    done(ledger.begin(start(step())))
    assert kind(done(ledger.begin(start(step())))) == "unknown_outcome"


def test_a_step_whose_outcome_is_unclear_may_be_begun_again_by_who_cleared_it(store: Store) -> None:
    ledger = started(store)
    done(ledger.begin(start(step())))
    ledger.abandon(step())
    assert isinstance(done(ledger.begin(start(step(), attempt=2))), float)
    done(ledger.release())
    doubt = again(store, ledger.run_id).recall(step())
    assert doubt.attempt == 2


def test_a_step_that_the_database_refused_is_again_what_it_was(store: Store) -> None:
    ledger = started(store)
    new, interrupted = step("1"), step("2")
    done(ledger.begin(start(interrupted)))
    ledger.abandon(interrupted)
    before = ledger.recall(interrupted)
    for one in (new, interrupted):
        assert kind(done(ledger.begin(start(one, request_id="a_none", attempt=2)))) == "denied"
    assert (ledger.recall(new), ledger.recall(interrupted)) == (None, before)
    # The control: the same calls begin without that approval.
    for one in (new, interrupted):
        assert isinstance(done(ledger.begin(start(one, attempt=2))), float)
    assert ledger.recall(interrupted) != before


def test_a_composite_that_is_entered_again_began_the_first_time(store: Store) -> None:
    ledger = started(store)
    began = done(ledger.begin(start(step(), is_composite=True)))
    done(ledger.release())
    found = again(store, ledger.run_id)
    assert done(found.begin(start(step(), is_composite=True))) == began


def test_the_steps_of_a_program_are_given_in_the_order_in_which_they_ended(store: Store) -> None:
    ledger = started(store)
    for key in ("p/2", "p/10", "p/1"):
        done(ledger.begin(start(step(key, parent="1"))))
    for key in ("p/10", "p/1"):
        done(ledger.settle(step(key, parent="1"), PAID))
    done(ledger.settle(step("q/1", parent="2"), PAID))
    assert [of.key for of, _ in ledger.steps_below("1")] == ["p/10", "p/1"]
    done(ledger.release())
    found = again(store, ledger.run_id)
    assert [(of.key, result.data) for of, result in found.steps_below("1")] == [("p/10", PAID.data), ("p/1", PAID.data)]
    assert [of.key for of, _ in found.steps_below("2")] == ["q/1"]
    done(found.settle(step("p/2", parent="1"), PAID))
    assert [of.key for of, _ in found.steps_below("1")] == ["p/10", "p/1", "p/2"]


def test_notes_are_kept_in_order_by_parent(store: Store) -> None:
    ledger = started(store)
    for number in range(3):
        ledger.note("1", {"number": number, "of": [1, None]})
    ledger.note("2", {"other": True})
    done(ledger.release())
    found = again(store, ledger.run_id)
    found.note("1", {"number": 3})
    assert [entry["number"] for entry in found.notes("1")] == [0, 1, 2, 3]
    done(found.release())
    assert [entry["number"] for entry in again(store, ledger.run_id).notes("1")] == [0, 1, 2, 3]


DIVERGED = [
    (step("1", "pay", amount=6), "Step 1 was 'pay' when it was recorded and is the same tool with other arguments now"),
    (step("1", "burn", amount=5), "Step 1 was 'pay' when it was recorded and is 'burn' now"),
    (step("1", "pay", amount=5, more=None), None),
    (step("1", "pay", amount="5"), None),
    (step("1", "pay", amount=[5]), None),
]


@pytest.mark.threat(17)
@pytest.mark.parametrize(("other", "message"), DIVERGED)
@pytest.mark.parametrize("is_ended", [True, False])
def test_a_run_that_goes_another_way_is_parked_for_good(
    store: Store, other: Any, message: str | None, is_ended: bool
) -> None:
    ledger = started(store)
    done(ledger.begin(start(step())))
    if is_ended:
        done(ledger.settle(step(), PAID))
    done(ledger.release())
    found = again(store, ledger.run_id)
    refused = found.recall(other)
    assert kind(refused) == "divergence"
    assert message is None or refused.error == f"{message}: the run was stopped."
    assert refused.failure.data == {"step": "1"}
    # The run refuses every later step, recorded ones included.
    assert found.recall(step()) is refused
    assert found.recall(step("2")) is refused
    assert done(found.begin(start(step("2")))) is refused
    assert found.status == "diverged"
    done(found.release())
    parked = again(store, ledger.run_id)
    assert (parked.status, kind(parked.recall(step())), parked.recall(step("3")).error) == (
        "diverged",
        "divergence",
        refused.error,
    )
    assert kind(done(parked.begin(start(step("3"))))) == "divergence"
    # The control: the same step goes on where nothing diverged.
    control = started(store)
    done(control.settle(step(), PAID))
    done(control.release())
    assert again(store, control.run_id).recall(step()).data == PAID.data


def test_a_finished_run_gives_its_results_to_each_opener(store: Store) -> None:
    ledger = started(store)
    call = ToolCall("pay", {"amount": 5}, id="r/1", raw_text="pay")
    results = (ToolResult(True, 1, call=call), ToolResult.failed("denied", "no"))
    done(ledger.finish(results))
    assert ledger.outcome == results
    for _ in range(2):
        found = again(store, ledger.run_id)
        assert (found.status, found.outcome, found.rev) == ("finished", results, ledger.rev)
        assert kind(done(found.begin(start(step("9"))))) == "interrupted"


def suspended(ledger: RunLedger) -> SuspendedRun:
    found = done(ledger.suspend())
    assert found is not None
    return found


def test_a_suspended_run_says_what_it_waits_for_and_is_anybodys(store: Store) -> None:
    ledger = started(store)
    first, second = request(ledger), request(ledger, call_id="2")
    for one in (first, second):
        assert done(ledger.ask(one)) == (one, None)
    view = suspended(ledger)
    assert (view.start, view.rev, view.head, view.pending) == (ledger.start, ledger.rev, 0, (first, second))
    assert len(view.key) == 32
    assert store.pending(ledger.run_id) == [first, second]
    store.decide(first.id, Decision(verdict="approve"))
    found = again(store, ledger.run_id)
    assert found.rev > view.rev
    asked, decision = done(found.ask(request(found)))
    assert (asked, decision and decision.verdict) == (first, "approve")


def test_a_suspended_run_has_the_same_root_in_every_process(store: Store) -> None:
    ledger = started(store)
    empty = suspended(ledger).root
    found = again(store, ledger.run_id)
    for number, result in enumerate(RESULTS):
        done(found.settle(step(str(number)), result))
    view = suspended(found)
    later = suspended(again(store, ledger.run_id))
    assert (view.head, view.root) == (later.head, later.root)
    assert view.root != empty


def test_every_change_counts_the_revision_up(store: Store) -> None:
    ledger = started(store)
    revisions = [store.runs()[0].rev]
    for change in (
        lambda: done(ledger.begin(start(step()))),
        lambda: done(ledger.settle(step(), PAID)),
        lambda: done(ledger.ask(request(ledger, "a_1", "2"))),
        lambda: store.decide("a_1", Decision(verdict="deny")),
        lambda: done(ledger.suspend()),
    ):
        change()
        revisions.append(store.runs()[0].rev)
    assert revisions == sorted(set(revisions))


def test_a_run_that_is_unknown_or_too_old_is_not_opened(store: Store) -> None:
    with pytest.raises(DecisionRefused) as unknown:
        done(store.reopen("r_nothing"))
    late = started(store, expires_at=1_000.0)
    done(late.release())
    with pytest.raises(DecisionRefused) as expired:
        done(store.reopen(late.run_id))
    assert (unknown.value.code, expired.value.code) == ("unknown_run", "expired")


def test_a_run_is_one_ledgers_at_a_time(store: Store, opened: Callable[[], Store]) -> None:
    ledger = started(store)
    for other in (store, opened()):
        with pytest.raises(DecisionRefused) as busy:
            done(other.reopen(ledger.run_id))
        assert busy.value.code == "run_busy"
    with pytest.raises(DecisionRefused):
        on_record(store, ledger.start)
    done(ledger.release())
    found = again(store, ledger.run_id)
    # A ledger that was released writes no more.
    assert kind(done(ledger.begin(start(step())))) == "interrupted"
    done(found.begin(start(step("2"))))
    assert kind(done(ledger.begin(start(step("2"))))) == "unknown_outcome"
    with pytest.raises(DecisionRefused):
        done(ledger.finish([PAID]))


def test_a_garbage_collected_ledger_releases_its_run(store: Store) -> None:
    run_id = started(store).run_id
    assert again(store, run_id).run_id == run_id
