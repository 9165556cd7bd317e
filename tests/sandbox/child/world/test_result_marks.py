"""A program that assigns `__result__` again, before it has read it, is told which values are lost."""

from __future__ import annotations

import pytest

from tests.sandbox.programs import Runner

LOST = (
    "[{} assigned to __result__ before its last one: only the last is the result. "
    "Put all into one list or dict, or print them.]"
)
ONE = LOST.format("1 value is lost that was")
TWO = LOST.format("2 values are lost that were")
LOSES = {
    "three in a row": ("__result__ = 1\n__result__ = 2\n__result__ = 3", TWO),
    "in a loop": ("for n in range(3):\n    __result__ = n + 500", TWO),
    "in a branch": ("__result__ = 1\nif True:\n    __result__ = 2", ONE),
    "with others": ("__result__, rest = 1, 2\n__result__ = rest", ONE),
    "annotated": ("__result__: int = 1\n__result__: int = 2", ONE),
    "by a walrus": ("(__result__ := 1)\n__result__ = 2", ONE),
    "added to, then again": ("__result__ = 1\n__result__ += 2\n__result__ = 9", ONE),
    "read too late": ("__result__ = 1\n__result__ = 2\nprint(__result__)", ONE),
    "by a loop's head": ("for __result__ in [1, 2]:\n    pass", ONE),
    "by a with": ("__result__ = 1\nwith decimal.localcontext() as __result__:\n    pass\n__result__ = 3", TWO),
    "awaited": ("import asyncio\nawait asyncio.sleep(0)\n__result__ = 1\n__result__ = await echo(2)", ONE),
}
KEEPS = {
    "once": "__result__ = 1",
    "read between": "__result__ = 1\nprint(__result__)\n__result__ = 2",
    "read by a function": "def f():\n    return __result__\n__result__ = 1\nf()\n__result__ = 2",
    "read for the next": "__result__ = 1\n__result__ = __result__ + 1",
    "added to": "__result__ = 1\n__result__ += 1\n__result__ += 1",
    "changed in place": "__result__ = {'a': 1}\n__result__['b'] = 2\n__result__ = {**__result__}",
    "one of two branches": "if False:\n    __result__ = 1\nelse:\n    __result__ = 2",
    "one handler": "try:\n    __result__ = 1 // 0\nexcept ZeroDivisionError:\n    __result__ = 2",
    "nothing before": "__result__ = None\n__result__ = 2",
    "an empty list before": "__result__ = []\n__result__ = [1]",
    "one list that grows": "rows = [0]\nfor n in range(3):\n    rows.append(n)\n    __result__ = rows",
    "of a function": "def f():\n    __result__ = 1\n    __result__ = 2\n    return __result__\n__result__ = f()",
    "the last line reads it": "__result__ = 1\n__result__",
}


@pytest.mark.parametrize(("source", "notice"), LOSES.values(), ids=LOSES)
def test_a_value_that_was_replaced_unread_is_told_of(run: Runner, source: str, notice: str) -> None:
    result = run(source)
    assert (result.status, result.notice, result.for_model.splitlines()[-1]) == ("finished", notice, notice)


@pytest.mark.parametrize("source", KEEPS.values(), ids=KEEPS)
def test_a_value_that_was_read_or_is_kept_is_not(run: Runner, source: str) -> None:
    result = run(source)
    assert (result.status, result.notice) == ("finished", "")


@pytest.mark.of_processes
def test_a_failure_in_a_marked_line_is_shown_as_it_was_written(run: Runner) -> None:
    error = run("__result__ = 1\n__result__ = 1 // 0").error
    assert error is not None
    traceback = (
        'Traceback (most recent call last):\n  File "<program>", line 2, in <module>\n    __result__ = 1 // 0\n'
        "                 ~~^^~~\nZeroDivisionError: integer division or modulo by zero\n"
    )
    assert (error.line, error.traceback) == (2, traceback)
