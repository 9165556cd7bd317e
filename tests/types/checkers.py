"""mypy and pyright in strict mode, over files of a user's project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT
from tests.patience import PATIENCE_S

BIN = Path(sys.executable).parent
CACHE = ROOT / ".mypy_cache"
"""Kept between runs: the first run takes ten times as long."""
MYPY = """
[mypy]
[mypy-agents.*,anthropic.*,celery.*,fastmcp.*,google.*,IPython.*,langchain.*,langchain_core.*,langgraph.*,openai.*,\
pydantic_ai.*,redis.*]
follow_imports = skip
"""
"""mypy reads these packages whole, which takes longer than all else. pyright checks their uses."""

Complaints = dict[str, list[tuple[int, str]]]
"""The line and rule of each complaint, by file name."""


def mypy(folder: Path) -> Complaints:
    """The complaints of `mypy --strict` about the files in a folder."""
    (folder / "mypy.ini").write_text(MYPY, "utf-8")
    python = ["--python-executable", sys.executable, "--cache-dir", str(CACHE)]
    command = [str(BIN / "mypy"), "--strict", "--config-file", "mypy.ini", *python, "--no-error-summary", str(folder)]
    code, output = run(command, folder)
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", output, re.MULTILINE)
    assert (code == 0) == (found == []), output
    return by_file([(name, int(line), rule) for name, line, rule in found])


def pyright(folder: Path) -> Complaints:
    """The complaints of pyright in strict mode about the files in a folder."""
    settings = {
        "include": ["."],
        "typeCheckingMode": "strict",
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    code, output = run([str(BIN / "pyright"), "--outputjson", "--pythonpath", sys.executable], folder)
    said = json.loads(output)
    assert code in (0, 1), output
    assert said["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py"))), output
    return by_file(
        [
            (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", "syntax"))
            for one in said["generalDiagnostics"]
        ]
    )


def run(command: list[str], folder: Path) -> tuple[int, str]:
    """Runs a checker in the folder; its exit code and output."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=8 * PATIENCE_S, check=False)
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout


def by_file(complaints: list[tuple[str, int, str]]) -> Complaints:
    found: Complaints = {}
    for name, line, rule in complaints:
        found.setdefault(name, []).append((line, rule))
    return found


CHECKERS = {"mypy": mypy, "pyright": pyright}
