"""The sandbox's own tests once more, by the runner in WebAssembly. Those marked `of_processes` are left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.sandbox.elsewhere import LIMIT_S, cases
from tests.sandbox.test_elsewhere import failures

SANDBOX = Path(__file__).parents[1]
PROCESSES_ONLY = {
    # Files about pipes, processes, and the code of the host, which is the same.
    *("test_outbox.py", "test_warmup.py", "test_source_checks.py", "test_dates_and_imports.py"),
}
FILES = [
    *sorted(
        path
        for folder in ("child/failures", "child/world", "drive")
        for path in (SANDBOX / folder).glob("test_*.py")
        if path.name not in PROCESSES_ONLY
    ),
    *(SANDBOX / name for name in ("test_host.py", "test_limits.py", "test_program.py")),
    ROOT / "tests" / "session" / "test_suspended_programs.py",
    ROOT / "tests" / "session" / "test_gated_programs.py",
    ROOT / "tests" / "session" / "test_killed.py::test_a_run_that_is_killed_at_any_moment_goes_on[program]",
]


@pytest.mark.timeout(LIMIT_S + 60)
def test_what_holds_for_programs_in_processes_holds_in_web_assembly(whole: bool) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *map(str, FILES)]
    environment = {**os.environ, "TOOLWIRE_TESTS_RUNNER": "wasm", "COLUMNS": "300", **cases(whole)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert not (found := failures(done)), "\n".join(found)
