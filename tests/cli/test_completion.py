"""What a shell offers at the tab key: values of options, and names of tools and servers."""

from __future__ import annotations

import shlex
from typing import get_args

import pytest

from tests.cli.command_line import run_here, run_process
from tests.cli.conftest import Write
from toolwire.cli.completing import OTHER_STATUSES, RUN_STATUSES
from toolwire.journal.run import RunStatus
from toolwire.permission.approval import ANSWERS
from toolwire.types import McpPins

NOISY = '''
import sys

print("loading")
print("loading", file=sys.stderr)

def search(query: str) -> str:
    """Searches."""
    return query

def send(text: str) -> str:
    """Sends."""
    return text
'''


def offered(*words: str) -> list[str]:
    """The words that bash would offer for the last of these."""
    line = shlex.join(["toolwire", *words])
    environment = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "_TOOLWIRE_COMPLETE": "complete_bash"}
    ended = run_process(environment=environment)
    assert (ended.code, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["prompt", "--protocol", "op"], ["openai", "openai-responses"]),
        (["run", "--protocol", "a"], ["auto", "attp", "anthropic"]),
        (["tools", "--tokens", "g"], ["gemini"]),
        (["mcp", "list", "--tokens", "x"], ["xml"]),
        (["log", "--status", "den"], ["deny", "denied"]),
        (["log", "--status", "f"], ["finished", "forgotten"]),
    ],
)
def test_values_of_options_are_offered(words: list[str], found: list[str]) -> None:
    assert offered(*words) == found


def test_all_states_of_the_log_are_offered() -> None:
    assert set(ANSWERS) < set(OTHER_STATUSES)
    assert set(get_args(RunStatus)) - {"running"} < set(RUN_STATUSES)


@pytest.mark.parametrize("words", [["call"], ["policy", "explain"]])
def test_tools_of_a_file_are_offered_and_what_it_prints_is_not(write: Write, words: list[str]) -> None:
    source = write("noisy.py", NOISY)
    assert offered(*words, "--tools", source, "s") == ["search", "send"]
    assert offered(*words, "--tools", source, "se") == ["search", "send"]
    assert offered(*words, "--tools", source, "sen") == ["send"]


@pytest.mark.parametrize("source", ["missing.py", "broken.py"])
def test_tools_that_cannot_be_loaded_are_not_offered(write: Write, source: str) -> None:
    write("broken.py", "def f(:")
    assert offered("call", "--tools", source, "s") == []


def test_tools_of_the_log_are_offered(write: Write) -> None:
    assert offered("log", "--tool", "s") == []
    call = "<tool_call><name>send</name><params><text>a</text></params></tool_call>"
    assert run_here("run", write("reply.xml", call), "--tools", write("noisy.py", NOISY)).code == 0
    assert offered("log", "--tool", "s") == ["send"]


def test_servers_and_tools_that_wait_are_offered(tmp_path: object) -> None:
    pins = McpPins(f"{tmp_path}/pins.json")
    pins.check("files", {"read": "1"}, "first")
    pins.check("files", {"read": "2", "write": "1"}, "first")
    assert offered("mcp", "accept", "--pins", f"{tmp_path}/pins.json", "f") == ["files"]
    assert offered("mcp", "accept", "--pins", f"{tmp_path}/pins.json", "files", "") == ["read", "write"]
