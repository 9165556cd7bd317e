"""Sets of characters, and their form in GBNF."""

from __future__ import annotations

from collections.abc import Iterable

Characters = tuple[tuple[int, int], ...]
"""Ranges of code points with inclusive ends, sorted and disjoint. Surrogates are in no set."""

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


def character_set(*parts: str | tuple[str, str]) -> Characters:
    """Returns the set of the characters in the texts and in the ranges."""
    ranges: list[tuple[int, int]] = []
    for part in parts:
        if isinstance(part, tuple):
            ranges.append((ord(part[0]), ord(part[1])))
        else:
            ranges.extend((ord(character), ord(character)) for character in part)
    return union(ranges)


def union(ranges: Iterable[tuple[int, int]]) -> Characters:
    """Returns the ranges as one set."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def without(characters: Characters, taken: Characters) -> Characters:
    """Returns the characters of the first set that are not in the second."""
    found = list(characters)
    for low, high in taken:
        kept: list[tuple[int, int]] = []
        for first, last in found:
            if last < low or first > high:
                kept.append((first, last))
                continue
            if first < low:
                kept.append((first, low - 1))
            if last > high:
                kept.append((high + 1, last))
        found = kept
    return tuple(found)


def both(characters: Characters, others: Characters) -> Characters:
    """Returns the characters that are in both sets."""
    return without(characters, without(ALL, others))


def holds(characters: Characters, character: str) -> bool:
    """True if the character is in the set."""
    return any(low <= ord(character) <= high for low, high in characters)


def character_class(characters: Characters) -> str:
    """Returns a set, which must not be empty, as a GBNF character class."""
    rest = without(ALL, characters)
    if rest and len(rest) < len(characters):
        return f"[^{''.join(_range(low, high) for low, high in rest)}]"
    # UTF-8 text has no surrogates, so a class that includes them matches the same text and is shorter.
    joined = union([*characters, _SURROGATES]) if _spans_surrogates(characters) else characters
    if joined[-1][1] == _LAST and (rest := without(((0, _LAST),), joined)):
        return f"[^{''.join(_range(low, high) for low, high in rest)}]"
    return f"[{''.join(_range(low, high) for low, high in joined)}]"


ALL: Characters = ((0, _SURROGATES[0] - 1), (_SURROGATES[1] + 1, _LAST))
CONTROLS = character_set(("\x00", "\x1f"), "\x7f")


def _spans_surrogates(characters: Characters) -> bool:
    ends = {high for _, high in characters}
    starts = {low for low, _ in characters}
    return _SURROGATES[0] - 1 in ends and _SURROGATES[1] + 1 in starts


def _range(low: int, high: int) -> str:
    if low == high:
        return _character(low)
    return f"{_character(low)}{'' if high == low + 1 else '-'}{_character(high)}"


def _character(code: int) -> str:
    character = chr(code)
    if character.isascii() and (character.isalnum() or character in " _.,:;/+*%@=<>{}()!?$&#~'|`"):
        return character
    if code in (0x5B, 0x5C, 0x5D, 0x22):
        return f"\\{character}"
    if code in (0x0A, 0x0D, 0x09):
        return {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}[code]
    return f"\\x{code:02X}" if code < 0x80 else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
