"""Frames to a program that does not read: they are kept in their order, and counted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from io import FileIO

import pytest

from tests.patience import PATIENCE_S
from tests.sandbox.programs import TOOLS, FakeTools, Runner
from toolwire.sandbox.drive.outbox import Outbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program

LARGE = 300_000
"""Bytes of a frame for which no pipe has room."""


class Pipe:
    """An outbox, the other end of its pipe, and the number of wakes."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        os.set_blocking(reading, False)
        self.reader, self.writer = FileIO(reading, "r"), FileIO(writing, "w")
        self.wakes = 0
        self.outbox = Outbox(self.writer, self.wake)

    def wake(self) -> None:
        self.wakes += 1


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.reader.close()
    pipe.writer.close()


def test_a_frame_for_which_there_is_room_is_written_at_once(pipe: Pipe) -> None:
    assert (pipe.outbox.write(b"abc"), pipe.reader.read(100), pipe.wakes) == (0, b"abc", 0)


def test_frames_without_room_are_kept_in_their_order_and_wake_once(pipe: Pipe) -> None:
    frames = [b"a" * LARGE, b"b", b"c" * LARGE]
    assert [pipe.outbox.write(data) for data in frames] == [1, 2, 3]
    assert (pipe.outbox.unread, pipe.wakes) == (3, 1)
    found = b""
    while data := pipe.reader.read(LARGE):
        found += data
        pipe.outbox.write_rests()
    assert (found == b"".join(frames), pipe.outbox.unread) == (True, 0)


def test_frames_for_a_program_that_has_ended_are_dropped(pipe: Pipe) -> None:
    pipe.outbox.write(b"a" * LARGE)
    pipe.reader.close()
    pipe.outbox.write_rests()
    assert (pipe.outbox.unread, pipe.outbox.write(b"more")) == (0, 0)


LARGE_BOTH_WAYS = f"""
async def one(n):
    return len(await echo(chr(97 + n) * {LARGE}))
sum(await asyncio.gather(*[one(n) for n in range(8)]))
"""


@pytest.mark.parametrize("is_async", [False, True])
async def test_large_calls_and_large_answers_at_once_do_not_wait_for_each_other(run: Runner, is_async: bool) -> None:
    limits = Limits(wall_s=PATIENCE_S, deadline_s=2 * PATIENCE_S)
    program = Program(source=LARGE_BOTH_WAYS, tools=TOOLS, limits=limits)
    if is_async:
        result = await run.sandbox.run_async(program, FakeTools().awaited)
    else:
        result = await asyncio.to_thread(run.sandbox.run, program, FakeTools())
    assert (result.status, result.value) == ("finished", 8 * LARGE)
    assert result.duration_s < PATIENCE_S
