"""The zygote's memory put in order before it forks, so that its children write to few of its pages.

Every page that a child writes to first is copied for it. Python puts small objects wherever others have left room, all
over the zygote's memory; once these gaps are filled, a child's own lie side by side on fresh pages.
"""

LARGEST_SMALL = 512
"""Bytes up to which CPython keeps objects by size in pools of its own."""
_STEP = 16
_POOL_BYTES = 16_384
_FIRST_IN_POOL = 48
_MOST_OF_A_SIZE = 4096
"""Gaps of one size that are filled at most; a thousand is usual. Where CPython lays its pools out in another way,
this is all that happens."""
_OVERHEAD_BYTES = bytes.__basicsize__
_kept: list[bytes] = []


def fill_gaps() -> None:
    """Fills the room that is left in pools, size by size, until a new pool is begun."""
    for size in range(LARGEST_SMALL, _OVERHEAD_BYTES, -_STEP):
        for _ in range(_MOST_OF_A_SIZE):
            piece = bytes(size - _OVERHEAD_BYTES)
            _kept.append(piece)
            if id(piece) % _POOL_BYTES == _FIRST_IN_POOL:
                break
