"""`toolwire chat` with the real SDKs and a local server: in a pipe, and what is wrong at its start."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Ended, run_here, run_process
from tests.cli.conftest import Write
from tests.patience import PATIENCE_S
from tests.protocols.providers import Fault, Provider, provider
from tests.session.test_broken_streams import PROVIDERS
from toolwire import Caller, Store

TOOLS = '''
from toolwire import tool

def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"

@tool(permission="confirm")
def refund(amount: int) -> str:
    """Pays back."""
    return f"refunded {amount}"
'''
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key of this machine, and no rules of the present folder."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tools(write: Write) -> str:
    return write("tools.py", TOOLS)


def calls_of(name: str, tool: str = "pay") -> list[Any]:
    """A reply of the provider that calls `pay` or another tool with an amount of 50."""
    return [json.loads(json.dumps(event).replace('"pay"', f'"{tool}"')) for event in PROVIDERS[name][1]]


def chat(*more: str, model: str = "openai:m", stdin: bytes = b"Pay.\n") -> Ended:
    """A chat that asks its model. A process, because no SDK's client is closed at its end."""
    return run_process("chat", "--model", model, *more, stdin=stdin)


def refused(*more: str, model: str = "openai:m", stdin: bytes = b"Pay.\n") -> Ended:
    """A chat that ends before it asks."""
    return run_here("chat", "--model", model, *more, stdin=stdin)


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
def test_a_chat_in_a_pipe_streams_calls_and_answers(server: Provider, tools: str, name: str) -> None:
    server.script, server.requests[:] = [PROVIDERS[name][1], PROVIDERS[name][2], PROVIDERS[name][2]], []
    ended = chat(
        "--base-url", server.url, "--tools", tools, model=f"{name}:m", stdin=b"Pay.\n\n And now? \n/quit\nNever.\n"
    )
    calls = '  pay(amount=50)\n  = "paid 50"\n'
    assert ended == Ended(code=0, stdout="Paid 5, and not 50.\n" * 2, stderr=calls)
    assert [("And now?" in str(request), "Never" in str(request)) for request in server.requests] == [
        *((False, False), (False, False)),
        (True, False),
    ]


def test_commands_show_tools_and_tokens(server: Provider, tools: str) -> None:
    server.script = [PROVIDERS["anthropic"][2]]
    stdin = b"/usage\nHi.\n/usage\n/tools\n/help\n/etc/hosts is what?\n"
    ended = chat("--base-url", server.url, "--tools", tools, model="anthropic:m", stdin=stdin)
    lines = ended.stdout.splitlines()
    assert lines[:3] == ["tokens: 0 in (0 cached), 0 out", "Paid 5, and not 50.", "tokens: 1 in (0 cached), 1 out"]
    assert [line.split()[0] for line in lines[3:]] == ["NAME", "pay", "refund"]
    assert ended.stderr.startswith("there is no command /help: write /tools, /usage, /quit or a prompt\n")
    assert "/etc/hosts is what?" in str(server.requests[-1])


def test_a_chat_goes_on_in_another_process(server: Provider, tools: str) -> None:
    server.script = [PROVIDERS["openai"][2], PROVIDERS["openai"][2]]
    server.requests[:] = []
    words = ["--base-url", server.url, "--tools", tools, "--conversation", "c-1"]
    assert chat(*words, stdin=b"First.\n").code == chat(*words, stdin=b"Second.\n").code == 0
    assert [message["content"] for message in server.requests[1]["messages"]] == [
        *("First.", "Paid 5, and not 50.", "Second.")
    ]


