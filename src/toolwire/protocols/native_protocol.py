"""What is true of every native protocol: its provider takes tools and gives calls as JSON of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.native import no_grammar


class NativeProtocol(ABC):
    """The part of a protocol object that its siblings share."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which `get` finds it."""

    @property
    def is_native(self) -> bool:
        """True."""
        return True

    @property
    def writes_programs(self) -> bool:
        """False: a program is a call of the tool `code_execution`, where there is one."""
        return False

    def grammar(self, tools: Iterable[Any]) -> str:  # noqa: ARG002 - there is none for any tools
        """None.

        Raises:
            ConfigurationError: always: the provider reads the calls itself.
        """
        raise no_grammar(self.name)
