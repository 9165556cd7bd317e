"""A writer that is killed at random moments, and the naive writers that lose by it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolwire.builtin.files import disk as disk_module
from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.disk_calls import DiskCalls
from toolwire.builtin.files.paths import read_path

CONTENTS = (b"a" * 100_000, b"b" * 100_000)
LONGEST_S = 0.004
"""Seconds after which a writer is killed at the latest: a few writes."""

Write = Callable[[Path, bytes], None]


@dataclass(slots=True)
class Torn:
    """The damage of a number of kills."""

    kills: int = 0
    torn: int = 0
    """Files that have neither the old nor the new content."""
    left: int = 0
    """Files that a kill left beside the file."""
    left_after_reopening: int = 0


def write_by_disk(folder: Path, calls: DiskCalls) -> Write:
    """Returns the write of `Disk`."""
    disk, path = Disk({"workspace": str(folder)}, calls=calls), read_path("/workspace/file")
    return lambda _, content: (disk.change(path, lambda _: content), None)[1]


def write_in_place(folder: Path, content: bytes) -> None:
    """A control: opens the file and writes."""
    (folder / "file").write_bytes(content)


def write_beside(folder: Path, content: bytes) -> None:
    """A control: writes a file with a name, and renames it."""
    (folder / "file.tmp").write_bytes(content)
    (folder / "file.tmp").rename(folder / "file")


def torn_by(folder: Path, write: Write, kills: int, seed: int) -> Torn:
    """Kills a writer that many times. A fork of this process writes, since starting one takes too long."""
    chance, found = random.Random(seed), Torn()
    write(folder, CONTENTS[0])
    for _ in range(kills):
        read, ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(ready, b"x")
                while True:
                    for content in CONTENTS:
                        write(folder, content)
            finally:
                os._exit(1)
        os.close(ready)
        os.read(read, 1)
        os.close(read)
        time.sleep(chance.uniform(0, LONGEST_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found.kills += 1
        found.torn += (folder / "file").read_bytes() not in CONTENTS
        found.left += len(list(folder.iterdir())) - 1
        reopen(folder)
        found.left_after_reopening += len(list(folder.iterdir())) - 1
        for path in folder.iterdir():
            if path.name != "file":
                path.unlink()
    return found


def reopen(folder: Path) -> None:
    """Opens the folder as a service with the right to write does."""
    disk = Disk({"workspace": str(folder)})
    disk.sweep(["workspace"])
    disk.close()


def sweep_at_once() -> None:
    """Lets a sweep remove files that a kill left a moment ago."""
    disk_module.STALE_S = -1.0
