"""The suspension of programs: its moment, the kept record, and the state that a program may depend on."""

from __future__ import annotations

import asyncio
import datetime
import sys
import threading
import time
from decimal import Decimal
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.sandbox.child.kernel.weakened import weakened
from tests.sandbox.drive.replayed import STARTED_AT, Approver, attempts, program, told
from tests.sandbox.programs import TOOLS, Runner
from tests.sandbox.programs import answer as answer_call
from toolwire.sandbox.answers import DROPPED, PARKED, Answer, Parked, Recorded, Replay, arguments_digest, replay_engine
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import ProgramResult
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.exact import digest_of_tagged
from toolwire.vocabulary.values import tag


def statuses(result: ProgramResult) -> list[tuple[int, str]]:
    return [(call.ordinal, call.status) for call in result.calls]


@pytest.mark.parametrize("on_loop", [False, True])
def test_parallel_calls_are_parked_together(run: Runner, on_loop: bool) -> None:
    tools = Approver(all_calls=True)
    runs = attempts((run.sandbox,), "await asyncio.gather(echo(1), echo(2), echo(3))", tools, on_loop=on_loop)
    assert statuses(runs[0]) == [(1, "parked"), (2, "parked"), (3, "parked")]
    assert (len(runs), runs[1].value) == (2, [1, 2, 3])


def test_printed_output_is_kept(run: Runner) -> None:
    result = run.sandbox.run(program("print('before')\necho(1)\nprint('after')"), Approver([1]))
    assert (result.status, result.stdout, result.has_value) == ("suspended", "before\n", False)
    assert result.error is not None
    assert result.error.message == "the program waits for a person."


def test_it_runs_on_until_the_others_are_answered(run: Runner) -> None:
    parked = threading.Event()

    def tools(call: ProgramCall) -> Answer | Parked:
        if call.ordinal == 1:
            parked.set()
            return PARKED
        assert parked.wait(PATIENCE_S)
        return answer_call(call)

    source = (
        "async def two():\n    for n in (1, 2):\n        print(await add(n, n))\n"
        "await asyncio.gather(echo('a person'), two())"
    )
    result = run.sandbox.run(program(source), tools)
    assert (result.status, result.stdout) == ("suspended", "2\n4\n")
    assert statuses(result) == [(1, "parked"), (2, "answered"), (3, "answered")]


def test_a_program_may_be_suspended_many_times(run: Runner) -> None:
    tools = Approver(all_calls=True)
    runs = attempts((run.sandbox,), "[echo(n) for n in range(20)]", tools, on_loop=False)
    assert (len(runs), runs[-1].value) == (21, list(range(20)))
    assert [call[0] for call in tools.made] == list(range(1, 21))
    assert [call.replayed for call in runs[-1].calls] == [True] * 19 + [False]


def test_a_timer_does_not_hold_it_up(run: Runner) -> None:
    source = "async with asyncio.timeout(30):\n    x = await echo(1)\nx"
    runs = attempts((run.sandbox,), source, Approver([1]), on_loop=False)
    assert [result.status for result in runs] == ["suspended", "finished"]
    assert runs[0].duration_s < 5


def test_a_call_that_was_given_up_is_not_made_again(run: Runner) -> None:
    never = threading.Event()

    def tools(call: ProgramCall) -> Answer | Parked:
        made.append(call.ordinal)
        if call.ordinal == 1:
            never.wait(PATIENCE_S)
        return PARKED if call.ordinal == 2 and made.count(2) == 1 else answer_call(call)

    made: list[int] = []
    source = "try:\n    await asyncio.wait_for(echo(1), 0.02)\nexcept TimeoutError:\n    print('late')\nawait echo(2)"
    first = run.sandbox.run(program(source), tools)
    assert statuses(first) == [(1, "dropped"), (2, "parked")]
    assert [one.answer for one in first.recorded] == [DROPPED, PARKED]
    # A busy machine may give the first call up before its thread has begun.
    before = [*made]
    second = run.sandbox.run(program(source, first.recorded), tools)
    never.set()
    assert (second.status, second.value, second.stdout) == ("finished", 2, "late\n")
    assert statuses(second) == [(1, "dropped"), (2, "answered")]
    assert [ordinal for ordinal in made if ordinal == 2] == [2, 2]
    assert made.count(1) == before.count(1)


def test_waiting_longer_for_what_was_given_up_is_a_divergence(run: Runner) -> None:
    record = Recorded(ordinal=1, tool="echo", arguments_digest=arguments_digest({"value": 1}), answer=DROPPED)
    tools = Approver()
    result = run.sandbox.run(program("await echo(1)", (record,)), tools)
    assert (result.status, tools.made) == ("divergence", [])
    assert result.error is not None
    assert "waits for step 1, a call of 'echo', which it had given up" in result.error.message


