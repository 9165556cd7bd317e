"""Sandboxes with a layer made void, to show that each matters and that the self-test finds out."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import PATIENCE_S
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.zygote import SCRIPT, Zygotes

VOID = {
    "process": ("kernel/lockdown.py", "def _restrictions(zygote): return []"),
    "limits": ("kernel/lockdown.py", "_FOR_CHILD = ()\nLockdown.allow = lambda self, process, allowance: None"),
    "landlock": ("kernel/landlock.py", "def restricter(descriptor): return int"),
    "seccomp": ("kernel/seccomp.py", "def loader(): return lambda: None"),
    "namespaces": ("kernel/namespaces.py", "def _unshare(): return 'made void'"),
}
"""For each layer, the file, and the code appended to it: the layer is built as usual, and never loaded."""


@contextmanager
def weakened(*changes: tuple[str, str]) -> Iterator[Sandbox]:
    """A sandbox whose children come from a copy of the code with these lines at the end of those files."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "child"
        shutil.copytree(SCRIPT.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for name, lines in changes:
            # Reading first: a file that is not there must not be made.
            source = (copy / name).read_text("utf-8")
            (copy / name).write_text(f"{source}\n\n{lines}\n", "utf-8")
        with Sandbox(Zygotes(copy / SCRIPT.name)) as sandbox:
            yield sandbox


@functools.cache
def has_namespaces() -> bool:
    """Whether this process may make namespaces and mount in them, found out without any code of ours."""
    flags = os.CLONE_NEWUSER | os.CLONE_NEWNS if hasattr(os, "CLONE_NEWNS") else 0x10000000 | 0x00020000
    script = (
        "import ctypes, sys; libc = ctypes.CDLL(None)\n"
        f"sys.exit(libc.unshare({flags}) or libc.mount(b'none', b'/', None, 0x44000, None))"
    )
    return subprocess.run([sys.executable, "-c", script], check=False, timeout=PATIENCE_S).returncode == 0
