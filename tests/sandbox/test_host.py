"""One sandbox for threads and loops at once: cancelling, overload, and both drivers alike."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.patience import PATIENCE_S
from tests.sandbox.programs import ECHO, TOOLS, FakeTools, Runner
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.workers import Workers
from toolwire.sandbox.admission import Overloaded, Places
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, Program, ProgramCall, ProgramTool
from toolwire.sandbox.report import ProgramResult
from toolwire.vocabulary.errors import DefinitionError

SOURCES = {
    "finishes": "print(add(1, 2))\nsearch('x', 1)",
    "fails": "print('a')\nfail('RateLimited', 'no')",
    "syntax": "x = (",
    "refused": "import os",
    "exits": "random._os._exit(3)",
    "loops": "while True: pass",
    "calls too often": "for n in range(9): echo(n)",
    "gathers": "await asyncio.gather(echo(1), search('x'), return_exceptions=True)",
    "big": "len(echo('ü' * 100_000))",
}


def shape(result: ProgramResult) -> tuple[object, ...]:
    calls = [(call.ordinal, call.tool, call.arguments, call.status) for call in result.calls]
    return result.status, result.value, result.has_value, result.stdout, result.error, calls


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
async def test_all_ways_to_run_give_the_same(run: Runner, source: str) -> None:
    # Only the program that loops is to meet its limit; a busy machine takes longer for the others.
    wall_s = 0.2 if source == SOURCES["loops"] else PATIENCE_S
    program = Program(source=source, tools=TOOLS, limits=Limits(wall_s=wall_s, deadline_s=PATIENCE_S, calls=5))
    blocking = await asyncio.to_thread(run.sandbox.run, program, FakeTools())
    awaited = await run.sandbox.run_async(program, FakeTools().awaited)
    beside = await run.sandbox.run_beside(program, FakeTools())
    assert shape(blocking) == shape(awaited) == shape(beside)


def test_threads_and_loops_share_one_sandbox(run: Runner) -> None:
    program = Program(source="[add(n, n) for n in range(20)]", tools=TOOLS)
    expected = [2 * n for n in range(20)]

    def blocking(_: int) -> object:
        return run.sandbox.run(program, FakeTools()).value

    def on_a_loop(_: int) -> object:
        async def several() -> list[object]:
            results = await asyncio.gather(*(run.sandbox.run_async(program, FakeTools().awaited) for _ in range(3)))
            return [result.value for result in results]

        return asyncio.run(several())

    with ThreadPoolExecutor(8) as pool:
        plain = list(pool.map(blocking, range(12)))
        looped = list(pool.map(on_a_loop, range(4)))
    assert plain == [expected] * 12
    assert looped == [[expected] * 3] * 4


def test_a_flag_cancels_a_run(run: Runner) -> None:
    flag = threading.Event()

    def cancels(call: ProgramCall) -> Answer:
        flag.set()
        return Answer()

    program = Program(source="print('a')\necho(1)\nwhile True: pass", tools=TOOLS)
    result = run.sandbox.run(program, FakeTools(echo=cancels), cancel=flag)
    assert result.error is not None
    assert (result.status, result.stdout, result.error.message) == ("cancelled", "a\n", "the program was cancelled.")


def test_a_flag_cancels_a_run_whose_tool_is_stuck(run: Runner) -> None:
    flag, release, tool_ended = threading.Event(), threading.Event(), threading.Event()

    def stuck(call: ProgramCall) -> Answer:
        flag.set()
        release.wait(PATIENCE_S)
        tool_ended.set()
        return Answer()

    result = run.sandbox.run(Program(source="echo(1)", tools=TOOLS), FakeTools(echo=stuck), cancel=flag)
    assert (result.status, [call.status for call in result.calls]) == ("cancelled", ["cancelled"])
    assert not tool_ended.is_set()
    release.set()


async def test_cancelling_the_task_cancels_its_calls_and_ends_the_program(run: Runner) -> None:
    seen: list[str] = []
    called = asyncio.Event()

    async def stuck(call: ProgramCall) -> Answer:
        called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return Answer()

    task = asyncio.create_task(run.sandbox.run_async(Program(source="echo(1)", tools=TOOLS), stuck))
    await asyncio.wait_for(called.wait(), PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_cancelling_beside_ends_the_program(run: Runner) -> None:
    called = threading.Event()
    program = Program(source="echo(1)\nwhile True: pass", tools=TOOLS)
    tools = FakeTools(echo=lambda call: (called.set(), Answer())[1])
    task = asyncio.create_task(run.sandbox.run_beside(program, tools))
    assert await asyncio.to_thread(called.wait, PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Meant(BaseException):
    """An error for the caller that runs the program, not a tool's error."""


