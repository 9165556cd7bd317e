"""An environment that has toolwire and what it always installs, and no package of an extra."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.architecture.source import PACKAGE

_START = "import sys; sys.path[:] = {path!r}; sys.argv[1:] = {arguments!r}\n"


def base_distributions() -> set[str]:
    """The names of the distributions that `pip install toolwire` installs beside it."""
    found: set[str] = set()
    open_ = ["toolwire"]
    while open_:
        name = open_.pop()
        for line in distribution(name).requires or []:
            needed = Requirement(line)
            is_base = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if is_base and needed.name.lower() not in found:
                found.add(needed.name.lower())
                open_.append(needed.name)
    return found


def make_environment(folder: Path) -> Path:
    """Makes a folder of packages: links to the files of those distributions."""
    places = folder / "packages"
    places.mkdir()
    (places / "toolwire").symlink_to(PACKAGE)
    own = distribution("toolwire")
    names = {"toolwire", *base_distributions()}
    for name in names:
        found = own if name == "toolwire" else distribution(name)
        for file in found.files or []:
            first = file.parts[0]
            place = Path(str(found.locate_file(first)))
            is_code = first not in ("..", "__pycache__") and not first.endswith(".pth")
            if is_code and place.exists() and not (places / first).exists():
                (places / first).symlink_to(place)
    return places


def run_in(packages: Path, source: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program that finds the standard library and these packages alone."""
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    dynamic = [str(Path(each) / "lib-dynload") for each in standard]
    path = [str(packages), *dict.fromkeys([*standard, *dynamic])]
    start = _START.format(path=path, arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + source], cwd=cwd, capture_output=True, text=True, check=False
    )
