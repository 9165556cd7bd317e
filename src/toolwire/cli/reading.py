"""Reading what a command is given: a file, or standard input for `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from toolwire.cli.exit_codes import ExitCode, Stop

READ_LIMIT_BYTES = 16_777_216
"""Bytes that are read of any file: far more than any reply or arguments may have, and no endless device."""


def read_bytes(source: str, *, what: str) -> bytes:
    """The content of a file, or of standard input for `-`; `what` names it in messages.

    Raises:
        Stop: it cannot be read, or is longer than `READ_LIMIT_BYTES`.
    """
    try:
        content = _read(source)
    except OSError as error:
        raise Stop(ExitCode.WRONG_USAGE, f"{what} {_named(source)} cannot be read: {error.strerror}") from error
    if len(content) > READ_LIMIT_BYTES:
        raise Stop(ExitCode.WRONG_USAGE, f"{what} {_named(source)} is longer than {READ_LIMIT_BYTES:,} bytes")
    return content


def read_text(source: str, *, what: str) -> str:
    """The same as text in UTF-8.

    Raises:
        Stop: as `read_bytes`, or it is not UTF-8.
    """
    content = read_bytes(source, what=what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{what} {_named(source)} is not UTF-8: byte {error.start} is {content[error.start]:#04x}"
        raise Stop(ExitCode.WRONG_USAGE, message) from error


def _read(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read(READ_LIMIT_BYTES + 1)
    with Path(source).open("rb") as file:
        return file.read(READ_LIMIT_BYTES + 1)


def _named(source: str) -> str:
    return "on standard input" if source == "-" else source
