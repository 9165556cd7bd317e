"""Locked children kept ready: quick, clean, limited like any other, and never more than two."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import IS_SHORT_RERUN
from tests.patience import PATIENCE_S
from tests.sandbox.programs import FakeTools, Runner
from tests.sandbox.test_zygote import children_of, is_gone
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, ProgramCall

SPARES = 2
NEXT, MANY = (20, 60) if IS_SHORT_RERUN else (100, 300)
"""Programs that follow one with marks, and that may leave nothing in the zygote; fewer where this file runs again."""


def spares_of(sandbox: Sandbox) -> list[int]:
    """The spares, once they are all ready and the earlier programs have ended."""
    process = sandbox.zygotes.current().process_id
    until = time.monotonic() + PATIENCE_S
    while len(found := children_of(process)) != SPARES or any(map(was_given_a_program, found)):
        assert time.monotonic() < until, found
        threading.Event().wait(0.005)
    return found


def was_given_a_program(process: int) -> bool:
    """Whether it has a program's limits, or is gone. The host does not wait until the kernel has ended a program."""
    try:
        lines = Path(f"/proc/{process}/limits").read_text().splitlines()
    except OSError:
        return True
    return next(line.split()[3] != "unlimited" for line in lines if line.startswith("Max cpu time"))


def test_two_are_kept_ready(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    run("1")
    assert len(spares_of(sandbox)) == SPARES
    run("1")
    assert len(spares_of(sandbox)) == SPARES


def test_a_program_runs_in_a_spare(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    run("1")
    before = spares_of(sandbox)
    seen: list[list[int]] = []

    def look(call: ProgramCall) -> Answer:
        seen.append(children_of(sandbox.zygotes.current().process_id))
        return Answer(value=1)

    assert run("echo(1)", FakeTools(echo=look)).value == 1
    assert set(before) <= set(seen[0])
    spares_of(sandbox)
    assert is_gone(before[0]) or is_gone(before[1])


def test_each_spare_gets_the_limits_of_its_program(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    source = "try:\n    __result__ = len(bytearray(100 << 20))\nexcept MemoryError:\n    __result__ = 'too much'"
    for memory_mb, expected in ((256, 100 << 20), (64, "too much"), (256, 100 << 20)):
        spares_of(sandbox)
        assert run(source, memory_mb=memory_mb).value == expected
    spares_of(sandbox)
    assert run("while True: pass", cpu_s=1, wall_s=150, deadline_s=150).status == "timeout_cpu"


def test_a_spare_that_was_killed_is_replaced_unnoticed(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    run("1")
    for spare in spares_of(sandbox):
        os.kill(spare, 9)
        assert is_gone(spare)
    assert run("2").value == 2
    assert len(spares_of(sandbox)) == SPARES


MARK = """
import random
random.seed(1)
math.pi = 3
json.loads = None
re._cache = {}
left = 'behind'
__builtins__['left'] = 'behind'
statistics.sys.left = 'behind'
datetime.left = 'behind'
statistics.sys.modules['left'] = 'behind'
random._os.environ['left'] = 'behind'
class Left(Exception): pass
"""
TRACES = """
found = []
if math.pi != 3.141592653589793: found.append('pi')
if json.loads is None: found.append('json')
for name in ('left', 'Left'):
    if name in globals() or name in __builtins__: found.append(name)
if hasattr(statistics.sys, 'left') or 'left' in statistics.sys.modules: found.append('sys')
if 'left' in random._os.environ: found.append('environ')
if hasattr(datetime, 'left'): found.append('datetime')
__result__ = [found, random.random()]
"""


@pytest.mark.parametrize("waits", [True, False])
def test_nothing_of_a_run_is_found_by_the_next_hundred(sandbox: Sandbox, waits: bool) -> None:
    run = Runner(sandbox)
    marked = run(MARK, source_checks=False)
    assert marked.error is None, marked.error
    numbers: set[float] = set()
    for _ in range(NEXT):
        if waits:
            spares_of(sandbox)
        found, number = run(TRACES, source_checks=False).value
        assert found == []
        numbers.add(number)
    assert len(numbers) == NEXT


def resident_kb(process: int) -> int:
    """Memory that it holds, shared or not: the part shared with its spares comes and goes with them."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def test_many_runs_leave_the_zygotes_memory_and_descriptors_as_they_were(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    process = sandbox.zygotes.current().process_id

    def state() -> tuple[int, int]:
        spares_of(sandbox)
        return resident_kb(process), sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())

    for _ in range(50):
        run("print('x' * 1000)")
    memory, descriptors = state()
    for _ in range(MANY):
        run("print('x' * 1000)")
    after, descriptors_after = state()
    until = time.monotonic() + PATIENCE_S
    while descriptors_after > descriptors and time.monotonic() < until:
        # The last program's own descriptors are closed as soon as its end is reported.
        after, descriptors_after = state()
    assert descriptors_after <= descriptors
    assert after - memory < 512


def shared_kb(processes: list[int]) -> int:
    """All memory of these processes together, each page counted once, divided where others have it too."""
    rollups = [Path(f"/proc/{process}/smaps_rollup").read_text().splitlines() for process in processes]
    return sum(int(line.split()[1]) for lines in rollups for line in lines if line.startswith("Pss:"))


def test_a_live_program_takes_less_than_two_megabytes(sandbox: Sandbox) -> None:
    run = Runner(sandbox)
    run("1")
    zygote = sandbox.zygotes.current()
    if os.geteuid() != 0:
        # No other process may inspect a program's process, not even its parent; only root can measure it.
        with pytest.raises(PermissionError):
            shared_kb(spares_of(sandbox))
        return
    live = 20
    weighed: list[tuple[int, int]] = []

    def weigh() -> None:
        processes = [zygote.process_id, *children_of(zygote.process_id)]
        weighed.append((shared_kb(processes), len(processes)))

    there = threading.Barrier(live, action=weigh)

    def waits(call: ProgramCall) -> Answer:
        there.wait(PATIENCE_S)
        return Answer(value=1)

    spares_of(sandbox)
    weigh()
    threads = [threading.Thread(target=lambda: run("echo(1)", FakeTools(echo=waits))) for _ in range(live)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    # The spares that were there before run some of them, and more may have been made since.
    (before_kb, before), (after_kb, after) = weighed
    assert after - before >= live - SPARES
    assert (after_kb - before_kb) / (after - before) < 2000


def test_spares_end_with_the_sandbox(sandbox: Sandbox) -> None:
    Runner(sandbox)("1")
    spares = spares_of(sandbox)
    sandbox.close()
    assert all(is_gone(spare) for spare in spares)


def test_a_fresh_child_can_be_asked_for(sandbox: Sandbox) -> None:
    Runner(sandbox)("1")
    spares = spares_of(sandbox)
    child, _ = sandbox.zygotes.spawn(Limits(), kind="fresh")
    children = children_of(sandbox.zygotes.current().process_id)
    child.close()
    assert set(spares) < set(children)
