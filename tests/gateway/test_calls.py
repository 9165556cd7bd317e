"""Calls of the SDK's client, over each transport and in both eras."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import OVER_STDIO_TOO, Connect, Era, Transport
from tests.gateway.served_tools import EVERY_BLOCK, HARD_SCHEMA, note
from tests.gateway.test_asking_clients import told
from tests.patience import until

FAILURE = "toolwire/failure"


async def test_the_list_has_every_tool_with_its_schemas_as_they_were_written(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    names = ["add", "show", "fail", "count", "wait", "nap", "process", "die", "book", "pay", "files_hard"]
    # The command lets clients read on in long results.
    assert [name for name in tools if name != "read_result"] == names
    assert tools["files_hard"].input_schema == HARD_SCHEMA
    assert tools["add"].output_schema == {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    }
    assert tools["show"].output_schema is None


@OVER_STDIO_TOO
async def test_a_call_gives_its_text_and_its_structured_result(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
    assert isinstance(result, types.CallToolResult)
    assert (result.content, result.structured_content, result.is_error) == (
        [types.TextContent(text="3")],
        {"result": 3},
        False,
    )


async def test_blocks_of_every_kind_arrive(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("show", {})
    assert isinstance(result, types.CallToolResult)
    told = [block.model_dump(by_alias=True, exclude_none=True, mode="json") for block in result.content]
    assert told == [
        EVERY_BLOCK[0],
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "https://example.com/a.png", "name": "image"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        *EVERY_BLOCK[4:],
    ]


async def failed(connect: Connect, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    async with connect() as client:
        result = await client.call_tool(name, arguments)
    assert isinstance(result, types.CallToolResult)
    assert result.is_error
    assert isinstance(result.content[0], types.TextContent)
    return (result.meta or {})[FAILURE]["kind"], result.content[0].text.partition("\n")[0]


async def test_a_failing_tool_is_a_failed_result(connect: Connect) -> None:
    assert await failed(connect, "fail", {}) == ("tool_error", "OSError: the disk is full")


async def test_wrong_arguments_are_a_failed_result_that_says_what_to_mend(connect: Connect) -> None:
    assert await failed(connect, "add", {"a": 1}) == (
        "invalid_arguments",
        "The arguments of 'add' are wrong:",
    )


async def test_a_conditional_schema_is_enforced(connect: Connect) -> None:
    kind, _ = await failed(connect, "files_hard", {"kind": "b"})
    assert kind == "invalid_arguments"


async def test_an_unknown_tool_is_an_error_of_the_protocol(connect: Connect) -> None:
    async with connect() as client:
        for name in ["nope", "files/hard", "x" * 200, "a\nb", ""]:
            with pytest.raises(MCPError) as error:
                await client.call_tool(name, {})
            assert (error.value.code, "Internal" in error.value.message) == (types.INVALID_PARAMS, False)
        # The connection goes on.
        assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error


async def test_progress_arrives_while_the_call_runs(connect: Connect) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with connect() as client:
        result = await client.call_tool("count", {"upto": 3}, progress_callback=progress)
    assert told == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
    assert result.content == [types.TextContent(text="counted to 3")]


@OVER_STDIO_TOO
async def test_a_cancelled_call_stops_its_tool(connect: Connect, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with connect() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait", {"mark": str(mark)})
            await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
            tasks.cancel_scope.cancel()
        await asyncio.to_thread(until, Path(f"{mark}.cancelled").exists)
        assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error


@OVER_STDIO_TOO
async def test_calls_of_one_client_run_side_by_side(connect: Connect, tmp_path: Path) -> None:
    marks = [tmp_path / str(number) for number in range(4)]
    results = list[tuple[str, str]]()
    async with connect() as client, anyio.create_task_group() as tasks:

        async def call(mark: Path) -> None:
            results.append(told(await client.call_tool("nap", {"mark": str(mark)})))

        for mark in marks:
            tasks.start_soon(call, mark)
        for mark in marks:
            await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
        for mark in marks:
            note(f"{mark}.go", "")
    assert results == [("success", "rested")] * len(marks)


@OVER_STDIO_TOO
async def test_both_eras_promise_news_of_changed_tools(connect: Connect, era: Era, transport: Transport) -> None:
    async with connect() as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[era]
        assert client.server_capabilities.tools == types.ToolsCapability(list_changed=True)
