"""The place of one name in a catalogue. Catalogues that share it follow it live."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Tool
from toolwire.vocabulary.errors import DefinitionError

_LOG = logging.getLogger("toolwire.registry")


class Seat:
    """A place that its catalogue owns. Its catalogue's lock guards every change; any thread reads without one."""

    __slots__ = ("_base", "entry")

    def __init__(self, entry: Entry) -> None:
        self._base = entry
        self.entry: Entry | None = entry
        """The entry as it stands, with the reason if it is disabled; None once it was removed."""

    @property
    def base(self) -> Entry:
        """The entry as it was put in: disabling and enabling keep it the same object."""
        return self._base

    def put(self, entry: Entry) -> None:
        """Replaces the entry. A disabled name stays disabled."""
        there = self.entry
        self._base = entry
        self.entry = entry if there is None or there.disabled is None else replace(entry, disabled=there.disabled)

    def disable(self, reason: str) -> None:
        """Sets the reason for which calls are refused."""
        self.entry = replace(self._base, disabled=reason)

    def enable(self) -> None:
        """Lets calls through again."""
        self.entry = self._base

    def leave(self) -> None:
        """Removes the entry, for every catalogue that shares this place."""
        self.entry = None


class DrawnSeat:
    """A place that belongs to another catalogue. What is changed or disabled here leaves that one as it is."""

    __slots__ = ("_adapt", "_change", "_made", "_reason", "_seat")

    def __init__(self, seat: Seat, adapt: Callable[[Entry], Entry]) -> None:
        """`adapt` makes this catalogue's own entry of the other's, once for each entry that is put in there."""
        self._seat = seat
        self._adapt = adapt
        self._change: Callable[[Tool], Tool] | None = None
        self._reason: str | None = None
        self._made: tuple[Entry, Entry] | None = None

    @property
    def entry(self) -> Entry | None:
        """As `Seat.entry`; a reason that was given here comes before the other catalogue's."""
        there = self._seat.entry
        if there is None:
            return None
        base, made = self._seat.base, self._made
        if made is None or made[0] is not base:
            made = self._made = (base, self._make(base))
        reason = self._reason or there.disabled
        return made[1] if reason is None else replace(made[1], disabled=reason)

    def is_of(self, seat: Seat) -> bool:
        """Whether it follows that very place: a name that was removed and registered anew has another one."""
        return self._seat is seat

    @property
    def is_disabled_elsewhere(self) -> bool:
        """Whether the other catalogue has disabled it: it cannot be enabled here."""
        there = self._seat.entry
        return there is not None and there.disabled is not None

    def disable(self, reason: str) -> None:
        """Sets the reason for which calls are refused here."""
        self._reason = reason

    def enable(self) -> None:
        """Takes that reason away; the other catalogue's stays."""
        self._reason = None

    def change(self, change: Callable[[Tool], Tool]) -> None:
        """Replaces the tool here by what `change` makes of it, now and whenever the other catalogue replaces it.

        A second change takes the place of the first.

        Raises:
            DefinitionError: `change` cannot take the tool as it is now. Nothing is changed then.
        """
        base = self._seat.base
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
            # Without its change, the tool would give results that its caller does not expect.
            _LOG.warning("the tool %r is disabled here, for what replaced it cannot be changed: %s", base.name, error)
            return replace(adapted, disabled="a newer version of it does not fit here")
