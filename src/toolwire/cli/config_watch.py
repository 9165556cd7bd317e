"""Reads a configuration of MCP servers again when its file changes, and on SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from toolwire.cli.output import Output

if TYPE_CHECKING:
    from toolwire.types import McpServerProblem

LOOK_S = 1.0
"""Seconds between two looks at the file. A person who has just saved it expects the change at once."""


Update = Callable[[], "list[McpServerProblem]"]


def watch_config(config: Path, output: Output) -> Callable[[Update], None]:
    """Notices each change of the file and each SIGHUP from now on. Call it before the file is read.

    The function that it returns starts a thread, which calls `update` after each of them as long as the process runs.
    A file that cannot be used leaves all as it was, and a line on stderr says so.
    """
    told = threading.Event()
    first = _stamp(config)
    signal.signal(signal.SIGHUP, lambda _number, _frame: told.set())

    def run(update: Update) -> None:
        seen = first
        while True:
            is_told = told.wait(LOOK_S)
            told.clear()
            found = _stamp(config)
            if found == seen and not is_told:
                continue
            seen = found
            try:
                off = sum(problem.is_off for problem in update())
            except Exception as error:  # noqa: BLE001 - the next change must be noticed too
                output.say(f"{error}; the servers stay as they were")
            else:
                output.say(f"the servers are those of {config} now" + (f"; {off} cannot be used" if off else ""))

    return lambda update: threading.Thread(target=run, args=(update,), name="toolwire-config", daemon=True).start()


def _stamp(path: Path) -> tuple[int, int] | None:
    """Returns what tells one version of the file from the next; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
