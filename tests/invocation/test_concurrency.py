"""Several event loops and threads use one catalogue and one scope at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from tests.invocation.world import World
from tests.patience import PATIENCE_S
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.ports.blocking import BlockingPorts
from toolwire.invocation.scope import Scope
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

CALLS = [ToolCall(("plain", "later", "alone")[n % 3], {"n": n}, id=f"r_{n}") for n in range(15)]
BLOCKING_CALLS = [call for call in CALLS if call.name != "later"]


def test_loops_and_threads_share_one_scope_without_a_mix_up() -> None:
    world, inside, crowds = World(driver="blocking"), [], []

    def plain(n: int) -> int:
        return n

    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    def alone(n: int) -> int:
        inside.append(n)
        crowds.append(len(inside))
        inside.pop()
        return n

    world.add(plain)
    world.add(later)
    world.add(alone, parallel=False)
    loop_scope, blocking_scope = world.loop_scope(), world.scope(BlockingPorts(world.runtime))
    found: list[list[int]] = []

    def on_a_loop() -> None:
        for _ in range(5):
            found.append(data(asyncio.run(invoke_all(CALLS, loop_scope))))

    def on_a_thread() -> None:
        for _ in range(5):
            found.append(data(step(invoke_all(BLOCKING_CALLS, blocking_scope))))

    def on_the_portal() -> None:
        for _ in range(5):
            found.append(data(world.runtime.portal.run(lambda: invoke_all(CALLS, loop_scope))))

    in_threads([on_a_loop, on_a_thread, on_the_portal] * 2)
    world.runtime.close()
    assert sorted(found) == sorted([list(range(15))] * 20 + [[n for n in range(15) if n % 3 != 1]] * 10)
    assert set(crowds) == {1}
    assert len(world.recording.records) == 20 * 15 + 10 * 10


def data(results: list[ToolResult]) -> list[int]:
    return [result.data for result in results]


def in_threads(functions: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


def test_a_loop_and_a_thread_pass_the_same_gate_in_turn() -> None:
    world = World(driver="blocking")
    entered, may_leave, visits = threading.Event(), threading.Event(), []

    def work(n: int) -> None:
        visits.append(f"+{n}")
        entered.set()
        may_leave.wait(PATIENCE_S)
        visits.append(f"-{n}")

    async def run(scope: Scope, n: int) -> list[ToolResult]:
        return await invoke_all([ToolCall("work", {"n": n})], scope)

    world.add(work, parallel=False)
    on_a_loop = threading.Thread(target=lambda: asyncio.run(run(world.loop_scope(), 1)))
    on_a_thread = threading.Thread(target=lambda: step(run(world.scope(BlockingPorts(world.runtime)), 2)))
    on_a_loop.start()
    assert entered.wait(PATIENCE_S)
    on_a_thread.start()
    may_leave.set()
    on_a_loop.join(PATIENCE_S)
    on_a_thread.join(PATIENCE_S)
    world.runtime.close()
    assert visits == ["+1", "-1", "+2", "-2"]
