"""Damaged conversations of a program with its host: each megabyte of them costs the host little, and nothing raises.

Run: python -m benchmarks.fuzz_frames [seconds] [seed]. The suite runs a short form of it.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from contextlib import suppress

from benchmarks.fuzzing import run
from toolwire.sandbox.channel.channel import Channel
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.child.wire import encode
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program, ProgramParameter, ProgramTool

MEMORY_MB = 128
PROCESSOR_S = 1.0
LARGEST_BYTES = 1_000_000
"""The most bytes of one conversation."""
PIECE_BYTES = 65_536
TAKE = ProgramTool(
    name="take",
    program_name="take",
    parameters=(ProgramParameter(name="value", program_name="value", kind="either", required=True),),
)
VALUES = (
    1,
    None,
    -0.5,
    "text\n",
    "\ud83d",
    "中文" * 9_000,
    "x" * 20_000,
    [[]],
    {"a": {"b": [1, 2.5, "c"]}},
    (1, "two"),
    {1, 2, 3},
    frozenset({"a"}),
    b"bytes",
    {1: 2, "$t": 3},
    2**200,
)
TOKENS = (
    b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"\\ud83d", b"0", b"-", b"1e999", b"9" * 5000, b"null", b"NaN",
    b'{"$t":"raw","v":0}', b'{"$t":"tuple","v":[', b'{"$t":"set","v":[0,2305843009213693951]}',
    b'{"$t":"dict","v":[[0,0]]}', b'{"$t":"Decimal","v":"1e4000"}', b'{"":0}', b"[]", b'"ab"',
    b"\xed\xa0\x80", "\U0001f600".encode(), b"\xff", b"\x00",
)  # fmt: skip


def fuzz(count: int, seed: int) -> int:
    """How many frames were read out of `count` damaged conversations. Raises for the first that costs too much."""
    chance = random.Random(seed)
    frames = 0
    tracemalloc.start()
    try:
        for _ in range(count):
            conversation = _damaged(_conversation(chance), chance)[:LARGEST_BYTES]
            resumable = chance.random() < 0.3
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            started = time.thread_time()
            frames += _read(conversation, resumable=resumable)
            processor_s = time.thread_time() - started
            memory_mb = (tracemalloc.get_traced_memory()[1] - before) / 1e6
            if processor_s > PROCESSOR_S:
                # Tracing makes each allocation several times slower; it does not count as a cost of the host.
                processor_s = _untraced_s(conversation, resumable=resumable)
            if memory_mb > MEMORY_MB or processor_s > PROCESSOR_S:
                cost = f"{memory_mb:.0f} MB and {processor_s:.2f} s for {len(conversation):,} bytes of seed {seed}"
                raise AssertionError(f"{cost}: {conversation[:200]!r}")
    finally:
        tracemalloc.stop()
    return frames


def _untraced_s(conversation: bytes, *, resumable: bool) -> float:
    """Processor seconds of one conversation without the tracing of memory."""
    tracemalloc.stop()
    try:
        started = time.thread_time()
        _read(conversation, resumable=resumable)
        return time.thread_time() - started
    finally:
        tracemalloc.start()


def _conversation(chance: random.Random) -> list[bytes]:
    """The frames of a program that an honest child might send."""
    frames: list[bytes] = []
    for ordinal in range(1, chance.randrange(2, 12)):
        frames.append(encode(f'["call",{ordinal},0,true,', {"value": chance.choice(VALUES)}, 1 << 22))
        if chance.random() < 0.3:
            frames.append(encode('["drop",', ordinal, 1024))
        if chance.random() < 0.5:
            frames.append(encode('["print",', "printed\n" * chance.randrange(1, 500), 1 << 20))
        if chance.random() < 0.3:
            frames.append(encode(f'["wake",{ordinal},', 0.5, 1024))
    frames.append(encode('["result",true,"",', chance.choice(VALUES), 1 << 22))
    return frames


def _damaged(frames: list[bytes], chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 5)):
        place = chance.randrange(len(frames))
        kind = chance.randrange(5)
        if kind == 0:
            frames[place] = _with_tokens(frames[place], chance)
        elif kind == 1:
            frames[place:place] = [frames[place]] * chance.choice((1, 2, 50, 5000))
        elif kind == 2:
            frames[place] = frames[place][: chance.randrange(len(frames[place]) + 1)]
        elif kind == 3:
            frames[place] = bytes(byte ^ (chance.random() < 0.01) for byte in frames[place])
        else:
            chance.shuffle(frames)
    return b"".join(frames)


def _with_tokens(frame: bytes, chance: random.Random) -> bytes:
    """The frame with a token in it once or very often, under a length that fits."""
    body = frame[4:]
    place = chance.randrange(len(body) + 1)
    token = chance.choice(TOKENS) + chance.choice((b"", b","))
    body = body[:place] + token * chance.choice((1, 2, 60, 5_000, 200_000)) + body[place:]
    body = body[: LARGEST_BYTES - 4]
    return len(body).to_bytes(4, "big") + body


def _read(conversation: bytes, *, resumable: bool) -> int:
    program = Program(source="", tools=(TAKE,), limits=Limits())
    live, channel = LiveProgram(program, 0.0), Channel(program.tools, program.limits, resumable=resumable)
    live.start_clock(0.0)
    frames = 0
    with suppress(ProtocolViolation):
        for start in range(0, len(conversation), PIECE_BYTES):
            for frame in channel.receive(conversation[start : start + PIECE_BYTES]):
                frames += 1
                live.take(frame)
                if live.is_over:
                    return frames
    return frames


def main() -> None:
    """Fuzzes for ten minutes unless told otherwise; prints how much it tried."""
    tried, seed, frames = run(fuzz, count=20, seconds=600)
    print(f"{tried:,} conversations from seed {seed}, {frames:,} frames read: none cost more than it may")


if __name__ == "__main__":
    main()
