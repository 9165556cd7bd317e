"""The folder that every file tool refuses: compiled guests, whose machine code runs in this process."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from toolwire.vocabulary.machine.code_cache import code_cache_folder

Place = tuple[int, int]
"""Device and inode: the same for all spellings, links and mounts of a folder."""
Names = tuple[str, ...]
"""Names below a folder, without case: on some disks every case is the same name."""


def refusal(path: object) -> str:
    """Returns the message for a path that leads to the folder or into it."""
    return (
        f"{path} belongs to the compiled programs of toolwire, which run as machine code in this process: no file tool "
        "may use them. Choose another folder"
    )


def place_of(status: os.stat_result) -> Place:
    """Returns the place of a file or folder."""
    return status.st_dev, status.st_ino


def find_refused_place() -> Place | None:
    """Returns the place of the folder; None if it does not exist."""
    folder = code_cache_folder()
    return None if folder is None else _place_at(folder)


def find_refused_names(root: int) -> frozenset[Names]:
    """Returns the names that lead from an open folder to the refused one; none if it lies elsewhere."""
    folder = code_cache_folder()
    if folder is None:
        return frozenset()
    here = place_of(os.fstat(root))
    return frozenset(
        without_case(spelling.relative_to(above).parts)
        for spelling in _spellings(folder)
        for above in (spelling, *spelling.parents)
        if _place_at(above) == here
    )


def is_refused(path: str) -> bool:
    """True if a path of the host leads to the folder or into it, by whatever links and spelling.

    Raises:
        ValueError: The path has a NUL or a lone surrogate.
    """
    folder = code_cache_folder()
    if folder is None:
        return False
    real = Path(os.path.realpath(path))
    names = without_case(real.parts)
    if any(names[: len(each.parts)] == without_case(each.parts) for each in _spellings(folder)):
        return True
    place = _place_at(folder)
    return place is not None and any(_place_at(each) == place for each in (real, *real.parents))


def is_refused_file(file: int) -> bool:
    """True if an open file has a name in the folder, also if it was opened by another one, such as a hard link."""
    folder = code_cache_folder()
    if folder is None:
        return False
    place = place_of(os.fstat(file))
    try:
        return any(_place_at(entry) == place for entry in folder.iterdir())
    except OSError:
        return False


def without_case(names: Names) -> Names:
    """Returns the names in one spelling."""
    return tuple(unicodedata.normalize("NFC", name).casefold() for name in names)


def _spellings(folder: Path) -> tuple[Path, Path]:
    """Returns the path as it is written, and as it is without links: a tool could replace a link of the first."""
    return folder, Path(os.path.realpath(folder))


def _place_at(path: Path) -> Place | None:
    try:
        return place_of(path.stat())
    except OSError:
        return None
