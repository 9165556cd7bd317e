"""Ids of runs: unique across processes, cheap, and ordered within one."""

from __future__ import annotations

import itertools
import os

_SUFFIX_BYTES = 4
_FIRST = 0x10_0000
"""Shorter ids fit in a smaller block of memory: when they grow out of it, a full log takes as much again for new ones,
and what held the old ones is seldom free as a whole."""


class _Names:
    """A random part per process and a counter: far cheaper than a random id per call."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.process = os.urandom(_SUFFIX_BYTES).hex()
        self.counter = itertools.count(_FIRST)


_NAMES = _Names()
# A forked child that went on with its parent's counter would give two runs one id.
os.register_at_fork(after_in_child=_NAMES.renew)


def new_id(kind: str) -> str:
    """`kind_` with fourteen hex digits or more, unlike any other id of any process."""
    return f"{kind}_{_NAMES.process}{next(_NAMES.counter):x}"
