"""Ids of runs: unique across processes, cheap, and increasing within a process."""

from __future__ import annotations

import itertools
import os

_SUFFIX_BYTES = 4
_FIRST = 0x10_0000
"""First value of the counter, so that every id has the same length. If ids grew later, a full log would need new memory
blocks for them, while the old blocks are rarely free as a whole.
"""


class _Names:
    """Generates ids from a random part per process and a counter. A random id per call would be far slower."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.process = os.urandom(_SUFFIX_BYTES).hex()
        self.counter = itertools.count(_FIRST)


_NAMES = _Names()
# Otherwise a forked child would reuse its parent's ids.
os.register_at_fork(after_in_child=_NAMES.renew)


def new_id(kind: str) -> str:
    """Returns `kind_` and at least fourteen hex digits, unique across processes."""
    return f"{kind}_{_NAMES.process}{next(_NAMES.counter):x}"
