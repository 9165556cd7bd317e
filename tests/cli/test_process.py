"""The command line as a process: streams, signals, and an end whatever tools do."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, command, run_process, started
from tests.cli.conftest import Write
from tests.patience import PATIENCE_S
from toolwire.cli.output import Output

Program = Callable[[str], str]


def results(ended: Ended) -> Ended:
    """Without toolwire's message about the isolation of this machine."""
    lines = [line for line in ended.stderr.splitlines(keepends=True) if not line.startswith("WARNING: a program runs")]
    return Ended(code=ended.code, stdout=ended.stdout, stderr="".join(lines))


def test_the_version_is_that_of_the_package() -> None:
    assert run_process("--version") == Ended(code=0, stdout=f"toolwire {version('toolwire')}\n", stderr="")


def test_the_installed_command_and_the_module_are_one() -> None:
    script = Path(sys.executable).with_name("toolwire")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == run_process("--version").stdout


def test_a_reply_is_run_and_json_is_all_there_is_on_stdout(write: Write, program: Program) -> None:
    source = write(
        "noisy.py",
        '''
        import os
        import subprocess

        print("while importing")

        def noisy() -> str:
            """Prints in every way."""
            print("by print")
            os.write(1, b"by a descriptor\\n")
            subprocess.run(["echo", "by a process"])
            return "the result"
        ''',
    )
    ended = results(run_process("run", program("__result__ = noisy()"), "--tools", source, "--json"))
    assert (ended.code, json.loads(ended.stdout)["text"]) == (0, "the result")
    assert sorted(ended.stderr.splitlines()) == [
        "by a descriptor",
        "by a process",
        "by print",
        "protocol: attp",
        "while importing",
    ]


def test_results_are_utf8_even_if_they_hold_half_a_character(write: Write) -> None:
    source = write("half.py", 'def half() -> str:\n    """Gives a lone surrogate."""\n    return "茶\\ud83d"\n')
    assert run_process("call", "half", "--tools", source).stdout == "茶\ufffd\n"


HANGS = '''
import asyncio
import sys
import threading

def hangs() -> int:
    """Never returns."""
    print("started", file=sys.stderr, flush=True)
    threading.Event().wait()

async def leaves_a_thread() -> int:
    """Leaves a thread behind that a Python process would wait for."""
    await asyncio.to_thread(threading.Event().wait)

async def blocks() -> int:
    """Holds up its loop."""
    threading.Event().wait()
'''


@pytest.mark.parametrize("tool", ["leaves_a_thread", "blocks"])
def test_the_process_ends_even_if_a_tool_does_not(write: Write, program: Program, tool: str) -> None:
    source = write("hangs.py", HANGS)
    ended = results(run_process("call", tool, "--tools", source, "--timeout", "0.3"))
    assert ended == Ended(
        code=1,
        stdout=f"'{tool}' returned nothing within 0.3 s; it may still be running.\n"
        "It may have taken effect. Check that before you repeat the call.\n",
        stderr="",
    )


def test_ctrl_c_ends_the_process_with_130_and_no_traceback(write: Write, program: Program) -> None:
    source = write("hangs.py", HANGS)
    with started("run", program("__result__ = hangs()"), "--tools", source) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "started\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout, stderr) == (130, "", "toolwire: interrupted\n")


def test_a_closed_pipe_is_not_an_error(tools: str) -> None:
    with started("tools", "--tools", tools) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(PATIENCE_S)) == ("", 0)


def test_a_result_that_cannot_be_written_is_said(tools: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("tools", "--tools", tools),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        b"toolwire: the result cannot be written: No space left on device\n",
    )


def test_a_process_without_streams_works(tools: str) -> None:
    script = f"{' '.join(command('call', 'add', 'a=1', '--tools', tools))} <&- >&- 2>&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_message_is_written_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pieces(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return super().write(text)

    pieces = list[str]()
    monkeypatch.setattr(sys, "stderr", Pieces())
    Output().say("serving tools at http://127.0.0.1:8000/mcp")
    # A warning of another thread cannot come before the end of the line.
    assert [piece for piece in pieces if piece] == ["serving tools at http://127.0.0.1:8000/mcp\n"]
