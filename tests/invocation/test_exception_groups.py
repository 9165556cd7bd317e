"""The failure of a tool that raised a group names each exception in it."""

from __future__ import annotations

import asyncio

from toolwire import ToolRegistry
from toolwire.invocation.fold import LEAVES_LIMIT


def test_each_failed_task_of_a_task_group_is_named() -> None:
    async def load() -> None:
        """Loads."""

        async def fail(page: int) -> None:
            raise ValueError(f"no page {page}")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail(1))
            tasks.create_task(fail(2))

    registry = ToolRegistry()
    registry.register(load)
    assert registry.invoke("load", {}).error == (
        "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)\n"
        "- ValueError: no page 1\n- ValueError: no page 2"
    )


def test_the_leaves_of_groups_in_groups_are_named_in_order() -> None:
    def load() -> None:
        """Loads."""
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError("a"), OSError()]), TypeError("b")])

    registry = ToolRegistry()
    registry.register(load)
    assert registry.invoke("load", {}).error == (
        "ExceptionGroup: outer (2 sub-exceptions)\n- KeyError: 'a'\n- OSError\n- TypeError: b"
    )


def test_exceptions_beyond_the_limit_are_counted() -> None:
    def load() -> None:
        """Loads."""
        raise ExceptionGroup("many", [ValueError(str(place)) for place in range(LEAVES_LIMIT + 3)])

    registry = ToolRegistry()
    registry.register(load)
    assert (registry.invoke("load", {}).error or "").split("\n")[-2:] == ["- ValueError: 19", "- and 3 more"]
