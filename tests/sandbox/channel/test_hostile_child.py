"""A child that has been taken over: whatever it sends or withholds, the host gives a typed result, in time."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from io import FileIO
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.sandbox.channel.test_channel import BAD, BOMBS, GOOD, frame, raw
from tests.sandbox.channel.test_frame_costs import HOSTILE as LARGE
from tests.sandbox.programs import TOOLS, FakeTools, Runner
from toolwire.runtime.loop_calls import LoopCalls
from toolwire.runtime.workers import Workers
from toolwire.sandbox.answers import PARKED, Answer, Parked, Recorded, Replay, arguments_digest
from toolwire.sandbox.channel.channel import Channel
from toolwire.sandbox.channel.frames import CallFrame, ResultFrame
from toolwire.sandbox.drive import live_program as live_module
from toolwire.sandbox.drive.drive import Drive
from toolwire.sandbox.drive.live_program import OPEN_CALLS_BYTES, LiveProgram
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.runner import CallHandlers, LaterAnswer

LIMITS = Limits(
    deadline_s=PATIENCE_S,
    wall_s=PATIENCE_S,
    call_bytes=100_000,
    result_bytes=100_000,
    output_flood_bytes=200_000,
    calls=5,
)
HASTY = replace(LIMITS, deadline_s=0.4, wall_s=0.3)
"""Limits for attacks that only a clock ends."""
DEADLINES_S = (0.4, 4, 40)
"""Deadlines tried in turn: on a busy machine a short one may pass before the host reads the first frame."""
LATE_S = 20
"""Seconds after its clock within which the host has left: without the clock it would never leave these children."""


LONGEST_STEP_S = 0.05
"""Processor seconds of a loop's own thread that no step of it takes; reading these frames there takes 0.3."""
STEP_TRIES = 5
"""A busy machine makes a step longer: the shortest of some tries counts."""


class Other:
    """The program's end of a channel."""

    def __init__(self, reader: FileIO, writer: FileIO) -> None:
        self._reader = reader
        self._writer = writer

    def recv(self) -> bytes:
        return self._reader.read(65_536) or b""

    def sendall(self, data: bytes) -> None:
        while data:
            data = data[self._writer.write(data) :]

    def say_no_more(self) -> None:
        self._writer.close()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class FakeChild:
    """The host's end of a channel whose other end is in the test's hands."""

    def __init__(self) -> None:
        (reading, outgoing), (incoming, writing) = os.pipe(), os.pipe()
        os.set_blocking(writing, False)
        self.reader, self.writer = FileIO(reading, "r"), FileIO(writing, "w")
        self.other = Other(FileIO(incoming, "r"), FileIO(outgoing, "w"))
        self.signals: list[signal.Signals] = []

    def signal(self, number: signal.Signals) -> None:
        self.signals.append(number)

    def kill(self) -> None:
        self.signals.append(signal.SIGKILL)
        self.other.close()

    def close(self) -> None:
        self.reader.close()
        self.writer.close()
        self.other.close()


def drive(
    attack: Callable[[Other], None],
    tools: Callable[[ProgramCall], Answer | Parked] | None = None,
    replay: Replay | None = None,
    limits: Limits = LIMITS,
) -> LiveProgram:
    """Runs the drive against an attack, which has one thread of its own."""
    child: Any = FakeChild()
    live = LiveProgram(Program(source="x", tools=TOOLS, limits=limits, replay=replay), time.monotonic())
    workers = Workers()
    attacker = threading.Thread(target=_quietly, args=(attack, child.other))
    attacker.start()
    try:
        Drive(live, child, tools or FakeTools(), workers).run()
    finally:
        workers.close()
        child.close()
        attacker.join(PATIENCE_S)
    return live


async def drive_async(
    attack: Callable[[Other], None],
    tools: Callable[[ProgramCall], Awaitable[Answer | Parked]],
    limits: Limits = LIMITS,
) -> LiveProgram:
    """Does so with calls that are awaited on this loop."""
    async with LoopCalls() as calls:

        def start(call: ProgramCall, ended: Callable[[LaterAnswer], None]) -> Callable[[], None]:
            return calls.start(lambda: tools(call), ended)

        return await asyncio.to_thread(drive, attack, CallHandlers(FakeTools(), start), limits=limits)


def _quietly(attack: Callable[[Other], None], other: Other) -> None:
    try:
        attack(other)
    except (OSError, ValueError):
        return


def sends(data: bytes) -> Callable[[Other], None]:
    return lambda other: other.sendall(data)


