"""The lines that commands write for log records."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import run_process
from toolwire.cli.main import _OutputHandler

PAGE = """
from http.server import BaseHTTPRequestHandler, HTTPServer

class Page(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_): pass

server = HTTPServer(("127.0.0.1", 0), Page)
print(server.server_port, flush=True)
server.serve_forever()
"""
"""A web page in the place of a server."""


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


def test_a_line_of_the_sdk_names_the_server_of_its_thread_and_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(PAGE)
    web = subprocess.Popen([sys.executable, "page.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert web.stdout is not None
    port = web.stdout.readline().strip()
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"page": {"url": f"http://127.0.0.1:{port}/mcp"}}}))
    try:
        ended = run_process("mcp", "doctor", "--config", str(tmp_path / "mcp.json"))
    finally:
        web.kill()
        web.communicate()
    # The SDK logs it for each request, and the doctor tries an older protocol too.
    assert ended.stderr == "page: ERROR: Unexpected content type: text/html\n"
