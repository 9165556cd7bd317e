"""The tools that the recorded replies were asked to use."""

from __future__ import annotations


def search(query: str, limit: int = 10) -> list[str]:
    """Finds pages."""
    return [query] * limit


def read_file(path: str) -> str:
    """The text of a file."""
    return path


def convert(amount: float, source: str, target: str) -> float:
    """An amount in another currency."""
    return amount


def write_note(title: str, text: str, tags: list[str] | None = None, *, pinned: bool = False) -> None:
    """Keeps a note."""


TOOLS = (search, read_file, convert, write_note)
