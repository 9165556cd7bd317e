"""The README's code runs, with the results in its comments."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.protocols.providers import provider
from tests.session.till import program
from toolwire import Decision
from toolwire.runtime.runtime import default_runtime

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), names)
    return names


def chunks(delta: dict[str, Any], reason: str) -> list[dict[str, Any]]:
    """The stream of a reply in OpenAI's chat API."""
    whole = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [{**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}]


WEATHER = [
    chunks(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
                }
            ],
        },
        "tool_calls",
    ),
    chunks({"role": "assistant", "content": "It is clear."}, "stop"),
]
"""The replies of a model to the question of the first block."""


def test_an_agent_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with provider() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        server.script = list(WEATHER)
        model = run(BLOCKS[0])["agent"].model
        # The SDK closes its idle connections when they are collected, with a warning.
        default_runtime().portal.run(model._client.close)
        assert "celsius" in str(server.requests[1]["messages"][-1])
    assert capsys.readouterr().out == "It is clear.\n"


def test_the_first_program_gives_the_model_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(BLOCKS[1])
    assert names["turn"].text == "dune 2\nemma 1\n"
    assert capsys.readouterr().out.startswith(names["session"].instructions)


def test_the_tool_is_described_and_called_as_it_says() -> None:
    names = run(BLOCKS[2])
    spec, session = names["spec"], names["session"]
    assert spec.signature(to="team", text="hi") == "send(to='team', text='hi')"
    assert spec(to="team", text="hi") == "sent to team with k-..."
    assert "api_key" not in spec.code
    # The session has no approver: this one approves.
    session._scope = replace(session._scope, approver=lambda _: Decision(verdict="approve"))
    assert asyncio.run(session.turn(program("print(send('team', 'hi'))"))).text == "sent to team with s-...\n"


def test_the_registry_answers_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(BLOCKS[3])
    assert names["registry"].invoke("add", {"a": 1, "b": 2}).data == 3
    assert capsys.readouterr().out.startswith("There is no tool named 'ad'.\nDid you mean 'add'?\n")
    result = names["result"]
    assert (result.status, result.stdout, len(result.calls)) == ("finished", "90\n", 10)


def test_a_stream_is_read_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (block for block in BLOCKS if "call_tool_function" in block)
    run(block)
    assert capsys.readouterr().out == "1  False\n1 2  False\n1 2 3  False\n1 2 3  True\n"


def test_an_approval_survives_a_restart_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLWIRE_KEY", "00" * 32)
    (block,) = (block for block in BLOCKS if "session.run_resume" in block)
    run(block)
    assert capsys.readouterr().out == "True True\n"


def test_there_are_no_other_examples() -> None:
    assert len(BLOCKS) == 6
