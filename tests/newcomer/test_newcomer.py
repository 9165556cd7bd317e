"""The wheel in a fresh environment, outside the repository: every page, example and command works as written."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.cli.test_wrong_command_lines import FILES, WRONG
from tests.documents.pages import PAGES, blocks_of, said_by, text_of
from tests.documents.test_pages import PLAIN
from tests.examples.test_agents import ANSWER, EXAMPLES, SCRIPTS
from tests.patience import PATIENCE_S
from tests.protocols.providers import provider
from toolwire import __version__

UV = Path(sys.executable).with_name("uv")
INSTALLS = {
    "README.md": "`pip install openai`",
    "docs/built_in/web_fetch.md": "pip install 'toolwire[web]'",
    "docs/built_in/web_search.md": "pip install 'toolwire[web]'",
    "docs/fastmcp.md": "pip install 'toolwire[fastmcp]'",
    "docs/mcp.md": "pip install 'toolwire[mcp]'",
    "docs/serving_mcp.md": "pip install 'toolwire[mcp]'",
    "docs/tracing.md": "pip install 'toolwire[otel]'",
    "docs/web.md": "pip install 'toolwire[web]'",
}
"""Pages that need more than the package, each with the words in which it says so."""
SDKS = ("openai", "anthropic", "google-genai")
COLUMNS = 80

RUN_EACH = """
import gc, importlib, json, os, pathlib, pkgutil, sys, tempfile
import toolwire
from toolwire import cli
from toolwire.__main__ import main

# The modules are imported once. Each command line and each page is then a process of its own.
for module in pkgutil.iter_modules(cli.__path__):
    importlib.import_module(f"toolwire.cli.{module.name}")
for name in toolwire.__all__:
    getattr(toolwire, name)
# Otherwise each process looks through all of them when it ends.
gc.freeze()

def obey(task):
    for name, text in task["files"].items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
    if "words" in task:
        sys.argv = ["toolwire", *task["words"]]
        main()
    names = {"__name__": "page"}
    for block in task.get("blocks", ()):
        exec(compile(block, "page", "exec", dont_inherit=True), names)

def run(task):
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = os.fork()
        if not process:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            os.chdir(tempfile.mkdtemp(dir="."))
            obey(task)
            sys.exit()
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return [code, *(os.pread(file.fileno(), 1_000_000, 0).decode() for file in (output, errors))]

tasks = json.load(sys.stdin)
sys.stdin = open(os.devnull)
print(json.dumps([run(task) for task in tasks]))
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

    def each(self, tasks: list[dict[str, object]], more: Mapping[str, str] | None = None) -> list[tuple[int, str, str]]:
        """Runs the `words` of a command line, or the `blocks` of a page, each forked from one process.

        Each has a folder of its own with its `files`. Returns their exit codes, output and errors.
        """
        given = json.dumps([{"files": {}, **task} for task in tasks])
        code, output, errors = self.python("-c", RUN_EACH, stdin=given, more=more)
        assert (code, errors) == (0, "")
        return [(code, said, told) for code, said, told in json.loads(output)]

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
    ended = newcomer.each([{"blocks": blocks_of(page)} for page in pages], more)
    return {
        page: end
        for page, end in zip(pages, ended, strict=True)
        if end[0] != 0 or (page in PLAIN and end[1] != said_by(page))
    }


PAGES_WITH_CODE = [page for page in PAGES if blocks_of(page)]


def test_the_package_alone_runs_every_page_that_names_no_other(newcomer: Environment) -> None:
    pages = [page for page in PAGES_WITH_CODE if page not in INSTALLS]
    assert len(pages) > 10
    assert wrong_pages(newcomer, pages, {}) == {}


def test_the_script_of_the_wheel_starts(newcomer: Environment) -> None:
    toolwire = str(newcomer.bin / "toolwire")
    assert newcomer.check(toolwire, "--version") == f"toolwire {__version__}\n"
    assert newcomer.run(toolwire, "fly")[0] == 2


def test_every_command_helps_within_the_terminal(newcomer: Environment) -> None:
    found: list[list[str]] = []
    level: list[list[str]] = [[]]
    while level:
        pages = newcomer.each([{"words": [*words, "--help"]} for words in level])
        wide = [line for _, page, _ in pages for line in page.splitlines() if len(line) > COLUMNS]
        assert ([code for code, _, _ in pages], wide) == ([0] * len(level), [])
        found += level
        level = [[*words, name] for words, (_, page, _) in zip(level, pages, strict=True) for name in commands_on(page)]
    assert len(found) > 15


def commands_on(page: str) -> list[str]:
    """The commands that a help page lists."""
    _, _, commands = page.partition("\nCommands:\n")
    return re.findall(r"^  ([a-z]+)  ", commands.partition("\n\n")[0], re.MULTILINE)


def test_a_wrong_command_line_ends_with_its_exit_code(newcomer: Environment) -> None:
    ended = newcomer.each([{"words": shlex.split(line), "files": FILES} for line, _, _ in WRONG])
    wrong = {
        line: (code, output, errors)
        for (line, expected, _), (code, output, errors) in zip(WRONG, ended, strict=True)
        if code != expected or "Traceback" in output + errors
    }
    assert wrong == {}
    assert len(WRONG) >= 40


def test_the_pages_and_agents_that_name_a_package_run_with_it(newcomer: Environment) -> None:
    assert {page: words in text_of(page) for page, words in INSTALLS.items()} == dict.fromkeys(INSTALLS, True)
    assert set(wrong_pages(newcomer, list(INSTALLS), {})) == set(INSTALLS)  # The control: without them, no page runs.
    newcomer.install(*SDKS, f"toolwire[fastmcp,mcp,otel,web] @ {newcomer.wheel.as_uri()}")
    with provider() as server:
        reach = {
            **{f"{name}_BASE_URL": server.url for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI")},
            **{f"{name}_API_KEY": "k" for name in ("OPENAI", "ANTHROPIC", "GEMINI")},
        }
        server.script = list(SCRIPTS["openai_agent"])
        assert wrong_pages(newcomer, list(INSTALLS), reach) == {}
        for name, script in SCRIPTS.items():
            server.script = list(script)
            assert newcomer.python(str(EXAMPLES / f"{name}.py"), more=reach) == (0, f"{ANSWER}\n", "")
