"""Tools in async code: awaited calls run concurrently, other calls return their value at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.sandbox.programs import TOOLS, FakeTools, Meeting, Runner
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program

SIDE_BY_SIDE = {
    "gather": "await asyncio.gather(echo(1), echo(2), echo(3))",
    "gather of a comprehension": "await asyncio.gather(*[echo(n) for n in (1, 2, 3)])",
    "gather of a generator": "await asyncio.gather(*(echo(n) for n in (1, 2, 3)))",
    "gather of a map": "await asyncio.gather(*map(echo, (1, 2, 3)))",
    "gather of a lambda": "await asyncio.gather(*map(lambda n: echo(n), (1, 2, 3)))",
    "gather of a list": "calls = [echo(n) for n in (1, 2, 3)]\nawait asyncio.gather(*calls)",
    "a list that grows": "calls = []\nfor n in (1, 2, 3): calls.append(echo(n))\nawait asyncio.gather(*calls)",
    "values of a dict": "calls = {n: echo(n) for n in (1, 2, 3)}\nawait asyncio.gather(*calls.values())",
    "tasks": ("tasks = [asyncio.create_task(echo(n)) for n in (1, 2, 3)]\n[await task for task in tasks]"),
    "a task group": (
        "async with asyncio.TaskGroup() as group:\n"
        "    tasks = [group.create_task(echo(n)) for n in (1, 2, 3)]\n"
        "[task.result() for task in tasks]"
    ),
    "own functions": ("async def one(n):\n    return await echo(n)\nawait asyncio.gather(one(1), one(2), one(3))"),
    "run": ("async def main():\n    return await asyncio.gather(echo(1), echo(2), echo(3))\nasyncio.run(main())"),
    "threads": "await asyncio.gather(*(asyncio.to_thread(echo, n) for n in (1, 2, 3)))",
    "wait_for": "await asyncio.gather(*(asyncio.wait_for(echo(n), 5) for n in (1, 2, 3)))",
    "as_completed": ("sorted([await done for done in asyncio.as_completed([echo(n) for n in (1, 2, 3)])])"),
    "a semaphore": (
        "gate = asyncio.Semaphore(3)\n"
        "async def one(n):\n    async with gate:\n        return await echo(n)\n"
        "await asyncio.gather(*[one(n) for n in (1, 2, 3)])"
    ),
    "wait": (
        "done, _ = await asyncio.wait([asyncio.create_task(echo(n)) for n in (1, 2, 3)])\n"
        "sorted(task.result() for task in done)"
    ),
}


@pytest.mark.parametrize("source", SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE.keys())
def test_awaited_calls_run_side_by_side_on_the_host(run: Runner, source: str) -> None:
    result = run(source, Meeting(3))
    assert (result.status, result.value) == ("finished", [1, 2, 3])


async def test_awaited_calls_run_side_by_side_on_a_loop(run: Runner) -> None:
    program = Program(source=SIDE_BY_SIDE["gather"], tools=TOOLS)
    result = await run.sandbox.run_async(program, Meeting(3).awaited)
    assert (result.status, result.value) == ("finished", [1, 2, 3])


AT_ONCE = {
    "a call before the await": "rows = search('x')\nawait echo(1)\nrows[0]['title']",
    "a loop over a call": "await echo(0)\ntitles = [row['title'] for row in search('x', 1)]\ntitles[0]",
    "an argument": "await echo(echo('x'))",
    "an argument of an own function": ("async def same(value):\n    return value\nawait same(echo('x'))"),
    "a plain helper": "def get(value):\n    return echo(value)\n(await asyncio.gather(get('x')))[0]",
    "an awaited plain helper": "def get(value):\n    return echo(value)\nawait get('x')",
    "a call returned": "async def get(value):\n    return echo(value)\nawait get('x')",
    "a function in a list": "calls = [echo]\nawait calls[0]('x')",
    "a name that is rebound": "echo = str\nawait asyncio.gather(asyncio.sleep(0))\necho('x')",
    "a value that is awaited": "value = 'x'\nawait asyncio.wait_for(value, 1)",
}


@pytest.mark.parametrize("source", AT_ONCE.values(), ids=AT_ONCE.keys())
def test_a_call_without_await_gives_its_value_at_once(run: Runner, source: str) -> None:
    result = run(source)
    assert (result.status, result.value) == ("finished", "x")


def test_a_plain_call_in_async_code_is_made_alone(run: Runner) -> None:
    tools = FakeTools()
    run("rows = search('x')\nawait asyncio.gather(echo(1), echo(2))", tools)
    assert [(call.tool, call.parallel) for call in tools.calls] == [("search", False), ("echo", True), ("echo", True)]


def test_calls_beyond_the_outstanding_ones_wait_in_the_program(run: Runner) -> None:
    result = run("await asyncio.gather(*[echo(n) for n in range(50)])", outstanding_calls=2)
    assert (result.status, result.value) == ("finished", list(range(50)))


def test_a_tools_exception_can_be_gathered(run: Runner) -> None:
    source = (
        "found = await asyncio.gather(echo(1), fail('RateLimited', 'no'), return_exceptions=True)\n"
        "[found[0], type(found[1]).__name__]"
    )
    assert run(source).value == [1, "RateLimited"]


def test_a_call_that_is_no_longer_awaited_is_dropped(run: Runner) -> None:
    never = asyncio.Event

    class Stuck(FakeTools):
        async def awaited(self, call):  # type: ignore[no-untyped-def]
            self.calls.append(call)
            await never().wait()

    source = "try:\n    await asyncio.wait_for(echo(1), 0.02)\nexcept TimeoutError:\n    print('late')"
    tools = Stuck()
    result = asyncio.run(run.sandbox.run_async(Program(source=source, tools=TOOLS), tools.awaited))
    assert (result.stdout, [call.status for call in result.calls]) == ("late\n", ["dropped"])


def test_sleeping_takes_its_time_and_no_processor(run: Runner) -> None:
    result = run("await asyncio.sleep(0.05)\n1")
    assert result.value == 1
    assert result.duration_s >= 0.05


def test_timers_go_off_in_order(run: Runner) -> None:
    source = """
