"""Servers that die in a call, between calls, and for a while. No call hangs, and none is sent twice."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mcp.client.conftest import HttpServer, stdio_client
from tests.patience import PATIENCE_S, until
from toolwire import MCPClient, ToolRegistry, ToolResult
from toolwire.mcp.client_limits import BREAKER


def registered(client: MCPClient) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_mcp_client(client, permission="auto")
    return registry


def kind_of(result: ToolResult) -> str:
    return "success" if result.failure is None else result.failure.kind


def test_a_call_in_which_the_server_dies_is_unknown_and_the_next_one_works(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with stdio_client(record) as client:
        registry = registered(client)
        kinds = [kind_of(registry.invoke("local/die")) for _ in range(2)]
        kinds.append(kind_of(registry.invoke("local/add", {"a": 1, "b": 1})))
    assert kinds == ["unknown_outcome", "unknown_outcome", "success"]
    assert record.read_text().split("\n")[:-1] == ["die", "die", "add 1"]


def test_a_server_killed_while_idle_is_started_again(tmp_path: Path) -> None:
    with stdio_client(tmp_path / "record") as client:
        registry = registered(client)
        first = int(registry.invoke("local/process").text)
        os.kill(first, signal.SIGKILL)
        until(lambda: not client.is_connected)
        assert kind_of(registry.invoke("local/add", {"a": 1, "b": 1})) == "success"
        assert int(registry.invoke("local/process").text) != first


def test_the_process_and_its_children_are_gone_after_close(tmp_path: Path) -> None:
    client = stdio_client(tmp_path / "record")
    registry = registered(client)
    pids = [int(registry.invoke("local/process").text), int(registry.invoke("local/child").text)]
    client.close()
    until(lambda: not any(is_alive(pid) for pid in pids))


def is_alive(pid: int) -> bool:
    try:
        # A zombie without a parent that waits for it has ended too.
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_a_call_that_was_not_sent_waits_for_the_server_and_is_sent_once(http_server: HttpServer) -> None:
    client = MCPClient.http("local", http_server.url, call_s=PATIENCE_S)
    registry = registered(client)
    http_server.kill()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(registry.invoke, "local/add", {"a": 7, "b": 1})
        until(lambda: not client.is_connected)
        http_server.start()
        result = waiting.result(PATIENCE_S)
    client.close()
    assert result.data == {"sum": 8}
    assert http_server.record.read_text() == "add 7\n"


def test_a_call_without_time_for_that_is_unavailable(http_server: HttpServer) -> None:
    client = MCPClient.http("local", http_server.url, call_s=0.5)
    registry = registered(client)
    http_server.kill()
    result = registry.invoke("local/add", {"a": 1, "b": 1})
    client.close()
    http_server.start()
    assert kind_of(result) == "unavailable"


def test_after_five_attempts_new_calls_fail_at_once_until_the_server_is_back(
    http_server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = MCPClient.http("local", http_server.url, call_s=PATIENCE_S)
    registry = registered(client)
    http_server.kill()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(registry.invoke, "local/add", {"a": 1, "b": 1})
        until(lambda: client._connection.is_broken)
        refused = registry.invoke("local/add", {"a": 2, "b": 2})
        http_server.start()
        assert waiting.result(PATIENCE_S).data == {"sum": 2}
    assert kind_of(refused) == "unavailable"
    assert kind_of(registry.invoke("local/add", {"a": 3, "b": 3})) == "success"
    client.close()
    assert http_server.calls == ["add 1", "add 3"]
    # A reason is told once, however often it ends an attempt.
    told = [text for text in caplog.messages if "no connection was made" in text]
    assert len(told) == len(set(told)) < BREAKER


async def test_calls_under_way_when_the_server_dies_are_unknown(http_server: HttpServer) -> None:
    client = MCPClient.http("local", http_server.url)
    registry = await asyncio.to_thread(registered, client)
    tasks = [asyncio.ensure_future(registry.ainvoke("local/wait")) for _ in range(3)]
    await asyncio.to_thread(
        until, lambda: http_server.record.exists() and http_server.record.read_text().count("w") == 3
    )
    await asyncio.to_thread(http_server.kill)
    results = await asyncio.gather(*tasks)
    await asyncio.to_thread(http_server.start)
    again = await registry.ainvoke("local/add", {"a": 1, "b": 1})
    await asyncio.to_thread(client.close)
    assert [kind_of(result) for result in results] == ["unknown_outcome"] * 3
    assert kind_of(again) == "success"
    assert http_server.record.read_text() == "wait\n" * 3 + "add 1\n"


@pytest.mark.parametrize(("calls", "refused"), [(4, 0), (5, 1)])
async def test_calls_beyond_the_limit_are_overloaded_and_not_sent(tmp_path: Path, calls: int, refused: int) -> None:
    record = tmp_path / "record"
    client = stdio_client(record, call_limit=4)
    registry = await asyncio.to_thread(registered, client)
    invoked = (registry.ainvoke("local/nap", {"seconds": 0.5}) for _ in range(calls))
    kinds = [kind_of(result) for result in await asyncio.gather(*invoked)]
    await asyncio.to_thread(client.close)
    assert sorted(kinds) == sorted(["overloaded"] * refused + ["success"] * 4)
    assert record.read_text() == "nap\n" * 4
