"""SQLite and `os.fork`: no connection is carried into a child process.

SQLite keeps its locks in memory of the process besides those in the file. A child inherits the memory and not the
locks: a lock that another thread held at the fork is held for ever in the child, and one that was free is not real
there. So a fork waits until no thread uses a SQLite store and closes the connections; both processes open new ones.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Protocol

from sqlalchemy import Engine

from toolwire.vocabulary.errors import StoreUnavailable

FORK_WAIT_S = 15.0
"""Seconds that a fork waits for threads that use a store: longer than a write waits for another process."""

_LOG = logging.getLogger("toolwire.store")


class Carried(Protocol):
    """Something that holds connections."""

    def let_go(self) -> None:
        """Closes all connections; they are opened again when they are needed."""
        ...


class ForkGate:
    """Threads are inside of it while they use a connection; a fork waits until none is.

    A thread may enter it again while it is inside. Nothing that a thread does inside may wait for a fork.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = Counter[int]()
        """How often each thread has entered."""
        self._forking: set[int] = set()
        """Threads that are about to fork, or have just done so."""
        self._carried: weakref.WeakSet[Carried] = weakref.WeakSet()
        self._is_broken = False

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # A thread that forks may use a store in a hook of its own: it must not wait for itself.
            while self._forking and me not in self._forking and not self._inside[me]:
                self._changed.wait()
            self._inside[me] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
                if self._forking:
                    self._changed.notify_all()

    def add(self, carried: Carried) -> None:
        """Takes something in whose connections are closed before each fork, as long as it exists."""
        self._carried.add(carried)

    def check(self, shown: str) -> None:
        """Lets a store be opened.

        Raises:
            StoreUnavailable: this process was forked while its parent used a SQLite store.
        """
        if self._is_broken:
            raise StoreUnavailable(
                f"{shown} cannot be used in this process: it was forked while a thread of its parent was using a SQLite"
                " store. Fork when no thread does, or start processes by the method 'spawn' or 'forkserver'."
            )

    def before_fork(self) -> None:
        """Waits for the threads that are inside, keeps others out and closes the connections."""
        me, deadline = threading.get_ident(), time.monotonic() + FORK_WAIT_S
        with self._changed:
            self._forking.add(me)
            while self._inside and self._inside.keys() != {me} and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            if self._inside:
                _LOG.warning("a fork could not wait for a thread that uses a store: the child can use no SQLite store")
                return
        for carried in list(self._carried):
            carried.let_go()

    def after_fork_in_parent(self) -> None:
        """Lets the others in again."""
        with self._changed:
            self._forking.discard(threading.get_ident())
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Forgets the threads of the parent. A thread that was inside leaves SQLite's memory as it was."""
        is_broken = self._is_broken or bool(self._inside)
        self.__init__()
        self._is_broken = is_broken


GATE = ForkGate()


def gate_of(engine: Engine) -> AbstractContextManager[None]:
    """The gate that a thread enters while it uses a connection. Connections to a server are no concern of a fork."""
    return GATE if engine.dialect.name == "sqlite" else nullcontext()


os.register_at_fork(
    before=lambda: GATE.before_fork(),
    after_in_parent=lambda: GATE.after_fork_in_parent(),
    after_in_child=lambda: GATE.after_fork_in_child(),
)
