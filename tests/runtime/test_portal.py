"""A home loop for coroutines that blocking code waits for."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.runtime.subprocesses import output_of
from toolwire.runtime.portal import Portal
from toolwire.runtime.workers import Workers


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    yield portal
    portal.close()


async def where() -> tuple[asyncio.AbstractEventLoop, int]:
    await asyncio.sleep(0)
    return asyncio.get_running_loop(), threading.get_ident()


def test_blocking_code_gets_what_a_coroutine_returns(portal: Portal) -> None:
    loop, thread = portal.run(where)
    assert portal.run(where) == (loop, thread)
    assert thread != threading.get_ident()


def test_an_exception_of_the_coroutine_is_raised_here(portal: Portal) -> None:
    async def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        portal.run(fail)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_coroutine_that_wants_to_end_the_program_ends_only_itself(portal: Portal, error: type[BaseException]) -> None:
    async def leave() -> None:
        raise error

    async def leave_together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(leave())

    for coroutine in (leave, leave_together):
        with pytest.raises(error):
            portal.run(coroutine)
    assert portal.run(where)[1] != threading.get_ident()


async def test_code_inside_of_a_running_loop_can_block_on_it(portal: Portal) -> None:
    assert portal.run(where)[0] is not asyncio.get_running_loop()


def test_the_coroutine_sees_its_callers_context_variables(portal: Portal) -> None:
    colour = contextvars.ContextVar("colour", default="none")

    async def look() -> str:
        return colour.get()

    async def look_nested() -> str:
        return portal.run(look)

    colour.set("red")
    assert (portal.run(look), portal.run(look_nested)) == ("red", "red")


def test_a_tool_on_the_portal_can_call_blocking_code_that_needs_it_to_any_depth(portal: Portal) -> None:
    workers = Workers()

    async def dive(levels: int) -> int:
        await asyncio.sleep(0)
        if levels == 0:
            return 0
        if levels % 2:
            # The sync tool in between runs in a worker, which has to know as well that the portal waits for it.
            future = workers.start(lambda: portal.run(lambda: dive(levels - 1)))
            return 1 + await asyncio.wrap_future(future)
        return 1 + portal.run(lambda: dive(levels - 1))

    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(portal.run(lambda: dive(5))), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert found == [5]


def test_many_threads_share_the_one_loop(portal: Portal) -> None:
    barrier, loops = asyncio.Barrier(8), []

    async def meet() -> asyncio.AbstractEventLoop:
        await barrier.wait()
        return asyncio.get_running_loop()

    threads = [threading.Thread(target=lambda: loops.append(portal.run(meet))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (len(loops), len(set(loops))) == (8, 1)


def test_closing_cancels_what_runs_and_ends_the_thread() -> None:
    before = set(threading.enumerate())
    portal, begun, ends = Portal(), threading.Event(), []

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ends.append("cleaned up")

    def call() -> None:
        try:
            portal.run(wait)
        except BaseException as error:
            ends.append(type(error).__name__)

    thread = threading.Thread(target=call)
    thread.start()
    assert begun.wait(PATIENCE_S)
    portal.close()
    thread.join(PATIENCE_S)
    assert ends == ["cleaned up", "CancelledError"]
    assert set(threading.enumerate()) <= before


def test_closing_does_not_cancel_a_second_time_what_is_cleaning_up() -> None:
    portal, steps = Portal(), list[str]()
    begun, cleans_up = threading.Event(), threading.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleans_up.set()
            for step in ("first", "second"):
                await asyncio.sleep(0.01)
                steps.append(step)

    future = portal.start(wait)
    assert begun.wait(PATIENCE_S)
    future.cancel()
    assert cleans_up.wait(PATIENCE_S)
    portal.close()
    assert steps == ["first", "second"]


def test_a_closed_portal_says_so_and_closing_again_does_nothing() -> None:
    portal = Portal()
    portal.close()
    portal.close()
    with pytest.raises(RuntimeError, match=r"^the portal was closed$"):
        portal.run(where)


def test_a_tool_may_close_the_portal_that_runs_it() -> None:
    portal = Portal()

    async def close() -> str:
        portal.close()
        return "closed"

    assert portal.run(close) == "closed"


@pytest.mark.parametrize("is_begun", [True, False])
def test_an_interrupt_that_comes_while_it_is_being_started_ends_it_too(
    portal: Portal, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    loop, _ = portal.run(where)
    begun, ended, free = threading.Event(), threading.Event(), threading.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def start_interrupted(*arguments: Any) -> None:
        # A signal can come after the loop was handed its work, and before that is known here.
        monkeypatch.undo()
        if not is_begun:
            loop.call_soon_threadsafe(free.wait, PATIENCE_S)
        loop.call_soon_threadsafe(*arguments)
        assert not is_begun or begun.wait(PATIENCE_S)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "call_soon_threadsafe", start_interrupted)
    with pytest.raises(KeyboardInterrupt):
        portal.run(wait)
    free.set()
    assert ended.wait(PATIENCE_S if is_begun else 0) == is_begun
    # By now the loop has come past it.
    assert (portal.run(where)[0], begun.is_set()) == (loop, is_begun)


def test_an_interrupt_of_the_waiting_thread_cancels_what_it_waits_for() -> None:
    script = """
        import asyncio, signal, threading
        from toolwire.runtime.runtime import default_runtime
        ended, main = threading.Event(), threading.main_thread().ident

        async def wait():
            try:
                asyncio.get_running_loop().call_soon(signal.pthread_kill, main, signal.SIGINT)
                await asyncio.Event().wait()
            finally:
                ended.set()

        try:
            default_runtime().portal.run(wait)
        except KeyboardInterrupt:
            print(ended.wait(50))
    """
    assert output_of(script) == "True\n"
