"""Lines of a text, found without a list of all of them: a list takes a hundred times the memory of short lines."""

from __future__ import annotations

from collections.abc import Iterator

_BLOCK = 65_536
"""Characters of a text that are looked at in one step."""


def line_count(text: str) -> int:
    """Returns the number of lines. A line end at the end of the text begins no line."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def line_start(text: str, number: int) -> int:
    """Returns where the line of that number begins, from 1; the length of the text if it has no such line."""
    at, left = 0, number - 1
    while left > 0 and at < len(text):
        found = text.count("\n", at, at + _BLOCK)
        if found < left:
            left -= found
            at += _BLOCK
            continue
        for _ in range(left):
            at = text.index("\n", at) + 1
        left = 0
    return min(at, len(text))


def line_blocks(text: str) -> Iterator[list[str]]:
    """Yields the lines without their ends, many at a time. The last one is empty if the text ends with a line end."""
    at = 0
    while at <= len(text):
        end = text.find("\n", at + _BLOCK)
        end = len(text) if end < 0 else end
        yield text[at:end].split("\n")
        at = end + 1
