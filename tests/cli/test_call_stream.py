"""`toolwire call --stream`: a tool's output as it comes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, run_here, started
from tests.cli.conftest import Write
from tests.patience import PATIENCE_S

STREAMING = '''
import asyncio
from toolwire import CallContext, ToolResponse

def lines(n: int = 2):
    """Gives lines."""
    for number in range(n):
        yield f"line {number}\\n"

async def words():
    """Gives words."""
    yield "one "
    yield "two"

def rows():
    """Gives rows."""
    yield {"row": 1}
    yield {"row": 2}

def half():
    """Fails half way."""
    yield "half"
    raise ValueError("no more")

def long(fails: bool = False):
    """Gives more than a model can read."""
    for _ in range(4):
        yield "x" * 10_000
    if fails:
        raise ValueError("too much")

def works(context: CallContext):
    """Tells how far it has come."""
    context.progress(1, 2, "half way")
    context.progress(3)
    return "done"

def drafts():
    """Takes back what it said."""
    yield ToolResponse([{"type": "text", "text": "draft"}])
    yield ToolResponse([{"type": "text", "text": "final"}])

async def stops():
    """Stops in the middle."""
    yield "before "
    await asyncio.Event().wait()

def plain(a: int) -> int:
    """No stream."""
    return a

def forever():
    """Never ends."""
    while True:
        yield "again\\n"
'''
HINT = "--traceback shows where the tool raised it."


@pytest.fixture
def source(write: Write) -> str:
    return write("streaming.py", STREAMING)


@pytest.mark.parametrize(
    ("words", "ended"),
    [
        ("lines", Ended(code=0, stdout="line 0\nline 1\n", stderr="")),
        ("words", Ended(code=0, stdout="one two\n", stderr="")),
        ("rows", Ended(code=0, stdout='{"row": 1}\n{"row": 2}\n', stderr="")),
        ("half", Ended(code=1, stdout=f"half\nValueError: no more\n{HINT}\n", stderr="")),
        ("long", Ended(code=0, stdout="x" * 40_000 + "\n", stderr="")),
        (
            "long fails=true",
            Ended(code=1, stdout=f"{'x' * 40_000}\nValueError: too much\n{HINT}\n", stderr=""),
        ),
        ("works", Ended(code=0, stdout="done\n", stderr="1/2 half way\n3\n")),
        ("drafts", Ended(code=0, stdout="draft\nfinal\n", stderr="")),
        ("plain a=3", Ended(code=0, stdout="3\n", stderr="")),
        (
            "plian",
            Ended(code=1, stdout="There is no tool named 'plian'.\nDid you mean 'plain'?\n", stderr=""),
        ),
        (
            "stops --timeout 1",
            Ended(
                code=1,
                stdout="before \n'stops' did not end within 1 s; it was interrupted, and may still be running.\n"
                "It may have taken effect. Check that before you repeat the call.\n",
                stderr="",
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_output_of_a_tool_is_printed_once_and_in_order(source: str, words: str, ended: Ended) -> None:
    assert run_here("call", *words.split(), "--tools", source, "--stream") == ended


def test_json_is_a_line_for_what_is_new_in_each_chunk_and_one_for_the_result(source: str) -> None:
    ended = run_here("call", "words", "--tools", source, "--stream", "--json")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    rest = {"metadata": {}, "is_interrupted": False, "is_cumulative": False}
    assert lines[:-1] == [
        {"content": [{"type": "text", "text": "one "}], "is_last": False, **rest},
        {"content": [{"type": "text", "text": "two"}], "is_last": False, **rest},
        {"content": [], "is_last": True, **rest},
    ]
    assert (ended.code, lines[-1]["result"]["data"]) == (0, ["one ", "two"])


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_output_is_there_before_the_tool_ends_and_ctrl_c_keeps_it(source: str, more: tuple[str, ...]) -> None:
    with started("call", "stops", "--tools", source, "--stream", *more) as process:
        assert process.stdout is not None
        first = process.stdout.readline() if more else process.stdout.read(len("before "))
        assert "before " in first
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stderr) == (130, "toolwire: interrupted\n")
    if not more:
        assert stdout == "\n"
        return
    last, result = (json.loads(line) for line in stdout.splitlines())
    assert (last["is_last"], last["is_interrupted"]) == (True, True)
    assert result["result"]["text"].startswith("before \n'stops' was interrupted.")


def test_a_reader_who_leaves_ends_a_tool_that_would_not(source: str, tmp_path: Path) -> None:
    with started("call", "forever", "--tools", source, "--stream") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "again\n"
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
