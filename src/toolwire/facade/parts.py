"""What a registry holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwire.catalogue.catalogue import Catalogue
from toolwire.facade.setup import Setup
from toolwire.facade.toolkit import Toolkit

if TYPE_CHECKING:
    from toolwire.facade.background import BackgroundCalls
    from toolwire.journal.log import ExecutionLog


class Parts:
    """Everything a registry holds; made on first use, so that subclasses need not call `__init__`."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.toolkits: dict[str, Toolkit] = {}
        self.log: ExecutionLog | None = None
        self.setup = Setup()
        self.scope = self.setup.scope(self.catalogue)
        self.is_held = False
        self.background: BackgroundCalls | None = None

    def use(self, setup: Setup) -> None:
        """Takes another setup; the scope of plain calls is made once for all of them."""
        self.setup = setup
        self.scope = setup.scope(self.catalogue)
