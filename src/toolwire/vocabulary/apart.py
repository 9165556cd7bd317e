"""Refuses sets and mappings from a program whose hashes were chosen to collide."""

from __future__ import annotations

from collections import Counter
from typing import Any

COMPARISONS_LIMIT = 16
"""Maximum comparisons of different members with equal hashes, per member. At this limit 1 MB of members costs 20 ms,
and powers of two up to 2**1900 pass. A fixed limit would let many small sets pass.
"""


def apart(members: list[Any], keys: list[Any]) -> list[Any]:
    """Returns the members after checking the hashes of their keys.

    Hashes of numbers are predictable, and a table of 100,000 equal hashes takes minutes to fill.

    Raises:
        ValueError: Too many keys have the same hash.
    """
    hashes = Counter(map(hash, keys))
    if len(hashes) < len(keys):
        # Two long tuples with equal hashes are compared item by item.
        sizes = [_size(key) if isinstance(key, tuple | frozenset) else 1 for key in keys]
        compared = sum(size * (hashes[hash(key)] - 1) for key, size in zip(keys, sizes, strict=True)) // 2
        if compared > COMPARISONS_LIMIT * sum(sizes):
            raise ValueError("members that collide")
    return members


def _size(key: Any) -> int:
    """Returns the number of values in a key, including those inside its tuples."""
    size = 0
    left = [key]
    while left:
        item = left.pop()
        size += 1
        if isinstance(item, tuple | frozenset):
            left += item
    return size
