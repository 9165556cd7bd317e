"""The place of a name in a catalogue. Catalogues that share a place see its changes at once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Tool
from toolwire.vocabulary.errors import DefinitionError

_LOG = logging.getLogger("toolwire.registry")


class Registration:
    """A place that its own catalogue changes, under that catalogue's lock. Any thread may read it without a lock."""

    __slots__ = ("base", "entry")

    def __init__(self, entry: Entry) -> None:
        self.base = entry
        """The entry as it was put in. It stays the same object when the tool is disabled or enabled."""
        self.entry: Entry | None = entry
        """The current entry, with the reason if it is disabled; None after its removal."""

    def put(self, entry: Entry) -> None:
        """Replaces the entry. A disabled name stays disabled."""
        there = self.entry
        self.base = entry
        self.entry = entry if there is None or there.disabled is None else replace(entry, disabled=there.disabled)

    def disable(self, reason: str) -> None:
        """Disables the entry. Calls are refused with this reason."""
        self.entry = replace(self.base, disabled=reason)

    def enable(self) -> None:
        """Enables the entry again."""
        self.entry = self.base

    def leave(self) -> None:
        """Removes the entry, for every catalogue that shares this place."""
        self.entry = None


class DrawnRegistration:
    """A place of another catalogue, used in this one. A change made here does not affect the other catalogue."""

    __slots__ = ("_adapt", "_change", "_made", "_reason", "_registration")

    def __init__(self, registration: Registration, adapt: Callable[[Entry], Entry]) -> None:
        """`adapt` converts the other catalogue's entry into this one's. It runs once for each entry put in there."""
        self._registration = registration
        self._adapt = adapt
        self._change: Callable[[Tool], Tool] | None = None
        self._reason: str | None = None
        self._made: tuple[Entry, Entry] | None = None

    @property
    def entry(self) -> Entry | None:
        """The current entry, as in `Registration.entry`. This catalogue's reason takes precedence over the other's."""
        there = self._registration.entry
        if there is None:
            return None
        base, made = self._registration.base, self._made
        if made is None or made[0] is not base:
            made = self._made = (base, self._make(base))
        reason = self._reason or there.disabled
        return made[1] if reason is None else replace(made[1], disabled=reason)

    def is_of(self, registration: Registration) -> bool:
        """True if it follows exactly that place. A name that was removed and registered again has a new place."""
        return self._registration is registration

    @property
    def is_disabled_elsewhere(self) -> bool:
        """True if the other catalogue has disabled the tool. It cannot be enabled here then."""
        there = self._registration.entry
        return there is not None and there.disabled is not None

    def disable(self, reason: str) -> None:
        """Disables the tool in this catalogue only. Calls are refused with this reason."""
        self._reason = reason

    def enable(self) -> None:
        """Removes this catalogue's reason. The reason of the other catalogue stays in force."""
        self._reason = None

    def change(self, change: Callable[[Tool], Tool]) -> None:
        """Replaces the tool here by the result of `change`, now and whenever the other catalogue replaces it.

        A second change replaces the first.

        Raises:
            DefinitionError: `change` does not accept the current tool. Nothing has changed then.
        """
        base = self._registration.base
        adapted = self._adapt(base)
        made = replace(adapted, tool=change(adapted.tool))
        self._change, self._made = change, (base, made)

    def _make(self, base: Entry) -> Entry:
        adapted = self._adapt(base)
        if self._change is None:
            return adapted
        try:
            return replace(adapted, tool=self._change(adapted.tool))
        except DefinitionError as error:
            # Disabled, because without the change its results would not be those that the caller expects.
            _LOG.warning(
                "the tool %r is disabled here, because its replacement cannot be changed in the same way: %s",
                base.name,
                error,
            )
            return replace(adapted, disabled="a newer version of it does not fit here")
