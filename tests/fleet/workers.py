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
    """A worker that runs until it is told to end."""

    def __init__(self, url: str, arguments: tuple[str, ...], environment: Mapping[str, str]) -> None:
        command = ["worker", "tests.fleet.app:session_for", "--store", url, *arguments]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "toolwire", *command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def wait(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        said, _ = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, said
