"""A command on a real pseudo-terminal: standard output and standard error each have one of their own."""

from __future__ import annotations

import os
import subprocess
import termios
import unicodedata
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

from tests.cli.command_line import Ended, command, run_into
from tests.patience import PATIENCE_S

_CHUNK_BYTES = 65_536
_SIZE = {"COLUMNS": "200", "LINES": "50"}
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def process_on_terminal(*arguments: str, environment: Mapping[str, str] | None = None) -> Ended:
    """The command as a process whose output and errors are terminals; each text is the output to that terminal."""

    def run(stdout: int, stderr: int) -> int:
        process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **_SIZE, **(environment or {})},
        )
        try:
            return process.wait(PATIENCE_S)
        finally:
            process.kill()

    return _on_terminals(run)


def run_on_terminal(*arguments: str, columns: int = 200) -> Ended:
    """The same in this process, on terminals of this width."""

    def run(stdout: int, stderr: int) -> int:
        with (
            patch.dict(os.environ, {**_SIZE, "COLUMNS": str(columns)}),
            open(stdout, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as results,
            open(stderr, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as errors,
        ):
            return run_into(results, errors, *arguments)

    return _on_terminals(run)


def _on_terminals(run: Callable[[int, int], int]) -> Ended:
    with ThreadPoolExecutor(2) as readers:
        (screen, stdout), (errors, stderr) = _terminal(), _terminal()
        sent = [readers.submit(_all_of, screen), readers.submit(_all_of, errors)]
        try:
            code = run(stdout, stderr)
        finally:
            os.close(stdout)
            os.close(stderr)
        texts = [each.result(PATIENCE_S).decode("utf-8") for each in sent]
    return Ended(code=code, stdout=texts[0], stderr=texts[1])


def raw_in(text: str) -> set[str]:
    """The characters that a terminal obeys, or that a person cannot see; line ends and tabs are ordinary."""
    return {character for character in text if unicodedata.category(character) in _UNSEEN} - {"\n", "\t"}


def _terminal() -> tuple[int, int]:
    """Both ends of a terminal that sends on each byte as it was written."""
    screen, program = os.openpty()
    attributes = termios.tcgetattr(program)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(program, termios.TCSANOW, attributes)
    return screen, program


def _all_of(screen: int) -> bytes:
    found = bytearray()
    try:
        while part := os.read(screen, _CHUNK_BYTES):
            found += part
    except OSError:
        # Linux: no process has the terminal open any more.
        pass
    finally:
        os.close(screen)
    return bytes(found)
