"""The owner of shared parts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.patience import PATIENCE_S
from tests.runtime.subprocesses import output_of
from toolwire.runtime.runtime import Runtime, default_runtime


class FakePart:
    """Remembers the calls made to it."""

    def __init__(self, name: str, events: list[str], fails: bool = False) -> None:
        self.name = name
        self.events = events
        self.fails = fails

    def close(self) -> None:
        self.events.append(f"close {self.name}")
        if self.fails:
            raise OSError(self.name)

    def after_fork(self) -> None:
        self.events.append(f"fork {self.name}")


def in_threads(count: int, function: Callable[[], None]) -> None:
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


def test_a_part_is_made_when_first_asked_for_and_kept() -> None:
    runtime, events = Runtime(), []
    part = runtime.own("a", lambda: FakePart("a", events))
    assert runtime.own("a", lambda: FakePart("other", events)) is part
    assert runtime.own("b", lambda: FakePart("b", events)) is not part


def test_a_part_is_made_once_though_many_threads_ask_at_once() -> None:
    runtime, made, found = Runtime(), [], []
    barrier = threading.Barrier(8)

    def make() -> FakePart:
        made.append(None)
        return FakePart("a", [])

    def ask() -> None:
        barrier.wait(PATIENCE_S)
        found.append((runtime.own("a", make), runtime.workers, runtime.portal))

    in_threads(8, ask)
    runtime.close()
    assert (len(made), len(found), len(set(found))) == (1, 8, 1)


def test_a_part_may_need_another_one_while_it_is_made() -> None:
    runtime, events = Runtime(), []

    def make() -> FakePart:
        runtime.own("inner", lambda: FakePart("inner", events))
        return FakePart("outer", events)

    runtime.own("outer", make)
    runtime.close()
    assert events == ["close outer", "close inner"]


def test_a_part_that_cannot_be_made_is_tried_again() -> None:
    runtime = Runtime()

    def fail() -> FakePart:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        runtime.own("a", fail)
    assert runtime.own("a", lambda: FakePart("a", [])).name == "a"


def test_parts_are_closed_last_made_first_and_made_anew_when_needed() -> None:
    runtime, events = Runtime(), []
    parts = [runtime.own(name, lambda name=name: FakePart(name, events)) for name in "abc"]
    runtime.close()
    assert events == ["close c", "close b", "close a"]
    runtime.close()
    assert len(events) == 3
    assert runtime.own("a", lambda: FakePart("a", events)) is not parts[0]


def test_a_part_that_fails_to_close_leaves_none_of_the_others_open() -> None:
    runtime, events = Runtime(), []
    for name in "abc":
        runtime.own(name, lambda name=name: FakePart(name, events, fails=name == "b"))
    worker = runtime.workers.start(threading.current_thread).result(PATIENCE_S)
    with pytest.raises(OSError, match="b"):
        runtime.close()
    worker.join(PATIENCE_S)
    assert (events, worker.is_alive()) == (["close c", "close b", "close a"], False)


def test_the_last_one_to_release_closes_the_parts() -> None:
    runtime, events = Runtime(), []
    runtime.hold()
    runtime.hold()
    runtime.own("a", lambda: FakePart("a", events))
    runtime.release()
    assert events == []
    runtime.release()
    assert events == ["close a"]


def test_workers_and_portal_end_with_the_runtime() -> None:
    before = set(threading.enumerate())
    runtime = Runtime()

    async def nothing() -> None: ...

    runtime.portal.run(nothing)
    runtime.workers.start(lambda: None).result(PATIENCE_S)
    threads = set(threading.enumerate()) - before
    runtime.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted((thread.name, thread.is_alive()) for thread in threads) == [
        ("toolwire-portal", False),
        ("toolwire-worker", False),
    ]


def test_everything_in_a_process_shares_one_runtime_by_default() -> None:
    assert default_runtime() is default_runtime()


def test_a_forked_child_lets_go_of_its_parents_parts_without_closing_them() -> None:
    script = """
        import os
        from tests.runtime.test_runtime import FakePart
        from toolwire.runtime.runtime import Runtime
        runtime, events = Runtime(), []
        part = runtime.own("a", lambda: FakePart("a", events))
        child = os.fork()
        if child == 0:
            own = runtime.own("a", lambda: FakePart("child's", events))
            runtime.close()
            os._exit(events != ["fork a", "close child's"])
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), events, runtime.own("a", None) is part)
    """
    assert output_of(script) == "0 [] True\n"


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_makes_its_own_threads_and_its_parent_keeps_its_own(leave: str) -> None:
    script = f"""
        import gc, os, sys, threading
        from toolwire.runtime.runtime import default_runtime

        runtime = default_runtime()

        async def where():
            return threading.current_thread().name, os.getpid()

        def use():
            portal, workers = runtime.portal.run(where), runtime.workers.start(os.getpid).result(50)
            return (*portal, workers) == ("toolwire-portal", os.getpid(), os.getpid())

        assert use()
        runtime.workers.start(lambda: threading.Event().wait())
        child = os.fork()
        if child == 0:
            gc.collect()
            assert use() and runtime.workers.busy == 0 and threading.active_count() == 3
            runtime.close()
            {leave}
        assert os.waitpid(child, 0)[1] == 0
        print(use(), runtime.workers.busy)
    """
    assert output_of(script) == "True 1\n"


def test_a_lock_that_was_held_at_the_fork_is_free_in_the_child() -> None:
    script = """
        import os, threading
        from toolwire.runtime.runtime import Runtime
        from tests.runtime.test_runtime import FakePart
        runtime, making, go_on = Runtime(), threading.Event(), threading.Event()

        def make():
            making.set()
            go_on.wait(50)
            return FakePart("a", [])

        thread = threading.Thread(target=lambda: runtime.own("a", make))
        thread.start()
        making.wait(50)
        child = os.fork()
        if child == 0:
            runtime.own("a", lambda: FakePart("a", []))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        go_on.set()
        thread.join(50)
    """
    assert output_of(script) == "0\n"


def test_the_interpreter_ends_with_everything_in_use_and_complains_of_nothing() -> None:
    script = """
        import asyncio, threading
        from toolwire.runtime.runtime import default_runtime
        runtime = default_runtime()
        tasks = []  # a loop keeps no task alive: a collection of garbage would take it

        async def begin():
            tasks.append(asyncio.ensure_future(asyncio.Event().wait()))

        runtime.portal.run(begin)
        runtime.workers.start(lambda: threading.Event().wait())
        print("done")
    """
    assert output_of(script) == "done\n"
