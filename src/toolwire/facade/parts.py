"""The parts of a registry."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from toolwire.catalogue.catalogue import Catalogue
from toolwire.facade.observing.observation import Watchers
from toolwire.facade.setup import Setup
from toolwire.facade.toolkit import Toolkit

if TYPE_CHECKING:
    from toolwire.facade.background import BackgroundCalls
    from toolwire.journal.log import ExecutionLog


class Parts:
    """All parts of a registry; made on first use, so that subclasses need not call `__init__`."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.toolkits: dict[str, Toolkit] = {}
        self.log: ExecutionLog | None = None
        self._lock = threading.Lock()
        self.watchers = Watchers(on_change=self._look_again)
        self.setup = Setup(watchers=(self.watchers,))
        self.scope = self.setup.scope(self.catalogue)
        self.is_held = False
        self.background: BackgroundCalls | None = None

    def use(self, setup: Setup) -> None:
        """Takes another setup, and makes the one scope that all plain calls use."""
        with self._lock:
            self.setup = setup
            self.scope = setup.scope(self.catalogue)

    def _look_again(self) -> None:
        """Makes the scope anew, for other observers."""
        with self._lock:
            self.scope = self.setup.scope(self.catalogue)
