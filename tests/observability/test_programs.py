"""A program is one span, and the calls it makes are inside of it: in both drivers, however it makes them."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from tests.observability.test_calls import CANARY
from tests.observability.world import Node, Telescope, called
from toolwire import Limits, ToolRegistry

ONE_BY_ONE = "print(add(a=1, b=2)); print(add(a=3, b=4))"
TOGETHER = """
import asyncio
print(await asyncio.gather(add(a=1, b=2), add(a=3, b=4), add(a=5, b=6)))
"""


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Adds."""
    await asyncio.sleep(0)
    return a + b


def registry_of(telescope: Telescope, function: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(function, "add")
    registry.enable_code_execution(limits=Limits())
    registry.enable_tracing(**telescope.providers)
    return registry


def inner(ordinal: int) -> Node:
    attributes = called("add", f"program1/{ordinal}", "program1", gen_ai__tool__description="Adds.")
    return Node("execute_tool add", attributes)


def whole(calls: int) -> list[Node]:
    inside = [inner(ordinal) for ordinal in range(1, calls + 1)]
    return [Node("execute_tool code_execution", called("code_execution", "run1"), inside=inside)]


def in_order(tree: list[Node]) -> list[Node]:
    """Calls that ran side by side, by their ordinal."""
    for node in tree:
        node.inside.sort(key=lambda one: one.attributes["toolwire.call.id"])
    return tree


@pytest.mark.parametrize("function", [add, add_later])
@pytest.mark.parametrize("driver", ["invoke", "ainvoke", "run_program"])
@pytest.mark.parametrize("calls", ["one by one", "together"])
def test_a_programs_calls_are_inside_of_its_span(
    function: Any, driver: str, calls: Literal["one by one", "together"]
) -> None:
    telescope = Telescope()
    registry = registry_of(telescope, function)
    code = ONE_BY_ONE if calls == "one by one" else TOGETHER
    if driver == "invoke":
        assert registry.invoke("code_execution", {"code": code}).success
    elif driver == "ainvoke":
        assert asyncio.run(registry.ainvoke("code_execution", {"code": code})).success
    else:
        assert registry.run_program(code).status == "finished"
    assert in_order(telescope.tree()) == whole(2 if calls == "one by one" else 3)


def test_two_programs_side_by_side_keep_their_calls_apart() -> None:
    telescope = Telescope()
    registry = registry_of(telescope, add_later)

    async def both() -> None:
        await asyncio.gather(*(registry.ainvoke("code_execution", {"code": TOGETHER}) for _ in range(2)))

    asyncio.run(both())
    trees = telescope.tree()
    programs = [{node.attributes["toolwire.run.id"] for node in tree.inside} for tree in trees]
    assert [(tree.name, len(tree.inside)) for tree in trees] == [("execute_tool code_execution", 3)] * 2
    assert [len(ids) for ids in programs] == [1, 1]
    assert programs[0] != programs[1]


def test_a_program_that_fails_says_how_and_not_why() -> None:
    telescope = Telescope()
    registry = registry_of(telescope, add)
    result = registry.invoke("code_execution", {"code": f"add(a=1, b=2)\nraise ValueError({CANARY!r})"})
    assert CANARY in result.text
    (root,) = telescope.tree()
    failed = called("code_execution", "run1", error__type="tool_error", toolwire__call__outcome="failed")
    assert root == Node("execute_tool code_execution", failed, is_error=True, inside=[inner(1)])
    assert CANARY not in telescope.text()


def test_a_forbidden_action_of_a_program_is_an_error_of_its_call() -> None:
    telescope = Telescope()
    registry = ToolRegistry(rules=[{"effect": "deny", "tool": "add"}])
    registry.register(add)
    registry.enable_code_execution()
    registry.enable_tracing(**telescope.providers)
    registry.run_program("try:\n    add(a=1, b=2)\nexcept Exception as error:\n    print('no')")
    (root,) = telescope.tree()
    assert [(node.attributes["error.type"], node.is_error) for node in root.inside] == [("denied", True)]
    assert root.attributes["toolwire.call.outcome"] == "answered"