def raises_meant(call: ProgramCall) -> Answer:
    raise Meant


@pytest.mark.parametrize("source", ["echo(1)\nwhile True: pass", "await asyncio.gather(echo(1), echo(2))"])
async def test_an_exception_that_no_tool_raised_reaches_the_caller(run: Runner, source: str) -> None:
    program = Program(source=source, tools=TOOLS)
    with pytest.raises(Meant):
        await asyncio.to_thread(run.sandbox.run, program, raises_meant)
    with pytest.raises(Meant):
        await run.sandbox.run_async(program, FakeTools(echo=raises_meant).awaited)


def test_more_programs_than_places_wait_and_then_run(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setattr(run.sandbox, "_places", Places(live_cap=1, queue_cap=8))
    program = Program(source="echo(1)", tools=TOOLS)
    with ThreadPoolExecutor(4) as pool:
        values = [result.value for result in pool.map(lambda _: run.sandbox.run(program, FakeTools()), range(4))]
    assert values == [1, 1, 1, 1]


@pytest.mark.threat(54)
def test_more_than_the_queue_holds_is_refused_with_the_figures(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setattr(run.sandbox, "_places", Places(live_cap=1, queue_cap=1))
    entered, release = threading.Barrier(2), threading.Event()

    def holds(call: ProgramCall) -> Answer:
        entered.wait(PATIENCE_S)
        release.wait(PATIENCE_S)
        return Answer(value="held")

    program = Program(source="echo(1)", tools=TOOLS)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run.sandbox.run, program, FakeTools(echo=holds))
        entered.wait(PATIENCE_S)
        waiting = Program(source="'waited'", tools=TOOLS, limits=Limits(deadline_s=PATIENCE_S))
        second = pool.submit(run.sandbox.run, waiting, FakeTools())
        while not run.sandbox._places.overload_error().waiting:
            pass
        with pytest.raises(Overloaded) as refusal:
            run.sandbox.run(program, FakeTools())
        release.set()
        assert (first.result(PATIENCE_S).value, second.result(PATIENCE_S).value) == ("held", "waited")
    assert (refusal.value.live, refusal.value.waiting) == (1, 1)
    assert str(refusal.value) == "1 program runs, and 1 waits for a place; try again later"


async def test_waiting_for_a_place_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    places = Places(live_cap=1, queue_cap=4)
    monkeypatch.setattr(run.sandbox, "_places", places)
    held = places.take()
    program = Program(source="1", limits=Limits(deadline_s=0.05))
    with pytest.raises(Overloaded):
        await asyncio.to_thread(run.sandbox.run, program, FakeTools())
    with pytest.raises(Overloaded):
        await run.sandbox.run_async(program, FakeTools().awaited)
    places.give_back(held)
    assert run.sandbox.run(program, FakeTools()).value == 1


def test_a_place_is_passed_over_a_waiter_that_gave_up() -> None:
    places = Places(live_cap=1, queue_cap=3)
    held, gone, waiting = places.take(), places.take(), places.take()
    gone.cancel()
    places.give_back(held)
    assert (waiting.done(), gone.cancelled()) == (True, True)
    places.give_back(gone)
    places.give_back(waiting)
    assert places.take().done()


def test_without_a_free_worker_parallel_calls_run_one_after_the_other() -> None:
    with Sandbox() as sandbox:
        sandbox._callers = Workers(0, waiting_cap=0)
        program = Program(source="await asyncio.gather(echo(1), echo(2), echo(3))", tools=TOOLS)
        assert sandbox.run(program, FakeTools()).value == [1, 2, 3]


def test_without_any_driver_a_run_is_refused() -> None:
    with Sandbox() as sandbox:
        sandbox._drivers = Workers(0, waiting_cap=0)
        with pytest.raises(Overloaded):
            sandbox.run(Program(source="1"), FakeTools())


def test_a_runtime_owns_a_sandbox() -> None:
    runtime = Runtime()
    sandbox = runtime.own("sandbox", Sandbox)
    assert sandbox.run(Program(source="1"), FakeTools()).value == 1
    runtime.close()
    assert not sandbox.zygotes.is_ready


def test_a_tool_may_run_a_program_itself(run: Runner) -> None:
    tools = FakeTools(echo=lambda call: Answer(value=run(f"add({call.arguments['value']}, 1)").value))
    assert run("echo(41)", tools).value == 42


@pytest.mark.parametrize("name", ["two words", "class", "a-b", ""])
def test_a_tool_that_no_program_can_write_is_a_definition_error(run: Runner, name: str) -> None:
    tool = ProgramTool(name="x", program_name=name)
    with pytest.raises(DefinitionError, match="give it an identifier"):
        run.sandbox.run(Program(source="1", tools=(ECHO, tool)), FakeTools())
