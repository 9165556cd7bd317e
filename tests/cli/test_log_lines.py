"""The lines that commands write for log records."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from toolwire.cli.main import _OutputHandler


class Said:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.parametrize(
    ("logger", "message", "line"),
    [
        ("toolwire.mcp.fs", "the disk is full", "fs: WARNING: the disk is full"),
        ("toolwire.mcp.fs", "the MCP server 'fs': it is gone", "WARNING: the MCP server 'fs': it is gone"),
        ("toolwire.registry", "a tool is off", "WARNING: a tool is off"),
    ],
)
def test_a_line_of_a_servers_log_names_the_server(logger: str, message: str, line: str) -> None:
    said: Any = Said()
    handler = _OutputHandler(said, "%(levelname)s: %(message)s")
    handler.emit(logging.LogRecord(logger, logging.WARNING, "", 0, message, None, None))
    assert said.lines == [line]
