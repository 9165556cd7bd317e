"""The programs, read from `programs/`: one file per theme, each program below a line `# %% TITLE`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "programs"
_HEADING = "# %% "


@dataclass(frozen=True, slots=True, kw_only=True)
class HonestProgram:
    """One program."""

    theme: str
    """The name of its file, without the ending."""
    title: str
    """The program's title; unique in its theme."""
    source: str
    """Its text; the first line is line 1."""

    def __str__(self) -> str:
        return f"{self.theme}: {self.title}"


def read_programs() -> tuple[HonestProgram, ...]:
    """All programs, by theme, in the order of their files."""
    return tuple(program for path in sorted(_FOLDER.glob("*.txt")) for program in _programs_of(path))


def _programs_of(path: Path) -> Iterator[HonestProgram]:
    _, *parts = ("\n" + path.read_text("utf-8")).split(f"\n{_HEADING}")
    for part in parts:
        title, _, source = part.partition("\n")
        yield HonestProgram(theme=path.stem, title=title.strip(), source=source.strip("\n") + "\n")
