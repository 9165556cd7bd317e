"""The files of `deploy/gateway` are valid, and the command of the image serves what they name."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client.streamable_http import streamable_http_client

from mcp import Client
from tests.architecture.source import ROOT
from tests.fleet.commands import parse_command
from tests.fleet.test_deploy import check_compose
from tests.journal.conftest import server as server
from tests.journal.postgres import Server
from tests.patience import PATIENCE_S, eventually

FOLDER = ROOT / "deploy/gateway"
COMPOSE, DOCKERFILE = FOLDER / "compose.yaml", FOLDER / "Dockerfile"
INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the image, with what follows each."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def gateway() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]["gateway"]


def test_the_compose_file_is_valid(tmp_path: Path) -> None:
    assert check_compose(COMPOSE).returncode == 0
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(COMPOSE.read_text("utf-8").replace("cap_drop:", "cap_drip:"))
    assert check_compose(wrong).returncode != 0


def lint(file: Path) -> tuple[int, str]:
    """The exit code and the complaints of hadolint."""
    command = [Path(sys.executable).with_name("hadolint"), "--no-color", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_file_of_the_image_has_no_mistake(tmp_path: Path) -> None:
    assert lint(DOCKERFILE) == (0, "")
    wrong = tmp_path / "Dockerfile"
    wrong.write_text(DOCKERFILE.read_text("utf-8").replace("WORKDIR /src", "WORKDIR src"))
    code, said = lint(wrong)
    assert (code, "DL3000" in said) == (1, True)


def test_the_store_of_the_image_is_in_a_folder_that_its_user_may_write() -> None:
    command = json.loads(dict(instructions())["CMD"])
    assert command[command.index("--store") + 1] == "sqlite:////home/toolwire/runs.db"
    assert ("RUN", "useradd --create-home --uid 10001 toolwire") in instructions()


def test_the_image_copies_what_is_there_and_runs_as_no_root() -> None:
    found = instructions()
    assert {word for word, _ in found} == INSTRUCTIONS
    sources = [source for word, rest in found if word == "COPY" for source in shlex.split(rest)[:-1]]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    # A number: Kubernetes refuses a name under `runAsNonRoot`.
    assert dict(found)["USER"] == "10001"
    assert ("RUN", "useradd --create-home --uid 10001 toolwire") in found
    build = gateway()["build"]
    assert (COMPOSE.parent / build["context"] / build["dockerfile"]).resolve() == DOCKERFILE


def test_the_commands_are_those_that_toolwire_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    for command in (json.loads(dict(instructions())["CMD"]), gateway()["command"]):
        parse_command(command)
        with pytest.raises(Exception, match="No such option: --other"):
            parse_command([*command, "--other"])


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    name = f"t{secrets.token_hex(6)}"
    server.create(name, is_new=True)
    yield server.url(name)
    server.drop(name)


def start(folder: Path, url: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """Starts the command of the compose file with another port and store. Returns the variables of the file too."""
    copied = shutil.copytree(FOLDER, folder / "gateway")
    variables = {one: secrets.token_hex(32) for one in gateway()["environment"] if one != "PGPASSWORD"}
    # The image has the command of this source in its path.
    program = folder / "toolwire"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "src"} exec {sys.executable} -m toolwire "$@"\n')
    program.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    changed = {"8000": "0", "0.0.0.0": "127.0.0.1"}
    command = [str(changed.get(word, word)) for word in gateway()["command"][:-1]]
    process = subprocess.Popen(
        [sys.executable, "-m", "toolwire", *command, url],
        cwd=copied,
        env={**os.environ, **variables, "PATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, variables


async def test_the_gateway_of_the_compose_file_serves_its_client(tmp_path: Path, url: str) -> None:
    process, variables = start(tmp_path, url)
    try:
        assert process.stderr is not None
        while " at http" not in (line := process.stderr.readline()):
            assert line
        served = line.split(" at ")[1].strip()
        assert httpx2.post(served, json={}, timeout=PATIENCE_S).status_code == 401
        headers = {"Authorization": f"Bearer {variables['GATEWAY_TOKEN']}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(served, http_client=http), cache=None) as client,
        ):

            async def is_listed() -> bool:
                return "clock_now" in [tool.name for tool in (await client.list_tools()).tools]

            await eventually(is_listed, True)
            told = await client.call_tool("clock_now", {})
        assert "+00:00" in str(told.content)
        assert httpx2.get(served.replace("/mcp", "/readyz"), timeout=PATIENCE_S).status_code == 200
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
