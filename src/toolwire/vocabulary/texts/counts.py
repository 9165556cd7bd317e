"""Numbers of things, for people."""

from __future__ import annotations


def count_text(count: int, noun: str) -> str:
    """Returns the number with its noun: "1 tool", "2 tools"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