def test_timers_that_went_off_before_go_off_first_again(run: Runner) -> None:
    """A call made by a timer keeps its place although an answer is there at once now."""
    release = threading.Event()

    def tools(call: ProgramCall) -> Answer | Parked:
        if call.arguments["value"] == "slow":
            release.wait(PATIENCE_S)
        if call.arguments["value"] == "late" and not is_approved:
            release.set()
        return answer_call(call) if is_approved or call.arguments["value"] == "slow" else PARKED

    is_approved = False
    source = (
        "async def paid():\n    print('paid', await echo('pay'))\n    await echo('then')\n"
        "async def late():\n    await asyncio.sleep(0.02)\n    print('late', await echo('late'))\n"
        "await asyncio.gather(paid(), late(), echo('slow'))"
    )
    first = run.sandbox.run(program(source), tools)
    assert [one.tool for one in first.recorded] == ["echo"] * 3
    assert statuses(first) == [(1, "parked"), (2, "answered"), (3, "parked")]
    is_approved = True
    second = run.sandbox.run(program(source, first.recorded), tools)
    assert (second.status, [call.arguments["value"] for call in second.calls]) == (
        "finished",
        ["pay", "slow", "late", "then"],
    )


def test_only_parked_calls_do_not_stop_the_programs_clock(run: Runner) -> None:
    source = "task = asyncio.create_task(echo(1))\nawait asyncio.sleep(0)\nawait echo(2)\nwhile True: pass"
    result = run.sandbox.run(program(source, limits={"wall_s": 0.3}), Approver([1]))
    assert result.status == "timeout_program"


def test_recorded_calls_count(run: Runner) -> None:
    source = "for n in range(6): echo(n)"
    record = run.sandbox.run(program(source), Approver([5])).recorded
    tools = Approver()
    result = run.sandbox.run(program(source, record, limits={"calls": 5}), tools)
    assert (result.status, len(tools.made)) == ("calls", 1)


def test_a_record_of_many_and_large_answers(run: Runner) -> None:
    source = (
        "total = 0\nfor n in range(200):\n    total += len(echo('x' * 1000))\n"
        "big = echo('y' * 3_000_000)\nlen(echo(big)) + total"
    )
    whole = run.sandbox.run(program(source), Approver())
    tools = Approver()
    again = run.sandbox.run(program(source, whole.recorded), tools)
    assert (again.value, told(again), tools.made) == (3_200_000, told(whole), [])


def test_the_record_is_told_as_it_grows(run: Runner) -> None:
    noted: list[Recorded] = []
    source = "a = echo(1)\nawait asyncio.gather(echo(2), echo(3))\necho(4)"
    result = run.sandbox.run(program(source, on_recorded=noted.append), Approver([4]))
    assert sorted(noted, key=lambda one: one.ordinal) == list(result.recorded)
    assert [one.completed for one in noted] == [1, 2, 3, 0]
    again = run.sandbox.run(program(source, tuple(noted)), Approver())
    assert (again.status, again.value) == ("finished", 4)


@pytest.mark.parametrize("on_loop", [False, True])
def test_a_record_that_cannot_be_kept_ends_the_program(run: Runner, on_loop: bool) -> None:
    def full(_: Recorded) -> None:
        raise OSError("the disk is full")

    tools = Approver()
    broken = program("echo(1)\necho(2)", on_recorded=full)
    sandbox = run.sandbox
    with pytest.raises(OSError, match="the disk is full"):
        asyncio.run(sandbox.run_async(broken, tools.awaited)) if on_loop else sandbox.run(broken, tools)
    assert len(tools.made) == 1


@pytest.mark.parametrize("on_loop", [False, True])
def test_a_program_that_is_not_resumable_cannot_wait_for_a_person(run: Runner, on_loop: bool) -> None:
    source = "try:\n    echo(1)\nexcept ToolDenied as e:\n    print(e)"
    plain, tools = Program(source=source, tools=TOOLS), Approver([1])
    result = asyncio.run(run.sandbox.run_async(plain, tools.awaited)) if on_loop else run.sandbox.run(plain, tools)
    assert result.stdout == ("the call waits for a person, and this program cannot be suspended: it is not resumable\n")


def test_its_clocks_stand_until_an_answer_moves_them(run: Runner) -> None:
    source = (
        "a, b = datetime.now(), datetime.now()\necho(1)\n[a.timestamp(), b.timestamp(), datetime.now().timestamp()]"
    )
    before = time.time()
    first, second, third = run.sandbox.run(program(source), Approver()).value
    assert (first, second) == (STARTED_AT, STARTED_AT)
    assert before - 1 < third < time.time() + 1


