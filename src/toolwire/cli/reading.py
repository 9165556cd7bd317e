"""Reads a file, or standard input for `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from toolwire.cli.exit_codes import ExitCode, Stop

READ_LIMIT_BYTES = 16_777_216
"""Maximum number of bytes read from a file. No reply or arguments need more, and a device may be endless."""


def read_bytes(source: str, *, what: str) -> bytes:
    """Returns the content of a file, or of standard input for `-`. `what` names the content in messages.

    Raises:
        Stop: The file cannot be read, or is longer than `READ_LIMIT_BYTES`.
    """
    try:
        content = _read_source(source)
    except OSError as error:
        raise Stop(ExitCode.WRONG_USAGE, f"{what} {_source_name(source)} cannot be read: {error.strerror}") from error
    if len(content) > READ_LIMIT_BYTES:
        raise Stop(ExitCode.WRONG_USAGE, f"{what} {_source_name(source)} is longer than {READ_LIMIT_BYTES:,} bytes")
    return content


def read_text(source: str, *, what: str) -> str:
    """Returns the same content decoded as UTF-8.

    Raises:
        Stop: The file cannot be read, is too long, or is not UTF-8.
    """
    content = read_bytes(source, what=what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{what} {_source_name(source)} is not UTF-8: byte {error.start} is {content[error.start]:#04x}"
        raise Stop(ExitCode.WRONG_USAGE, message) from error


def _read_source(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read(READ_LIMIT_BYTES + 1)
    with Path(source).open("rb") as file:
        return file.read(READ_LIMIT_BYTES + 1)


def _source_name(source: str) -> str:
    return "on standard input" if source == "-" else source
