"""`toolwire worker` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.fleet.quick import VARIABLE, Constants
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[2]
APP = "tests.fleet.app:session_for"
HOST = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Gives a process ids of its own, so that a worker on it is on another host for those beside it."""


class WorkerProcess:
    """A worker that runs until it is told to end. What it says goes to a file."""

    def __init__(
        self,
        url: str,
        arguments: tuple[str, ...],
        environment: Mapping[str, str],
        said: Path,
        *,
        app: str = APP,
        is_host: bool = False,
        constants: Constants | None = None,
    ) -> None:
        """`is_host`: it is on a host of its own. `constants`: other constants of the fleet than its own."""
        module = "toolwire" if constants is None else "tests.fleet.quick"
        command = [sys.executable, "-m", module, "worker", app, "--store", url, *arguments]
        self._said = said
        self._is_host = is_host
        with said.open("w") as file:
            self._process = subprocess.Popen(
                [*HOST, *command] if is_host else command,
                cwd=ROOT,
                env={**environment, VARIABLE: json.dumps(constants)},
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        """What it said so far."""
        return self._said.read_text()

    def until_it_works(self) -> None:
        """Waits until it takes jobs."""
        until(lambda: "working" in self.said() or not self.is_alive)

    @property
    def process_id(self) -> int:
        """The number of the worker itself, on this host."""
        number = self._process.pid
        if self._is_host:
            number = int(Path(f"/proc/{number}/task/{number}/children").read_text())
        return number

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process_id, number)

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def wait(self) -> tuple[int, str]:
        """Its exit code, and all that it said."""
        return self._process.wait(PATIENCE_S), self.said()
