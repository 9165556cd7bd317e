"""Numbers with their noun in texts for people and models."""

from __future__ import annotations


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Returns the number with its noun, such as `1 tool` or `2,000 tools`. `plural` is `noun` with an s by default."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
