"""A wide corpus of honest programs: none may trip over what the sandbox took away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.programs import Runner
from toolwire.sandbox.child.warmup import LAZY

_TEXT = (Path(__file__).parent / "honest_programs.txt").read_text("utf-8")
PROGRAMS = dict(part.split("\n", 1) for part in _TEXT.removeprefix("=== ").split("\n=== "))


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_an_honest_program_finishes(run: Runner, source: str) -> None:
    result = run(source)
    assert (result.status, result.error) == ("finished", None)
    assert result.has_value


@pytest.mark.parametrize("name", LAZY)
def test_what_is_imported_late_elsewhere_is_there_already(run: Runner, name: str) -> None:
    # Modules of other versions of Python are not there to be imported.
    result = run(f"import {name}", source_checks=False)
    assert result.status == "finished" or name in ("_colorize", "_pylong")
