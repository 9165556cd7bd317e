"""A process that exchanges names while a disk works, and the count of what it reached by that."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.paths import FileRefused, read_path

_ATTACKER = """
import ctypes, os, sys, time
work, pause = os.open(sys.argv[1], os.O_RDONLY), float(sys.argv[2])
renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
print("ready", flush=True)
while True:
    renameat2(work, b"folder", work, b"other", 2)
    renameat2(work, b"file", work, b"hard", 2)
    if pause:
        time.sleep(pause)
"""
PATIENCE_S = 20.0
"""Seconds for the naive read to be led outside once, and for one operation to succeed: milliseconds."""
MOMENT_S = 0.002
"""Seconds between the two steps of the naive read."""
SECRET = b"secret"


@dataclass(slots=True)
class Raced:
    """The outcome of a race."""

    operations: int = 0
    succeeded: int = 0
    escapes: list[str] = field(default_factory=list)
    """What was read from outside, or changed there."""
    naive_escapes: int = 0
    """Reads of the control that were led outside: it looks whether the folder is a link, and reads a moment later."""


@contextmanager
def _attacked(work: Path, pause_s: float) -> Generator[None]:
    attacker = subprocess.Popen([sys.executable, "-c", _ATTACKER, str(work), str(pause_s)], stdout=subprocess.PIPE)
    try:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == b"ready\n"
        yield
    finally:
        attacker.kill()
        attacker.communicate()


def raced(disk: Disk, work: Path, outside: Path, *, rounds: int, pause_s: float) -> Raced:
    """Tries every operation in each round, on a folder that is now itself and now a link to the one outside.

    `file` is exchanged with a hard link to the secret in the same way.
    """
    (work / "folder").mkdir()
    (work / "other").symlink_to(outside)
    (work / "file").write_bytes(b"own")
    (work / "hard").hardlink_to(outside / "secret")
    (outside / "only-there").write_text("")
    found, read, names = Raced(), set[bytes](), set[str]()
    attempts = _attempts(disk, read, names)
    with _attacked(work, pause_s):
        done, until = 0, time.monotonic() + PATIENCE_S
        while done < rounds or (not (found.naive_escapes and found.succeeded) and time.monotonic() < until):
            done += 1
            # Every second round: after a naive read the attacker has mostly put the link there, and operations fail.
            if done % 2:
                found.naive_escapes += _naive_read(work)
            for attempt in attempts:
                found.operations += 1
                try:
                    attempt()
                    found.succeeded += 1
                except FileRefused:
                    continue
    found.escapes += [f"read {content!r}" for content in read if content.startswith(SECRET)]
    found.escapes += [f"listed {name}" for name in names - {"secret", "moved", "made/"}]
    there = {path.name: path.read_bytes() for path in outside.iterdir()}
    if there != {"secret": SECRET, "only-there": b""}:
        found.escapes.append(f"changed {there}")
    return found


def _attempts(disk: Disk, read: set[bytes], names: set[str]) -> list[Callable[[], object]]:
    path, moved = read_path("/workspace/folder/secret"), read_path("/workspace/folder/moved")
    made, own = read_path("/workspace/folder/made/file"), read_path("/workspace/file")
    return [
        lambda: read.add(disk.read(path)),
        lambda: disk.change(path, lambda before: _noted(before, read) + b"x"),
        lambda: names.update(disk.names(path.parent)),
        lambda: disk.move(path, moved),
        lambda: disk.delete(moved),
        lambda: disk.change(made, lambda _: b""),
        lambda: disk.delete(made),
        lambda: read.add(disk.read(own)),
    ]


def _noted(before: bytes | None, read: set[bytes]) -> bytes:
    """Keeps the content that an edit saw, and gives it a length that stays small."""
    read.add(before or b"")
    return (before or b"")[:8]


def _naive_read(work: Path) -> bool:
    try:
        if (work / "folder").is_symlink():
            return False
        # Busy cores leave the attacker no moment between the two steps. This one is long enough for an exchange.
        time.sleep(MOMENT_S)
        return (work / "folder/secret").read_bytes() == SECRET
    except OSError:
        return False