def test_a_program_that_is_not_resumable_has_the_machines_clock_and_randomness(run: Runner) -> None:
    source = (
        "[datetime.now().timestamp(), random.random(), random._os.urandom(8), random._os.sys.modules['time'].time()]"
    )
    first, second = (run(source, source_checks=False).value for _ in range(2))
    assert abs(first[0] - time.time()) < PATIENCE_S
    assert abs(first[3] - time.time()) < PATIENCE_S
    assert (first[1] != second[1], first[2] != second[2]) == (True, True)


def test_the_seed_decides(run: Runner) -> None:
    def value(seed: int) -> Any:
        replay = Replay(seed=seed, started_at=STARTED_AT)
        return run.sandbox.run(
            Program(source="[random.random(), random._os.urandom(4)]", replay=replay), Approver()
        ).value

    assert value(1) == value(1)
    assert value(1)[0] != value(2)[0]
    assert value(1)[1] != value(2)[1]


UNSERVED = {
    "datetime.now": "def _freeze_dates(clock): pass",
    "time.time": "def _freeze_time(clock): pass",
    "unseeded random.Random": "_seed_of = lambda self, a, version: random._random.Random.seed(self, 1)",
}


@pytest.mark.parametrize(("what", "change"), UNSERVED.items(), ids=UNSERVED.keys())
def test_where_something_cannot_be_served_nothing_runs(what: str, change: str) -> None:
    tools = Approver()
    with weakened(("world/determinism.py", change)) as sandbox:
        result = sandbox.run(program("print(1)\necho(1)"), tools)
        plain = sandbox.run(Program(source="1 + 1"), tools)
    assert result.error is not None
    assert (result.status, result.error.type, result.stdout, tools.made) == ("failed", "NotResumable", "", [])
    assert what in result.error.message
    assert plain.value == 2


def test_order_of_sets_that_changes_is_not_resumable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.sandbox.zygote.HASH_SEED", "random")
    with weakened() as sandbox:
        result = sandbox.run(program("1"), Approver())
    assert result.error is not None
    assert result.error.message == "a program cannot be replayed here: the order of sets"


DIGESTS: dict[str, dict[str, Any]] = {
    "numbers": {"value": 1},
    "floats": {"value": 1.0},
    "booleans": {"value": True},
    "decimals": {"value": Decimal(1)},
    "texts": {"value": "1"},
    "bytes": {"value": b"1"},
    "sets": {"value": {1}},
    "lists": {"value": [1]},
    "tuples": {"value": (1,)},
    "dates": {"value": datetime.date(2024, 1, 1)},
    "dates as text": {"value": "2024-01-01"},
    "other names": {"other": 1},
}


def test_arguments_of_different_types_have_different_digests() -> None:
    assert len({arguments_digest(arguments) for arguments in DIGESTS.values()}) == len(DIGESTS)


@pytest.mark.parametrize("arguments", DIGESTS.values(), ids=DIGESTS.keys())
def test_a_digest_is_that_of_the_tagged_arguments(arguments: dict[str, Any]) -> None:
    assert arguments_digest(arguments) == digest_of_tagged(tag(arguments))


def test_arguments_of_any_order_and_depth_have_a_digest(run: Runner) -> None:
    source = "x = ()\nfor _ in range(60): x = (x,)\necho(x)\nmany_kinds(1, 2, flag=True, b=1, a={3, 1, 2})"
    whole = run.sandbox.run(program(source), Approver())
    assert run.sandbox.run(program(source, whole.recorded), Approver()).status == "finished"
    assert arguments_digest({"a": 1, "b": {"d": 1, "c": 2}}) == arguments_digest({"b": {"c": 2, "d": 1}, "a": 1})


def test_the_engine_names_the_python() -> None:
    version = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}/1"
    assert replay_engine.split(",")[0].startswith(version)


ONE = Recorded(ordinal=1, tool="echo", arguments_digest="x", answer=Answer(value=1), completed=1)
INCOMPLETE = {
    "a call is missing": (
        (Recorded(ordinal=2, tool="echo", arguments_digest="x", answer=PARKED),),
        "Replay.recorded has the calls [2]: give every call from 1 on, with PARKED for one that waits",
    ),
    "a call is there twice": (
        (ONE, ONE),
        "Replay.recorded has the calls [1, 1]: give every call from 1 on, with PARKED for one that waits",
    ),
    "an order with a hole": (
        (Recorded(ordinal=1, tool="echo", arguments_digest="x", answer=Answer(value=1), completed=2),),
        "Replay.recorded was completed in the order [2]: count from 1 on",
    ),
}


@pytest.mark.parametrize(("recorded", "message"), INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_a_record_that_is_not_whole_is_refused(recorded: tuple[Recorded, ...], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Replay(seed=1, started_at=0.0, recorded=recorded)
    assert str(caught.value) == message
