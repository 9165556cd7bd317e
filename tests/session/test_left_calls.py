"""A call that its program or turn has left does not begin, or is cancelled once and awaited while it cleans up."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.session.test_suspended import decided, waiting
from toolwire import Session, ToolRegistry, Turn
from toolwire.sandbox.limits import Limits
from toolwire.testing import MemoryStore

RUNS = 60
SHORT_S = 0.2
"""A limit of the clean-up that a test reaches on purpose."""
NOT_RUN = "[not run, because the program ended or gave the call up first: slow. Await a call to run it.]"
CANCELLED = "[cancelled, because the program ended first: slow. It may have taken effect.]"
RUNNING = "[still running after the program has ended: slow. It may yet take effect.]"

LEAVES_UNSENT = "task = asyncio.create_task(slow())\nawait asyncio.sleep(0)\n__result__ = 1"
LEAVES = "task = asyncio.create_task(slow())\nawait begun()\n__result__ = 1"
TIMES_OUT = "try:\n    await asyncio.wait_for(slow(), 0.05)\nexcept TimeoutError:\n    __result__ = 1"
CANCELS = "task = asyncio.create_task(slow())\nawait begun()\ntask.cancel()\n__result__ = 1"
FAILS = "await asyncio.gather(slow(), begun_and_fail())"


class Work:
    """A tool that waits until it is cancelled, and then cleans up. `steps` are the events in their order."""

    def __init__(self, *, cleans_up_for: int = 20) -> None:
        self.steps: list[str] = []
        self.has_begun = threading.Event()
        self.release = threading.Event()
        self._turns = cleans_up_for

    async def slow(self) -> None:
        self.has_begun.set()
        self.steps.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.steps.append("cancelled")
            raise
        finally:
            for _ in range(self._turns):
                await asyncio.sleep(0.005)
            self.steps.append("cleaned up")

    async def never_ends(self) -> None:
        self.has_begun.set()
        for _ in range(1000):
            if self.release.is_set():
                return
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                self.steps.append("cancelled")

    def in_a_thread(self) -> None:
        self.has_begun.set()
        self.steps.append("begun")
        self.release.wait(PATIENCE_S)
        self.steps.append("ended")

    def registry(self, slow: Callable[..., Any], *, is_plain: bool = False) -> ToolRegistry:
        """The tool as `slow`, and tools that wait for its start: async ones, plain ones, or both."""
        registry = ToolRegistry()
        registry.register(slow, name="slow")

        async def begun() -> None:
            await asyncio.to_thread(self.has_begun.wait, PATIENCE_S)

        async def begun_and_fail() -> None:
            await begun()
            raise ValueError("no")

        def begun_here() -> None:
            self.has_begun.wait(PATIENCE_S)

        def begun_here_and_fail() -> None:
            begun_here()
            raise ValueError("no")

        registry.register(begun_here if is_plain else begun, name="begun")
        registry.register(begun_here_and_fail if is_plain else begun_and_fail, name="begun_and_fail")
        return registry


def program(source: str) -> str:
    return f"<tool_call>{json.dumps([{'name': 'code_execution', 'arguments': {'code': source}}])}</tool_call>"


def shown(turn: Turn) -> str:
    """The text of the turn's only result."""
    (result,) = turn.results
    return result.text


