"""The cost of a confined read, against a plain open of the resolved path."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.timing import Figure, medians
from toolwire.builtin.files.beneath import open_by_kernel, open_by_steps
from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.paths import read_path

DEPTH = 3
"""Folders above the file: a usual depth of a source file."""


def figures() -> list[Figure]:
    """Ratios to `realpath`, the check that the path lies in the folder, and `open`. All read 2 kB."""
    with tempfile.TemporaryDirectory() as folder:
        below = "/".join(f"folder{number}" for number in range(DEPTH))
        (Path(folder) / below).mkdir(parents=True)
        (Path(folder) / below / "file.txt").write_text("x" * 2_000)
        root, whole = os.path.realpath(folder), f"{folder}/{below}/file.txt"
        path = read_path(f"/workspace/{below}/file.txt")
        by_kernel = Disk({"workspace": folder}, open_below=open_by_kernel)
        by_steps = Disk({"workspace": folder}, open_below=open_by_steps)
        times = medians(
            {
                "floor": lambda: _plain(whole, root),
                "openat2": lambda: by_kernel.read(path),
                "steps": lambda: by_steps.read(path),
            },
            number=500,
        )
        by_kernel.close()
        by_steps.close()
    return [
        Figure(name="a confined read, by openat2", ratio=times["openat2"] / times["floor"], limit=1.5),
        Figure(name="the same without openat2, folder by folder", ratio=times["steps"] / times["floor"], limit=None),
    ]


def _plain(path: str, root: str) -> bytes:
    """The reference: resolve the path, compare its start, and open it. A symbolic link can lead it outside."""
    resolved = os.path.realpath(path)
    if not resolved.startswith(f"{root}/"):
        raise PermissionError(path)
    with open(resolved, "rb") as file:
        return file.read()
