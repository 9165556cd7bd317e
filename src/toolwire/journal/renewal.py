"""Renews the leases of a process in a thread of its own, so that a busy writer or event loop loses no run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from toolwire.journal.owner import RENEW_S
from toolwire.vocabulary.errors import ToolwireError

RETRY_S = 1.0
"""Seconds before a failed renewal is tried again. That allows 45 attempts before a lease expires."""

_LOG = logging.getLogger("toolwire.store")


class Renewal:
    """A thread that renews leases between `start` and `stop`.

    It uses its own connection and takes none of the writer's locks.
    """

    def __init__(self, renew: Callable[[], None], *, every_s: float = RENEW_S, retry_s: float = RETRY_S) -> None:
        self._renew = renew
        self._every_s, self._retry_s = every_s, retry_s
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread. The first run that is held starts it; later calls do nothing."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._go, name="toolwire-leases", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stops the thread and waits for a renewal that is in progress."""
        self._ended.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _go(self) -> None:
        pause_s = self._every_s
        while not self._ended.wait(pause_s):
            pause_s = self._every_s
            try:
                self._renew()
            except (SQLAlchemyError, ToolwireError):
                _LOG.exception("renewing the leases of this process failed; it is tried again in %g s", self._retry_s)
                pause_s = self._retry_s
