"""The recorded replies give exactly the results recorded beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.command_line import ROOT, Ended, run_here
from tests.patience import PATIENCE_S

EXAMPLE = ROOT / "examples" / "repository"
REPLIES = EXAMPLE / "replies"
TOOLS = str(EXAMPLE / "tools.py")


def load(name: str) -> ModuleType:
    """A file of the example as a module."""
    spec = spec_from_file_location(f"example_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[f"example_{name}"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECORDED = {recorded.name: recorded for recorded in load("replies").RECORDED}
FROZEN = [name for name, recorded in RECORDED.items() if recorded.is_frozen]


def run(name: str, *more: str) -> Ended:
    return run_here("run", str(REPLIES / f"{name}.toml"), "--tools", TOOLS, *more)


def test_every_reply_is_shown_and_every_frozen_one_has_its_output() -> None:
    assert {path.stem for path in REPLIES.glob("*.toml")} == set(RECORDED)
    assert {path.stem for path in REPLIES.glob("*.stdout")} == set(FROZEN)


# Texts that newer versions of Python word differently from the oldest, whose output is recorded beside the replies.
NEWER = {
    "error_at_its_line": ((3, 13), "^" * 45, "~" * 7 + "^" * 38),
    "wrong_arguments": ((3, 13), " " * 17 + "^" * 86 + "\n", ""),
    "wrong_tool_name": ((3, 12), "is not defined\n", "is not defined. Did you mean: 'search'?\n"),
}


def output_of(name: str) -> str:
    """The expected output on this version of Python."""
    expected = (REPLIES / f"{name}.stdout").read_text("utf-8")
    if name not in NEWER:
        return expected
    since, older, newer = NEWER[name]
    assert expected.count(older) == 1
    return expected.replace(older, newer) if sys.version_info >= since else expected


@pytest.mark.parametrize("name", FROZEN)
def test_a_reply_gives_exactly_its_output(name: str) -> None:
    ended = run(name)
    assert (ended.stdout, ended.code) == (output_of(name), RECORDED[name].exit_code)


STDERR = {
    "damaged_and_repaired": """\
repaired: line 3: The code fence around the reply was left out.
repaired: line 1: The text before the document was left out.
repaired: line 4: `thought` was read as it stands between its quotes: they are not straight quotes.
repaired: line 13: The text after the document was left out.
repaired: line 7: `Status` was read as `status`.
""",
    "refused": """\
refused: line 9: Two documents stand in the reply, and it is not clear which is meant. Write one, without a code fence.
""",
}


@pytest.mark.parametrize("name", FROZEN)
def test_repairs_and_refusals_are_told_and_nothing_else(name: str) -> None:
    assert run(name).stderr == "protocol: attp\n" + STDERR.get(name, "")


def test_the_loop_makes_one_call_a_file() -> None:
    report = json.loads(run("loop_over_many_calls", "--json").stdout)
    calls = [call["tool"] for call in report["results"][0]["program"]["calls"]]
    assert calls == ["list_files"] + ["count_lines"] * 9


def test_the_package_and_the_examples_are_counted_right() -> None:
    def size(folder: str) -> dict[str, int]:
        paths = [path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts]
        lines = [len(path.read_text("utf-8").splitlines()) for path in paths]
        return {"files": len(lines), "lines": sum(lines), "longest": max(lines)}

    ended = run("whole_repository")
    assert ended.code == 0
    assert json.loads(ended.stdout) == {"package": size("src"), "examples": size("examples")}


def test_the_history_is_that_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True, timeout=PATIENCE_S)

    monkeypatch.setenv("REPOSITORY_ROOT", str(tmp_path))
    git("init")
    assert run("history").stdout.startswith("no history: ")
    for day in (1, 2, 3, 4):
        monkeypatch.setenv("GIT_AUTHOR_DATE", f"2025-03-0{day}T12:00:00+00:00")
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
        git(*who, "commit", "--allow-empty", "--no-verify", "-m", f"Step {day}\n\nMore on it.")
    assert run("history") == Ended(
        code=0,
        stdout="2025-03-04 Ada - Step 4\n2025-03-03 Ada - Step 3\n2025-03-02 Ada - Step 2\n",
        stderr="protocol: attp\n",
    )


def test_the_example_shows_command_output_and_end_of_each_reply() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE / "replies.py", "chinese", "model_declines"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=True,
    )
    shown = [line for line in done.stdout.splitlines() if not line.startswith("[stderr] ")]
    end = shown.index("== chinese ==")
    command = "$ toolwire run examples/repository/replies/{}.toml --tools examples/repository/tools.py"
    assert shown[end:] == [
        "== chinese ==",
        RECORDED["chinese"].shows,
        "",
        command.format("chinese"),
        *(REPLIES / "chinese.stdout").read_text("utf-8").splitlines(),
        "",
        "== model declines ==",
        RECORDED["model_declines"].shows,
        "",
        command.format("model_declines"),
        *(REPLIES / "model_declines.stdout").read_text("utf-8").splitlines(),
        "[exit code 5]",
        "",
        "The replies are in examples/repository/replies/; the same from Python is examples/repository/session.py.",
    ]
    assert (REPLIES / "loop_over_many_calls.toml").read_text("utf-8") in done.stdout


def test_the_session_in_python_says_the_same() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE / "session.py", REPLIES / "loop_over_many_calls.toml"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=True,
    )
    first, *rest = done.stdout.splitlines(keepends=True)
    assert first.startswith("The system prompt for the model has ")
    assert "".join(rest) == (
        "What the model wanted: Lines in the sample, by kind of file\nWhat it reads next:\n"
        + (REPLIES / "loop_over_many_calls.stdout").read_text("utf-8")
    )
