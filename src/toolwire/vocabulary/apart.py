"""Members of sets and mappings that come from a program: refused where their hashes were chosen to be equal."""

from __future__ import annotations

from collections import Counter
from typing import Any

COMPARISONS_LIMIT = 16
"""Comparisons of different members with one hash, for each member of a set or mapping: 1 MB of them costs 20 ms, and
powers of two up to 2**1900 pass. A limit that does not count the members would let many small sets pass."""


def apart(members: list[Any], keys: list[Any]) -> list[Any]:
    """The members, of which these are the keys.

    Hashes of numbers are no secret, and a table of 100,000 equal hashes takes minutes to fill.

    Raises:
        ValueError: too many of the keys have the same hash.
    """
    hashes = Counter(map(hash, keys))
    if len(hashes) < len(keys):
        # Two long tuples with one hash are compared item by item.
        sizes = [_size(key) if isinstance(key, tuple | frozenset) else 1 for key in keys]
        compared = sum(size * (hashes[hash(key)] - 1) for key, size in zip(keys, sizes, strict=True)) // 2
        if compared > COMPARISONS_LIMIT * sum(sizes):
            raise ValueError("members that collide")
    return members


def _size(key: Any) -> int:
    """Values in a key, those within its tuples included."""
    size = 0
    left = [key]
    while left:
        item = left.pop()
        size += 1
        if isinstance(item, tuple | frozenset):
            left += item
    return size
