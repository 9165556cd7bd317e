"""Writes a store with suspended runs among many rows of the log. Run by hand, with the code of a release:

python -m tests.session.write_grown FOLDER [ROWS]
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

import toolwire.session.runs.resume
from tests.session.saved import KEY, REPLIES, Counter
from tests.session.write_saved import _crash, _save, _wait_for_ever  # pyright: ignore[reportPrivateUsage]
from toolwire import ToolRegistry
from toolwire.journal.store import Store

ROWS = 300
"""Rows of plain calls in the log, half of them before the suspended runs and half after."""

TURNS = 20
"""Turns that are finished."""


def main(folder: Path, rows: int = ROWS) -> int:
    """Writes `grown.db.gz` with the index of its runs into a folder."""
    _wait_for_ever()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "runs.db"
        process = multiprocessing.get_context("spawn").Process(target=_crash, args=(str(path),))
        process.start()
        process.join()
        with Store.open(f"sqlite:///{path}", key=KEY) as store:
            (crashed,) = store.runs()
            _call(store, rows // 2)
            saved = {name: asyncio.run(_save(store, name)) for name in REPLIES if name != "crashed"}
            saved["crashed"] = {"run_id": crashed.run_id, "portable": None}
            for _ in range(TURNS):
                asyncio.run(_save(store, "finished"))
            _call(store, rows - rows // 2)
            assert store.verify().is_whole
        with sqlite3.connect(path) as database:
            for pragma in ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=1024", "VACUUM", "PRAGMA journal_mode=WAL"):
                database.execute(pragma)
        database.close()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "grown.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    index = {"engine": toolwire.sandbox.answers.replay_engine, "runs": saved}
    (folder / "grown.json").write_text(json.dumps(index, indent=1) + "\n", "utf-8")
    return 0


def _call(store: Store, rows: int) -> None:
    registry = ToolRegistry()
    registry.enable_logging(store=store)
    registry.register(Counter().price)
    for number in range(rows):
        registry.invoke("price", {"thing": f"thing {number}"})


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
