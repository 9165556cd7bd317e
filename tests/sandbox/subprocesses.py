"""Small Python scripts as processes of their own, for the behaviour at fork and at exit."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from tests.patience import PATIENCE_S

PRELUDE = """
import logging, os, sys, threading, time, warnings
logging.disable(logging.WARNING)
warnings.simplefilter("error")
from toolwire.runtime.runtime import default_runtime
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Answer, Program

def run(source):
    return default_runtime().own("sandbox", Sandbox).run(Program(source=source), lambda call: Answer())

def zygote():
    return default_runtime().own("sandbox", Sandbox).zygotes.current().process_id
"""


def run_script(body: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    script = PRELUDE + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.returncode, done.stdout, done.stderr