@pytest.mark.threat(48)
@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD.keys())
def test_a_violation_ends_the_program_with_its_reason(data: bytes, reason: str) -> None:
    live = drive(sends(data))
    assert (live.stop, live.detail) == ("protocol_violation", reason)


@pytest.mark.threat(45)
@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_ends_the_program(data: bytes) -> None:
    live = drive(sends((len(data) - 4).to_bytes(4, "big") + data[4:]))
    assert live.stop == "protocol_violation"


def test_a_fault_of_the_host_s_own_ends_the_run_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(self: Channel, data: bytes, *, at_most: int = 0) -> None:
        raise LookupError("a fault")

    monkeypatch.setattr(Channel, "receive", receive)
    with pytest.raises(LookupError, match="a fault"):
        drive(sends(frame("print", "x")))


def forged_calls(other: Other) -> None:
    other.sendall(b"".join(frame("call", n, 0, False, {"a": n, "b": 0}) for n in range(1, 20)))
    while other.recv():
        pass


def test_forged_calls_are_counted_like_any_other() -> None:
    tools = FakeTools()
    live = drive(forged_calls, tools)
    assert (live.stop, len(tools.calls)) == ("calls", 5)


def test_more_parallel_calls_than_allowed_are_a_violation() -> None:
    class Stuck(FakeTools):
        def __call__(self, call: ProgramCall) -> Answer:
            release.wait(PATIENCE_S)
            return Answer()

    release = threading.Event()
    child: Any = FakeChild()
    limits = Limits(outstanding_calls=2, deadline_s=PATIENCE_S)
    live = LiveProgram(Program(source="x", tools=TOOLS, limits=limits), time.monotonic())
    workers = Workers()
    child.other.sendall(b"".join(frame("call", n, 0, True, {"a": n, "b": 0}) for n in range(1, 4)))
    Drive(live, child, Stuck(), workers).run()
    release.set()
    workers.close()
    child.close()
    assert (live.stop, live.detail) == ("protocol_violation", "more than 2 calls at the same time")


def test_frames_after_the_one_that_ended_the_program_are_not_read() -> None:
    live = drive(sends(frame("result", True, "", 1) + frame("print", "late") + b"\0\0\0\1x"))
    assert (live.end, live.stop, live.output) == (ResultFrame(True, "", 1), None, "")


def test_no_call_is_made_after_the_deadline_although_it_was_read_with_one_before() -> None:
    three = sends(b"".join(frame("call", n, 0, False, {"a": n, "b": 0}) for n in range(1, 4)))
    calls: list[int] = []
    for deadline_s in DEADLINES_S:

        def slow(call: ProgramCall, deadline_s: float = deadline_s) -> Answer:
            calls.append(call.ordinal)
            threading.Event().wait(deadline_s)
            return Answer()

        live = drive(three, slow, limits=replace(LIMITS, deadline_s=deadline_s))
        assert live.stop == "deadline"
        if calls:
            break
    assert calls == [1]


@pytest.mark.threat(49)
@pytest.mark.parametrize(("count", "stop"), [(2, "deadline"), (3, "protocol_violation")])
async def test_a_program_may_leave_as_many_answers_unread_as_it_may_have_open_calls(count: int, stop: str) -> None:
    """It makes each call after the answer of the one before, so that its open calls are not too many."""
    answered = threading.Semaphore(0)

    async def tool(call: ProgramCall) -> Answer:
        # This step ends with the answer.
        asyncio.get_running_loop().call_soon(answered.release)
        return Answer(value="x" * 90_000)

    def attack(other: Other) -> None:
        for number in range(1, count + 1):
            other.sendall(frame("call", number, 2, True, {"value": 1}))
            answered.acquire(timeout=PATIENCE_S)

    deadline_s = 1.0 if stop == "deadline" else PATIENCE_S
    live = await drive_async(attack, tool, limits=replace(LIMITS, deadline_s=deadline_s, outstanding_calls=2))
    assert live.stop == stop


@pytest.mark.threat(71)
@pytest.mark.parametrize("last", [b"", frame("drop", 1), frame("drop", 1) * 2, frame("result", False, "", None)])
async def test_the_clean_up_of_a_call_that_is_given_up_is_not_cut_off(last: bytes) -> None:
    began, may_end, ended = threading.Event(), asyncio.Event(), asyncio.Event()

    async def tool(_: ProgramCall) -> Answer:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            ended.set()
        return Answer()

    def attack(other: Other) -> None:
        other.sendall(frame("call", 1, 0, True, {"a": 1, "b": 0}))
        began.wait(PATIENCE_S)
        other.sendall(frame("drop", 1) + last)
        silent(other)

    # Only the deadline ends a program that sends nothing more.
    for deadline_s in (PATIENCE_S,) if last else DEADLINES_S:
        live = await drive_async(attack, tool, limits=replace(LIMITS, deadline_s=deadline_s))
        assert live.is_over
        if began.is_set():
            break
    may_end.set()
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()


