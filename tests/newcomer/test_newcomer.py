"""The wheel in a fresh environment, outside the repository: every page, example and command works as written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.documents.pages import PAGES, blocks_of, said_by
from tests.documents.test_pages import PLAIN
from tests.patience import PATIENCE_S

UV = Path(sys.executable).with_name("uv")
INSTALLS = {"README.md": "`pip install openai`", "docs/tracing.md": "pip install 'toolwire[otel]'"}
"""Pages that need more than the package, each with the words in which it says so."""
COLUMNS = 80

RUN_BLOCKS = """
import json, sys
names = {"__name__": "page"}
for block in json.load(sys.stdin):
    exec(compile(block, "page", "exec", dont_inherit=True), names)
"""


class Environment:
    """A fresh virtual environment, and the empty folder in which the newcomer works."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.wheel = wheel
        self.work = folder / "work"
        self.work.mkdir()
        self.bin = folder / "venv" / "bin"
        self.check(str(UV), "venv", "-q", "--python", sys.executable, str(self.bin.parent))

    def install(self, *packages: str) -> None:
        """Installs the pinned versions, from uv's cache if they are there."""
        pins = str(ROOT / "requirements" / "dev.txt")
        self.check(str(UV), "pip", "install", "-q", "--python", str(self.bin / "python"), "-c", pins, *packages)

    def run(self, *command: str, stdin: str = "", more: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Runs a command; its exit code, output and errors."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        environment = {**kept, "COLUMNS": str(COLUMNS), "TOOLWIRE_KEY": "00" * 32, **(more or {})}
        done = subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def check(self, *command: str) -> str:
        code, output, errors = self.run(*command)
        assert code == 0, f"{command}: {errors}"
        return output

    def python(self, *arguments: str, stdin: str = "", more: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        return self.run(str(self.bin / "python"), *arguments, stdin=stdin, more=more)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package alone."""
    folder = tmp_path_factory.mktemp("newcomer")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = folder.glob("*.whl")
    environment = Environment(folder, wheel)
    environment.install(str(wheel))
    return environment


def wrong_pages(newcomer: Environment, pages: list[str], more: Mapping[str, str]) -> dict[str, object]:
    """The pages whose blocks fail, or print another text than their comments say."""
    wrong: dict[str, object] = {}
    for page in pages:
        code, output, errors = newcomer.python("-c", RUN_BLOCKS, stdin=json.dumps(blocks_of(page)), more=more)
        if code != 0 or (page in PLAIN and output != said_by(page)):
            wrong[page] = (code, output, errors)
    return wrong


PAGES_WITH_CODE = [page for page in PAGES if blocks_of(page)]


def test_the_package_alone_runs_every_page_that_names_no_other(newcomer: Environment) -> None:
    pages = [page for page in PAGES_WITH_CODE if page not in INSTALLS]
    assert len(pages) > 10
    assert wrong_pages(newcomer, pages, {}) == {}


def test_every_command_helps_within_the_terminal(newcomer: Environment) -> None:
    found: list[list[str]] = []
    toolwire = str(newcomer.bin / "toolwire")

    def read(*words: str) -> None:
        page = newcomer.check(toolwire, *words, "--help")
        assert [line for line in page.splitlines() if len(line) > COLUMNS] == []
        found.append(list(words))
        _, _, commands = page.partition("\nCommands:\n")
        for name in re.findall(r"^  ([a-z]+)  ", commands.partition("\n\n")[0], re.MULTILINE):
            read(*words, name)

    read()
    assert len(found) > 15
