"""Clients hear that the list of tools has changed, in both eras."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.subscriptions import ToolsListChanged

from mcp import Client
from tests.gateway.conftest import Era
from tests.patience import PATIENCE_S
from toolwire import ToolRegistry, ToolServer, ToolSpec


def first() -> str:
    """The first."""
    return "1"


def second() -> str:
    """The second."""
    return "2"


def changes(registry: ToolRegistry) -> list[Any]:
    return [
        lambda: registry.register(second),
        lambda: registry.disable("second", "it is broken"),
        lambda: registry.enable("second"),
        lambda: registry.register(ToolSpec.from_function(second, description="Another text."), replace=True),
        lambda: registry.unregister("second"),
    ]


async def test_each_change_is_heard(era: Era) -> None:
    registry = ToolRegistry()
    registry.register(first)
    send, heard = anyio.create_memory_object_stream[None](100)

    async def message(received: Any) -> None:
        # In the later era, the SDK's client gives an event to both readers.
        if era == "legacy" and isinstance(received, types.ToolListChangedNotification):
            send.send_nowait(None)

    async with (
        send,
        heard,
        Client(ToolServer(registry, "tests").in_memory(), mode=era, message_handler=message) as client,
        anyio.create_task_group() as tasks,
    ):
        if era == "auto":
            listening = anyio.Event()

            async def listen() -> None:
                async with client.listen(tools_list_changed=True) as events:
                    listening.set()
                    async for event in events:
                        if isinstance(event, ToolsListChanged):
                            send.send_nowait(None)

            tasks.start_soon(listen)
            await listening.wait()
        for change in changes(registry):
            change()
            with anyio.fail_after(PATIENCE_S):
                await heard.receive()
        assert [tool.name for tool in (await client.list_tools()).tools] == ["first"]
        tasks.cancel_scope.cancel()


async def test_nothing_is_heard_without_a_change(era: Era, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    looked = anyio.Event()
    server = ToolServer([first], "tests").in_memory()
    parts: Any = server._parts  # pyright: ignore
    look = parts.fingerprint

    def counted() -> object:
        nonlocal looks
        looks += 1
        if looks == 3:
            looked.set()
        return look()

    monkeypatch.setattr(parts, "fingerprint", counted)
    heard: list[Any] = []

    async def message(received: Any) -> None:
        heard.append(received)

    async with Client(server, mode=era, message_handler=message):
        with anyio.fail_after(PATIENCE_S):
            await looked.wait()
    assert [one for one in heard if isinstance(one, types.ToolListChangedNotification)] == []