@pytest.mark.threat(65)
@pytest.mark.parametrize("name", ["as many fractions as pass", "lone surrogates", "sets"])
async def test_a_loop_does_not_stand_still_while_a_large_frame_is_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        started = time.thread_time()
        run(handle)
        steps.append(time.thread_time() - started)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    calls: list[str] = []
    called = threading.Event()

    async def tool(call: ProgramCall) -> Answer:
        calls.append(call.tool)
        called.set()
        return Answer()

    def attack(other: Other) -> None:
        other.sendall(LARGE[name])
        called.wait(PATIENCE_S)
        other.sendall(frame("result", False, "", None))

    # The garbage collector would look through the objects of all earlier tests in a step.
    gc.freeze()
    for _ in range(STEP_TRIES):
        steps.clear()
        calls.clear()
        called.clear()
        live = await drive_async(attack, tool, limits=Limits(wall_s=PATIENCE_S, deadline_s=PATIENCE_S))
        assert (live.stop, live.end, calls) == (None, ResultFrame(False, "", None), ["echo"])
        if max(steps) < LONGEST_STEP_S:
            break
    assert max(steps) < LONGEST_STEP_S


HEAVY = 24
"""Calls of 3.6 MB each: together they weigh more than all open calls of a program may."""


def heavy_calls(other: Other) -> None:
    for number in range(1, HEAVY + 1):
        head = ["call", number, 2, True, {"value": {"$t": "raw", "v": 0}}]
        other.sendall(raw([3_600_000], head, b"x" * 3_600_000))
    while other.recv():
        pass


