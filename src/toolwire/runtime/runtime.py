"""The owner of shared parts: makes them when first needed, closes them in reverse order, survives a fork."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from toolwire.runtime.workers import Workers

if TYPE_CHECKING:
    from toolwire.runtime.portal import Portal


class Part(Protocol):
    """Something shared that holds threads, files or processes."""

    def close(self) -> None:
        """Ends it for good, here and in whatever process it talks to."""
        ...

    def after_fork(self) -> None:
        """Called in a forked child: lets go of inherited files without touching the parent's other processes."""
        ...


R = TypeVar("R", bound=Part)


class Runtime:
    """Threads, the portal and other shared parts, made lazily. Usable from any thread and any event loop."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._parts: dict[str, Part] = {}
        self._workers: Workers | None = None
        self._holders = 0
        self.has_ended = False
        """True once the interpreter ends: nothing closes a part that is made after that."""
        _RUNTIMES.add(self)

    @property
    def workers(self) -> Workers:
        """The worker threads."""
        if self._workers is None:
            with self._lock:
                self._workers = self._workers or Workers()
        return self._workers

    @property
    def portal(self) -> Portal:
        """The home loop for async tools that blocking code calls."""
        # asyncio costs more to import than all of ours: only who needs a loop pays for it.
        from toolwire.runtime.portal import Portal

        return self.own("portal", Portal)

    def own(self, key: str, make: Callable[[], R]) -> R:
        """The part of that key, made by `make` the first time and closed with this runtime."""
        part = self._parts.get(key)
        if part is None:
            with self._lock:
                part = self._parts.get(key)
                if part is None:
                    part = self._parts[key] = make()
        return cast("R", part)

    def find(self, key: str) -> Part | None:
        """The part of that key if it was made."""
        return self._parts.get(key)

    def close_part(self, key: str) -> None:
        """Closes that one part now, if it is there; it is made anew when it is needed again."""
        with self._lock:
            part = self._parts.pop(key, None)
        if part is not None:
            part.close()

    def hold(self) -> None:
        """Says that somebody relies on the parts; each hold is followed by one `release`."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """Takes one hold back; the last one closes the parts."""
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self.close()

    def close(self) -> None:
        """Closes every part, last made first, even if one fails to. Parts are made anew when needed again."""
        with self._lock:
            parts, self._parts = list(self._parts.values()), {}
            workers, self._workers = self._workers, None
        with ExitStack() as closing:
            if workers is not None:
                closing.callback(workers.close)
            for part in parts:
                closing.callback(part.close)

    def end(self) -> None:
        """Closes every part when the interpreter ends."""
        with self._lock:
            self.has_ended = True
        self.close()

    def after_fork(self) -> None:
        """Called in a forked child: forgets every part, so that the child makes its own."""
        parts, self._parts = list(self._parts.values()), {}
        self._lock, self._workers = threading.RLock(), None
        for part in parts:
            part.after_fork()


_RUNTIMES: weakref.WeakSet[Runtime] = weakref.WeakSet()
_DEFAULT = Runtime()


def default_runtime() -> Runtime:
    """The one runtime that everything in this process shares unless told otherwise."""
    return _DEFAULT


def _after_fork_in_child() -> None:
    for runtime in list(_RUNTIMES):
        runtime.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_DEFAULT.end)
