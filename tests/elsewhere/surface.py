"""Uses what is public on another system, and prints what it saw as JSON: `python -m tests.elsewhere.surface SYSTEM`."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.elsewhere.pretended import pretend

HERE = Path.cwd()
SYSTEM: Any = sys.argv[1]
PUBLIC = ("approvals", "doctor", "log", "middleware", "protocols", "seeds", "testing", "tools", "types")
NOT_IMPORTED = (".__main__", ".migrations.env", ".sandbox.child", ".web.page_process")
"""Modules that start something, and those of processes that Linux confines."""

TOOLS = '''
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
'''
SERVER = """
import sys
from mcp.server import MCPServer
server = MCPServer("sums")
@server.tool()
def total(numbers: list[int]) -> int:
    "Adds numbers."
    return sum(numbers)
server.run("stdio")
"""


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def public_names() -> Any:
    """The public names that cannot be had."""
    import toolwire

    modules = [toolwire, *(importlib.import_module(f"toolwire.{name}") for name in PUBLIC)]
    return [f"{module.__name__}.{name}" for module in modules for name in module.__all__ if not hasattr(module, name)]


def every_module() -> Any:
    """The modules of the package that cannot be imported."""
    import pkgutil

    import toolwire

    failed: list[str] = []
    for found in pkgutil.walk_packages(toolwire.__path__, "toolwire."):
        if not any(part in found.name for part in NOT_IMPORTED):
            try:
                importlib.import_module(found.name)
            except Exception as error:
                failed.append(f"{found.name}: {error!r}")
    return failed


def sessions() -> Any:
    from toolwire import Session

    as_json = Session([add], protocol="json").run_turn('{"name": "add", "arguments": {"a": 1, "b": 2}}')
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 3, "b": 4}'}}
    reply = {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}]}
    native = Session([add], protocol="openai").run_turn(reply)
    return [as_json.results[0].data, native.results[0].data]


def programs() -> Any:
    """What a program that calls a tool gives, and what held it."""
    from toolwire import ToolRegistry

    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    registry.register(add)
    result = registry.run_program("class Own(Exception): ...\ntry:\n    raise Own\nexcept Own:\n    print(add(1, 2))")
    return [result.stdout, result.isolation.level]


def store_and_approval() -> Any:
    from toolwire import Session, ToolSpec

    tool = ToolSpec.from_function(add, permission="confirm")
    ask = "<tool_call><name>add</name><params><a>5</a><b>6</b></params></tool_call>"

    def session() -> Session:
        return Session([tool], protocol="xml", store="sqlite:///runs.db")

    waiting = session().run_turn(ask).suspended
    assert waiting is not None
    decision = {"request_id": waiting.pending[0].id, "verdict": "approve"}
    return session().run_resume(waiting.run_id, [decision]).results[0].data


def raw_files() -> Any:
    from toolwire import ToolRegistry
    from toolwire.tools import insert_text_file, view_text_file, write_text_file

    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    for tool in (view_text_file, write_text_file, insert_text_file):
        registry.register(tool)
    path = str(HERE / "notes.txt")
    registry.invoke("write_text_file", {"file_path": path, "content": "one\n"})
    registry.invoke("insert_text_file", {"file_path": path, "content": "two", "line_number": 2})
    return registry.invoke("view_text_file", {"file_path": path}).data.partition("\n")[2]


def folder_tools() -> Any:
    """The tools of a folder: what a model reads of its work there, or why there are none."""
    from toolwire import ConfigurationError, ToolRegistry
    from toolwire.tools import workspace_tools

    (HERE / "work").mkdir()
    (HERE / "work/link").symlink_to("../tools.py")
    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    try:
        for tool in workspace_tools(HERE / "work"):
            registry.register(tool)
    except ConfigurationError as error:
        return str(error)
    steps: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "/workspace/deep/a.txt", "content": "one\n"}),
        ("edit_file", {"path": "/workspace/deep/a.txt", "edits": [{"oldText": "one", "newText": "two"}]}),
        ("move_file", {"path": "/workspace/deep/a.txt", "to": "/workspace/b.txt"}),
        ("read_text_file", {"path": "/workspace/b.txt"}),
        ("search_files", {"text": "two"}),
        ("get_file_info", {"path": "/workspace/b.txt"}),
        ("read_text_file", {"path": "/workspace/link"}),
        ("move_file", {"path": "/workspace/b.txt", "to": "/workspace/b.txt"}),
        ("delete_file", {"path": "/workspace/b.txt"}),
        ("list_directory", {"path": "/workspace"}),
    ]
    results = [(name, registry.invoke(name, arguments)) for name, arguments in steps]
    return [
        result.error or (result.data["kind"] if name == "get_file_info" else result.data) for name, result in results
    ]


def mcp_in_memory() -> Any:
    from toolwire import MCPClient, ToolRegistry, ToolServer

    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    server = ToolServer([add], "sums")
    registry.register_mcp_client(MCPClient.in_memory("sums", server.in_memory()), pins=HERE / "pins.json")
    result = registry.invoke("sums/add", {"a": 1, "b": 1}).data
    registry.close()
    return result


def mcp_process() -> Any:
    from toolwire import MCPClient, ToolRegistry

    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    (HERE / "server.py").write_text(SERVER)
    registry.register_mcp_client(MCPClient.stdio("sums", sys.executable, [str(HERE / "server.py")]))
    result = registry.invoke("sums/total", {"numbers": [1, 2, 3]}).data
    registry.close()
    return result


def mcp_served() -> Any:
    """The command `serve` on that system, at a port and to the process that starts it."""
    from toolwire import MCPClient, ToolRegistry

    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    command = [*COMMAND, "serve", "--tools", "tools.py"]
    registry.register_mcp_client(
        MCPClient.stdio("pipe", command[0], command[1:], env={"PYTHONPATH": os.environ["PYTHONPATH"]})
    )
    with subprocess.Popen([*command, "--http", "0"], stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr is not None
        address = next(word for line in served.stderr for word in line.split() if word.startswith("http://"))
        registry.register_mcp_client(MCPClient.http("port", address))
        results = [registry.invoke(f"{name}/add", {"a": 2, "b": 2}).data for name in ("pipe", "port")]
        registry.close()
        served.terminate()
    return results


def commands() -> Any:
    from tests.cli.command_line import run_here

    (HERE / "reply.json").write_text('{"name": "add", "arguments": {"a": 1, "b": 2}}')
    wanted = (
        "tools --tools tools.py",
        "prompt --tools tools.py --protocol json",
        "call add a=1 b=2 --tools tools.py",
        "run reply.json --tools tools.py --protocol json",
        "log --store sqlite:///runs.db",
        "log verify --store sqlite:///runs.db",
        "approvals list --store sqlite:///runs.db",
        "mcp list --pins pins.json",
        "doctor",
    )
    return {line: [(ended := run_here(*line.split())).code, ended.stderr] for line in wanted}


def tokens() -> Any:
    from toolwire.mcp.oauth.tokens import StoredLogin, TokenFile

    file = TokenFile(HERE / "tokens.json")
    file.save("https://example.com", StoredLogin(tokens={"access_token": "t"}))

    async def renew() -> str | None:
        async with file.renewing("https://example.com"):
            return file.read("https://example.com").access_token

    return asyncio.run(renew())


def what_needs_linux() -> Any:
    """What each thing says when it is made."""
    import toolwire
    from toolwire import Session, ToolRegistry
    from toolwire.tools import WebFetchTool

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    for log in ("toolwire.sandbox", "toolwire.tools"):
        logging.getLogger(log).addHandler(handler)
    for _ in range(2):
        Session([add])
    ToolRegistry().enable_code_execution()
    WebFetchTool()
    try:
        ToolRegistry().run_program("1", runner="kernel")
    except toolwire.ToolwireError as error:
        said.append(f"{type(error).__name__}: {error}")
    return said


PARTS: tuple[Callable[[], Any], ...] = (
    public_names,
    every_module,
    sessions,
    programs,
    store_and_approval,
    raw_files,
    folder_tools,
    mcp_in_memory,
    mcp_process,
    mcp_served,
    tokens,
    commands,
    what_needs_linux,
)

if __name__ == "__main__":
    import select
    import signal
    import socket
    import time

    assert all((select, signal, socket, time))
    (HERE / "tools.py").write_text(TOOLS)
    (HERE / "bin").mkdir()
    COMMAND = [sys.executable, "-m", "tests.elsewhere.command", SYSTEM, str(HERE / "bin")]
    pretend(SYSTEM, HERE / "bin")
    saw: dict[str, Any] = {}
    for part in PARTS:
        try:
            saw[part.__name__] = part()
        except Exception as error:
            logging.getLogger().exception(part.__name__)
            saw[part.__name__] = f"{type(error).__name__}: {error}"
    (HERE / "saw.json").write_text(json.dumps(saw))
