"""Large values in the store: each is on record once, and a run has a budget."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

import toolwire.journal.ledger.history
from tests.journal.world import PAID, done, start, started, step
from toolwire import Session
from toolwire.journal.database.engine import WAL_LIMIT_BYTES
from toolwire.journal.database.location import location_of
from toolwire.journal.ledger.forms import (
    ONCE,
    encode_form,
    expand_form,
    read_form,
    read_step_end,
    result_form,
    shorten_form,
    step_end_form,
)
from toolwire.journal.ledger.large_values import LARGE_BYTES, LargeValues, whole
from toolwire.journal.ledger.steps import make_step_end
from toolwire.journal.run import RUN_LIMIT_BYTES
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

ANSWER_BYTES = 3_900_000
ANSWERS = 20


def bytes_on_disk(url: str) -> int:
    """Bytes of the database after a checkpoint."""
    location = location_of(url)
    if location.path is None:
        engine = create_engine(location.url)
        with engine.connect() as connection:
            found = connection.execute(
                text(
                    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200"
                )
            ).scalar_one()
        engine.dispose()
        return int(found)
    with sqlite3.connect(location.path) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
    connection.close()
    path = Path(location.path)
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")))


async def turns(store: Store, replies: list[Reply], protocol: str = "openai", **options: Any) -> list[Any]:
    session = Session([noise], protocol=protocol, store=store, **options)
    return [await session.turn(reply) for reply in replies]


def noise(n: int) -> str:
    """Gives a long text that cannot be compressed."""
    import base64
    import random

    noise = base64.b64encode(random.Random(n).randbytes(ANSWER_BYTES * 3 // 4)).decode()
    return noise[: ANSWER_BYTES * 3 // 4] + "é" * (ANSWER_BYTES // 8)


ANSWER_BYTES_ON_DISK = len(noise(0).encode())


def asked(n: int) -> Reply:
    return Reply(calls=(ToolCall("noise", {"n": n}, raw_text=f"noise({n})"),))


@pytest.mark.threat(70)
@pytest.mark.parametrize("is_one_turn", [False, True], ids=["twenty-turns", "one-turn"])
def test_answers_take_their_own_size_on_disk(opened: Callable[[], Store], url: str, is_one_turn: bool) -> None:
    store = opened()
    before = bytes_on_disk(url)
    calls = [asked(n).calls[0] for n in range(ANSWERS)]
    replies = [Reply(calls=tuple(calls))] if is_one_turn else [asked(n) for n in range(ANSWERS)]
    asyncio.run(turns(store, replies))
    grown = bytes_on_disk(url) - before
    assert 2 * grown > ANSWERS * ANSWER_BYTES_ON_DISK
    assert grown <= 1.2 * ANSWERS * ANSWER_BYTES_ON_DISK


@pytest.mark.threat(70)
def test_the_answer_of_a_program_is_that_of_its_call_and_is_kept_once(opened: Callable[[], Store], url: str) -> None:
    store = opened()
    before = bytes_on_disk(url)
    code = "first = noise(1)\nprint(len(first))\n__result__ = [len(noise(n)) for n in range(2, 5)]"
    (turn,) = asyncio.run(turns(store, [Reply(calls=(ToolCall(CODE_EXECUTION, {"code": code}),))], "attp"))
    assert turn.results[0].success, turn.results[0].error
    assert bytes_on_disk(url) - before <= 1.2 * 4 * ANSWER_BYTES_ON_DISK + WAL_LIMIT_BYTES
    (again,) = reopened_results(store, store.runs()[0].run_id)
    assert (again.data, again.text) == (turn.results[0].data, turn.results[0].text)


def reopened_results(store: Store, run_id: str) -> tuple[ToolResult, ...]:
    found = done(store.reopen(run_id)).outcome
    assert found is not None
    return tuple(found)


def test_a_finished_turn_with_long_answers_is_given_again_as_it_was(store: Store) -> None:
    reply = Reply(calls=(*asked(1).calls, ToolCall("noise", {"n": "no number"}), *asked(2).calls))
    (turn,) = asyncio.run(turns(store, [reply]))
    (run,) = store.runs()
    assert reopened_results(store, run.run_id) == turn.results
    again = asyncio.run(Session([noise], protocol="openai", store=store).resume(run.run_id))
    assert (again.results, again.messages) == (turn.results, turn.messages)


def test_arguments_that_a_person_edited_are_in_the_outcome(store: Store) -> None:
    ledger = started(store)
    edited = ToolResult(True, "x" * LARGE_BYTES, call=ToolCall("pay", {"amount": 4}, id="1", raw_text="pay(5)"))
    done(ledger.begin(start(step())))
    done(ledger.settle(step(), edited))
    done(ledger.finish([edited]))
    assert reopened_results(store, ledger.run_id) == (edited,)
    assert done(store.reopen(ledger.run_id)).recall(step()).call == ToolCall("pay", {"amount": 5}, id="1")


def test_an_outcome_whose_step_is_gone_is_refused_by_name(store: Store, url: str) -> None:
    ledger = started(store)
    answer = ToolResult(True, "x" * LARGE_BYTES, call=ToolCall("pay", {"amount": 5}, id="1"))
    done(ledger.settle(step(), answer))
    done(ledger.finish([answer]))
    change(url, "DELETE FROM steps")
    with pytest.raises(DecisionRefused) as refused:
        done(store.reopen(ledger.run_id))
    assert str(refused.value) == "the record in the store is not in toolwire's format: step 1 is missing"


def change(url: str, *statements: str) -> None:
    engine = create_engine(location_of(url).url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


LONG = "x" * LARGE_BYTES
VALUES: list[Any] = [
    LONG,
    [1, True, 1.0, "1", LONG],
    {"rows": [{"n": n, "text": f"row {n}"} for n in range(1_000)]},
    (LONG, b"\xff" * LARGE_BYTES, {1, 2}),
    {"$t": "step", "v": LONG},
    [{"$t": "step", "v": "1"}, LONG],
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("is_begun", [True, False], ids=["begun", "not-begun"])
def test_a_later_step_refers_to_an_earlier_one_and_is_read_as_it_was(store: Store, value: Any, is_begun: bool) -> None:
    ledger = started(store)
    steps = [step("1/1", parent="1"), step("1/2", parent="1"), step("1")]
    first = ToolResult(True, value)
    around = ToolResult(True, {"all": [value, value, 1], "n": 5}, None, {"calls": [value]})
    blocks = ToolResult(True, value, content=[TextBlock(type="text", text=LONG)])
    results = [first, blocks, around]
    for of, result in zip(steps, results, strict=True):
        if is_begun:
            done(ledger.begin(start(of)))
        done(ledger.settle(of, result))
    done(ledger.release())
    for found in (done(store.reopen(ledger.run_id)), ledger):
        for of, result in zip(steps, results, strict=True):
            known = found.recall(of)
            assert (known.data, known.blocks, dict(known.metadata)) == (
                result.data,
                result.blocks,
                dict(result.metadata),
            )
            assert [type(item) for item in flat(known.data)] == [type(item) for item in flat(result.data)]


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for inner in value.values() for item in flat(inner)]
    return [item for inner in value for item in flat(inner)] if isinstance(value, list | tuple) else [value]


IMAGE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO" * LARGE_BYTES}}
MIXED: list[Any] = [{"type": "text", "text": "look", "annotations": {"priority": 1.0}}, IMAGE]


@pytest.mark.parametrize(
    ("data", "content"), [(MIXED, MIXED), (IMAGE, [IMAGE]), ([IMAGE], [IMAGE])], ids=["mixed", "one", "a list of one"]
)
def test_mixed_content_is_written_once_and_read_as_it_was(store: Store, url: str, data: Any, content: Any) -> None:
    ledger = started(store)
    found = ToolResult(True, data, content=content, call=ToolCall("pay", {"amount": 5}, id="1"))
    around = ToolResult(True, "[image]", content=[TextBlock(type="text", text="[image]"), IMAGE])
    done(ledger.settle(step(), found))
    done(ledger.settle(step("2"), found))
    done(ledger.settle(step("3"), around))
    first, second, _ = ended_bytes(url)
    assert first <= len(IMAGE["source"]["data"]) + 1_000
    assert second <= 1_000
    done(ledger.finish([found]))
    again = done(store.reopen(ledger.run_id))
    for key, result in (("1", found), ("2", found), ("3", around)):
        known = again.recall(step(key))
        assert (known.data, known.blocks) == (result.data, result.blocks)
        assert known.data is not known.blocks[0]
    assert reopened_results(store, ledger.run_id) == (found,)


def test_content_that_is_not_the_data_is_written_beside_them(store: Store) -> None:
    ledger = started(store)
    for data in ({"rows": 2}, [IMAGE, IMAGE], "look", None):
        key = str(data)[:9]
        done(ledger.settle(step(key), ToolResult(True, data, content=MIXED)))
    done(ledger.release())
    again = done(store.reopen(ledger.run_id))
    for data in ({"rows": 2}, [IMAGE, IMAGE], "look", None):
        known = again.recall(step(str(data)[:9]))
        assert (known.data, known.blocks) == (data, tuple(MIXED))


def test_a_record_that_has_its_content_twice_is_read_as_one_that_has_it_once() -> None:
    """Earlier versions wrote the content twice, and no version before this one reads the shorter form."""
    result = ToolResult(True, MIXED, content=MIXED)
    twice = encode_form(
        shorten_form(step_end_form(step(), result), LargeValues(), is_begun=False) | {"result": result_form(result)}, 2
    )
    once = make_step_end(step(), result, LargeValues(), is_begun=False).data
    assert (len(once) * 3 < len(twice) * 2, json.loads(once)["form"]) == (True, ONCE)
    for data in (once, twice):
        _, read_back = read_form(data, lambda form: read_step_end(expand_form(form, None, {})))
        assert (read_back.data, read_back.blocks) == (MIXED, tuple(MIXED))


def ended_bytes(url: str) -> list[int]:
    """The bytes of each ended step on disk, in order."""
    engine = create_engine(location_of(url).url)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT length(ended) FROM steps ORDER BY place")).scalars().all()
    engine.dispose()
    return [int(size) for size in found]


@pytest.mark.parametrize(
    ("first", "second"),
    [([1], [True]), ([1], [1.0]), (["1"], [1]), ([0.0], [-0.0]), (["\ud83d\ude00", 1], ["\U0001f600", 1])],
)
def test_equal_looking_values_are_not_taken_for_each_other(first: Any, second: Any) -> None:
    shared = LargeValues()
    shared.add("1", first)
    assert shared.shorten([second]) == [second]
    assert whole(shared.shorten([list(first)]), {"1": first}) == [first]
    assert shared.shorten([list(first)]) == [{"$t": "step", "v": "1"}]


def test_a_small_record_is_written_in_the_form_that_earlier_versions_read(store: Store, url: str) -> None:
    ledger = started(store)
    done(ledger.settle(step(), PAID))
    done(ledger.finish([ToolResult(True, {"paid": 5}, call=ToolCall("pay", {"amount": 5}, id="1"))]))
    engine = create_engine(location_of(url).url)
    with engine.connect() as connection:
        ended = connection.execute(text("SELECT ended FROM steps")).scalar_one()
        outcome = connection.execute(text("SELECT outcome FROM runs")).scalar_one()
    engine.dispose()
    sealer = store._database.sealer
    assert sealer.open(bytes(ended), "steps", ledger.run_id, "1", "ended").startswith(b'{"form":1,')
    assert sealer.open(bytes(outcome), "runs", ledger.run_id, "outcome").startswith(b'{"form":1,')


@pytest.mark.threat(70)
def test_the_model_is_told_of_results_that_its_turn_has_no_room_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RUN_LIMIT_BYTES == 256 * 1024 * 1024
    monkeypatch.setattr(toolwire.journal.ledger.history, "RUN_LIMIT_BYTES", 9_000_000)

    def much(n: int) -> str:
        return f"{n}" + "x" * 2_000_000

    calls = tuple(ToolCall("much", {"n": n}) for n in range(5))
    turn = asyncio.run(Session([much], protocol="attp", store=store).turn(Reply(calls=calls)))
    assert sorted(map(kind, turn.results)) == ["", "", "", "", "limit"]
    assert "'much' ran, but its result of 2,0" in turn.text
    assert "It may have taken effect. Ask for less at a time." in turn.text
    again = asyncio.run(Session([much], protocol="attp", store=store).resume(store.runs()[0].run_id))
    assert again.results == turn.results


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(toolwire.journal.ledger.history, "RUN_LIMIT_BYTES", 100_000)
    return 100_000


def kind(result: Any) -> str:
    return "" if not isinstance(result, ToolResult) or result.failure is None else result.failure.kind


@pytest.mark.parametrize(("size", "expected"), [(98_000, ""), (100_000, "limit")])
def test_a_result_is_kept_up_to_the_limit_and_not_beyond(store: Store, limit: int, size: int, expected: str) -> None:
    ledger = started(store)
    done(ledger.begin(start(step())))
    assert kind(done(ledger.settle(step(), ToolResult(True, "x" * size)))) == expected
    assert kind(ledger.recall(step())) == expected
    done(ledger.release())
    assert kind(done(store.reopen(ledger.run_id)).recall(step())) == expected


def test_a_full_run_begins_no_more_calls(store: Store, limit: int) -> None:
    ledger = started(store)
    done(ledger.begin(start(step("1"))))
    done(ledger.settle(step("1"), ToolResult(True, "x" * 98_900)))
    done(ledger.release())
    for found in (ledger, done(store.reopen(ledger.run_id))):
        refused = done(found.begin(start(step("2"))))
        assert (kind(refused), found.recall(step("2"))) == ("limit", None)


def test_the_refusals_of_a_full_run_take_no_room(store: Store, limit: int, url: str) -> None:
    ledger = started(store)
    long = step("2", text="x" * limit)
    for _ in range(3):
        refused = done(ledger.begin(start(long)))
        assert isinstance(refused, ToolResult)
        assert kind(done(ledger.settle(long, refused))) == "limit"
    assert kind(done(ledger.settle(step("3"), ToolResult(True, "x" * limit)))) == "limit"
    assert kind(done(ledger.settle(step("4"), PAID))) == ""
    done(ledger.release())
    found = done(store.reopen(ledger.run_id))
    assert [found.recall(one) for one in (long, step("3"))] == [None, None]
    assert kind(found.recall(step("4"))) == ""


def test_arguments_and_notes_count_as_well(store: Store, limit: int) -> None:
    ledger = started(store)
    done(ledger.begin(start(step("1", text="x" * 40_000))))
    ledger.note("1", {"text": "x" * 40_000})
    assert kind(done(ledger.settle(step("1", text="x" * 40_000), ToolResult(True, "x" * 25_000)))) == "limit"
    assert isinstance(done(ledger.begin(start(step("2", text="x" * 10_000)))), float)
