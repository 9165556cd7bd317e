"""The owner of shared parts: creates them at first use, closes them in reverse order, and handles forks."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from toolwire.runtime.workers import Workers
from toolwire.vocabulary.machine.system import call_at_fork

if TYPE_CHECKING:
    from toolwire.runtime.portal import Portal


class SharedPart(Protocol):
    """A shared resource that holds threads, files or processes."""

    def close(self) -> None:
        """Ends the part for good, including the processes that it talks to."""
        ...

    def after_fork(self) -> None:
        """Called in a forked child: drops inherited files without affecting the parent's other processes."""
        ...


R = TypeVar("R", bound=SharedPart)


class Runtime:
    """Threads, the portal and other shared parts, created at first use. Usable from any thread and any event loop."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._parts: dict[str, SharedPart] = {}
        self._workers: Workers | None = None
        self._holders = 0
        self.has_ended = False
        """True once the interpreter exits. A part created after that is never closed."""
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
        """The event loop for async tools called from blocking code."""
        # asyncio takes longer to import than all of toolwire, so it is imported only when a loop is needed.
        from toolwire.runtime.portal import Portal

        return self.own("portal", Portal)

    def own(self, key: str, make: Callable[[], R]) -> R:
        """Returns the part with that key. The first call creates it with `make`; the runtime closes it."""
        part = self._parts.get(key)
        if part is None:
            with self._lock:
                part = self._parts.get(key)
                if part is None:
                    part = self._parts[key] = make()
        return cast("R", part)

    def find(self, key: str) -> SharedPart | None:
        """Returns the part with that key, or None if it was not created."""
        return self._parts.get(key)

    def close_part(self, key: str) -> None:
        """Closes one part, if it exists. The next use creates it again."""
        with self._lock:
            part = self._parts.pop(key, None)
        if part is not None:
            part.close()

    def hold(self) -> None:
        """Registers a user of the parts. Each `hold` needs one `release`."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """Removes one user. The last one closes the parts."""
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self.close()

    def close(self) -> None:
        """Closes every part, last created first, even if one fails to close. The next use creates them again."""
        with self._lock:
            parts, self._parts = list(self._parts.values()), {}
            workers, self._workers = self._workers, None
        with ExitStack() as closing:
            if workers is not None:
                closing.callback(workers.close)
            for part in parts:
                closing.callback(part.close)

    def end(self) -> None:
        """Closes every part when the interpreter exits."""
        with self._lock:
            self.has_ended = True
        self.close()

    def after_fork(self) -> None:
        """Called in a forked child: drops every part, so that the child creates its own."""
        parts, self._parts = list(self._parts.values()), {}
        self._lock, self._workers = threading.RLock(), None
        for part in parts:
            part.after_fork()


_RUNTIMES: weakref.WeakSet[Runtime] = weakref.WeakSet()
_DEFAULT = Runtime()


def default_runtime() -> Runtime:
    """Returns the runtime that this process shares by default."""
    return _DEFAULT


def _after_fork_in_child() -> None:
    for runtime in list(_RUNTIMES):
        runtime.after_fork()


call_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_DEFAULT.end)
