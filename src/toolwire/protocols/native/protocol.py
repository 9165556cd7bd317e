"""The base class of the native protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.base import Language
from toolwire.protocols.native.calls import no_grammar
from toolwire.vocabulary.errors import ConfigurationError


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

    def tools_text(self, tools: Iterable[Any], *, language: Language = "en") -> str:  # noqa: ARG002 - as below
        """Not available for native protocols.

        Raises:
            ConfigurationError: Always. The request has a parameter for the tools.
        """
        raise ConfigurationError(
            f"the protocol {self.name!r} has no text of its tools: its request takes them as a parameter, "
            "describe(tools); for a prompt take 'json', 'xml' or 'attp'"
        )

    def grammar(self, tools: Iterable[Any]) -> str:  # noqa: ARG002 - no native protocol has a grammar
        """Not available for native protocols.

        Raises:
            ConfigurationError: Always. The provider reads the calls itself.
        """
        raise no_grammar(self.name)
