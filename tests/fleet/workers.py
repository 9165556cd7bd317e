"""`toolwire worker` in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


class WorkerProcess:
    """A worker that runs until it is told to end. What it says goes to a file."""

    def __init__(self, url: str, arguments: tuple[str, ...], environment: Mapping[str, str], said: Path) -> None:
        command = ["worker", "tests.fleet.app:session_for", "--store", url, *arguments]
        self._said = said
        with said.open("w") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "toolwire", *command],
                cwd=ROOT,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        """What it said so far."""
        return self._said.read_text()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def wait(self) -> tuple[int, str]:
        """Its exit code, and all that it said."""
        return self._process.wait(PATIENCE_S), self.said()
