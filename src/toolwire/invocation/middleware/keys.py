"""Keys that group calls, and the state that is kept for each key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeVar

from toolwire.invocation.middleware.onion import PreparedCall

S = TypeVar("S")

Key = Callable[[PreparedCall], Hashable]
"""Calls with equal keys share a limit, a circuit or a budget."""

KEYS_LIMIT = 10_000
"""Maximum number of keys with state. It exceeds any number of tools; keys by caller may be more."""
_LOOKED_AT = 16
"""Number of least recently used keys that are searched for one to drop."""


def by_tool(call: PreparedCall) -> Hashable:
    """Groups calls by their tool."""
    return call.tool


class Keyed(Generic[S]):
    """A state for each key, made at first use. If there are too many, idle states are dropped."""

    def __init__(self, make: Callable[[], S], is_idle: Callable[[S], bool], *, limit: int = KEYS_LIMIT) -> None:
        """`is_idle` returns True for a state that equals a new one."""
        self._make = make
        self._is_idle = is_idle
        self._limit = limit
        self._lock = threading.Lock()
        self._states: OrderedDict[Hashable, S] = OrderedDict()

    def of(self, key: Hashable) -> S:
        """Returns the state of this key."""
        with self._lock:
            state = self._states.get(key)
            if state is not None:
                self._states.move_to_end(key)
                return state
            if len(self._states) >= self._limit:
                self._forget_one()
            state = self._states[key] = self._make()
            return state

    def _forget_one(self) -> None:
        for key, state in islice(self._states.items(), _LOOKED_AT):
            if self._is_idle(state):
                del self._states[key]
                return
