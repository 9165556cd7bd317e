"""A tool that could give 100 MB at once, and a reader that takes its time."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

PRODUCER_BYTES = 100_000_000
GROWTH_LIMIT_BYTES = 5_000_000

PROGRAM = '''
import asyncio, sys, threading
from collections import deque
from concurrent.futures import Future

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.definition.from_function import from_function
from toolwire.facade.driving import async_scope, new_scope
from toolwire.facade.tool_stream import stream_call
from toolwire.runtime import rendezvous
from toolwire.vocabulary.calls import ToolCall

BLOCK, BLOCKS = 65_536, {producer_bytes} // 65_536
made = []


def work():
    for number in range(BLOCKS):
        made.append(number)
        yield chr(97 + number % 26) * BLOCK


async def work_later():
    for block in work():
        yield block


class Unbounded(rendezvous.Rendezvous):
    """What a queue without a bound would do: nobody ever waits for the reader."""

    def offer(self, thing):
        super().offer(thing)
        turn = Future()
        turn.set_result(True)
        return turn


def peak():
    # Not getrusage: its peak starts at that of the process that started this one.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024


async def read(name, blocks):
    catalogue = Catalogue()
    for function in (work, work_later):
        catalogue.add(Entry(name=function.__name__, tool=from_function(function), handle=function))
    scope = async_scope(new_scope(catalogue))
    # What is imported and compiled at first is not what a stream holds.
    async for _ in stream_call(ToolCall(name), scope):
        break
    before, made[:] = peak(), []
    chunks = stream_call(ToolCall(name), scope).deltas()
    for _ in range(blocks):
        await anext(chunks)
        # A slow reader: everybody else may go on as long as they like, and has all turns they want.
        for _ in range(200):
            await asyncio.sleep(0)
        if sys.argv[2] == "unbounded":
            while len(made) < BLOCKS:
                await asyncio.sleep(0)
    await chunks.aclose()
    print(len(made), peak() - before)


if sys.argv[2] == "unbounded":
    from toolwire.facade import tool_stream as stream
    stream.Rendezvous = Unbounded
asyncio.run(asyncio.wait_for(read(sys.argv[1], 4), 50))
'''


async def growth(tool: str, kind: str) -> tuple[int, int]:
    """Blocks that the tool made while its reader took four, and the bytes by which the process grew."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM.format(producer_bytes=PRODUCER_BYTES), tool, kind),
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    output, _ = await process.communicate()
    blocks, grown = output.split()
    return int(blocks), int(grown)


@pytest.mark.threat(55)
@pytest.mark.parametrize("tool", ["work", "work_later"])
async def test_a_slow_reader_holds_up_a_tool_of_100_mb_in_five_megabytes(tool: str) -> None:
    blocks, grown = await growth(tool, "ours")
    assert blocks == 4
    assert grown <= GROWTH_LIMIT_BYTES
    # The control: without the wait for the reader the same tool fills the memory.
    blocks, grown = await growth(tool, "unbounded")
    assert blocks >= PRODUCER_BYTES // 65_536
    assert grown > 10 * GROWTH_LIMIT_BYTES
