"""`toolwire chat` at a terminal: decisions and answers in place, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import command
from tests.cli.conftest import Write
from tests.cli.test_chat_command import calls_of
from tests.patience import PATIENCE_S, until
from tests.protocols.providers import Fault, Provider, provider
from tests.session.test_broken_streams import CALL_START, PROVIDERS, chat_stream

TOOLS = '''
import asyncio
from toolwire import Agent, CallContext, tool

@tool(permission="confirm")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"

clerk = Agent("clerk", None, [pay]).as_tool("Pays bills.")

async def ask(amount: int, context: CallContext) -> str:
    """Asks."""
    return f"{await context.ask('Which colour?')} it is"

async def hang(amount: int) -> str:
    """Never ends, and cleans up for long."""
    try:
        await asyncio.sleep(3_600)
    finally:
        await asyncio.sleep(3_600)
'''
TAKE_TERMINAL = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
TAKE_TERMINAL += "os.execv(sys.argv[1], sys.argv[1:])"
"""Makes standard input the terminal that Ctrl-C comes from."""

CALLS, TEXT = PROVIDERS["openai"][1:3]
CUT = Fault(events=tuple(TEXT), share=0.6, is_silent=True)
CTRL_C, ANSWER = "\x03", "Paid 5, and not 50.\r\n> "


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture
def words(server: Provider, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command whose conversation has a name."""
    monkeypatch.chdir(tmp_path)
    server.requests[:] = []
    options = ["--base-url", server.url, "--tools", write("tools.py", TOOLS), "--conversation", "c-1"]
    return command("chat", "--model", "openai:m", *options)


def typed(words: list[str], *steps: tuple[str, str]) -> tuple[int, str]:
    """Runs a command at a terminal, and types each text when the text before it has come.

    Returns the exit code and all that the terminal showed.
    """
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *words], stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    seen, since, left = "", 0, list(steps)
    with process:
        try:
            while select.select([screen], [], [], PATIENCE_S)[0] and (part := os.read(screen, 65_536)):
                seen += part.decode()
                if left and left[0][0] in seen[since:]:
                    since = len(seen)
                    os.write(screen, left.pop(0)[1].encode())
        except OSError:
            # Linux: no process has the terminal open any more.
            pass
        finally:
            process.kill()
            os.close(screen)
    assert left == [], seen
    return process.returncode, seen


@pytest.mark.parametrize(
    ("answers", "shown", "told"),
    [
        ([("? ", "y\n")], '  = pay(amount=50): "paid 50"', "paid 50"),
        ([("? ", "n\n"), ("empty): ", "too much\n")], "  = pay(amount=50): ", "too much"),
    ],
)
def test_a_person_decides_in_place(
    server: Provider, words: list[str], answers: list[tuple[str, str]], shown: str, told: str
) -> None:
    server.script = [CALLS, TEXT]
    code, seen = typed(words, ("> ", "Pay.\n"), *answers, (ANSWER, "/quit\n"))
    assert (code, shown in seen, "Go on: toolwire chat --model openai:m" in seen) == (0, True, True)
    assert told in str(server.requests[1]["messages"][-1])


def test_a_person_answers_the_question_of_a_tool(server: Provider, words: list[str]) -> None:
    server.script = [calls_of("openai", "ask"), TEXT]
    code, seen = typed(words, ("> ", "Ask.\n"), ("? ", "a\n"), (": ", "red\n"), (ANSWER, "/quit\n"))
    assert (code, '"red it is"' in seen) == (0, True)


def test_a_sub_agent_is_asked_about_and_its_calls_stand_below_its_own(server: Provider, words: list[str]) -> None:
    call = {**CALL_START, "function": {"name": "clerk", "arguments": '{"task": "Pay 50."}'}}
    delegates = chat_stream({"role": "assistant", "content": None, "tool_calls": [call]}, reason="tool_calls")
    server.script = [delegates, CALLS, TEXT, TEXT]
    code, seen = typed(words, ("> ", "Pay.\n"), ("? ", "y\n"), (ANSWER, "/quit\n"))
    assert (code, "agent      clerk\r\n" in seen) == (0, True)
    assert '    = pay(amount=50): "paid 50"\r\n  = clerk(task="Pay 50."): ' in seen


@pytest.mark.parametrize("undecided", ["l\n", CTRL_C])
def test_a_chat_that_waits_asks_at_the_next_start(server: Provider, words: list[str], undecided: str) -> None:
    server.script = [CALLS, TEXT]
    code, seen = typed(words, ("> ", "Pay.\n"), ("? ", undecided))
    assert (code, "the chat waits for a person:" in seen, len(server.requests)) == (6, True, 1)
    code, seen = typed(words, ("? ", "y\n"), (ANSWER, "/quit\n"))
    assert (code, "paid 50" in seen, len(server.requests)) == (0, True, 2)


def test_ctrl_c_interrupts_a_reply_and_the_chat_goes_on(server: Provider, words: list[str]) -> None:
    server.script = [CUT, TEXT]
    steps = [("> ", "One.\n"), ("Paid 5, ", CTRL_C), ("\ninterrupted\r\n> ", "Two.\n"), (ANSWER, CTRL_C)]
    code, seen = typed(words, *steps, ("Ctrl-C again leaves, as /quit does\r\n> ", CTRL_C))
    assert (code, seen.endswith("toolwire: interrupted\r\n")) == (130, True)
    assert [message["content"] for message in server.requests[1]["messages"] if message["role"] == "user"] == [
        *("One.", "Two.")
    ]


def test_ctrl_c_twice_leaves_a_tool_that_does_not_end(server: Provider, words: list[str]) -> None:
    server.script = [calls_of("openai", "hang")]
    steps = [("> ", "Hang.\n"), ("hang(amount=50)", CTRL_C), ("leaves at once", CTRL_C)]
    code, seen = typed(words, *steps)
    assert (code, seen.endswith("toolwire: interrupted\r\n")) == (130, True)


def test_the_end_of_the_input_leaves(words: list[str]) -> None:
    code, seen = typed(words, ("> ", "\x04"))
    assert (code, "> \r\nGo on: toolwire chat" in seen) == (0, True)


def test_an_interrupt_ends_a_pipe(server: Provider, words: list[str]) -> None:
    server.script = [CUT]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"Pay.\nAgain.\n")
        process.stdin.flush()
        until(lambda: bool(server.requests))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said.decode().splitlines()[-1]) == (130, "toolwire: interrupted")


def test_a_reader_that_leaves_ends_the_chat(server: Provider, words: list[str]) -> None:
    server.script = [TEXT, TEXT]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, said = process.communicate(b"Pay.\nAgain.\n", timeout=PATIENCE_S)
    assert (process.returncode, said, len(server.requests)) == (0, b"", 1)
