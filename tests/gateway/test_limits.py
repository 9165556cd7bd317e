"""Each limit of a server, on both sides."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp import Client
from tests.architecture.source import ROOT
from tests.gateway.conftest import Era, Served, serve_command
from tests.gateway.served_tools import new_registry, note
from tests.gateway.serving import call_body, raw, serving
from tests.gateway.test_asking_clients import told
from tests.patience import PATIENCE_S, until
from toolwire import ToolServer
from toolwire.gateway.served_names import client_safe_name
from toolwire.gateway.server_limits import BODY_BYTES, CALLS, DRAIN_S, IDLE_S, NAME_CHARACTERS, SESSIONS, ServerLimits
from toolwire.gateway.slots import SlotRefused, Slots

START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


def test_the_defaults_are_the_documented_ones() -> None:
    assert (BODY_BYTES, SESSIONS, IDLE_S, CALLS, DRAIN_S) == (4 * 1024 * 1024, 1_000, 1_800, 256, 10)
    limits = ServerLimits()
    assert (limits.body_bytes, limits.sessions, limits.idle_s, limits.calls, limits.drain_s) == (
        *(BODY_BYTES, SESSIONS, IDLE_S),
        *(CALLS, DRAIN_S),
    )


def test_a_request_of_four_mebibytes_is_read_and_a_larger_one_is_not() -> None:
    empty = len(call_body("add", {"text": ""}))
    with serving(ToolServer(new_registry(), "tests").asgi()) as port:
        fitting = call_body("add", {"text": "x" * (BODY_BYTES - empty)})
        assert len(fitting) == BODY_BYTES
        # The tool has no such argument: the request was read.
        status, content = raw(port, body=fitting)
        assert (status, b"invalid_arguments" in content) == (200, True)
        assert raw(port, body=fitting + b" ")[0] == 413


async def initialize(http: httpx2.AsyncClient, url: str) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
    return await http.post(url, json=message, headers={"Accept": "application/json, text/event-stream"})


async def ping(http: httpx2.AsyncClient, url: str, session: str) -> int:
    headers = {"Accept": "application/json, text/event-stream", "mcp-session-id": session}
    return (await http.post(url, json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=headers)).status_code


async def test_one_session_more_than_the_limit_is_refused_until_one_ends() -> None:
    with serving(ToolServer(new_registry(), "tests", sessions=2, share=1).asgi()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with httpx2.AsyncClient() as http:
            opened = [await initialize(http, url) for _ in range(3)]
            assert [one.status_code for one in opened] == [200, 200, 503]
            first = opened[0].headers["mcp-session-id"]
            await http.delete(url, headers={"mcp-session-id": first})
            assert ((await initialize(http, url)).status_code, await ping(http, url, first)) == (200, 404)


@pytest.mark.parametrize(("idle_s", "status"), [(0.2, 404), (600.0, 200)])
async def test_a_session_ends_once_it_was_idle_for_long(
    idle_s: float, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="mcp.server.streamable_http_manager")
    with serving(ToolServer(new_registry(), "tests", idle_s=idle_s).asgi()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with httpx2.AsyncClient() as http:
            session = (await initialize(http, url)).headers["mcp-session-id"]
            if idle_s < 1:
                await asyncio.to_thread(until, lambda: "idle timeout" in caplog.text)
            assert await ping(http, url, session) == status


async def test_one_call_more_than_the_limit_is_overloaded_until_one_ends(era: Era, tmp_path: Path) -> None:
    marks = [tmp_path / "0", tmp_path / "1"]
    results: list[Any] = []

    async def nap(client: Client, mark: Path) -> None:
        results.append(await client.call_tool("nap", {"mark": str(mark)}))

    async with Client(ToolServer(new_registry(), "tests", calls=2).in_memory(), mode=era) as client:
        async with anyio.create_task_group() as tasks:
            for mark in marks:
                tasks.start_soon(nap, client, mark)
            for mark in marks:
                await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
            assert told(await client.call_tool("add", {"a": 1, "b": 2})) == (
                "overloaded",
                "2 calls are under way on this server already.",
            )
            for mark in marks:
                note(f"{mark}.go", "")
        assert [told(result) for result in results] == [("success", "rested")] * 2
        assert told(await client.call_tool("add", {"a": 1, "b": 2})) == ("success", "3")


def test_a_server_that_shuts_down_takes_no_new_calls() -> None:
    slots = Slots(1)
    with slots.hold():
        assert slots.in_use == 1
    slots.close()
    with pytest.raises(SlotRefused) as refused, slots.hold():
        pass
    failure = refused.value.result.failure
    assert failure is not None
    assert (failure.kind, slots.in_use) == ("unavailable", 0)


async def test_after_sigterm_a_call_under_way_still_gives_its_result(
    tmp_path: Path, served: Callable[..., Served]
) -> None:
    server, mark = served(), tmp_path / "mark"
    results: list[Any] = []

    async def nap() -> None:
        results.append(await client.call_tool("nap", {"mark": str(mark)}))

    async with Client(server.url) as client, anyio.create_task_group() as tasks:
        # The SDK's client reads the list to check a result.
        await client.list_tools()
        tasks.start_soon(nap)
        await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            await asyncio.to_thread(server.process.wait, 0.5)
        note(f"{mark}.go", "")
    assert [told(result) for result in results] == [("success", "rested")]
    # A shell shows 143, as the help page says.
    assert await asyncio.to_thread(server.process.wait, 30) == -signal.SIGTERM


async def test_a_stream_that_is_open_at_the_end_is_no_error_in_the_log(served: Callable[..., Served], era: Era) -> None:
    server, said = served(), "not ended"
    async with Client(server.url, mode=era) as client, anyio.create_task_group() as tasks:
        listening = anyio.Event()

        async def listen() -> None:
            async with client.listen(tools_list_changed=True) as events:
                listening.set()
                with suppress(Exception):
                    async for _ in events:
                        pass

        if era == "auto":
            tasks.start_soon(listen)
            await listening.wait()
        await client.list_tools()
        server.process.send_signal(signal.SIGTERM)
        said = await asyncio.to_thread(server.end)
        tasks.cancel_scope.cancel()
    assert said == ""


BRIEF = """
from tests.gateway.served_tools import new_registry
from toolwire import ToolServer
server = ToolServer(new_registry(), "tests", drain_s=0.2)
server.run_http("127.0.0.1", 0, on_start=lambda url: print(url, flush=True))
"""


def start_brief() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BRIEF], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    )


async def test_a_call_that_takes_longer_than_the_drain_is_cancelled(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = await asyncio.to_thread(start_brief)
    assert process.stdout is not None
    with process.stdout:
        url = await asyncio.to_thread(process.stdout.readline)
        async with httpx2.AsyncClient() as http, anyio.create_task_group() as tasks:

            async def wait() -> None:
                body = call_body("wait", {"mark": str(mark)})
                headers = {"Mcp-Name": "wait", "Mcp-Method": "tools/call", "MCP-Protocol-Version": "2026-07-28"}
                accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                with suppress(httpx2.HTTPError):
                    await http.post(url.strip(), content=body, headers={**headers, **accept}, timeout=60)

            tasks.start_soon(wait)
            await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(until, Path(f"{mark}.cancelled").exists)
        await asyncio.to_thread(process.wait, 60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stdio_server_ends_after_a_signal_once_its_call_has_ended(tmp_path: Path, number: signal.Signals) -> None:
    mark = tmp_path / "mark"
    process = subprocess.Popen(
        serve_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None
    process.stdin.write(call_body("nap", {"mark": str(mark)}) + b"\n")
    process.stdin.flush()
    until(Path(f"{mark}.begun").exists)
    process.send_signal(number)
    note(f"{mark}.go", "")
    assert process.stdout is not None
    answer = json.loads(process.stdout.readline())
    assert answer["result"]["content"] == [{"type": "text", "text": "rested"}]
    # Its stdin is still open.
    assert process.wait(PATIENCE_S) == 0
    process.communicate()


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("a" * NAME_CHARACTERS, "a" * NAME_CHARACTERS),
        ("a" * (NAME_CHARACTERS + 1), "a" * (NAME_CHARACTERS - 7) + "_8f9bec"),
        ("fs/read_file", "fs_read_file"),
        ("get-file", "get-file"),
    ],
)
def test_a_served_name_has_at_most_48_characters(name: str, served: str) -> None:
    assert client_safe_name(name) == served
    assert len(served) <= NAME_CHARACTERS
