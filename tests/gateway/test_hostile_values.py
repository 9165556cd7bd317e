"""Values that UTF-8 and JSON lack, over each transport: they reach the client in a form it can read."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters
from tests.architecture.source import ROOT
from tests.gateway.conftest import Era
from tests.gateway.hostile_tools import MENDED, new_registry
from tests.gateway.serving import serving
from toolwire import ToolServer

TOOLS = str(ROOT / "tests/gateway/hostile_tools.py")


@pytest.fixture(params=["memory", "stdio", "http"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def connected(kind: str, folder: Path, era: Era, **options: Any) -> AsyncGenerator[Client]:
    if kind == "stdio":
        arguments = ["-m", "toolwire", "serve", "--tools", TOOLS]
        server: Any = stdio_client(StdioServerParameters(command=sys.executable, args=arguments, cwd=str(folder)))
        async with Client(server, mode=era, **options) as client:
            yield client
        return
    served = ToolServer(new_registry(), "tests", store=f"sqlite:///{folder}/runs.db")
    if kind == "memory":
        async with Client(served.in_memory(), mode=era, **options) as client:
            yield client
        return
    with serving(served.asgi()) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=era, **options) as client:
            yield client


async def test_each_result_can_be_read_and_the_connection_goes_on(kind: str, era: Era, tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected(kind, tmp_path, era) as client:

        async def call(name: str) -> types.CallToolResult:
            result = await client.call_tool(name, {}, progress_callback=note)
            assert isinstance(result, types.CallToolResult)
            return result

        assert (await call("names")).structured_content == {"result": ["a.txt", MENDED]}
        assert (await call("members")).structured_content == {MENDED: MENDED, "n": "NaN"}
        for name in ("words", "picture"):
            result = await call(name)
            assert (result.content, result.structured_content) == ([types.TextContent(text=MENDED)], None)
        assert (await call("numbers")).structured_content is None
        resource, link = [one.model_dump(exclude_none=True) for one in (await call("blocks")).content]
        uri = f"file:///{MENDED}"
        assert resource["resource"] == {"uri": uri, "text": MENDED, "mime_type": MENDED}
        assert [link[name] for name in ("uri", "name", "title", "description")] == [uri, MENDED, MENDED, MENDED]
        failed = await call("fail")
        assert isinstance(failed.content[0], types.TextContent)
        assert (failed.is_error, failed.content[0].text.partition("\n")[0]) == (True, f"OSError: {MENDED}")
        assert ((await call("meta")).meta or {})[MENDED] == [MENDED, "Infinity"]
        assert (await call("report")).content == [types.TextContent(text="done")]
        assert told == [(1, None, MENDED)]
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed["titled"].input_schema["properties"]["a"]["default"] == MENDED


async def test_a_question_can_be_read_and_answered(kind: str, era: Era, tmp_path: Path) -> None:
    asked: list[types.ElicitRequestParams] = []

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"answer": "a"})

    async with connected(kind, tmp_path, era, elicitation_callback=answer) as client:
        result = await client.call_tool("ask", {})
    assert (result.is_error, result.content) == (False, [types.TextContent(text="a")])
    assert isinstance(asked[0], types.ElicitRequestFormParams)
    assert asked[0].requested_schema["properties"]["answer"]["enum"] == ["a", MENDED]
