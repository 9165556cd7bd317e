"""Reads files of a running server again when they change, and on SIGHUP."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import toolwire
from toolwire.cli.output import Output
from toolwire.vocabulary.machine.system import call_on_hangup

LOOK_S = 1.0
"""Seconds between two looks at a file. A person who has just saved it expects the change at once."""

_LOG = logging.getLogger("toolwire.cli")

Update = Callable[[], str]
"""Takes a file over, and returns the line that says so."""


class ConfigWatch:
    """The files of one process that are read again."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._told: list[threading.Event] = []

    def follow(self, file: Path, kept: str) -> Callable[[Update], None]:
        """Notices each change of the file and each SIGHUP from now on. Call it before the file is read.

        The function that it returns starts a thread, which calls `update` after each of them as long as the process
        runs. A file that cannot be used leaves all as it was; a line on stderr says so, and ends with `kept`.
        """
        told, first = threading.Event(), _read_content(file)
        self._told.append(told)
        call_on_hangup(lambda: [one.set() for one in self._told])

        def run(update: Update) -> None:
            seen = used = first
            while True:
                is_told = told.wait(LOOK_S)
                told.clear()
                found = _read_content(file)
                # Half of a TOML file may be valid, and lack what takes rights away: a change counts at its second look.
                is_settled, seen = found == seen, found
                if not is_told and (found == used or not is_settled):
                    continue
                used = found
                try:
                    self._output.say(update())
                except toolwire.ToolwireError as error:
                    self._output.say(f"{error}; {kept}")
                except Exception:  # noqa: BLE001 - the log has a defect's traceback, and the next change is noticed too
                    _LOG.exception("%s was read, and not all of it was taken over", file)

        return lambda update: threading.Thread(target=run, args=(update,), name="toolwire-config", daemon=True).start()


def _read_content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
