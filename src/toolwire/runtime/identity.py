"""Ids of runs: unique across processes and stores, cheap, and increasing within a process."""

from __future__ import annotations

import itertools
import os
from functools import lru_cache

from toolwire.vocabulary.machine.system import call_at_fork

RANDOM_BYTES = 16
"""Random bytes of a process. Ids are parts of idempotency keys, which the services behind all stores share."""

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The digits of an id in the order of ASCII, so that ids sort by number. A double click selects a whole id."""

LENGTH = 22
"""Digits of an id: 62^22 is eight times 2^128. All ids have this length.

If ids grew later, a full log would need new memory blocks for them, while the old blocks are rarely free as a whole.
"""

_TAILS = tuple(first + second for first in DIGITS for second in DIGITS)


class _Names:
    """Generates ids by counting from a random number per process. A random id per call would be far slower."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.counter = itertools.count(int.from_bytes(os.urandom(RANDOM_BYTES)))


_NAMES = _Names()
# Otherwise a forked child would reuse its parent's ids.
call_at_fork(after_in_child=_NAMES.renew)


def new_id(kind: str) -> str:
    """Returns `kind_` and 22 letters and digits: a number of 128 random bits, plus the number of earlier ids."""
    head, tail = divmod(next(_NAMES.counter), len(_TAILS))
    return f"{kind}_{_head(head)}{_TAILS[tail]}"


@lru_cache(maxsize=8)
def _head(number: int) -> str:
    """Returns all digits but the last two. They change with each 3,844th id."""
    text = ""
    for _ in range(LENGTH - 2):
        number, digit = divmod(number, len(DIGITS))
        text = DIGITS[digit] + text
    return text