class Hanging:
    """A tool whose calls end once one more finds no room and all with room have begun, or once all are made. It notes
    the bytes that they hold at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = self.most = self.calls = self.reserved = 0
        self.is_full = False
        self.lock = threading.Lock()
        self.release, self.done = threading.Event(), threading.Event()
        reserve = LiveProgram.reserve

        def noted(live: LiveProgram, frame: CallFrame) -> bool:
            has_room = reserve(live, frame)
            with self.lock:
                self.reserved += has_room
                self.is_full |= not has_room
                self._release_if_full()
            return has_room

        monkeypatch.setattr(LiveProgram, "reserve", noted)

    def _release_if_full(self) -> None:
        if self.calls == HEAVY or (self.is_full and self.calls == self.reserved):
            self.release.set()

    def __call__(self, call: ProgramCall) -> Answer:
        size = len(call.arguments["value"])
        with self.lock:
            self.calls += 1
            self.held += size
            self.most = max(self.most, self.held)
            self._release_if_full()
        self.release.wait(PATIENCE_S)
        with self.lock:
            self.held -= size
            if self.calls == HEAVY and not self.held:
                self.done.set()
        return Answer()

    async def awaited(self, call: ProgramCall) -> Answer:
        return await asyncio.to_thread(self, call)

    def attack(self, other: Other) -> None:
        sending = threading.Thread(target=_quietly, args=(heavy_calls, other))
        sending.start()
        self.done.wait(PATIENCE_S)
        other.say_no_more()
        sending.join(PATIENCE_S)


@pytest.mark.threat(70)
async def test_open_calls_share_a_budget_on_a_loop_and_all_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "OPEN_CALLS_BYTES", 15_000_000)
    hanging = Hanging(monkeypatch)
    await drive_async(hanging.attack, hanging.awaited, limits=Limits())
    assert (hanging.calls, hanging.most) == (HEAVY, 4 * 3_600_000)


@pytest.mark.threat(70)
def test_open_calls_share_a_budget_in_threads_and_all_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "OPEN_CALLS_BYTES", 15_000_000)
    hanging = Hanging(monkeypatch)
    drive(hanging.attack, hanging, limits=Limits())
    assert (hanging.calls, hanging.most) == (HEAVY, 4 * 3_600_000)


def test_the_budget_of_open_calls_is_64_mb() -> None:
    assert OPEN_CALLS_BYTES == 64 << 20


def silent(other: Other) -> None:
    while other.recv():
        pass


def never_reads(other: Other) -> None:
    for n in range(1, 5):
        other.sendall(frame("call", n, 2, False, {"value": "x" * 60_000}))


def drips(other: Other) -> None:
    data = frame("print", "x" * 50_000)
    for place in range(len(data)):
        other.sendall(data[place : place + 1])
        time.sleep(0.005)


def floods(other: Other) -> None:
    while True:
        other.sendall(frame("print", "x" * 1000) * 20)


def wakes(other: Other) -> None:
    while True:
        other.sendall(frame("wake", 1, 0))


def wakes_late(other: Other) -> None:
    while True:
        other.sendall(frame("wake", 1, 1000))


def closes(other: Other) -> None:
    other.sendall(b"\x00\x00")
    other.close()


ATTACKS: dict[str, tuple[Callable[[Other], None], set[str | None]]] = {
    "says nothing": (silent, {"timeout_program", "deadline"}),
    "never reads its answers": (never_reads, {"timeout_program", "deadline"}),
    "drips": (drips, {"timeout_program", "deadline"}),
    "floods": (floods, {"output"}),
    "asks to be woken without end": (wakes, {"timeout_program", "deadline", "protocol_violation"}),
    "asks to be woken late without end": (wakes_late, {"timeout_program", "deadline"}),
    "closes in a frame": (closes, {None}),
}


@pytest.mark.threat(49)
@pytest.mark.parametrize(("attack", "stops"), ATTACKS.values(), ids=ATTACKS.keys())
def test_the_host_does_not_wait_longer_than_its_clocks(attack: Callable[[Other], None], stops: set[str | None]) -> None:
    started = time.monotonic()
    live = drive(attack, limits=HASTY)
    assert time.monotonic() - started < HASTY.deadline_s + LATE_S
    assert live.stop in stops


@pytest.mark.threat(47)
def test_damaged_conversations_end_in_typed_results() -> None:
    seeded = random.Random(20_240_131)
    whole = b"".join(data for data, _ in GOOD)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(seeded.randint(1, 6)):
            place = seeded.randrange(len(damaged))
            damaged[place : place + seeded.randint(0, 2)] = seeded.randbytes(seeded.randint(0, 3))

        def attack(other: Other, data: bytes = bytes(damaged)) -> None:
            other.sendall(data)
            other.say_no_more()

        live = drive(attack)
        assert live.is_over or live.end is None


RECORDED = Replay(
    seed=1,
    started_at=0.0,
    recorded=tuple(
        Recorded(
            ordinal=n,
            tool="echo",
            arguments_digest=arguments_digest({"value": n}),
            answer=Answer(value=n),
            completed=n,
            after=n - 1,
        )
        for n in (1, 2)
    ),
)


def echo_frame(ordinal: int, taken: int, value: Any = None, *, parallel: bool = False) -> bytes:
    return frame("call", ordinal, 2, parallel, taken, 1, {"value": ordinal if value is None else value})


LIES: dict[str, tuple[bytes, str, str]] = {
    "answers that it was not given": (echo_frame(1, 9), "protocol_violation", "answers that it was not given"),
    "waiting with answers that it was not given": (
        frame("wait", 9, 0, None),
        "protocol_violation",
        "answers that it was not given",
    ),
    "waiting without having called": (
        frame("wait", 0, 0, None),
        "divergence",
        "the program waits without step 1, a call of 'echo'",
    ),
    "all answers taken without a call": (
        frame("wait", 2, 0, None),
        "divergence",
        "the program waits without step 1, a call of 'echo'",
    ),
    "other arguments": (
        echo_frame(1, 0, "other"),
        "divergence",
        "step 1 is a call of 'echo' with other arguments than before",
    ),
    "another tool": (
        frame("call", 1, 0, False, 0, 1, {"a": 1, "b": 1}),
        "divergence",
        "step 1 is a call of 'add', it was one of 'echo'",
    ),
    "a call before the recorded answers": (
        echo_frame(1, 0) + echo_frame(2, 1) + echo_frame(3, 1),
        "divergence",
        "step 3 is a call of 'echo', which was not made then",
    ),
    "a recorded call at another moment": (
        echo_frame(1, 0) + echo_frame(2, 0),
        "divergence",
        "step 2 is a call of 'echo' after 0 answers, it was made after 1",
    ),
    "an end before its calls": (
        frame("result", False, "", None),
        "divergence",
        "the program ended without step 1, a call of 'echo'",
    ),
    "the frames of another kind of program": (
        frame("call", 1, 2, False, {"value": 1}),
        "protocol_violation",
        "a call that is not complete",
    ),
    "a drop of no call": (frame("drop", 1), "protocol_violation", "a drop of no known call"),
}


@pytest.mark.threat(17)
@pytest.mark.parametrize(("data", "stop", "detail"), LIES.values(), ids=LIES.keys())
def test_a_child_that_lies_about_its_record_is_stopped_and_calls_nothing(data: bytes, stop: str, detail: str) -> None:
    tools = FakeTools()
    live = drive(sends(data), tools, RECORDED)
    assert (live.stop, live.detail, tools.calls) == (stop, detail, [])


def test_a_call_beyond_the_record_takes_the_normal_path() -> None:
    """An attacker in the child has only the power of the stubs: the call is asked about like any other."""
    asked: list[ProgramCall] = []

    def person(call: ProgramCall) -> Parked:
        asked.append(call)
        return PARKED

    live = drive(sends(echo_frame(1, 0) + echo_frame(2, 1) + echo_frame(3, 2, "pay")), person, RECORDED)
    assert (live.stop, [(call.ordinal, call.arguments) for call in asked]) == ("suspended", [(3, {"value": "pay"})])


def waits_without_end(other: Other) -> None:
    while True:
        other.sendall(frame("wait", 0, 0, 1e9))


def waits_for_now(other: Other) -> None:
    while True:
        other.sendall(frame("wait", 0, 1e9, 0))


def reads_nothing(other: Other) -> None:
    for n in range(1, 5):
        other.sendall(echo_frame(n, 0, "x" * 60_000, parallel=True))
    while True:
        other.sendall(frame("wait", 0, 0, None))


WAITS: dict[str, Callable[[Other], None]] = {
    "waits without end": waits_without_end,
    "waits for what is over": waits_for_now,
    "reads nothing": reads_nothing,
}
FRESH = Replay(seed=1, started_at=0.0)


@pytest.mark.threat(49)
@pytest.mark.parametrize("attack", WAITS.values(), ids=WAITS.keys())
def test_a_resumable_program_does_not_hold_the_host_either(attack: Callable[[Other], None]) -> None:
    started = time.monotonic()
    live = drive(attack, replay=FRESH, limits=HASTY)
    assert time.monotonic() - started < HASTY.deadline_s + LATE_S
    assert live.stop in ("timeout_program", "deadline", "protocol_violation")


@pytest.mark.threat(47)
@pytest.mark.parametrize("replay", [FRESH, RECORDED], ids=["fresh", "recorded"])
def test_damaged_conversations_of_resumable_programs_end_in_typed_results(replay: Replay) -> None:
    seeded = random.Random(17)
    whole = (
        echo_frame(1, 0) + echo_frame(2, 1) + frame("wait", 2, 0.5, None) + echo_frame(3, 2, parallel=True)
        + frame("wait", 2, 0.5, 0.6) + frame("drop", 3) + frame("result", True, "", 1)
    )  # fmt: skip
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(seeded.randint(1, 6)):
            place = seeded.randrange(len(damaged))
            damaged[place : place + seeded.randint(0, 2)] = seeded.randbytes(seeded.randint(0, 3))

        def attack(other: Other, data: bytes = bytes(damaged)) -> None:
            other.sendall(data)
            other.say_no_more()

        live = drive(attack, replay=replay)
        assert live.is_over or live.end is None


IN_PROGRAM = {
    "garbage on the channel": "random._os.write(3, b'garbage that is no frame at all')",
    "a forged result": 'random._os.write(3, b\'\\x00\\x00\\x00\\x16["result",true,"","x"]\')\nwhile True: pass',
    "a forged call": 'random._os.write(3, b\'\\x00\\x00\\x00\\x1d["call",1,99,false,{"a":1}]  \')\nwhile 1: pass',
    "the end of the process": "random._os._exit(0)",
}


@pytest.mark.threat(48)
@pytest.mark.parametrize("source", IN_PROGRAM.values(), ids=IN_PROGRAM.keys())
def test_a_program_that_takes_the_channel_in_its_own_hands(run: Runner, source: str) -> None:
    result = run(source, wall_s=PATIENCE_S)
    assert result.status in ("protocol_violation", "finished", "crashed")
    assert result.duration_s < PATIENCE_S


@pytest.mark.threat(50)
def test_only_data_leaves_a_program(run: Runner) -> None:
    source = """
class Trap:
    def __reduce__(self):
        return print, ("owned",)
    def __del__(self):
        print("gone")
__result__ = [Trap()]
"""
    result = run(source)
    assert result.error is not None
    assert (result.status, result.error.message) == ("failed", "__result__ holds a Trap at [0]")


def test_a_class_that_looks_like_data_gives_data(run: Runner) -> None:
    source = "class Text(str): pass\nclass Map(dict): pass\n__result__ = Map(a=Text('b'), n=[True])"
    value = run(source).value
    assert (value, type(value), type(value["a"])) == ({"a": "b", "n": [True]}, dict, str)
