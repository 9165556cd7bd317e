"""Stores with damaged pages: whatever is read of them, and wherever, the error has a type.

Run: python -m benchmarks.fuzz_pages [seconds] [seed]. The suite runs a short form of it.
"""

from __future__ import annotations

import gzip
import logging
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.session.saved import FOLDERS, KEY, REPLIES, Counter

from benchmarks.fuzzing import run
from toolwire import Caller, Decision, Store
from toolwire.journal.database.schema import REVISIONS
from toolwire.log import LogFilter
from toolwire.vocabulary.errors import ToolwireError

PAGE_BYTES = 1024
CHANGES = (1, 3, 16, 64)
"""Bytes that are changed in a store; the larger numbers all on one page."""
BYTES = (0x00, 0x80, 0xC3, 0xFF)
"""Bytes that are no text, among which a change chooses as often as among all."""


def fuzz(stores: int, seed: int) -> int:
    """Reads a number of damaged stores. Returns how many reads were refused.

    Raises:
        AssertionError: A read raised an error without a type. The message has the seed.
    """
    whole = saved_store()
    return sum(_refused(_damage(whole, random.Random(seed + number)), seed + number) for number in range(stores))


def saved_store() -> bytes:
    """Returns a small store with runs in every state."""
    return gzip.decompress((FOLDERS / REVISIONS[-1] / "runs.db.gz").read_bytes())


def _damage(whole: bytes, chance: random.Random) -> bytes:
    damaged, changes = bytearray(whole), chance.choice(CHANGES)
    page = chance.randrange(len(whole) // PAGE_BYTES) * PAGE_BYTES
    for _ in range(changes):
        at = chance.randrange(len(whole)) if changes < CHANGES[2] else page + chance.randrange(PAGE_BYTES)
        damaged[at] = chance.choice((*BYTES, chance.randrange(256)))
    return bytes(damaged)


def _refused(damaged: bytes, seed: int) -> int:
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        path.write_bytes(damaged)
        try:
            with Store.open(f"sqlite:///{path}", key=KEY) as store:
                for read in _reads(store):
                    refused += _is_refused(read, seed)
        except ToolwireError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"a store of seed {seed} is opened with {error!r}") from error
    return refused


def _is_refused(read: Callable[[], Any], seed: int) -> bool:
    try:
        read()
    except ToolwireError:
        return True
    except Exception as error:
        raise AssertionError(f"a store of seed {seed} is read with {error!r}") from error
    return False


def _reads(store: Store) -> Iterator[Callable[[], Any]]:
    run_ids, request_ids = list[str](), list[str]()
    yield lambda: run_ids.extend(one.run_id for one in store.runs())
    for run_id in run_ids[:3]:
        for read in (store.run, store.calls, store.log_tree):
            yield partial(read, run_id)
    yield lambda: request_ids.extend(one.id for one in store.pending())
    for request_id in request_ids[:1]:
        yield partial(store.request, request_id)
        yield partial(store.decide, request_id, Decision(verdict="deny"))
    yield store.rules
    yield partial(store.decisions_with_rules, "r", caller=Caller())
    yield store.log
    yield partial(store.log, LogFilter(text="price"))
    yield partial(store.log, limit=3, newest_first=True)
    yield store.stats
    yield store.conversations
    yield store.verify
    yield lambda: Counter().session(store, "one request").run_turn(REPLIES["one request"])
    for run_id in run_ids[:1]:
        yield lambda: Counter().session(store, "one request").run_resume(run_id)  # noqa: B023 - called at once
    yield partial(store.forget, before=9e9)
    yield partial(store.prune, keep=1)


def main() -> None:
    """Fuzzes for two minutes unless told otherwise; prints how much it tried."""
    logging.disable(logging.CRITICAL)
    tried, seed, refused = run(fuzz, count=5, seconds=120)
    print(f"{tried:,} damaged stores from seed {seed}, {refused:,} reads refused: every error had a type")


if __name__ == "__main__":
    main()