def test_a_call_that_needs_a_person_waits_in_a_pipe(server: Provider, tools: str, store: str) -> None:
    server.script = [calls_of("openai", "refund"), PROVIDERS["openai"][2]]
    words = ["--base-url", server.url, "--tools", tools, "--conversation", "c 1"]
    ended = chat(*words)
    assert (ended.code, ended.stdout) == (6, "")
    said = ended.stderr.splitlines()
    again = f"toolwire chat --model openai:m --tools {tools} --base-url {server.url} --conversation 'c 1'"
    assert [line for line in said if line.startswith(("the", "Decide", "Go"))] == [
        "the chat waits for a person:",
        f"Decide:  toolwire approvals show {said[-2].split()[-1]}",
        f"Go on:   {again}",
    ]
    # Before the decision nothing is asked, and then the chat goes on before the first prompt.
    assert chat(*words).code == 6
    assert run_here("approvals", "approve", said[-2].split()[-1]).code == 0
    ended = run_process(*shlex.split(again)[1:])
    assert (ended.code, ended.stdout) == (0, "Paid 5, and not 50.\n")
    assert ended.stderr == '  refund(amount=50)\n  = "refunded 50"\n'


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ([Fault(status=401, words="bad key")], 1, "the model failed (auth): AuthenticationError: Error code: 401"),
        ([PROVIDERS["openai"][1]], 1, "the turns are used up: write a prompt to go on, or give more by --turns"),
    ],
)
def test_the_first_prompt_without_an_answer_ends_a_pipe(
    server: Provider, tools: str, script: list[Any], code: int, words: str
) -> None:
    server.script, server.requests[:] = script, []
    ended = chat("--base-url", server.url, "--tools", tools, "--turns", "1", stdin=b"Pay.\nAnd now?\n")
    assert (ended.code, ended.stdout, len(server.requests)) == (code, "", 1)
    assert ended.stderr.splitlines()[-1].startswith(words)


def test_a_stream_that_breaks_off_begins_again(server: Provider, tools: str) -> None:
    text = PROVIDERS["openai"][2]
    server.script = [Fault(events=tuple(text), share=0.6), text]
    ended = chat("--base-url", server.url, "--tools", tools)
    assert ended.stdout == "Paid 5, and not 50.\n"
    assert (ended.code, ended.stderr) == (0, "the stream broke off: its reply is void, and another begins\n")


OWN_SERVER = "\nA server of your own needs none: give its --base-url."
NO_MODEL = "names no model\nWrite openai:NAME, anthropic:NAME, gemini:NAME."
NO_ADDRESS = "is no address\nWrite one that begins with http:// or https://."


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--model", "gpt-x"], 2, f"--model 'gpt-x' {NO_MODEL}"),
        (["--model", "mistral:x"], 2, f"--model 'mistral:x' {NO_MODEL}"),
        (["--model", "openai:"], 2, f"--model 'openai:' {NO_MODEL}"),
        (["--model", ""], 2, f"--model '' {NO_MODEL}"),
        (["--model", "OpenAI:x"], 2, f"--model 'OpenAI:x' {NO_MODEL}"),
        (["--model", "openai:x", "--base-url", "localhost:8000"], 2, f"--base-url 'localhost:8000' {NO_ADDRESS}"),
        (["--model", "openai:x", "--base-url", ""], 2, f"--base-url '' {NO_ADDRESS}"),
        (["--model", "openai:x"], 2, f"OpenAIModel found no key: set OPENAI_API_KEY{OWN_SERVER}"),
        (["--model", "anthropic:x"], 2, f"AnthropicModel found no key: set ANTHROPIC_API_KEY{OWN_SERVER}"),
        (["--model", "gemini:x"], 2, f"GeminiModel found no key: set GEMINI_API_KEY{OWN_SERVER}"),
    ],
)
def test_a_wrong_model_is_named(tools: str, words: list[str], code: int, said: str, store: str) -> None:
    ended = run_here("chat", *words, "--tools", tools)
    assert ended == Ended(code=code, stdout="", stderr=f"toolwire: {said}\n")
    assert not Path(store).exists()


