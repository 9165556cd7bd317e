"""Each example of an agent runs with its real SDK against a local server that speaks the provider's API."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.protocols.providers import Provider, provider
from tests.session.test_native_protocols import completion, message

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = 35
ANSWER = "It is clear in Oslo, at 21 degrees."

PROGRAM = """thought = "Look it up."

[tool_call]
status = "success"
target = "the weather in Oslo"
code = '''
print(weather("Oslo"))
'''
"""

GEMINI: list[Any] = [
    {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    for parts in ([{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}], [{"text": ANSWER}])
]
SCRIPTS: dict[str, list[Any]] = {
    "openai_agent": [completion(("call_a", "weather", '{"city": "Oslo"}')), completion(content=ANSWER)],
    "anthropic_agent": [
        message({"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}),
        message({"type": "text", "text": ANSWER}, reason="end_turn"),
    ],
    "gemini_agent": GEMINI,
    "attp_agent": [completion(content=PROGRAM), completion(content=ANSWER)],
}


def run(name: str, server: Provider) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "GEMINI_API_KEY": "k",
    }
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "What is the weather in Oslo?"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_asks_calls_and_answers(name: str) -> None:
    with provider() as server:
        server.script = list(SCRIPTS[name])
        done = run(name, server)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{ANSWER}\n", "")
        assert len(server.requests) == 2
        assert "celsius" in str(server.requests[1])


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) <= LINES


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)
