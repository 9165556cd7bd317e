"""Writes artifacts to files."""

from __future__ import annotations

import mimetypes
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from toolwire.journal.artifacts.artifact import Artifact
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

_EXTENSIONS = {"text/markdown": ".md", "text/plain": ".txt", "application/json": ".json", "text/x-python": ".py"}
"""Extensions that do not depend on the machine's list of media types."""


def export_to(folder: Path, artifacts: Iterable[Artifact]) -> list[Path]:
    """Writes each artifact to a file of its name, and returns the files. No link in the folder is followed."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    written: list[Path] = []
    for artifact in artifacts:
        path = folder / _file_name(artifact, taken)
        _replace(path, utf8_bytes(artifact.content))
        written.append(path)
    return written


def _file_name(artifact: Artifact, taken: set[str]) -> str:
    """Returns a name that no artifact before has, also where upper and lower case are one."""
    kind = artifact.content_type
    extension = _EXTENSIONS.get(kind) or mimetypes.guess_extension(kind) or ".txt"
    stem = artifact.id.removesuffix(extension)
    name, number = f"{stem}{extension}", 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}{extension}"
    taken.add(name.casefold())
    return name


def _replace(path: Path, content: bytes) -> None:
    """Puts a new file in the place of an old one or of a link."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".export-")
    temporary = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
