"""The failure of a tool that raised a group names each exception in it."""

from __future__ import annotations

import asyncio
from typing import Any

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


def failing_with(error: BaseException) -> ToolRegistry:
    def load() -> None:
        """Loads."""
        raise error

    registry = ToolRegistry()
    registry.register(load)
    return registry


def with_notes(error: BaseException, *notes: str) -> BaseException:
    for note in notes:
        error.add_note(note)
    return error


def test_the_notes_of_an_exception_are_told() -> None:
    error = with_notes(ValueError("no such day"), "Write dates as 2026-01-31.", "The month was May.")
    assert failing_with(error).invoke("load", {}).error == (
        "ValueError: no such day\nWrite dates as 2026-01-31.\nThe month was May."
    )


def test_the_notes_of_a_group_and_of_its_leaves_are_told() -> None:
    group = with_notes(BaseExceptionGroup("g", [with_notes(ValueError(), "Only a note.")]), "Of the group.")
    assert failing_with(group).invoke("load", {}).error == (
        "ExceptionGroup: g (1 sub-exception)\nOf the group.\n- ValueError: Only a note."
    )


def test_notes_that_are_not_texts_are_left_out() -> None:
    error = ValueError("n")
    error.__notes__ = [3, "told"]  # pyright: ignore[reportAttributeAccessIssue]
    assert failing_with(error).invoke("load", {}).error == "ValueError: n\ntold"


def test_a_group_nested_deeper_than_python_recurses_is_told() -> None:
    error: Any = ValueError("leaf")
    for _ in range(3_000):
        error = ExceptionGroup("g", [error])
    assert failing_with(error).invoke("load", {}).error == "ExceptionGroup: g (1 sub-exception)\n- ValueError: leaf"


def test_a_message_that_ends_the_process_is_not_told() -> None:
    class Ends(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    assert failing_with(Ends()).invoke("load", {}).error == "Ends: (its message cannot be shown)"