@pytest.mark.parametrize("is_plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize("has_store", [False, True])
async def test_a_call_that_a_program_has_not_sent_when_it_ends_never_begins(is_plain: bool, has_store: bool) -> None:
    work = Work()
    work.release.set()
    slow = work.in_a_thread if is_plain else work.slow
    registry = work.registry(slow, is_plain=is_plain)
    log = registry.enable_logging()
    store = MemoryStore() if has_store else None
    session = Session(registry, protocol="json", programs=True, store=store)
    found = Counter([shown(await session.turn(program(LEAVES_UNSENT))) for _ in range(RUNS)])
    told = Counter((entry.status, entry.error) for entry in log.get_entries() if entry.tool_name == "slow")
    why = "'slow' was not started: its program gave the call up, or ended first."
    assert (work.steps, found) == ([], Counter({f"1\n{NOT_RUN}": RUNS}))
    assert [(status, str(error).startswith(why), count) for (status, error), count in told.items()] == [
        ("interrupted", True, RUNS)
    ]


@pytest.mark.parametrize(
    ("source", "text"),
    [(LEAVES, f"1\n{CANCELLED}"), (TIMES_OUT, "1"), (CANCELS, "1")],
    ids=["left", "timed out", "cancelled"],
)
def test_a_turn_ends_after_the_clean_up_of_the_calls_that_its_program_left(source: str, text: str) -> None:
    work = Work()
    session = Session(work.registry(work.slow), protocol="json", programs=True)
    turn = asyncio.run(session.turn(program(source)))
    assert (shown(turn), work.steps) == (text, ["begun", "cancelled", "cleaned up"])


def test_the_calls_beside_one_that_failed_are_cancelled_and_awaited() -> None:
    work = Work()
    session = Session(work.registry(work.slow), protocol="json", programs=True)
    text = shown(asyncio.run(session.turn(program(FAILS))))
    assert (CANCELLED in text.splitlines(), work.steps) == (True, ["begun", "cancelled", "cleaned up"])


async def test_a_call_that_ends_too_late_is_named_and_is_cancelled_once(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    registry = work.registry(work.never_ends)
    session = Session(registry, protocol="json", programs=True, limits=Limits(cleanup_s=SHORT_S))
    turn = await session.turn(program(LEAVES))
    (status,) = [call.status for call in turn.results[0].metadata["program"].calls if call.tool == "slow"]
    assert (shown(turn), status, work.steps) == (f"1\n{RUNNING}", "running", ["cancelled"])
    assert caplog.messages == ["slow still runs 0.2 s after its program has ended"]
    work.release.set()


async def test_a_call_in_a_thread_is_awaited_as_long_as_the_limit_allows() -> None:
    work = Work()
    registry = work.registry(work.in_a_thread, is_plain=True)
    session = Session(registry, protocol="json", programs=True, limits=Limits(cleanup_s=SHORT_S))
    assert (shown(await session.turn(program(LEAVES))), work.steps) == (f"1\n{RUNNING}", ["begun"])
    work.release.set()


async def test_a_call_in_a_thread_that_ends_in_time_is_not_named_as_running() -> None:
    work = Work()
    registry = work.registry(work.in_a_thread, is_plain=True)
    session = Session(registry, protocol="json", programs=True, limits=Limits(cleanup_s=PATIENCE_S))
    source = LEAVES.replace("await begun()", "await begun()\nawait free()")
    registry.register(work.release.set, name="free")
    text = shown(await session.turn(program(source)))
    # Whether the program still hears of its end is a matter of time.
    assert (text in ("1", f"1\n{CANCELLED}"), work.steps) == (True, ["begun", "ended"])


NATIVE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": str(n), "type": "function", "function": {"name": "slow", "arguments": "{}"}} for n in range(2)
    ],
}
TWO = {
    "openai": NATIVE,
    "json": f"<tool_call>{json.dumps([{'name': 'slow', 'arguments': {}}] * 2)}</tool_call>",
    "xml": "<tool_call>\n<name>slow</name>\n<params>\n</params>\n</tool_call>\n" * 2,
}


async def cancelled_turn(session: Session, reply: Any, work: Work, *, times: int = 1) -> None:
    """Cancels a turn so many times, when its tool has begun."""
    turn = asyncio.ensure_future(session.turn(reply))
    await asyncio.to_thread(work.has_begun.wait, PATIENCE_S)
    for _ in range(times):
        turn.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await turn


@pytest.mark.parametrize("has_store", [False, True])
@pytest.mark.parametrize("protocol", ["openai", "json", "xml"])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_turn_ends_after_the_clean_up_of_its_calls(
    protocol: str, times: int, has_store: bool
) -> None:
    work = Work()
    store = MemoryStore() if has_store else None
    await cancelled_turn(Session([work.slow], protocol=protocol, store=store), TWO[protocol], work, times=times)
    assert work.steps == [*["begun"] * 2, *["cancelled"] * 2, *["cleaned up"] * 2]


async def test_a_turn_that_is_cancelled_again_cancels_its_only_call_once() -> None:
    work = Work()
    await cancelled_turn(Session([work.slow], protocol="openai"), one_call("slow"), work, times=3)
    assert work.steps == ["begun", "cancelled", "cleaned up"]


async def test_a_cancelled_turn_ends_after_the_clean_up_of_the_calls_of_its_program() -> None:
    work = Work()
    session = Session(work.registry(work.slow), protocol="json", programs=True)
    await cancelled_turn(session, program("await slow()"), work, times=2)
    assert work.steps == ["begun", "cancelled", "cleaned up"]


