"""Taking tools away while calls run: permanently, or while they are disabled."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from toolwire.invocation.scope import Scope
from toolwire.vocabulary.errors import ConfigurationError


class Switching:
    """Tools that their owner can remove, disable and enable, from any thread."""

    @property
    def _call_scope(self) -> Scope:
        """The present context of the calls made here, with the live catalogue."""
        raise NotImplementedError

    def unregister(self, name: str) -> None:
        """Removes a tool. Its name is free for another one.

        A registry removes it from its toolkits too; a toolkit removes it from itself alone. Running calls of it go on
        to their end. Every later call fails as `unknown_tool`, and so does a suspended run that needs the tool.

        Raises:
            RegistrationError: no tool has that name.
        """
        self._call_scope.catalogue.remove(name)

    def disable(self, name: str, reason: str) -> None:
        """Refuses calls of a tool until `enable`: they fail as `unavailable`, and the model reads `reason`.

        No prompt, schema or search offers a disabled tool. Running calls of it go on to their end. A registry's
        toolkits and sessions refuse it as well; `register(..., replace=True)` does not enable it. A second call changes
        the reason.

        Raises:
            RegistrationError: no tool has that name.
            ConfigurationError: `reason` is not a text, or is empty.
        """
        if not isinstance(cast("object", reason), str) or not reason.strip():
            raise ConfigurationError(f"disable({name!r}, reason={reason!r:.80}): write a reason for the model to read")
        self._call_scope.catalogue.disable(name, reason)

    def enable(self, name: str) -> None:
        """Lets calls of a disabled tool through again; does nothing for a tool that is not disabled.

        Raises:
            RegistrationError: no tool has that name; or the toolkit's registry has disabled it.
        """
        self._call_scope.catalogue.enable(name)

    @property
    def disabled_tools(self) -> Mapping[str, str]:
        """The reasons of the tools that are disabled now, by name."""
        return MappingProxyType(
            {entry.name: entry.disabled for entry in self._call_scope.catalogue if entry.disabled is not None}
        )
