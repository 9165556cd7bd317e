"""The base class of the native protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.native import no_grammar


class NativeProtocol(ABC):
    """The members that all native protocols share."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name under which `get` finds the protocol."""

    @property
    def is_native(self) -> bool:
        """Always True."""
        return True

    @property
    def writes_programs(self) -> bool:
        """Always False. A program is a call of the tool `code_execution`, if that tool is given."""
        return False

    def grammar(self, tools: Iterable[Any]) -> str:  # noqa: ARG002 - no native protocol has a grammar
        """Not available for native protocols.

        Raises:
            ConfigurationError: Always. The provider reads the calls itself.
        """
        raise no_grammar(self.name)
