"""What one caller may see of a catalogue: tools of active groups that no predicate hides."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.groups import Groups, ToolGroup
from toolwire.catalogue.nearest import nearest
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS, Caller

Visible = Callable[[str, Caller], bool]
"""Whether the tool of that name is there for that caller. One that raises hides the tool. It is asked often, and must
not wait for anything."""

_LOG = logging.getLogger("toolwire.visibility")


class Selection:
    """A catalogue as one caller sees it. Live: what is registered, switched or hidden later counts at once.

    A tool that is not visible is as if it were not registered: it is not listed, found or suggested.
    """

    __slots__ = ("_caller", "_catalogue", "_groups", "_visible")

    def __init__(
        self, catalogue: Catalogue, caller: Caller, *, groups: Groups | None = None, visible: Sequence[Visible] = ()
    ) -> None:
        self._catalogue = catalogue
        self._caller = caller
        self._groups = groups
        self._visible = tuple(visible)

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entry in self._catalogue if self._is_active(entry) and self._is_visible(entry))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    @property
    def is_async(self) -> bool:
        """Whether a call of any tool of the catalogue, hidden ones too, needs an event loop."""
        # A group may be activated while a program runs whose driver was settled before.
        return self._catalogue.is_async

    def find(self, name: str) -> Entry | None:
        """The entry of exactly that name, if it can be called now."""
        entry = self._catalogue.find(name)
        return entry if entry is not None and self._is_active(entry) and self._is_visible(entry) else None

    def inactive_group(self, name: str) -> ToolGroup | None:
        """The group that has to be activated before the tool can be called; None when that is not what it lacks."""
        entry = self._catalogue.find(name)
        if entry is None or self._groups is None or self._is_active(entry) or not self._is_visible(entry):
            return None
        return self._groups.find(entry.group)

    def nearest(self, name: str) -> str | None:
        """The name, of those that can be called now, that `name` most likely meant."""
        return nearest(name, [entry.name for entry in self])

    def can_activate(self, group: ToolGroup) -> bool:
        """Whether a model can activate the group by itself."""
        return ACTIVATE_TOOL_GROUPS in self and self._groups is not None and self._groups.is_switchable(group.name)

    def groups(self) -> list[ToolGroup]:
        """The groups but for those all of whose tools are hidden from this caller."""
        seen: dict[str, bool] = {}
        for entry in self._catalogue:
            seen[entry.group] = seen.get(entry.group, False) or self._is_visible(entry)
        return [group for group in self._groups or () if seen.get(group.name, True)]

    def in_groups(self, names: Sequence[str]) -> list[Entry]:
        """The visible entries of these groups, active or not."""
        return [entry for entry in self._catalogue if entry.group in names and self._is_visible(entry)]

    def _is_active(self, entry: Entry) -> bool:
        return self._groups is None or self._groups.is_active(entry.group)

    def _is_visible(self, entry: Entry) -> bool:
        return all(self._allows(visible, entry.name) for visible in self._visible)

    def _allows(self, visible: Visible, name: str) -> bool:
        try:
            return bool(visible(name, self._caller))
        except Exception:  # noqa: BLE001 - a predicate is its owner's code: if it breaks, nothing is shown
            _LOG.exception("asking whether %r is visible failed; it is hidden", name)
            return False