order = []
async def after(seconds):
    await asyncio.sleep(seconds)
    order.append(seconds)
await asyncio.gather(after(0.9), after(0.1), after(0.5))
order
"""
    assert run(source).value == [0.1, 0.5, 0.9]


def test_answers_come_to_a_program_that_only_yields(run: Runner) -> None:
    source = "task = asyncio.create_task(echo(7))\nwhile not task.done():\n    await asyncio.sleep(0)\ntask.result()"
    assert run(source).value == 7


def test_waiting_for_nothing_is_an_error_at_once(run: Runner) -> None:
    error = run("await asyncio.Event().wait()").error
    assert error is not None
    assert error.message == "the program awaits something that can no longer happen"


def test_an_exception_that_nobody_looked_at_is_printed(run: Runner) -> None:
    source = (
        "async def broken():\n    raise ValueError('lost')\n"
        "task = asyncio.create_task(broken())\nawait asyncio.sleep(0)\nawait asyncio.sleep(0)\ndel task"
    )
    assert run(source).stdout == (
        "Task exception was never retrieved\n"
        "Traceback (most recent call last):\n"
        '  File "<program>", line 2, in broken\n'
        "    raise ValueError('lost')\n"
        "ValueError: lost\n"
    )


def test_a_program_ends_without_waiting_for_calls_it_left(run: Runner) -> None:
    class Late(FakeTools):
        async def awaited(self, call):  # type: ignore[no-untyped-def]
            await asyncio.Event().wait()

    source = "asyncio.create_task(echo(1))\nawait asyncio.sleep(0.02)\n'done'"
    program = Program(source=source, tools=TOOLS, limits=Limits(deadline_s=50))
    result = asyncio.run(run.sandbox.run_async(program, Late().awaited))
    assert (result.status, result.value, [call.status for call in result.calls]) == ("finished", "done", ["cancelled"])


def test_an_error_of_ours_is_shown_by_its_bare_name(run: Runner) -> None:
    assert run("await asyncio.Event().wait()").for_model.splitlines()[-1] == (
        "Deadlock: the program awaits something that can no longer happen"
    )
