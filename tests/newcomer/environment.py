"""Fresh virtual environments with the wheel, outside of the repository."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.architecture.source import ROOT
from tests.patience import PATIENCE_S

UV = Path(sys.executable).with_name("uv")
COLUMNS = 80
EACH_LIMIT_S = 15 * PATIENCE_S
"""Seconds for all tasks of one process; a machine at rest needs half a minute."""

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


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of the package, and returns its path."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = folder.glob("*.whl")
    return wheel


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

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables of a newcomer's process. Python compiles what is imported; uv would compile all packages."""
        ours = ("PYTHON", "VIRTUAL_ENV", "UV_COMPILE_BYTECODE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {**kept, "COLUMNS": str(COLUMNS), "TOOLWIRE_KEY": "00" * 32, **(more or {})}

    def run(
        self, *command: str, stdin: str = "", more: Mapping[str, str] | None = None, limit_s: float = 4 * PATIENCE_S
    ) -> tuple[int, str, str]:
        """Runs a command; its exit code, output and errors."""
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.variables(more),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=limit_s,
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
        python = str(self.bin / "python")
        code, output, errors = self.run(python, "-c", RUN_EACH, stdin=given, more=more, limit_s=EACH_LIMIT_S)
        assert (code, errors) == (0, "")
        return [(code, said, told) for code, said, told in json.loads(output)]

    def python(self, *arguments: str, more: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        return self.run(str(self.bin / "python"), *arguments, more=more)

    def at_terminal(
        self, *arguments: str, typed: Sequence[str], more: Mapping[str, str] | None = None
    ) -> tuple[str, str]:
        """Runs Python with a person at its terminal, who types a line at each question that ends with `? `.

        Returns its standard output, and the text on the terminal.
        """
        screen, terminal = pty.openpty()
        command = [str(self.bin / "python"), *arguments]
        process = subprocess.Popen(
            command, cwd=self.work, env=self.variables(more), stdin=terminal, stdout=subprocess.PIPE, stderr=terminal
        )
        os.close(terminal)
        lines, seen = list(typed), b""
        try:
            while chunk := _read(screen):
                seen += chunk
                if lines and seen.endswith(b"? "):
                    os.write(screen, f"{lines.pop(0)}\n".encode())
            output, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            os.close(screen)
        return output.decode(), seen.decode()


def _read(screen: int) -> bytes:
    """What comes on the screen next; nothing once no process has the terminal any more."""
    try:
        return os.read(screen, 65_536)
    except OSError:
        return b""
