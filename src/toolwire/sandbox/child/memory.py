"""Prepares the zygote's memory before it forks, so that its children write to few of its pages.

The kernel copies each page that a child writes to. Python puts small objects into gaps all over the zygote's memory.
Once these gaps are filled, a child's own objects lie side by side on fresh pages.
"""

LARGEST_SMALL = 512
"""Bytes up to which CPython keeps objects in pools of one size."""
_STEP = 16
_POOL_BYTES = 16_384
_FIRST_IN_POOL = 48
_MOST_OF_A_SIZE = 4096
"""Gaps of one size to fill at most; a thousand is usual. This bound ends the loop if CPython lays out its pools
differently.
"""
_OVERHEAD_BYTES = bytes.__basicsize__
_kept: list[bytes] = []


def fill_gaps() -> None:
    """Fills the gaps in pools, size by size, until a new pool is begun."""
    for size in range(LARGEST_SMALL, _OVERHEAD_BYTES, -_STEP):
        for _ in range(_MOST_OF_A_SIZE):
            piece = bytes(size - _OVERHEAD_BYTES)
            _kept.append(piece)
            if id(piece) % _POOL_BYTES == _FIRST_IN_POOL:
                break
