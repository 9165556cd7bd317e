"""Notices that another process has accepted tools, as `toolwire mcp accept` does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

LOOK_S = 1.0
"""Seconds between two looks at a file of pins. A person who has just accepted a tool expects it at once."""

_LOG = logging.getLogger("toolwire.registry")


def watch_pins(path: Path, is_wanted: Callable[[], bool], changed: Callable[[], None]) -> None:
    """Calls `changed` in a thread of its own whenever the file is another than at this call, until it is not wanted."""
    # The thread may start late: a change made meanwhile counts too.
    first = _stamp(path)

    def run() -> None:
        seen = told = first
        while is_wanted():
            time.sleep(LOOK_S)
            found = _stamp(path)
            if found == seen:
                continue
            try:
                changed()
                seen = found
            except Exception:  # noqa: BLE001 - the server may be back at the next look
                if found != told:
                    _LOG.exception("the accepted tools in %r could not be taken over yet", str(path))
                told = found

    threading.Thread(target=run, name="toolwire-pins", daemon=True).start()


def _stamp(path: Path) -> tuple[int, int] | None:
    """Returns what tells one version of the file from the next; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
