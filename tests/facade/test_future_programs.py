"""Programs whose tools answer later: futures and coroutines beside plain tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from tests.invocation.future_server import MANY, FutureServer
from tests.patience import PATIENCE_S
from toolwire import Limits, ToolRegistry, ToolResult
from toolwire.runtime.workers import Workers
from toolwire.sandbox.drive.call_drive import SHARE

GATHER = f"import asyncio\n__result__ = await asyncio.gather(*(far(n) for n in range({MANY})))"
PLAIN = "__result__ = [plain(n) for n in range(50)]"


def registry_of(*tools: Callable[..., Any], timeout_s: float | None = None) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in tools:
        registry.register(tool, timeout_s=timeout_s)
    # By default 64 calls of a program are open at once, and more wait in the program.
    registry.enable_code_execution(limits=Limits(outstanding_calls=MANY))
    return registry


def made(registry: ToolRegistry, code: str, driver: str) -> ToolResult:
    arguments = {"code": code}
    if driver == "blocking":
        return registry.invoke("code_execution", arguments)
    return asyncio.run(registry.ainvoke("code_execution", arguments))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """The jobs that were given to threads."""
    jobs: list[Callable[[], Any]] = []
    start = Workers.start

    def counted(self: Workers, function: Callable[[], Any]) -> Future[Any]:
        jobs.append(function)
        return start(self, function)

    monkeypatch.setattr(Workers, "start", counted)
    return jobs


@pytest.mark.parametrize("driver", ["blocking", "asyncio"])
def test_many_futures_of_a_program_are_all_under_way_and_take_no_thread(
    driver: str, started: list[Callable[[], Any]]
) -> None:
    result = made(registry_of(FutureServer().far, timeout_s=PATIENCE_S), GATHER, driver)
    assert result.success, result.text
    assert result.metadata["program"].value == [n * 2 for n in range(MANY)]
    # The thread that drives the program, and the thread that waits for it.
    assert len(started) <= 4


def test_the_control_blocking_calls_of_a_program_are_not_all_under_way() -> None:
    under_way: list[int] = []
    full, release = threading.Event(), threading.Event()

    def far(n: int) -> int:
        """Blocks its thread."""
        under_way.append(n)
        if len(under_way) >= SHARE:
            full.set()
        release.wait(PATIENCE_S)
        return n * 2

    found: list[ToolResult] = []
    thread = threading.Thread(target=lambda: found.append(made(registry_of(far), GATHER, "blocking")))
    thread.start()
    assert full.wait(PATIENCE_S)
    assert len(under_way) == SHARE
    release.set()
    thread.join(PATIENCE_S)
    assert found[0].metadata["program"].value == [n * 2 for n in range(MANY)]


def far_future(n: int) -> Future[int]:
    """Answers later."""
    future: Future[int] = Future()
    future.set_result(n)
    return future


async def far_coroutine(n: int) -> int:
    """Answers later."""
    await asyncio.sleep(0)
    return n


@pytest.mark.parametrize("driver", ["blocking", "asyncio"])
@pytest.mark.parametrize("other", [far_future, far_coroutine])
def test_plain_tools_beside_one_that_answers_later_stay_in_one_thread(
    driver: str, other: Callable[..., Any], started: list[Callable[[], Any]]
) -> None:
    threads: list[int] = []

    def plain(n: int) -> int:
        """Answers now."""
        threads.append(threading.get_ident())
        return n

    alone, beside = registry_of(plain), registry_of(plain, other)
    counts: list[int] = []
    for registry in (alone, beside):
        made(registry, PLAIN, driver)
        started.clear()
        threads.clear()
        assert made(registry, PLAIN, driver).success
        assert (len(threads), len(set(threads))) == (50, 1)
        counts.append(len(started))
    # A blocking caller's program is awaited on the portal: one hand-over more for the program, none for a call.
    assert counts[1] <= counts[0] + 1


@pytest.mark.parametrize("other", [far_future, far_coroutine])
def test_a_program_takes_one_thread_however_many_of_its_tools_answer_later(
    other: Callable[..., Any], started: list[Callable[[], Any]]
) -> None:
    def plain(n: int) -> int:
        """Answers now."""
        return n

    counts: list[int] = []
    for registry in (registry_of(other), registry_of(other, plain)):
        code = f"__result__ = [{other.__name__}(n) for n in range(50)]"
        made(registry, code, "asyncio")
        started.clear()
        assert made(registry, code, "asyncio").metadata["program"].value == list(range(50))
        counts.append(len(started))
    assert counts == [1, 1]


@pytest.mark.parametrize("driver", ["blocking", "asyncio"])
@pytest.mark.parametrize("other", [far_future, far_coroutine])
def test_calls_of_all_kinds_answer_one_program(driver: str, other: Callable[..., Any]) -> None:
    def plain(n: int) -> int:
        """Answers now."""
        return n

    name = other.__name__
    code = (
        f"import asyncio\na = {name}(1) + plain(2)\n"
        f"b = await asyncio.gather({name}(3), plain(4), {name}(5))\n__result__ = [a, *b]"
    )
    result = made(registry_of(plain, other), code, driver)
    assert (result.success, result.metadata["program"].value) == (True, [3, 3, 4, 5])


async def test_coroutine_tools_run_on_the_loop_of_the_caller() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def far() -> None:
        """Notes its loop."""
        loops.append(asyncio.get_running_loop())

    def plain() -> None:
        """Does nothing."""

    result = await registry_of(far, plain).ainvoke("code_execution", {"code": "far()\nplain()\nfar()"})
    assert (result.success, loops) == (True, [asyncio.get_running_loop()] * 2)


class Unanswered:
    """A tool whose future never resolves, and can be cancelled."""

    def __init__(self) -> None:
        self.future: Future[int] = Future()
        self.called = threading.Event()
        self.cancelled = threading.Event()
        self.future.add_done_callback(lambda _: self.cancelled.set())

    def far(self) -> Future[int]:
        """Never answers."""
        self.called.set()
        return self.future


async def test_a_future_is_cancelled_with_the_program_that_called_it() -> None:
    tool = Unanswered()
    registry = registry_of(tool.far)
    task = asyncio.create_task(registry.ainvoke("code_execution", {"code": "far()"}))
    assert await asyncio.to_thread(tool.called.wait, PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tool.cancelled.wait(PATIENCE_S)


async def test_a_future_is_cancelled_with_its_program_while_a_plain_tool_holds_the_thread() -> None:
    tool = Unanswered()
    inside, release = threading.Event(), threading.Event()

    def stuck() -> None:
        """Blocks its thread."""
        inside.set()
        release.wait(PATIENCE_S)

    code = "import asyncio\ntask = asyncio.create_task(far())\nawait asyncio.sleep(0.05)\nstuck()"
    task = asyncio.create_task(registry_of(tool.far, stuck).ainvoke("code_execution", {"code": code}))
    assert await asyncio.to_thread(inside.wait, PATIENCE_S)
    assert tool.called.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    is_cancelled = tool.cancelled.wait(PATIENCE_S / 10)
    release.set()
    assert is_cancelled


@pytest.mark.parametrize("driver", ["blocking", "asyncio"])
def test_a_future_is_cancelled_when_the_program_gives_it_up(driver: str) -> None:
    tool = Unanswered()

    def is_cancelled() -> bool:
        """Waits for the end of the other call."""
        return tool.cancelled.wait(PATIENCE_S)

    code = (
        "import asyncio\ntry:\n    await asyncio.wait_for(far(), 0.1)\nexcept TimeoutError:\n"
        "    __result__ = is_cancelled()"
    )
    result = made(registry_of(tool.far, is_cancelled), code, driver)
    assert (result.success, result.metadata["program"].value) == (True, True), result.text


@pytest.mark.parametrize("driver", ["blocking", "asyncio"])
def test_a_future_is_cancelled_when_the_program_ends_without_it(driver: str) -> None:
    tool = Unanswered()
    code = "import asyncio\ntask = asyncio.create_task(far())\nawait asyncio.sleep(0.1)\n__result__ = 1"
    made(registry_of(tool.far), code, driver)
    assert tool.called.is_set()
    assert tool.cancelled.wait(PATIENCE_S)


@pytest.mark.parametrize("driver", ["blocking", "asyncio"])
def test_the_deadline_of_a_program_ends_a_call_that_is_never_answered(driver: str) -> None:
    tool = Unanswered()
    registry = ToolRegistry()
    registry.register(tool.far)
    registry.enable_code_execution(limits=Limits(deadline_s=1.5))
    result = made(registry, "far()", driver)
    assert result.failure is not None
    assert tool.cancelled.wait(PATIENCE_S)
