"""The folder of compiled guests. Its files are machine code that runs in this process, so no file tool may use them."""

from __future__ import annotations

import os
from pathlib import Path

from toolwire.vocabulary.machine.system import PLATFORM


def code_cache_folder() -> Path | None:
    """Returns the folder in which this user's compiled guests are kept. It may not exist yet.

    None if the environment names no home folder, or one that is not an absolute path.
    """
    caches = _user_caches()
    return None if caches is None else caches / "toolwire" / "wasm"


def _user_caches() -> Path | None:
    """Returns the folder in which the programs of this user keep what they can make again."""
    if PLATFORM == "win32":
        return _absolute("LOCALAPPDATA")
    if PLATFORM == "darwin":
        return _below_home("Library", "Caches")
    return _absolute("XDG_CACHE_HOME") or _below_home(".cache")


def _below_home(*names: str) -> Path | None:
    home = _absolute("HOME")
    return None if home is None else home.joinpath(*names)


def _absolute(variable: str) -> Path | None:
    """Returns the path in a variable of the environment. One that is not absolute does not count."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


_roots: set[Path] = set()


def note_root(folder: str | Path) -> None:
    """Notes that a file tool of this process may write below the folder."""
    _roots.add(Path(folder).resolve())


def is_in_reach(folder: Path) -> bool:
    """True if the tools of a folder in this process may write in this folder, or replace it."""
    real = folder.resolve()
    return any(root == real or root in real.parents or real in root.parents for root in _roots)
