"""Requests that clients have sent in part, and responses that they have read in part: the oldest give way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

E = TypeVar("E", bound=Hashable)


class Unfinished(Generic[E]):
    """Unfinished requests or responses: at most `limit` in all, and `each` for one owner.

    An entry that does not fit is taken in, and the oldest of its owner is dropped for it: an honest request is
    unfinished for milliseconds, so it is not the oldest. Refusing new entries would shut out all clients at the
    address of an attacker. One entry alone may be larger than `each`. It belongs to one event loop.
    """

    def __init__(self, limit: int, each: int, drop: Callable[[E], None]) -> None:
        """`limit` and `each` are in the unit of the amounts. `drop` ends an entry that was released."""
        self._limit, self._each, self._drop = limit, each, drop
        self._owners: dict[E, Hashable] = {}
        self._owned: dict[Hashable, dict[E, int]] = {}
        self._sums = Counter[Hashable]()

    def hold(self, entry: E, owner: str | None, amount: int = 1) -> None:
        """Holds an entry of this amount, or changes its amount. An owner of None has this entry alone.

        Drops the oldest entries of the owner, and then those of the owner that has most, until all fit.
        """
        key: Hashable = entry if owner is None else owner
        if self._owners.get(entry, key) != key:
            self.release(entry)
        self._owners[entry] = key
        own = self._owned.setdefault(key, {})
        self._sums[key] += amount - own.get(entry, 0)
        own[entry] = amount
        while self._sums[key] > self._each and len(own) > 1:
            self._drop_oldest_of(key, entry)
        while self._amount > self._limit and self.drop_one(spared=entry):
            pass

    def release(self, entry: E) -> None:
        """Holds an entry no longer. An entry that is not held is left alone."""
        key = self._owners.pop(entry, None)
        if key is None:
            return
        own = self._owned[key]
        self._sums[key] -= own.pop(entry)
        if not own:
            del self._owned[key], self._sums[key]

    @property
    def _amount(self) -> int:
        # One entry that is larger than a share counts as the share, or it would drop those of all others.
        return sum(min(one, self._each) for one in self._sums.values())

    def drop_one(self, *, spared: E | None = None) -> bool:
        """Drops the oldest entry of the owner that has most, but not the spared one. Returns True if it did."""
        for key, _ in self._sums.most_common():
            if any(one != spared for one in self._owned[key]):
                self._drop_oldest_of(key, spared)
                return True
        return False

    def _drop_oldest_of(self, key: Hashable, spared: E | None) -> None:
        oldest = next(one for one in self._owned[key] if one != spared)
        self.release(oldest)
        self._drop(oldest)
