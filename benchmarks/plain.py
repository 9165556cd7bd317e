"""The trivial tool that everything is measured with."""

from __future__ import annotations


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
