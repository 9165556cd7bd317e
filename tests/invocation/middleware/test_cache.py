"""Results of tools that only look, given again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invocation.middleware.clock import Clock
from tests.invocation.world import World, outcome
from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Tool
from toolwire.invocation.middleware.cache import Cache
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.results import ToolResult


class Books:
    """A tool that counts its calls and gives a list of its own each time."""

    def __init__(self) -> None:
        self.calls = 0

    def find(self, title: str, year: int = 0) -> list[Any]:
        """Finds books."""
        self.calls += 1
        return [title, year, self.calls]

    def tool(self, **options: Any) -> Tool:
        return from_function(self.find, **{"effects": ["read"], "idempotent": "natural", **options})


def cached(world: World, books: Books, **options: Any) -> Cache:
    cache = Cache(**options)
    world.add(books.tool(), name="find")
    world.middleware = (cache,)
    return cache


def test_the_same_call_gives_the_same_result_without_running_again(world: World) -> None:
    books = Books()
    cached(world, books)
    first, second = world.call("find", title="Emma"), world.call("find", title="Emma", year=0)
    assert (first.data, dict(first.metadata)) == (["Emma", 0, 1], {})
    assert (second.data, dict(second.metadata), books.calls) == (["Emma", 0, 1], {"is_cached": True}, 1)


def test_other_arguments_are_another_call(world: World) -> None:
    books = Books()
    cached(world, books)
    assert [world.call("find", title="Emma", year=year).data[2] for year in (0, 1, 0, 1)] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("other", "is_another"),
    [
        (Caller(principal="bo", tenant="acme"), True),
        (Caller(principal="al", tenant="zen"), True),
        (Caller(principal="al", tenant="acme", agent="second"), False),
    ],
)
def test_a_result_is_for_its_own_caller_alone(world: World, other: Caller, is_another: bool) -> None:
    books = Books()
    cached(world, books)
    world.caller = Caller(principal="al", tenant="acme", agent="first")
    world.call("find", title="Emma")
    world.caller = other
    world.call("find", title="Emma")
    assert books.calls == 1 + is_another


def test_a_result_that_somebody_changes_stays_as_it_was_for_the_next(world: World) -> None:
    books = Books()
    cached(world, books)
    for _ in range(3):
        data = world.call("find", title="Emma").data
        assert data == ["Emma", 0, 1]
        data.append("mine")


def test_a_result_counts_for_so_long(world: World, clock: Clock) -> None:
    books = Books()
    cached(world, books, ttl_s=60, clock=clock)
    found = []
    for seconds in (0, 59.9, 0.2, 59.9):
        clock.sleep(seconds)
        found.append(world.call("find", title="Emma").data[2])
    assert found == [1, 1, 2, 2]


def test_the_least_recently_used_results_are_dropped(world: World) -> None:
    books = Books()
    cache = cached(world, books, entries_limit=2)
    for title in ("Emma", "Ulysses", "Emma", "Walden"):
        world.call("find", title=title)
    assert (books.calls, len(cache)) == (3, 2)
    world.call("find", title="Emma")
    assert books.calls == 3
    world.call("find", title="Ulysses")
    assert books.calls == 4


@pytest.mark.parametrize(("length", "calls"), [(90, 1), (100, 2)])
def test_a_result_that_is_too_long_is_not_kept(world: World, length: int, calls: int) -> None:
    books = Books()
    cached(world, books, result_limit_bytes=105)
    for _ in range(2):
        world.call("find", title="x" * length)
    assert books.calls == calls


@pytest.mark.parametrize(
    "options",
    [
        {"idempotent": "no"},
        {"idempotent": "key"},
        {"effects": ["read", "write"]},
        {"effects": ["write"]},
        {"effects": []},
    ],
    ids=repr,
)
def test_only_natural_reads_are_kept(world: World, options: dict[str, Any]) -> None:
    books = Books()
    world.add(books.tool(**options), name="find")
    world.middleware = (Cache(),)
    assert [world.call("find", title="Emma").data[2] for _ in range(2)] == [1, 2]


def test_a_tool_to_which_the_host_gives_values_of_its_own_is_called_each_time(world: World) -> None:
    books = Books()
    tool = books.tool()
    tool.bindings.bind("year", None, 1815)
    world.add(tool, name="find")
    world.middleware = (Cache(),)
    assert [world.call("find", title="Emma").data for _ in range(2)] == [["Emma", 1815, 1], ["Emma", 1815, 2]]


def test_a_tool_that_gets_a_context_is_called_each_time_for_its_own_calls_are_judged(world: World) -> None:
    ran: list[str] = []

    async def find(context: CallContext) -> str:
        return (await context.call("inner")).text

    world.add(from_function(find, effects=["read"], idempotent="natural"))
    world.add(lambda: ran.append("ran"), name="inner")
    world.middleware = (Cache(),)
    assert [world.call("find").success for _ in range(2)] == [True, True]
    assert len(ran) == 2


def test_arguments_that_a_middleware_wrote_are_judged_each_time(world: World) -> None:
    books = Books()

    @colourless
    async def rewrite(call: PreparedCall, call_next: CallNext) -> ToolResult:
        return await call_next(call.with_arguments({"title": "Emma"}))

    world.add(books.tool(), name="find")
    world.middleware = (rewrite, Cache())
    assert [world.call("find", title="Ulysses").data[2] for _ in range(2)] == [1, 2]


def test_another_tool_of_that_name_and_description_is_another_tool(world: World) -> None:
    first, second = Books(), Books()
    second.calls = 10
    cached(world, first)
    world.call("find", title="Emma")
    world.catalogue.remove("find")
    world.add(second.tool(), name="find")
    assert world.call("find", title="Emma").data == ["Emma", 0, 11]


def test_a_failure_is_not_kept(world: World) -> None:
    answers = [1, 0]

    def find() -> float:
        return 1 / answers.pop()

    world.add(from_function(find, effects=["read"], idempotent="natural"))
    world.middleware = (Cache(),)
    assert [outcome(world.call("find")) for _ in range(3)] == ["tool_error", "success", "success"]


def test_a_result_that_cannot_be_copied_is_returned_but_not_kept(world: World) -> None:
    import threading

    made: list[object] = []

    def find() -> dict[str, Any]:
        made.append(threading.Lock())
        return {"lock": made[-1]}

    world.add(from_function(find, effects=["read"], idempotent="natural"))
    world.middleware = (Cache(),)
    assert [outcome(world.call("find")) for _ in range(2)] == ["invalid_result"] * 2
    assert len(made) == 2


def test_it_forgets_everything_when_told_to(world: World) -> None:
    books = Books()
    cache = cached(world, books)
    world.call("find", title="Emma")
    cache.clear()
    assert world.call("find", title="Emma").data == ["Emma", 0, 2]
