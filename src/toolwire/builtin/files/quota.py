"""The limit of all writes of one run: a model in a loop must not fill the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from toolwire.builtin.files.paths import FilePath, FileRefused

RUN_LIMIT_BYTES = 1024 * 1024 * 1024
"""Maximum bytes that one service writes in total. A model in a loop must not fill the disk."""
RUN_LIMIT_FILES = 10_000
"""Maximum writes and new folders of one service. A model in a loop must not use up the inodes."""

Count = Callable[[int, int], None]
"""Counts bytes and files of an operation before they are written. A folder counts as a file."""


class WriteQuota:
    """Counts the bytes and files of one run. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = self._files = 0

    @contextmanager
    def operation(self, path: FilePath) -> Generator[Count]:
        """Gives the function that counts for one operation. If the operation fails, it has counted nothing.

        The function raises `FileRefused` if the run may not write so much.
        """
        counted_bytes = counted_files = 0

        def count(size: int, files: int) -> None:
            nonlocal counted_bytes, counted_files
            with self._lock:
                if self._bytes + size > RUN_LIMIT_BYTES or self._files + files > RUN_LIMIT_FILES:
                    raise FileRefused(
                        f"{path} was not written: a run may write {RUN_LIMIT_BYTES:,} bytes, and "
                        f"{RUN_LIMIT_FILES:,} files and new folders"
                    )
                self._bytes += size
                self._files += files
            counted_bytes += size
            counted_files += files

        try:
            yield count
        except BaseException:
            with self._lock:
                self._bytes -= counted_bytes
                self._files -= counted_files
            raise
