"""Writes the saved runs of this version's schema. Run by hand, once for each schema that is released:

python -m tests.session.write_saved
"""

from __future__ import annotations

import asyncio
import gzip
import json
import multiprocessing
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import toolwire.invocation.ask
import toolwire.journal.ledger.leases
import toolwire.journal.store
import toolwire.session.runs.resume
from tests.session.saved import FOLDERS, KEY, REPLIES, Counter
from tests.session.test_suspended import decided, waiting
from toolwire import Decision, Turn
from toolwire.approvals import Decider
from toolwire.journal.database.schema import REVISIONS
from toolwire.journal.store import Store

FOR_EVER_S = 200 * 365 * 86_400.0
"""The life of a run and its requests here: every later version of the suite resumes them."""


def main() -> int:
    """Writes the folder of the newest schema, which must not be there."""
    folder = FOLDERS / REVISIONS[-1]
    if folder.exists():
        print(f"{folder} is there, and what was released does not change")
        return 1
    _wait_for_ever()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "runs.db"
        process = multiprocessing.get_context("spawn").Process(target=_crash, args=(str(path),))
        process.start()
        process.join()
        with Store.open(f"sqlite:///{path}", key=KEY) as store:
            (crashed,) = store.runs()
            saved = {name: asyncio.run(_save(store, name)) for name in REPLIES if name != "crashed"}
            saved["crashed"] = {"run_id": crashed.run_id, "portable": None}
        # Smaller pages and no free ones: a third of the size.
        with sqlite3.connect(path) as database:
            for pragma in ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=1024", "VACUUM", "PRAGMA journal_mode=WAL"):
                database.execute(pragma)
        database.close()
        folder.mkdir(parents=True)
        (folder / "runs.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    index = {"engine": toolwire.sandbox.answers.replay_engine, "runs": saved}
    (folder / "runs.json").write_text(json.dumps(index, indent=1) + "\n", "utf-8")
    return 0


def _wait_for_ever() -> None:
    toolwire.session.runs.resume.RUN_LIFE_S = toolwire.invocation.ask.REQUEST_LIFE_S = FOR_EVER_S
    # An unknown host and an expired lease: a session that opens the store can take the crashed run.
    toolwire.journal.ledger.leases.this_host = lambda: "elsewhere - -"
    toolwire.journal.ledger.store_database.Database.lease_until = lambda _: 0.0


def _crash(path: str) -> None:
    _wait_for_ever()
    with Store.open(f"sqlite:///{path}", key=KEY) as store:
        session = Counter(dies=True).session(store, "crashed", approver=lambda _: Decision(verdict="approve"))
        asyncio.run(session.turn(REPLIES["crashed"]))


async def _save(store: Store, name: str) -> dict[str, Any]:
    counter = Counter()
    turn = await counter.session(store, name).turn(REPLIES[name])
    requests, by = waiting(turn), Decider(principal="user:42", channel="cli")
    match name:
        case "partly decided":
            turn = await _resumed(counter, store, name, turn, decided(requests[1:], "approve"))
        case "a program":
            turn = await _resumed(counter, store, name, turn, decided(requests, "approve"))
        case "finished":
            await _resumed(counter, store, name, turn, decided(requests, "approve"))
        case "approved":
            store.decide(requests[0].id, Decision(verdict="approve", by=by))
        case "edited":
            store.decide(requests[0].id, Decision(verdict="edit", arguments={"amount": 50}, by=by))
        case "denied":
            store.decide(requests[0].id, Decision(verdict="deny", reason="too much", by=by))
        case _:
            pass
    assert turn.suspended is not None
    return {"run_id": turn.suspended.run_id, "portable": turn.suspended.to_json()}


async def _resumed(counter: Counter, store: Store, name: str, turn: Turn, decisions: list[Any]) -> Turn:
    assert turn.suspended is not None
    return await counter.session(store, name).resume(turn.suspended, decisions)


if __name__ == "__main__":
    sys.exit(main())
