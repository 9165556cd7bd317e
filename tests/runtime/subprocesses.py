"""Scripts in an interpreter of their own, for faults that show only when a process forks or ends."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from tests.patience import PATIENCE_S

PRELUDE = "import logging\nlogging.getLogger('asyncio').setLevel('ERROR')\n"
"""In development mode asyncio also warns of each callback above 0.1 s, which a busy machine brings about."""


def output_of(script: str) -> str:
    """The output of the script, which must end in time and print nothing to stderr."""
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (run.returncode, run.stderr) == (0, ""), (run.returncode, run.stderr)
    return run.stdout
