"""SQLite and `os.fork`: a child process inherits no connection.

SQLite keeps its locks in process memory as well as in the file, and a child inherits only the memory. A lock that
another thread held during the fork stays held forever in the child; a free lock protects nothing there. Therefore a
fork waits until no thread uses a SQLite store and closes the connections. Both processes open new ones.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from sqlalchemy import Engine
from sqlalchemy.pool import Pool, StaticPool

from toolwire.vocabulary.errors import StoreUnavailable
from toolwire.vocabulary.machine.system import call_at_fork

FORK_WAIT_S = 15.0
"""Seconds that a fork waits for threads that use a store: longer than one write waits for another process."""

_LOG = logging.getLogger("toolwire.store")


class ConnectionHolder(Protocol):
    """An object that holds connections."""

    def let_go(self) -> None:
        """Closes all connections. The next use opens new ones."""
        ...


class ForkGate:
    """A gate that a thread enters while it uses a connection; a fork waits until the gate is empty.

    A thread may enter again while it is inside. A thread inside the gate must not wait for a fork.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = Counter[int]()
        """How many times each thread has entered."""
        self._forking: set[int] = set()
        """Threads that are about to fork, or have just forked."""
        self._carried: weakref.WeakSet[ConnectionHolder] = weakref.WeakSet()
        self._is_broken = False

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # A forking thread may use a store in a fork hook of its own; it must not wait for itself.
            while self._forking and me not in self._forking and not self._inside[me]:
                self._changed.wait()
            self._inside[me] += 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
                if self._forking:
                    self._changed.notify_all()

    def add(self, carried: ConnectionHolder) -> None:
        """Registers an object whose connections are closed before each fork. The gate holds only a weak reference."""
        self._carried.add(carried)

    def check(self, shown: str) -> None:
        """Checks that this process may open a SQLite store.

        Raises:
            StoreUnavailable: The process was forked while its parent used a SQLite store.
        """
        if self._is_broken:
            raise StoreUnavailable(
                f"{shown} cannot be used in this process: it was forked while a thread of its parent was using a SQLite"
                " store. Fork when no thread does, or start processes by the method 'spawn' or 'forkserver'."
            )

    def before_fork(self) -> None:
        """Waits for the threads inside, keeps other threads out, and closes the connections."""
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
        """Lets other threads enter again."""
        with self._changed:
            self._forking.discard(threading.get_ident())
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Forgets the parent's threads.

        A parent thread that was inside left SQLite's memory unusable: no store can be opened.
        """
        is_broken = self._is_broken or bool(self._inside)
        self.__init__()
        self._is_broken = is_broken


GATE = ForkGate()


class TurnGate:
    """The gate of a database in memory: one thread at a time is inside, because all of them have one connection."""

    def __init__(self) -> None:
        self._turn = threading.RLock()

    def __enter__(self) -> None:
        # First, so that a thread that waits for a fork keeps no turn from the thread that forks.
        GATE.__enter__()
        self._turn.acquire()

    def __exit__(self, *_: object) -> None:
        self._turn.release()
        GATE.__exit__()


_TURNS: weakref.WeakKeyDictionary[Pool, TurnGate] = weakref.WeakKeyDictionary()


def gate_of(engine: Engine) -> AbstractContextManager[None]:
    """Returns the gate that a thread enters while it uses a connection.

    A server needs no gate: a fork does not harm it.
    """
    if isinstance(engine.pool, StaticPool):
        return _TURNS.setdefault(engine.pool, TurnGate())
    return GATE if engine.dialect.name == "sqlite" else nullcontext()


call_at_fork(
    before=lambda: GATE.before_fork(),
    after_in_parent=lambda: GATE.after_fork_in_parent(),
    after_in_child=lambda: GATE.after_fork_in_child(),
)
