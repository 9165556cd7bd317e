"""A far server for tests of tools that give a future."""

from __future__ import annotations

import threading
from concurrent.futures import Future

MANY = 100


class FutureServer:
    """Answers when `MANY` calls are under way, and not before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sent: list[tuple[int, Future[int]]] = []

    def far(self, n: int) -> Future[int]:
        """Answers later."""
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        with self.lock:
            self.sent.append((n, future))
            is_full = len(self.sent) == MANY
        if is_full:
            for sent, waiting in self.sent:
                waiting.set_result(sent * 2)
        return future
