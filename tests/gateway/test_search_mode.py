"""Search mode: a client lists few tools, finds the others, and hears that its list has grown."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.client.subscriptions import ToolsListChanged

from mcp import Client
from tests.gateway.conftest import Era, Served
from tests.patience import PATIENCE_S
from toolwire import Caller, ToolRegistry, ToolServer
from toolwire.gateway.caller_bus import CallerBus


def send_mail(to: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"


def count_stock(item: str) -> int:
    """Counts an item in the warehouse."""
    return len(item)


def new_registry(**options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(send_mail, "post/send")
    registry.register(count_stock, "x" * 60 + "/count")
    registry.configure(**options)
    return registry


class Ear:
    """Hears of changed lists, and counts them."""

    def __init__(self) -> None:
        self.times = 0
        self.heard = anyio.Event()

    def note(self) -> None:
        self.times += 1
        self.heard.set()

    async def hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.note()


@asynccontextmanager
async def listening(server: Any, era: Era) -> AsyncGenerator[tuple[Client, Ear]]:
    """Connects a client that hears of changed lists as its protocol has it."""
    ear = Ear()
    handler = ear.hear if era == "legacy" else None
    async with (
        Client(server, mode=era, cache=None, message_handler=handler) as client,
        anyio.create_task_group() as tasks,
    ):
        if era == "auto":
            ready = anyio.Event()

            async def listen() -> None:
                async with client.listen(tools_list_changed=True) as events:
                    ready.set()
                    async for event in events:
                        if isinstance(event, ToolsListChanged):
                            ear.note()

            tasks.start_soon(listen)
            await ready.wait()
        yield client, ear
        tasks.cancel_scope.cancel()


def text_of(result: Any) -> str:
    return result.content[0].text


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def test_a_found_tool_is_listed_from_then_on_and_the_client_hears_of_it(era: Era) -> None:
    server = ToolServer(new_registry(), "shop", mode="search").in_memory()
    async with listening(server, era) as (client, ear):
        assert await names(client) == ["search_tools"]
        found = await client.call_tool("search_tools", {"query": "send a mail", "limit": 1})
        assert text_of(found).startswith("1 tool:\n\ndef post_send(to: str) -> str:\n")
        with anyio.fail_after(PATIENCE_S):
            await ear.heard.wait()
        assert await names(client) == ["post_send", "search_tools"]
        assert text_of(await client.call_tool("post_send", {"to": "ada"})) == "sent to ada"
        # The same search changes nothing.
        await client.call_tool("search_tools", {"query": "send a mail", "limit": 1})
        assert ear.times == 1


async def test_every_tool_may_be_called_by_the_name_that_a_search_gives(era: Era) -> None:
    async with Client(ToolServer(new_registry(), "shop", mode="search").in_memory(), mode=era) as client:
        assert text_of(await client.call_tool("post_send", {"to": "ada"})) == "sent to ada"
        told = text_of(await client.call_tool("search_tools", {"query": "count an item", "limit": 1}))
        named = told.split("def ")[1].partition("(")[0]
        assert len(named) <= 48
        assert (await client.call_tool(named, {"item": "nut"})).structured_content == {"result": 3}
        assert named in await names(client)


async def test_what_the_registry_always_lists_and_read_result_stay_listed() -> None:
    registry = new_registry(tool_search=["post/*"], result_pages=True)
    async with Client(ToolServer(registry, "shop", mode="search").in_memory()) as client:
        assert await names(client) == ["post_send", "search_tools", "read_result"]


async def test_one_clients_search_changes_no_other_clients_list() -> None:
    server = ToolServer(new_registry(), "shop", mode="search").in_memory()
    async with listening(server, "legacy") as (one, ear), listening(server, "legacy") as (other, others_ear):
        await one.call_tool("search_tools", {"query": "send a mail"})
        with anyio.fail_after(PATIENCE_S):
            await ear.heard.wait()
        assert await names(other) == ["search_tools"]
        assert others_ear.times == 0


async def test_a_search_is_news_for_its_caller_alone() -> None:
    callers = iter([Caller(principal="ada"), Caller(principal="bob")])
    bus, heard = CallerBus(lambda: next(callers)), list[str]()
    end = bus.subscribe(lambda _: heard.append("ada"))
    bus.subscribe(lambda _: heard.append("bob"))
    bus.publish_to(Caller(principal="ada"), ToolsListChanged())
    assert heard == ["ada"]
    await bus.publish(ToolsListChanged())
    assert heard == ["ada", "ada", "bob"]
    end()
    bus.publish_to(Caller(principal="ada"), ToolsListChanged())
    assert heard == ["ada", "ada", "bob"]


def test_the_command_serves_it(served: Any) -> None:
    process: Served = served("--mode", "search")

    async def look() -> list[str]:
        async with Client(process.url) as client:
            return await names(client)

    assert anyio.run(look) == ["read_result", "search_tools"]
