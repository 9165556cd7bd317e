"""Long results in memory."""

from __future__ import annotations

import threading

import pytest

from tests.patience import PATIENCE_S
from toolwire.facade.built_in.pages import MemorySpill
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.kept_text import KeptText

ADA, BO = Caller(principal="ada"), Caller(principal="bo")


def kept(text: str) -> KeptText:
    return KeptText(text=text, page_bytes=10)


def id_of(spill: MemorySpill, text: str, caller: Caller = ADA) -> str | None:
    return spill.keep(kept(text), caller).result(0)


def test_a_text_is_found_by_its_id() -> None:
    spill = MemorySpill()
    first, second = id_of(spill, "one"), id_of(spill, "two")
    assert first is not None
    assert second is not None
    assert (spill.find(first, ADA), spill.find(second, ADA)) == (kept("one"), kept("two"))
    assert (len(first), len({first, second})) == (32, 2)


@pytest.mark.threat(27)
@pytest.mark.parametrize(
    "other", [BO, NOBODY, Caller(principal="ada", tenant="zen"), Caller(principal="ada", agent="second")], ids=repr
)
def test_it_is_there_for_no_other_caller(other: Caller) -> None:
    spill = MemorySpill()
    key = id_of(spill, "one")
    assert key is not None
    assert spill.find(key, other) is None
    # The control: the same id, asked for by its own caller.
    assert spill.find(key, ADA) == kept("one")


def test_the_least_recently_read_result_is_dropped() -> None:
    spill = MemorySpill(entries_limit=2)
    first, second = id_of(spill, "one"), id_of(spill, "two")
    assert first is not None
    assert second is not None
    spill.find(first, ADA)
    id_of(spill, "three")
    assert (spill.find(first, ADA), spill.find(second, ADA), len(spill)) == (kept("one"), None, 2)


def test_their_bytes_are_bounded() -> None:
    spill = MemorySpill(bytes_limit=10)
    ids = [id_of(spill, text) for text in ("12345", "ää1", "123456")]
    assert [spill.find(key or "", ADA) is not None for key in ids] == [False, False, True]
    assert id_of(spill, "12345678901") is None
    assert id_of(spill, "1234567890") is not None
    assert len(spill) == 1


def test_threads_keep_and_find_at_once() -> None:
    spill, wrong = MemorySpill(entries_limit=50), []

    def work(name: str) -> None:
        for n in range(200):
            key = id_of(spill, f"{name} {n}")
            found = spill.find(key or "", ADA)
            if found is not None and found != kept(f"{name} {n}"):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (wrong, len(spill)) == ([], 50)
