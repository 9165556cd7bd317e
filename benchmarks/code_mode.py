"""Ten tasks over three real MCP servers: all tools in the request, and `--mode code`. Counts tokens and trips.

Run: python -m benchmarks.code_mode FOLDER, where `make mcp-servers` has put the servers. The model is a script and
ideal: it knows which tools it needs, makes all calls at once that do not depend on each other, and makes no mistake.
Every call is made. Both ways must leave the same files and the same graph.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mcp.real_servers import Servers

from benchmarks.code_mode_tasks import Call, Task, tasks, write_world
from benchmarks.timing import Figure, show
from benchmarks.tokens import tokenizers
from mcp import Client
from toolwire import Rule, ToolRegistry, ToolServer

SHARE = 0.2
"""The most of the direct tools' tokens that code mode may take."""
SYSTEM = "You are an assistant with tools. Do what the user asks, and then answer in a sentence."
SERVERS = ("filesystem", "memory", "everything")
FOUND = 1
"""Tools that the model asks each search for. An ideal model has one search for each tool that it needs."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The tokens of one task."""

    context: int
    """Input of the last request: tools and messages."""
    billed: int
    """Input of all requests."""
    trips: int
    """Requests to the model."""


class Conversation:
    """One task's requests to the model, of a session with these tools."""

    def __init__(self, client: Client, tools: Sequence[Mapping[str, Any]], question: str) -> None:
        self._client, self._tools = client, _tokens(tools)
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question},
        ]
        self.inputs: list[int] = []
        """Tokens of each request."""

    async def calls(self, calls: Sequence[Call]) -> list[str]:
        """The model makes these calls at once. Returns their results as the model reads them."""
        self._request()
        written = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for number, (name, arguments) in enumerate(calls)
        ]
        self._messages.append({"role": "assistant", "tool_calls": written})
        results = await asyncio.gather(*(self._result(*call) for call in calls))
        for number, text in enumerate(results):
            self._messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
        return results

    def answer(self) -> Cost:
        """The model answers. Returns what the task cost."""
        self._request()
        return Cost(context=self.inputs[-1], billed=sum(self.inputs), trips=len(self.inputs))

    def _request(self) -> None:
        self.inputs.append(self._tools + _tokens(self._messages))

    async def _result(self, name: str, arguments: Mapping[str, Any]) -> str:
        result = await self._client.call_tool(name, dict(arguments))
        text = "\n".join(block.text for block in result.content if block.type == "text")
        assert not result.is_error, f"{name}: {text}"
        return text


def _tokens(value: object) -> int:
    return tokenizers()["o200k"](json.dumps(value, ensure_ascii=False))


async def direct(conversation: Conversation, task: Task) -> Cost:
    """Does the task by direct calls."""
    for calls in task.rounds:
        await conversation.calls(calls)
    return conversation.answer()


async def by_program(conversation: Conversation, task: Task) -> Cost:
    """Does the task by a search and a program."""
    found = await conversation.calls([("search_tools", {"query": query, "limit": FOUND}) for query in task.searches])
    lost = [name for name in task.needs if not any(f"def {name}(" in text for text in found)]
    assert not lost, f"{task.question}: {lost} not found"
    (said,) = await conversation.calls([("run_program", {"code": task.program})])
    assert task.says in said, f"{task.question}: {said!r}"
    return conversation.answer()


async def all_tasks(servers: Servers, folder: Path, mode: str) -> tuple[list[Cost], object]:
    """Does all tasks in a new world. Returns their costs, and what the world is then."""
    shutil.rmtree(folder, ignore_errors=True)
    memory = write_world(folder)
    registry = ToolRegistry(rules=[Rule(effect="auto", tool=f"{name}/*") for name in SERVERS])
    clients = (
        servers.stdio("filesystem", str(folder)),
        servers.stdio("memory", env={"MEMORY_FILE_PATH": str(memory)}),
        servers.stdio("everything"),
    )
    costs: list[Cost] = []
    with registry:
        for client in clients:
            await asyncio.to_thread(registry.register_mcp_client, client)
        async with Client(ToolServer(registry, "gateway", mode=mode).in_memory()) as client:  # type: ignore[arg-type]
            listed = (await client.list_tools()).tools
            tools = [_definition(tool.name, tool.description, tool.input_schema) for tool in listed]
            for task in tasks(str(folder)):
                conversation = Conversation(client, tools, task.question)
                costs.append(await (direct if mode == "tools" else by_program)(conversation, task))
    return costs, _world(folder, memory)


def _world(folder: Path, memory: Path) -> object:
    """Returns the files, and the lines of the graph in some order."""
    files = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
    graph = sorted(memory.read_text().splitlines())
    return files, graph


def _definition(name: str, description: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def figures(servers: Servers, folder: Path) -> list[Figure]:
    """The costs of code mode as a share of those of direct tools, over all tasks."""
    ours, left = asyncio.run(all_tasks(servers, folder, "code"))
    theirs, expected = asyncio.run(all_tasks(servers, folder, "tools"))
    assert left == expected, "the two ways left different files or graphs"
    print("  task                                      context            billed input       trips")
    for task, mine, other in zip(tasks(str(folder)), ours, theirs, strict=True):
        print(
            f"  {task.question[:40]:<40} {mine.context:>6} of {other.context:>6}  {mine.billed:>6} of {other.billed:>6}"
            f"  {mine.trips:>2} of {other.trips}"
        )
    found = [
        Figure(name=name, ratio=_sum(ours, field) / _sum(theirs, field), limit=limit)
        for name, field, limit in (
            ("context of the last request", "context", SHARE),
            ("billed input", "billed", SHARE),
            ("trips", "trips", 1.0),
        )
    ]
    worst = max(mine.trips / other.trips for mine, other in zip(ours, theirs, strict=True))
    return [*found, Figure(name="trips, the worst task", ratio=worst, limit=1.0)]


def _sum(costs: Sequence[Cost], field: str) -> int:
    return sum(getattr(cost, field) for cost in costs)


def main() -> int:
    """Prints all figures."""
    with tempfile.TemporaryDirectory() as folder:
        found = figures(Servers(Path(sys.argv[1])), Path(folder).resolve() / "work")
    show("Ten tasks over three MCP servers: code mode, against direct tools (o200k)", found)
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
