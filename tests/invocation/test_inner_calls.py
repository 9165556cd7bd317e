"""Calls that a call makes: they walk the same path, as its children."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.invocation.world import World, outcome
from tests.patience import PATIENCE_S
from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Validated
from toolwire.invocation.inner.inner_calls import InnerCalls
from toolwire.permission.policy import Rule
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.results import ToolResult


def double(n: int) -> int:
    """Doubles."""
    return n * 2


async def double_later(n: int) -> int:
    """Doubles."""
    await asyncio.sleep(0)
    return n * 2


def script(*calls: tuple[str, dict[str, Any]]) -> Any:
    """A composite tool that makes these calls one after the other and returns their results."""

    async def run(validated: Validated, inside: InnerCalls) -> ToolResult:
        results = [
            await inside.async_calls("tr_7")(ToolCall(name, arguments, id=f"tr_7/{ordinal}", parent=inside.call.id))
            for ordinal, (name, arguments) in enumerate(calls, 1)
        ]
        return ToolResult(True, [result.data for result in results], call=inside.call)

    return run


def plan() -> None:
    """Makes calls."""


@pytest.mark.parametrize("function", [double, double_later])
def test_the_inner_calls_of_a_composite_tool_walk_the_path_with_it_as_their_parent(world: World, function: Any) -> None:
    world.add(function, name="double")
    world.add(double, name="secret")
    world.rules = [Rule(effect="deny", tool="secret")]
    inner = [("double", {"n": 1}), ("double", {"n": "x"}), ("secret", {"n": 1}), ("duoble", {})]
    world.add(plan, composite=script(*inner))
    assert world.call("plan").data == [2, None, None, None]
    assert world.recording.story == [
        ("tr_7/1", "r_1", "success"),
        ("tr_7/2", "r_1", "invalid_arguments"),
        ("tr_7/3", "r_1", "denied"),
        ("tr_7/4", "r_1", "unknown_tool"),
        ("r_1", "", "success"),
    ]
    assert [record.run_id for record in world.recording.records] == ["tr_7"] * 4 + ["r_1"]


def test_a_composite_tool_is_validated_and_judged_itself(world: World) -> None:
    world.add(plan, composite=script(), permission="deny")
    assert outcome(world.call("plan")) == "denied"
    assert outcome(world.call("plan", more=1)) == "invalid_arguments"


def test_after_the_deadline_a_composite_tool_is_not_started(world: World) -> None:
    world.add(plan, composite=script())
    world.deadline = time.monotonic()
    assert world.call("plan").text == (
        "'plan' was not started: the run's time is over.\nIt did not run. Ask for less in one run."
    )


def test_inner_results_are_whole(world: World) -> None:
    world.result_limit_bytes = 10
    world.add(lambda: "x" * 100, name="long")
    lengths: list[int] = []

    async def run(_: Validated, inside: InnerCalls) -> ToolResult:
        result = await inside.async_calls("tr_7")(ToolCall("long"))
        lengths.append(len(result.text))
        return ToolResult(True, inside.result_limit_bytes, call=inside.call)

    world.add(plan, composite=run)
    assert (world.call("plan").data, lengths) == (10, [100])


def test_a_composite_tool_sees_the_tools_but_no_composite_one(world: World) -> None:
    seen: list[Any] = []

    async def run(_: Validated, inside: InnerCalls) -> ToolResult:
        seen.append(
            ([name for name, _ in inside.tools], inside.has_deferred_tools, inside.deadline, inside.is_blocking)
        )
        return ToolResult(True, call=inside.call)

    world.add(double)
    world.add(plan, composite=run)
    world.add(plan, name="other", composite=run)
    world.deadline = time.monotonic() + 60
    world.call("plan")
    assert seen == [(["double"], False, world.deadline, world.driver == "blocking")]


def test_a_composite_tool_may_make_calls_from_a_thread_of_its_own(world: World) -> None:
    async def run(_: Validated, inside: InnerCalls) -> ToolResult:
        found: list[ToolResult] = []
        call = ToolCall("double", {"n": 4}, id="tr_7/1", parent=inside.call.id)
        thread = threading.Thread(target=lambda: found.append(inside.blocking_calls("tr_7")(call)))
        thread.start()
        thread.join(PATIENCE_S)
        return ToolResult(True, found[0].data, call=inside.call)

    world.add(double)
    world.add(plan, composite=run)
    assert world.call("plan").data == 8
    assert world.recording.story == [("tr_7/1", "r_1", "success"), ("r_1", "", "success")]


NO_SANDBOX = SandboxUnavailable("no sandbox here", report={}, how_to_fix="apt install it")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("oops"), "tool_error", "ValueError: oops"),
        (NO_SANDBOX, "unavailable", "'plan' cannot run here: no sandbox here\napt install it"),
    ],
)
def test_a_composite_tool_that_raises_has_failed(world: World, error: Exception, kind: str, text: str) -> None:
    async def run(_: Validated, inside: InnerCalls) -> ToolResult:
        raise error

    world.add(plan, composite=run)
    result = world.call("plan")
    assert (outcome(result), result.error) == (kind, text)
    assert result.failure is not None
    assert result.failure.exception is error


async def total(context: CallContext, numbers: list[int]) -> list[Any]:
    """Doubles each."""
    results = await asyncio.gather(*(context.call("double", n=n) for n in numbers))
    return [result.data for result in results]


@pytest.mark.parametrize("function", [double, double_later])
def test_an_async_tool_calls_others_by_its_context(world: World, function: Any) -> None:
    world.add(function, name="double")
    world.add(total)
    assert world.call("total", numbers=[1, 2, 3]).data == [2, 4, 6]
    assert sorted(world.recording.story) == [
        ("r_1", "", "success"),
        ("r_1/1", "r_1", "success"),
        ("r_1/2", "r_1", "success"),
        ("r_1/3", "r_1", "success"),
    ]
    assert world.recording.story[-1][0] == "r_1"
    assert {record.run_id for record in world.recording.records} == {"r_1"}


def test_a_call_by_the_context_that_fails_does_not_raise(world: World) -> None:
    async def try_all(context: CallContext) -> list[str]:
        calls = [("doubel", {"n": 1}), ("double", {"n": "x"}), ("double", {}), ("secret", {"n": 1})]
        return [outcome(await context.call(name, **arguments)) for name, arguments in calls]

    world.add(double)
    world.add(double, name="secret", permission="confirm")
    world.add(try_all)
    assert world.call("try_all").data == [
        "unknown_tool",
        "invalid_arguments",
        "invalid_arguments",
        "approval_required",
    ]


def test_calls_by_the_context_nest(world: World) -> None:
    async def count_down(context: CallContext, n: int) -> int:
        return 0 if n == 0 else 1 + (await context.call("count_down", n=n - 1)).data

    world.add(count_down)
    world.run_id = "run"
    assert world.call("count_down", n=3).data == 3
    assert world.recording.story == [
        ("r_1/1/1/1", "r_1/1/1", "success"),
        ("r_1/1/1", "r_1/1", "success"),
        ("r_1/1", "r_1", "success"),
        ("r_1", "", "success"),
    ]
    assert {record.run_id for record in world.recording.records} == {"run"}


def test_inner_calls_end_when_their_caller_must(world: World) -> None:
    async def outer(context: CallContext) -> list[Any]:
        return [context.deadline, (await context.call("inner")).data]

    async def inner(context: CallContext) -> float | None:
        return context.deadline

    world.add(outer, timeout_s=60)
    world.add(inner)
    own, given = world.call("outer").data
    assert given == pytest.approx(own, abs=0.5)


def test_a_context_says_whose_call_it_is(world: World) -> None:
    def look(context: CallContext) -> tuple[str, Caller]:
        return context.call_id, context.caller

    world.add(from_function(look))
    assert world.call("look").data == ("r_1", Caller())
