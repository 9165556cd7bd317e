"""Calls of real servers, behind each transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.mcp.client.conftest import Connect, Started
from tests.patience import PATIENCE_S, until
from toolwire import MCPClient, Session, Toolkit, ToolRegistry
from toolwire.definition.tool import Tool

Registered = Callable[..., tuple[ToolRegistry, Started]]


@pytest.fixture
def registered(connect: Connect) -> Registered:
    def register(**limits: float) -> tuple[ToolRegistry, Started]:
        server, registry = connect(**limits), ToolRegistry()
        registry.register_mcp_client(server.client, permission="auto")
        return registry, server

    return register


@pytest.mark.requirement("toolkit.mcp.lists-tools", "toolkit.register.mcp-batch", "toolkit.mcp.callable-function")
def test_the_tools_of_a_server_have_its_name_before_theirs(registered: Registered) -> None:
    registry, _ = registered()
    assert [tool.name for tool in registry.list_tools()][:2] == ["add", "fail"]
    assert list(registry.tool_library)[:2] == ["local/add", "local/fail"]


def test_a_call_gives_structured_data_and_blocks(registered: Registered) -> None:
    registry, _ = registered()
    result = registry.invoke("local/add", {"a": 1, "b": 2})
    assert (result.data, result.text) == ({"sum": 3}, "3")


def test_a_failing_tool_is_a_failed_call(registered: Registered) -> None:
    registry, _ = registered()
    result = registry.invoke("local/fail")
    assert result.failure is not None
    assert (result.failure.kind, result.error) == ("tool_error", "the disk is full")


def test_wrong_arguments_never_reach_the_server(registered: Registered) -> None:
    registry, server = registered()
    result = registry.invoke("local/add", {"a": "one", "b": 2})
    assert result.failure is not None
    assert (result.failure.kind, server.calls) == ("invalid_arguments", [])


async def test_many_calls_of_one_loop_are_under_way_at_once(registered: Registered) -> None:
    registry, _ = await asyncio.to_thread(registered)
    results = await asyncio.gather(*(registry.ainvoke("local/add", {"a": n, "b": 1}) for n in range(20)))
    assert [result.data for result in results] == [{"sum": n + 1} for n in range(20)]


def test_a_program_calls_the_tool_by_one_name(registered: Registered) -> None:
    registry, _ = registered()
    result = registry.run_program("print([local_add(a=n, b=1)['sum'] for n in range(3)])")
    assert (result.stdout, result.error) == ("[1, 2, 3]\n", None)


def test_a_model_s_reply_calls_the_tool(registered: Registered) -> None:
    registry, _ = registered()
    session = Session(registry, protocol="json")
    turn = session.run_turn('{"name": "local/add", "arguments": {"a": 2, "b": 2}}')
    assert [result.data for result in turn.results] == [{"sum": 4}]


def test_a_late_call_is_unknown_and_the_server_is_told_to_stop(registered: Registered) -> None:
    registry, server = registered(call_s=0.5)
    result = registry.invoke("local/wait")
    assert result.failure is not None
    assert result.failure.kind == "unknown_outcome"
    until(lambda: "cancelled wait" in server.calls)
    assert registry.invoke("local/add", {"a": 1, "b": 1}).data == {"sum": 2}


async def test_a_cancelled_call_is_cancelled_at_the_server(registered: Registered) -> None:
    registry, server = await asyncio.to_thread(registered)
    task = asyncio.ensure_future(registry.ainvoke("local/wait"))
    await asyncio.to_thread(until, lambda: "wait" in server.calls)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(until, lambda: "cancelled wait" in server.calls)


def test_progress_renews_the_time_of_a_call(registered: Registered) -> None:
    registry, _ = registered(call_s=0.6)
    assert registry.invoke("local/progress").text == "arrived"


def test_progress_does_not_renew_it_beyond_the_whole_time(registered: Registered) -> None:
    registry, _ = registered(call_s=0.6, call_max_s=0.6)
    result = registry.invoke("local/progress")
    assert result.failure is not None
    assert result.failure.kind == "unknown_outcome"


@pytest.mark.requirement("toolkit.mcp.function-call")
def test_the_function_of_a_tool_is_called_directly(connect: Connect) -> None:
    server = connect()
    add = server.client.get_callable_function("add")
    response = add(a=1, b=2).result(PATIENCE_S)
    assert (response.text, add.name, add.server) == ("3", "add", "local")


async def test_the_function_is_awaited_too_and_gives_the_raw_result(connect: Connect) -> None:
    server = connect()
    add = await asyncio.to_thread(server.client.get_callable_function, "add", wrap_tool_result=False)
    result = await add(a=1, b=2)
    assert (type(result).__name__, result.structured_content) == ("CallToolResult", {"sum": 3})


def test_a_toolkit_takes_the_function_as_a_tool(connect: Connect) -> None:
    function, toolkit = connect().client.get_callable_function("add"), Toolkit()
    toolkit.register_tool_function(function)
    assert list(toolkit.tools) == ["local/add"]
    assert isinstance(function.__tool__(), Tool)


@pytest.mark.requirement("toolkit.mcp.stateful")
def test_a_closed_client_connects_again_when_it_is_used(registered: Registered) -> None:
    registry, server = registered()
    assert server.client.is_connected
    server.client.close()
    assert not server.client.is_connected
    assert registry.invoke("local/add", {"a": 1, "b": 1}).data == {"sum": 2}


def test_a_client_is_closed_at_the_end_of_a_with_block(connect: Connect) -> None:
    client: MCPClient = connect().client
    with client:
        assert client.is_connected
    assert not client.is_connected
