"""The short form of `python -m benchmarks.fuzz_tools`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

SIZE_BYTES = 4_000


@pytest.mark.threat(37)
def test_no_built_in_tool_is_slow_for_texts_of_a_shape() -> None:
    # It forks, so it begins in a process without threads.
    code = f"import sys; from benchmarks.fuzz_tools import main; sys.exit(main({SIZE_BYTES}, is_short=True))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