@pytest.mark.parametrize("is_sync", [False, True])
async def test_a_cancelled_turn_that_waits_in_vain_names_what_still_runs(
    is_sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work()
    registry = work.registry(work.in_a_thread if is_sync else work.never_ends)
    session = Session(registry, protocol="openai", limits=Limits(cleanup_s=SHORT_S), programs=True)
    await cancelled_turn(session, NATIVE, work, times=3)
    assert caplog.messages == ["a turn was cancelled, and 'slow' still runs after 0.2 s"]
    work.release.set()


def limited(work: Work, limits: Limits, way: str, protocol: str) -> Session:
    """A session of a tool that never ends in time, with the limits from one of their sources."""
    registry = work.registry(work.never_ends)
    match way:
        case "session" | "no programs":
            programs = False if way == "no programs" else None
            return Session(registry, protocol=protocol, limits=limits, programs=programs)
        case "store":
            return Session(registry, protocol=protocol, limits=limits, store=MemoryStore())
        case "resumable programs":
            return Session(registry, protocol=protocol, limits=limits, store=MemoryStore(), programs=True)
        case _:
            registry.enable_code_execution(limits=limits)
            toolkit = registry.create_agent_toolkit("helper", ["slow"])
            programs = False if way == "registry without programs" else None
            return Session(toolkit if way == "toolkit" else registry, protocol=protocol, programs=programs)


WAYS_OF_LIMITS = ["session", "no programs", "store", "resumable programs"]
WAYS_OF_LIMITS += ["registry", "registry without programs", "toolkit"]


@pytest.mark.parametrize("way", WAYS_OF_LIMITS)
@pytest.mark.parametrize("protocol", ["openai", "json", "xml"])
async def test_calls_without_a_program_have_the_clean_up_of_the_limits(
    protocol: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work()
    await cancelled_turn(limited(work, Limits(cleanup_s=SHORT_S), way, protocol), TWO[protocol], work)
    assert (work.release.is_set(), set(work.steps)) == (False, {"cancelled"})
    assert caplog.messages == ["a turn was cancelled, and 'slow' still runs after 0.2 s"]
    work.release.set()


@pytest.mark.parametrize("protocol", ["openai", "json", "xml"])
async def test_the_control_a_longer_limit_lets_the_same_clean_up_end(protocol: str) -> None:
    for limit_s, ends in ((SHORT_S, False), (PATIENCE_S, True)):
        work = Work(cleans_up_for=200)
        session = Session([work.slow], protocol=protocol, limits=Limits(cleanup_s=limit_s))
        await cancelled_turn(session, TWO[protocol], work)
        assert ("cleaned up" in work.steps) is ends


async def test_a_turn_that_is_over_time_waits_for_the_clean_up_of_its_calls() -> None:
    work = Work()
    turn = await Session([work.slow], protocol="openai").turn(NATIVE, deadline_s=0.3)
    assert [result.failure and result.failure.kind for result in turn.results] == ["timeout"] * 2
    assert Counter(work.steps) == Counter({"begun": 2, "cancelled": 2, "cleaned up": 2})


def test_a_turn_whose_calls_end_leaves_nothing_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    work.release.set()
    with caplog.at_level(logging.DEBUG, "toolwire"):
        turn = asyncio.run(Session([work.in_a_thread], protocol="openai").turn(one_call("in_a_thread")))
    assert ([result.success for result in turn.results], caplog.messages) == ([True], [])


def one_call(name: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


RESUMED = """
task = asyncio.create_task(slow())
await asyncio.sleep(0)
task.cancel()
await asyncio.sleep(0)
__result__ = await pay(1)
"""


async def test_a_call_that_was_given_up_unsent_does_not_begin_when_the_program_is_resumed() -> None:
    work, paid = Work(), list[int]()
    registry = work.registry(work.slow)

    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    registry.register(pay, permission="confirm")
    store = MemoryStore()
    turn = await Session(registry, protocol="json", programs=True, store=store).turn(program(RESUMED))
    assert turn.suspended is not None
    decisions = decided(waiting(turn), "approve")
    again = await Session(registry, protocol="json", programs=True, store=store).resume(
        turn.suspended.run_id, decisions
    )
    assert (paid, work.steps, shown(again)) == ([1], [], f"paid\n{NOT_RUN}")
    assert [call.status for call in again.results[0].metadata["program"].calls] == ["not_started", "answered"]


@pytest.mark.parametrize(
    "start",
    ["create_task(slow())", "ensure_future(slow())", "gather(slow(), slow())", "wait([slow()])", "shield(slow())"],
)
def test_a_program_that_starts_a_call_and_never_awaits_runs_nothing(start: str) -> None:
    work = Work()
    result = work.registry(work.slow).run_program(f"import asyncio\ntask = asyncio.{start}\n__result__ = 1")
    assert (result.value, work.steps) == (1, [])
    assert result.for_model.startswith("1\n[not run, because the program ended or gave the call up first: slow")


@pytest.mark.parametrize("start", ["create_task(work())", "gather(work(), work())", "wait([work()])"])
def test_work_that_is_started_outside_of_async_code_is_refused_in_plain_words(start: str) -> None:
    source = f"async def work():\n    return 1\ndef f():\n    return asyncio.{start}\n__result__ = f()"
    told = ToolRegistry().run_program(source).for_model
    assert told.endswith("RuntimeError: no running event loop: call this in an async function, and await that one")
    assert "/" not in told
    assert "never awaited" not in told
