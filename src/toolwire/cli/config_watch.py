"""Reads a configuration of MCP servers again when its file changes, and on SIGHUP."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import toolwire
from toolwire.cli.output import Output

if TYPE_CHECKING:
    from toolwire.types import McpServerProblem

LOOK_S = 1.0
"""Seconds between two looks at the file. A person who has just saved it expects the change at once."""

_LOG = logging.getLogger("toolwire.cli")

Update = Callable[[], "list[McpServerProblem]"]


def watch_config(config: Path, output: Output) -> Callable[[Update], None]:
    """Notices each change of the file and each SIGHUP from now on. Call it before the file is read.

    The function that it returns starts a thread, which calls `update` after each of them as long as the process runs.
    A file that cannot be used leaves all as it was, and a line on stderr says so.
    """
    told = threading.Event()
    first = _content(config)
    signal.signal(signal.SIGHUP, lambda _number, _frame: told.set())

    def run(update: Update) -> None:
        seen = used = first
        while True:
            is_told = told.wait(LOOK_S)
            told.clear()
            found = _content(config)
            # Half of a TOML file may be valid, and lack what takes rights away: a change counts at its second look.
            is_settled, seen = found == seen, found
            if not is_told and (found == used or not is_settled):
                continue
            used = found
            try:
                off = sum(problem.is_off for problem in update())
            except toolwire.ToolwireError as error:
                output.say(f"{error}; the servers stay as they were")
            except Exception:  # noqa: BLE001 - the log has a defect's traceback, and the next change is noticed too
                _LOG.exception("%s was read, and not all of its servers were taken over", config)
            else:
                output.say(f"the servers are those of {config} now" + (f"; {off} cannot be used" if off else ""))

    return lambda update: threading.Thread(target=run, args=(update,), name="toolwire-config", daemon=True).start()


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
