"""The start of a command: its cost, Ctrl-C during imports, and completion in shells."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import toolwire
from tests.cli.command_line import command, run_here, run_process
from tests.patience import PATIENCE_S

HEAVY = {"pydantic", "sqlalchemy", "cryptography", "alembic", "jsonschema", "asyncio", "rich", "opentelemetry"}
LOADED = """
import contextlib, io, sys
from toolwire.__main__ import main
sys.argv = ["toolwire", sys.argv[1]]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(*sys.modules)
"""


def modules_of(word: str) -> set[str]:
    """The top-level names of the modules that are loaded after `toolwire WORD`."""
    script = [sys.executable, "-c", LOADED, word]
    done = subprocess.run(script, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    names = set(done.stdout.split())
    assert "toolwire.cli.main" in names
    return {name.split(".")[0] for name in names}


def test_the_version_needs_no_heavy_module() -> None:
    assert modules_of("--version") & HEAVY == set()


def test_a_help_page_needs_neither_models_nor_a_database() -> None:
    assert modules_of("--help") & (HEAVY - {"asyncio", "rich"}) == set()


def test_the_help_page_says_of_each_command_what_it_does() -> None:
    commands = run_here("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert len(commands) > 10
    assert [line for line in commands if len(line.split()) < 3] == []


def processor_s(*words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_version_costs_a_small_multiple_of_an_empty_program() -> None:
    # At rest an empty program takes 0.018 s and the version 0.16 s. With every command imported it took 1.8 s.
    found = []
    for _ in range(10):
        found.append(processor_s(*command("--version")) / processor_s(sys.executable, "-c", "pass"))
        if min(found) <= 11:
            break
    assert min(found) <= 11


def test_the_package_knows_its_version() -> None:
    assert run_process("--version").stdout == f"toolwire {toolwire.__version__}\n"


BLOCKS = 'import sys\nimport threading\nprint("importing", file=sys.stderr, flush=True)\nthreading.Event().wait()\n'


@pytest.mark.parametrize("start", [command("--version"), [str(Path(sys.executable).with_name("toolwire")), "doctor"]])
def test_ctrl_c_during_imports_is_one_line(tmp_path: Path, start: list[str]) -> None:
    (tmp_path / "typer.py").write_text(BLOCKS)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "importing\n"
            process.send_signal(signal.SIGINT)
            ended = (process.communicate(timeout=PATIENCE_S), process.returncode)
        finally:
            process.kill()
    assert ended == (("", "toolwire: interrupted\n"), 130)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_toolwire(shell: str) -> None:
    ended = run_process("completion", shell)
    assert (ended.code, f"_TOOLWIRE_COMPLETE=complete_{shell}" in ended.stdout, ended.stderr) == (0, True, "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("toolwire a", "approvals\nartifacts\n"),
        ("toolwire policy e", "explain\n"),
        ("toolwire run --lang", "--language\n"),
        ("toolwire run --language z", "zh\n"),
        ("toolwire completion f", "fish\n"),
    ],
)
def test_bash_is_told_commands_options_and_choices(line: str, words: str) -> None:
    environment = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TOOLWIRE_COMPLETE": "complete_bash"}
    ended = run_process(environment=environment)
    assert (ended.code, ended.stdout, ended.stderr) == (0, words, "")
