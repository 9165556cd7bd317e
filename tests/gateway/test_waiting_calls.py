"""Calls of older clients that wait for a person: they take no place of other calls, and end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp import Client
from tests.gateway.served_tools import new_registry
from tests.gateway.serving import serving
from tests.gateway.test_asking_clients import Person, chose, told
from tests.patience import PATIENCE_S
from toolwire import ToolServer
from toolwire.gateway.slots import SlotRefused, Slots

ACCEPT = {"Accept": "application/json, text/event-stream"}
START = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "x", "version": "1"},
}


@pytest.fixture
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[str]:
    """The URL of a server with the limits of the test."""
    server = ToolServer(new_registry(), "tests", store=f"sqlite:///{tmp_path}/runs.db", **request.param)
    with serving(server.asgi()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


def served_with(**limits: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("served", [limits], indirect=True, ids=["limits"])


@asynccontextmanager
async def unanswered(url: str, record: Path, count: int, *, token: str = "") -> AsyncGenerator[None]:
    """Has calls that show a form which nobody fills in, and closes their requests at the end."""
    own = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(timeout=PATIENCE_S, headers=own) as http:
        opened = await http.post(url, json=message(1, "initialize", START), headers=ACCEPT)
        headers = {**ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"]}
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                call = {"name": "pay", "arguments": {"amount": number, "record": str(record)}}
                await tasks.start(show_form, http, url, message(10 + number, "tools/call", call), headers)
            yield
            tasks.cancel_scope.cancel()


async def show_form(
    http: httpx2.AsyncClient, url: str, body: Any, headers: dict[str, str], *, task_status: Any
) -> None:
    async with http.stream("POST", url, json=body, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if "elicitation/create" in line:
                task_status.started()


def message(id: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


@served_with(calls=2)
async def test_unanswered_forms_do_not_shut_out_other_calls(served: str, tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with unanswered(served, record, 2), Client(served, elicitation_callback=Person()) as client:
        assert told(await client.call_tool("add", {"a": 1, "b": 2})) == ("success", "3")
    assert not record.exists()


@served_with(waiting=1, share=1)
async def test_one_waiting_call_more_than_the_limit_is_not_asked_until_a_client_is_gone(
    served: str, tmp_path: Path
) -> None:
    record, person = tmp_path / "record", Person(*[chose("once")])
    arguments = {"amount": 5, "record": str(record)}
    async with Client(served, mode="legacy", elicitation_callback=person) as client:
        async with unanswered(served, tmp_path / "other", 1):
            assert told(await client.call_tool("pay", arguments))[0] == "approval_required"
            assert person.forms == []
        with anyio.fail_after(PATIENCE_S):
            while told(await client.call_tool("pay", arguments)) != ("success", "paid 5"):
                pass
    assert record.read_text() == "5\n"


async def test_what_a_person_decided_waits_for_a_slot_and_is_not_refused() -> None:
    slots, order = Slots(1), list[str]()

    async def go_on() -> None:
        async with slots.hold_next():
            order.append("decided")

    async with anyio.create_task_group() as tasks:
        with slots.hold():
            tasks.start_soon(go_on)
            await anyio.wait_all_tasks_blocked()
            order.append("other")
    assert (order, slots.in_use) == (["other", "decided"], 0)


async def test_a_decided_call_that_is_cancelled_leaves_its_slot_to_the_next() -> None:
    slots = Slots(1)

    async def go_on() -> None:
        async with slots.hold_next():
            pass

    slots.take()
    cancelled, following = asyncio.ensure_future(go_on()), asyncio.ensure_future(go_on())
    await anyio.wait_all_tasks_blocked()
    # The slot is given to the first, which is cancelled before it continues.
    slots.give_back()
    cancelled.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait((cancelled, following))
    assert (cancelled.cancelled(), following.cancelled(), slots.in_use) == (True, False, 0)


async def test_a_decided_call_that_waits_is_refused_when_the_server_shuts_down() -> None:
    slots = Slots(1)

    async def go_on() -> None:
        async with slots.hold_next():
            pass

    slots.take()
    waiting = asyncio.ensure_future(go_on())
    await anyio.wait_all_tasks_blocked()
    slots.close()
    with pytest.raises(SlotRefused) as refused:
        await waiting
    failure = refused.value.result.failure
    assert failure is not None
    assert (failure.kind, slots.in_use) == ("unavailable", 1)
