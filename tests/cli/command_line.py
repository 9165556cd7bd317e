"""Running the command line in this process, or as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

from tests.patience import PATIENCE_S
from toolwire.cli.main import execute
from toolwire.cli.output import Output

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


def run_here(*arguments: str, stdin: bytes = b"") -> Ended:
    """The command in this process, leaving `sys` as it was."""
    stdout, stderr = io.StringIO(), io.StringIO()
    code = run_into(stdout, stderr, *arguments, stdin=stdin)
    return Ended(code=code, stdout=stdout.getvalue(), stderr=stderr.getvalue())


def run_into(stdout: TextIO, stderr: TextIO, *arguments: str, stdin: bytes = b"") -> int:
    """The command in this process, with these streams; its exit code."""
    path, modules = list(sys.path), set(sys.modules)
    with (
        redirect_stdout(stdout),
        redirect_stderr(stderr),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
    ):
        output = Output()
        try:
            return execute(arguments, output)
        finally:
            output.give_back()
            sys.path[:] = path
            _forget(set(sys.modules) - modules)


def run_process(
    *arguments: str, stdin: bytes = b"", cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Ended:
    """The command as `python -m toolwire`."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        timeout=PATIENCE_S,
        check=False,
    )
    return Ended(code=done.returncode, stdout=done.stdout.decode(), stderr=done.stderr.decode())


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command while it runs; it is ended with the block, however a test leaves it."""
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def command(*arguments: str) -> list[str]:
    """The command's words."""
    return [sys.executable, "-m", "toolwire", *arguments]


def _forget(names: set[str]) -> None:
    """Removes modules that a command loaded from files of a test; installed modules stay."""
    installed = (sys.prefix, sys.base_prefix, str(ROOT / "src"))
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and not file.startswith(installed):
            del sys.modules[name]
