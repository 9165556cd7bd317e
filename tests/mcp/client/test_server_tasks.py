"""Calls that a server makes tasks of: they are awaited, ask their person, and are cancelled with the call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from tests.patience import until
from toolwire import CallContext, InputRequired, MCPClient, Question, Session, ToolCall, ToolRegistry, ToolServer
from toolwire.mcp.values.task_values import TaskParams
from toolwire.vocabulary.calls import Reply

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Behind:
    """A server that makes a task of each call that takes longer than a moment."""

    def __init__(self, folder: Path) -> None:
        self.goes_on = asyncio.Event()
        self.is_cancelled = False
        tools = ToolRegistry()
        for tool in (self.work, self.ask, self.fail):
            tools.register(tool)
        self.server = ToolServer(tools, "behind", store=f"sqlite:///{folder}/behind.db", task_s=0.05)

    async def work(self) -> str:
        """Works."""
        try:
            await asyncio.sleep(0.3)
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        return "done"

    async def ask(self, context: CallContext) -> Any:
        """Works, and asks."""
        if not context.answers:
            await asyncio.sleep(0.3)
            return InputRequired({name: Question("Who?", NAME) for name in ("one", "two")})
        return " ".join(str(said) for said in context.answers.values())

    async def fail(self) -> str:
        """Works, and fails."""
        await asyncio.sleep(0.3)
        raise OSError("the disk is full")


@pytest.fixture
def behind(tmp_path: Path) -> Behind:
    return Behind(tmp_path)


def registry_with(server: Any, **limits: Any) -> ToolRegistry:
    registry = ToolRegistry(rules=[{"tool": "behind/*", "effect": "auto"}])
    registry.register_mcp_client(MCPClient.in_memory("behind", server, **limits))
    return registry


def count_methods(server: Any) -> list[str]:
    """Returns a list to which the server adds the method of each request."""
    methods = list[str]()

    async def note(context: Any, call_next: Any) -> Any:
        methods.append(context.method)
        return await call_next(context)

    server.middleware.append(note)
    return methods


async def test_a_task_is_awaited_also_by_a_program(behind: Behind) -> None:
    server = behind.server.in_memory()
    methods, registry = count_methods(server), registry_with(server)
    behind.goes_on.set()
    registry.enable_code_execution()
    assert (await registry.ainvoke("behind/work")).data == "done"
    assert methods.count("tasks/get") >= 1
    ran = await registry.ainvoke("code_execution", {"code": "print(behind_work())"})
    assert ran.text == "done\n"
    failed = await registry.ainvoke("behind/fail")
    assert (failed.success, "the disk is full" in failed.text) == (False, True)
    registry.close()


async def test_a_task_asks_the_person_of_the_call(behind: Behind, tmp_path: Path) -> None:
    registry = registry_with(behind.server.in_memory())
    session = Session(registry, protocol="openai", store=f"sqlite:///{tmp_path}/own.db")
    turn = await session.turn(Reply(calls=(ToolCall("behind/ask", {}),)))
    assert turn.suspended is not None
    # In another session, as after a restart.
    later = Session(registry, protocol="openai", store=f"sqlite:///{tmp_path}/own.db")
    decisions = [
        {"request_id": request.id, "verdict": "answer", "answer": {"name": f"Ann {number}"}}
        for number, request in enumerate(turn.suspended.pending)
    ]
    assert len(decisions) == 2
    done = await later.resume(turn.run_id, decisions)
    assert done.suspended is None
    assert "Ann 0" in done.results[0].text
    assert "Ann 1" in done.results[0].text
    registry.close()


async def test_a_call_without_a_person_declines_and_the_task_hears_of_it(behind: Behind) -> None:
    server = behind.server.in_memory()
    methods, registry = count_methods(server), registry_with(server)
    result = await registry.ainvoke("behind/ask")
    assert result.text.count("declined") >= 2
    assert methods.count("tasks/update") == 1
    registry.close()


async def test_a_call_that_is_cancelled_or_takes_too_long_cancels_the_task(behind: Behind) -> None:
    registry = registry_with(behind.server.in_memory(), call_max_s=1.5)
    result = await registry.ainvoke("behind/work")
    assert (result.success, "cancelled" in result.text) == (False, True)
    await asyncio.to_thread(until, lambda: behind.is_cancelled)
    behind.is_cancelled = False
    server = behind.server.in_memory()
    methods = count_methods(server)
    other = registry_with(server)
    call = asyncio.create_task(other.ainvoke("behind/work"))
    await asyncio.to_thread(until, lambda: "tasks/get" in methods)
    call.cancel()
    await asyncio.to_thread(until, lambda: behind.is_cancelled)
    registry.close()
    other.close()


class Liar(Server[Any]):
    """A server whose tasks say what a test wants."""

    def __init__(self, task_id: str, *said: Any) -> None:
        async def tools(*_: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="work", input_schema={"type": "object"})])

        async def call(*_: Any) -> Any:
            return {"resultType": "task", "taskId": task_id, "status": "working", "ttlMs": None}

        super().__init__("liar", on_list_tools=tools, on_call_tool=call)
        self._said = list(said)
        self.add_request_handler("tasks/get", TaskParams, self._get)
        self.add_request_handler("tasks/update", TaskParams, self._other)
        self.add_request_handler("tasks/cancel", TaskParams, self._other)

    async def _get(self, *_: Any) -> Any:
        said = self._said.pop(0) if len(self._said) > 1 else self._said[0]
        if isinstance(said, Exception):
            raise said
        return {"pollIntervalMs": 0, **said}

    async def _other(self, *_: Any) -> Any:
        return {}


QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": NAME}}


@pytest.mark.parametrize(
    ("task_id", "said", "told"),
    [
        ("t" * 1_025, [{"status": "working"}], "an id of more than 1,024 characters"),
        ("t", [{"status": "completed"}], "is not a result of MCP"),
        ("t", [{"status": "completed", "result": {"content": 5}}], "is not a result of MCP"),
        ("t", [{"status": "failed", "error": {"code": -32603, "message": "no disk"}}], "no disk (-32603)"),
        ("t", [{"status": "failed", "error": "no disk"}], "failed"),
        ("t", [{"status": "cancelled", "statusMessage": "by night"}], "by night"),
        ("t", [{"status": "asleep"}], "was cancelled"),
        ("t", [{"status": "input_required", "inputRequests": 5}], "was cancelled"),
        ("t", [MCPError(-32602, "there is no such task")], "there is no such task"),
        (
            "t",
            [{"status": "input_required", "inputRequests": {str(n): QUESTION}} for n in range(12)],
            "asked for input 10 times",
        ),
    ],
)
async def test_a_server_that_lies_about_its_task_fails_the_call(task_id: str, said: list[Any], told: str) -> None:
    registry = registry_with(Liar(task_id, *said), call_max_s=3.0)
    result = await registry.ainvoke("behind/work")
    assert not result.success
    assert told in result.text
    registry.close()