@pytest.mark.parametrize("more", [[], ["--base-url", "http://127.0.0.1:9"]])
@pytest.mark.parametrize(
    ("name", "module", "said"),
    [
        ("openai", "openai", "OpenAIModel needs OpenAI's SDK: pip install openai"),
        ("anthropic", "anthropic", "AnthropicModel needs Anthropic's SDK: pip install anthropic"),
        ("gemini", "google.genai", "GeminiModel needs Google's SDK: pip install google-genai"),
    ],
)
def test_a_missing_sdk_is_named(
    tools: str, name: str, module: str, said: str, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delattr("google.genai", raising=False)
    ended = refused("--tools", tools, *more, model=f"{name}:x")
    assert ended == Ended(code=2, stdout="", stderr=f"toolwire: {said}\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--tools", "missing.py"], 3, "toolwire: the tools cannot be loaded: there is no file missing.py\n"),
        ([], 2, "Missing option '--tools'"),
        (["--tools", "TOOLS", "--turns", "0"], 2, "'--turns': Input should be greater than or equal to 1"),
        (["--tools", "TOOLS", "--turns", "many"], 2, "'--turns': Input should be a valid integer"),
        (["--tools", "TOOLS", "--conversation", "a\tb"], 2, "toolwire: conversation='a\\tb': give a text of 1 to 200"),
        (["--tools", "TOOLS", "--store", "nothing://x"], 2, "toolwire: 'nothing' is not a database"),
    ],
)
def test_a_wrong_option_is_named(tools: str, words: list[str], code: int, said: str) -> None:
    given = [tools if word == "TOOLS" else word for word in words]
    ended = refused("--base-url", "http://127.0.0.1:9", *given)
    assert (ended.code, ended.stdout, said in ended.stderr, "Traceback" in ended.stderr) == (code, "", True, False)


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"Pay \xff.\n", "a prompt is not UTF-8: byte 4"),
        (b"a" * 16_777_217, "a prompt is longer than 16,777,216 bytes"),
    ],
)
def test_a_prompt_that_cannot_be_read_is_named(tools: str, stdin: bytes, said: str) -> None:
    ended = refused("--base-url", "http://127.0.0.1:9", "--tools", tools, stdin=stdin)
    assert ended == Ended(code=2, stdout="", stderr=f"toolwire: {said}\n")


def test_a_conversation_that_is_not_one_of_this_model_is_named(server: Provider, tools: str, store: str) -> None:
    with Store.open(f"sqlite:///{store}") as opened:
        opened.save_document("theirs", {"mine": 1}, version=0)
    words = ["--base-url", server.url, "--tools", tools]
    ended = refused(*words, "--conversation", "theirs")
    assert (ended.code, "has a document that is not in the form" in ended.stderr) == (2, True)
    server.script = [PROVIDERS["openai"][2]]
    assert chat(*words, "--conversation", "c-2").code == 0
    ended = refused(*words, "--conversation", "c-2", model="anthropic:m")
    assert (ended.code, "is in the protocol 'openai', and this model speaks 'anthropic'" in ended.stderr) == (2, True)


def test_a_conversation_in_use_is_named(tools: str, store: str) -> None:
    with Store.open(f"sqlite:///{store}") as opened:
        lease = opened.hold_conversation("c-3", caller=Caller(agent="assistant")).result(PATIENCE_S)
        ended = refused("--base-url", "http://127.0.0.1:9", "--tools", tools, "--conversation", "c-3")
        lease.release().result(PATIENCE_S)
    assert (ended.code, ended.stdout, "conversation 'c-3'" in ended.stderr) == (1, "", True)


def test_rules_of_the_folder_hold(server: Provider, tools: str) -> None:
    Path("toolwire.toml").write_text('[[rule]]\neffect = "deny"\ntool = "pay"\n')
    server.script = [PROVIDERS["openai"][1], PROVIDERS["openai"][2]]
    ended = chat("--base-url", server.url, "--tools", tools)
    assert ended.stderr.splitlines()[:2] == ["policy: toolwire.toml", "  pay(amount=50)"]
    assert "paid 50" not in ended.stderr
