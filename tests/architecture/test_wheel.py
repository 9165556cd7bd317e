"""The wheel holds the whole package, its data files too."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT
from tests.patience import PATIENCE_S


def test_every_file_of_the_package_is_in_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        shipped = {name for name in wheel.namelist() if name.startswith("toolwire/")}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and path.parent.name != "__pycache__"}
    assert shipped == {path.relative_to(PACKAGE.parent).as_posix() for path in files}
    assert {
        "toolwire/catalogue/thesaurus.txt",
        "toolwire/journal/database/migrations/env.py",
        "toolwire/py.typed",
    } <= shipped
