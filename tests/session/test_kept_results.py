"""Long results are in the session's store: they outlive the process, and belong to their conversation."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import store as store
from tests.journal.conftest import url as url
from tests.journal.world import done, on_record, run_start
from tests.patience import PATIENCE_S
from tests.session.kept_results import ADA, LIMIT_BYTES, LINES, registry, session
from tests.session.till import calls
from toolwire import Caller, Session, Store, ToolResult
from toolwire.journal.database.tables import KEPT_RESULTS
from toolwire.journal.ledger import kept_results
from toolwire.journal.ledger.kept_results import KEPT_LIMIT, KEPT_LIMIT_BYTES, ROW_BYTES, KeptResults
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.kept_text import KeptText

ROOT = Path(__file__).parents[2]
PAGE = KeptText(text="a page", page_bytes=10, labels=frozenset({"private"}))


def long_result(of: Session) -> ToolResult:
    return of.run_turn(calls(("lines", {}))).results[0]


def page(of: Session, id: str, offset: int = LIMIT_BYTES) -> ToolResult:
    return of.run_turn(calls(("read_result", {"id": id, "offset": offset}))).results[0]


def pages_of(store: Store, conversation: str = "c-17") -> KeptResults:
    return on_record(store, run_start(conversation=conversation, caller=ADA)).pages


def keep(pages: KeptResults, kept: KeptText = PAGE) -> str:
    new_id = done(pages.keep(kept, ADA))
    assert new_id is not None
    return new_id


def ids(store: Store) -> set[str]:
    store._database.wait_for_writes()
    return set(store._database.read(lambda connection: connection.execute(select(KEPT_RESULTS.c.result_id)).scalars()))


def change(store: Store, statement: str, **values: Any) -> None:
    """Changes the database behind the store's back."""
    done(store._database.run(lambda connection: connection.execute(text(statement), values).rowcount))


def test_another_process_reads_on_in_a_result_of_a_process_that_ended(url: str, opened: Callable[[], Store]) -> None:
    command = [sys.executable, "-m", "tests.session.kept_results", url]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    run_id, result_id = ran.stdout.split()
    with opened() as store:
        recalled = session(store).run_resume(run_id).results[0]
        assert recalled.metadata["result_id"] == result_id
        found = page(session(store), result_id)
        assert found.success
        assert found.text.startswith(LINES[LIMIT_BYTES : LIMIT_BYTES + 200])
        assert store.verify().is_whole


def test_without_a_store_a_result_is_read_on_in_its_session_alone() -> None:
    first = session(None)
    result_id = long_result(first).metadata["result_id"]
    assert page(first, result_id).success
    assert not page(session(None), result_id).success


def test_an_owners_spill_counts_before_the_store(store: Store) -> None:
    class Spill:
        def __init__(self) -> None:
            self.kept: list[KeptText] = []

        def keep(self, kept: KeptText, caller: Caller) -> Future[str | None]:
            self.kept.append(kept)
            found: Future[str | None] = Future()
            found.set_result("mine")
            return found

        def find(self, id: str, caller: Caller) -> KeptText | None:
            return self.kept[0] if id == "mine" else None

    tools, spill = registry(), Spill()
    tools.configure(result_pages=spill)
    own = Session(tools, protocol="openai", store=store)
    assert long_result(own).metadata["result_id"] == "mine"
    assert page(own, "mine").success
    assert (len(spill.kept), ids(store)) == (1, set())


@pytest.mark.threat(27)
@pytest.mark.parametrize(
    ("conversation", "caller"),
    [
        ("c-18", ADA),
        ("c-18", Caller(principal="bo")),
        ("c-17", Caller(principal="ada", agent="second")),
    ],
)
def test_a_result_is_there_for_no_other_conversation_or_caller(store: Store, conversation: str, caller: Caller) -> None:
    result_id = long_result(session(store)).metadata["result_id"]
    unknown = "0" * 32
    other = session(store, conversation, caller)
    refused, of_unknown = (page(other, one) for one in (result_id, unknown))
    assert not refused.success
    assert refused.text == of_unknown.text.replace(unknown, result_id)
    # The control: its own conversation, in another session.
    assert page(session(store), result_id).success


@pytest.mark.threat(27)
def test_a_row_that_was_moved_to_another_conversation_does_not_open(store: Store) -> None:
    first, other = pages_of(store), pages_of(store, "c-18")
    result_id = keep(first)
    assert other.find(result_id, ADA) is None
    change(store, "UPDATE kept_results SET conversation = 'c-18'")
    with pytest.raises(DecisionRefused) as refused:
        other.find(result_id, ADA)
    assert refused.value.code == "bad_mac"


