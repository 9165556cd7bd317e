"""Real unprivileged runs: the same tests as the user `nobody`, and under Docker's refusals."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.sandbox.elsewhere import HERE, LIMIT_S, NOBODY, REFUSE, ROOT, readable_copy, run_tests

# The soak and the tests that start copies of themselves stay here. So do those that do not depend on the layers:
# source, frames, records, and the Python that programs are written in. The honest programs prove there that it works.
HERE_ONLY = {
    "test_elsewhere.py",
    "test_soak.py",
    "test_channel.py",
    "test_twins.py",
    "test_replay.py",
    "test_divergence.py",
    "test_hostile_child.py",
    "test_frame_costs.py",
    "test_fuzz_frames.py",
    "test_source_checks.py",
    "test_mistakes.py",
    "test_suspend.py",
    "test_exceptions.py",
    "test_async_programs.py",
    "test_outbox.py",
    "test_help.py",
    "test_dates_and_imports.py",
    "test_modules.py",
    "test_result_marks.py",
    "test_tool_spelling.py",
    "test_variable_rules.py",
    "test_variables_frame.py",
    "test_in_wasm.py",
    "test_wasm_runner.py",
    "test_compiled.py",
}
FILES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))
    if path.name not in HERE_ONLY
]


def failures(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The failed tests with their messages; the whole output if no test ran."""
    lines = done.stdout.splitlines()
    found = [line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))]
    return found or ([] if done.returncode == 0 else [done.stdout[-2000:], done.stderr[-2000:]])


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.threat(48)
def test_all_of_it_holds_where_namespaces_are_refused(whole: bool) -> None:
    done = run_tests(HERE, *FILES, whole=whole, before=("-c", REFUSE))
    assert not (found := failures(done)), "\n".join(found)


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.threat(48)
def test_all_of_it_holds_for_nobody(whole: bool) -> None:
    if os.geteuid() != 0:
        # The suite itself runs as an ordinary user: all of it is this test.
        assert os.geteuid() == os.getuid()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = readable_copy(Path(folder))
        done = run_tests(place, *FILES, whole=whole, user=NOBODY, group=NOBODY, extra_groups=[])
    assert not (found := failures(done)), "\n".join(found)
