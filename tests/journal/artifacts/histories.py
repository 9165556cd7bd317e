"""Histories of clients that read and write one artifact at the same time, and the check that a register has them.

Run: python -m tests.journal.artifacts.histories [seeds] [operations] [first]: that many seeds of 8 clients, on SQLite.
The first seed is 0 if none is given. A seed takes some minutes: several processes may share the seeds.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from toolwire import Store
from toolwire.tools import ArtifactConflict, ArtifactManager

CLIENTS = 8
OPERATIONS = 2_000
SEEDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of one client."""

    kind: Literal["read", "write"]
    began: float
    ended: float
    version: int
    content: str


def history(artifacts: ArtifactManager, id: str, *, operations: int, seed: int) -> list[Operation]:
    """Returns what the clients saw. Half of their operations write, and half of the writes give the base version."""
    artifacts.create(id, "start")
    start = Operation(kind="write", began=0.0, ended=0.0, version=1, content="start")
    with ThreadPoolExecutor(CLIENTS) as pool:
        made = pool.map(lambda client: _client(artifacts, id, client, operations, seed), range(CLIENTS))
        return [start, *(operation for each in made for operation in each)]


def _client(artifacts: ArtifactManager, id: str, client: int, operations: int, seed: int) -> list[Operation]:
    chance, made, known = random.Random(seed * CLIENTS + client), list[Operation](), 1
    for number in range(operations):
        began = time.monotonic()
        if chance.random() < 0.5:
            now = artifacts.read(id)
            version, content, kind = now.version, now.content, "read"
        else:
            base, content, kind = known if chance.random() < 0.5 else None, f"{client}:{number}", "write"
            try:
                version = artifacts.rewrite(id, content, base_version=base).version
            except ArtifactConflict as conflict:
                known = conflict.version
                continue
        known = version
        made.append(Operation(kind=kind, began=began, ended=time.monotonic(), version=version, content=content))
    return made


def violations(operations: Sequence[Operation]) -> list[str]:
    """Returns what no register could have done.

    Versions are the order of the writes. So the history is linearizable if each read has the content of its version,
    each version has one write, and no operation has a version below that of one which ended before it began.
    """
    writes = [operation for operation in operations if operation.kind == "write"]
    written = {write.version: write.content for write in writes}
    found = [] if sorted(write.version for write in writes) == list(range(1, len(writes) + 1)) else ["versions"]
    found += [f"content {each}" for each in operations if written.get(each.version) != each.content]
    return found + [f"order {each}" for each in _too_old(operations)]


def _too_old(operations: Iterable[Operation]) -> Iterable[Operation]:
    by_end = sorted(operations, key=lambda each: each.ended)
    newest, position = 0, 0
    for each in sorted(by_end, key=lambda each: each.began):
        while by_end[position].ended < each.began:
            newest = max(newest, by_end[position].version)
            position += 1
        if each.version < newest + (each.kind == "write"):
            yield each


def main() -> None:
    """Prints the violations of each seed."""
    given = [int(each) for each in sys.argv[1:]]
    seeds, operations, first = given + [SEEDS, OPERATIONS, 0][len(given) :]
    os.environ.setdefault("TOOLWIRE_KEY", "00" * 32)
    began, total = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        for seed in range(first, first + seeds):
            made = history(
                ArtifactManager(store, namespace=f"seed {seed}"), "register", operations=operations, seed=seed
            )
            found = violations(made)
            total += len(found)
            print(
                f"seed {seed}: {len(made)} operations, violations {found[:3]}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    sys.exit(total > 0)


if __name__ == "__main__":
    main()