def test_a_stored_result_is_not_in_clear(store: Store) -> None:
    result_id = keep(pages_of(store), KeptText(text="a secret text", page_bytes=10))
    sealed = store._database.read(lambda connection: connection.execute(select(KEPT_RESULTS.c.result)).scalar_one())
    assert b"secret" not in bytes(sealed)
    assert result_id.encode() not in bytes(sealed)


@pytest.mark.parametrize("whole", ["", "ä\ud83d\n\x00", "a\nb\n" * 5_000], ids=["empty", "strange", "long"])
def test_a_text_comes_back_as_it_was(store: Store, whole: str) -> None:
    pages, kept = pages_of(store), KeptText(text=whole, page_bytes=7, labels=frozenset({"private", "untrusted"}))
    assert pages.find(keep(pages, kept), ADA) == kept


@pytest.mark.parametrize("id", ["", "x" * 32, "0" * 32, "\x00", "\ud83d", "é" * 32])
def test_any_text_as_an_id_finds_nothing(store: Store, id: str) -> None:
    assert pages_of(store).find(id, ADA) is None


def test_a_conversation_keeps_200_and_drops_the_least_recently_read(store: Store) -> None:
    pages, other = pages_of(store), pages_of(store, "c-18")
    elsewhere = keep(other)
    made = [keep(pages) for _ in range(KEPT_LIMIT)]
    assert (KEPT_LIMIT, ids(store)) == (200, {*made, elsewhere})
    assert pages.find(made[0], ADA) == PAGE
    store._database.wait_for_writes()
    newest = keep(pages)
    assert ids(store) == {made[0], *made[2:], newest, elsewhere}
    assert pages.find(made[1], ADA) is None


def test_a_store_keeps_256_mib_and_drops_the_least_recently_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEPT_LIMIT_BYTES == 256 * 1024 * 1024
    monkeypatch.setattr(kept_results, "KEPT_LIMIT_BYTES", 3 * ROW_BYTES)
    pages, other = pages_of(store), pages_of(store, "c-18")
    first, second, third = keep(pages), keep(other), keep(pages)
    assert ids(store) == {first, second, third}
    assert pages.find(first, ADA) == PAGE
    store._database.wait_for_writes()
    fourth = keep(other)
    assert ids(store) == {first, third, fourth}


def test_one_result_over_the_limit_is_not_kept_and_drops_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = pages_of(store)
    there = keep(pages)
    [size] = [len(pages._database.sealer.seal(kept_results._encode_text(PAGE, ADA)))]
    monkeypatch.setattr(kept_results, "KEPT_LIMIT_BYTES", size - 1)
    assert done(pages.keep(PAGE, ADA)) is None
    assert ids(store) == {there}
    # The control: it fits exactly, beside nothing else.
    monkeypatch.setattr(kept_results, "KEPT_LIMIT_BYTES", size)
    monkeypatch.setattr(kept_results, "ROW_BYTES", 0)
    assert ids(store) == {there}
    assert ids(store) != {keep(pages)}
    assert len(ids(store)) == 1


def test_a_result_that_no_store_takes_is_shown_cut(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "KEPT_LIMIT_BYTES", 1_000)
    result = long_result(session(store))
    assert result.success
    assert result.text.endswith("bytes are shown]")
    assert "result_id" not in result.metadata


def test_a_dropped_result_says_what_to_do(store: Store) -> None:
    of = session(store)
    result_id = long_result(of).metadata["result_id"]
    change(store, "DELETE FROM kept_results")
    answer = page(of, result_id)
    assert answer.text == (
        f"There is no result {result_id!r} to read on in: it was dropped to make room, or it is not yours.\n"
        "If you copied the id exactly, make the call again that gave the result, with a narrower request."
    )


def test_results_go_with_their_run(store: Store) -> None:
    of = session(store)
    gone = long_result(of).metadata["result_id"]
    assert ids(store) == {gone}
    assert store.forget(before=time.time() + 1) == 1
    assert ids(store) == set()
    assert store.verify().is_whole


def test_a_run_that_was_taken_over_keeps_no_result(store: Store) -> None:
    pages = pages_of(store)
    change(store, "UPDATE runs SET lease = lease + 1")
    assert done(pages.keep(PAGE, ADA)) is None
    assert ids(store) == set()


def test_a_reader_takes_on_the_labels_of_the_result(store: Store) -> None:
    result_id = keep(pages_of(store), KeptText(text="a page", page_bytes=100, labels=frozenset({"private"})))
    assert page(session(store), result_id, offset=0).success
    [found] = [info for info in store.conversations() if info.conversation == "c-17"]
    assert found.taints == ("private",)


def test_a_short_result_writes_nothing_more(store: Store) -> None:
    assert session(store).run_turn(calls(("short", {}))).results[0].success
    count = select(func.count(KEPT_RESULTS.c.result_id))
    assert store._database.read(lambda connection: connection.execute(count).scalar_one()) == 0
