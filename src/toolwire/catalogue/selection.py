"""The part of a catalogue that one caller sees: tools of active groups that no predicate hides."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.groups import Groups, ToolGroup
from toolwire.catalogue.similar_names import nearest
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS, Caller
from toolwire.vocabulary.errors import ConfigurationError

Visible = Callable[[str, Caller], bool]
"""True if the caller may see the tool of that name. A predicate that raises hides the tool. It is called often and must
not block.
"""

_LOG = logging.getLogger("toolwire.visibility")


class Selection:
    """A catalogue as one caller sees it. It is live: later registrations, groups and predicates take effect at once.

    A tool that is not visible behaves as if it were not registered: it is not listed, found or suggested.
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
    def has_deferred_tools(self) -> bool:
        """True if a call of any tool in the catalogue needs a loop or gives a future, hidden tools included."""
        # The driver of a program is chosen at its start, and a group may be activated while it runs.
        return self._catalogue.has_deferred_tools

    def find(self, name: str) -> Entry | None:
        """Returns the entry with exactly that name if it can be called now or is disabled, else None."""
        entry = self._catalogue.find(name)
        if entry is None or not (entry.disabled is not None or self._is_active(entry)) or not self._is_visible(entry):
            return None
        return entry

    def inactive_group(self, name: str) -> ToolGroup | None:
        """Returns the inactive group that keeps the tool from being called; None if the tool lacks something else."""
        entry = self._catalogue.find(name)
        if entry is None or self._groups is None or self._is_active(entry) or not self._is_visible(entry):
            return None
        return self._groups.find(entry.group)

    def nearest(self, name: str) -> str | None:
        """Returns the name that `name` most likely meant among the tools that can be called now."""
        return nearest(name, [entry.name for entry in self if entry.disabled is None])

    def can_activate(self, group: ToolGroup) -> bool:
        """True if a model can activate the group by itself."""
        switch = self.find(ACTIVATE_TOOL_GROUPS)
        if switch is None or switch.disabled is not None or self._groups is None:
            return False
        return self._groups.is_switchable(group.name)

    def groups(self) -> list[ToolGroup]:
        """Returns the groups, except those whose tools are all hidden from this caller."""
        seen: dict[str, bool] = {}
        for entry in self._catalogue:
            seen[entry.group] = seen.get(entry.group, False) or self._is_visible(entry)
        return [group for group in self._groups or () if seen.get(group.name, True)]

    def group_notes(self) -> str:
        """Returns the notes of active groups as one text, each under its group's name; empty without notes."""
        noted = [group for group in self.groups() if group.active and group.notes]
        return "\n\n".join(f"About the tools of {group.name!r}:\n{group.notes}" for group in noted)

    def in_groups(self, names: Sequence[str]) -> list[Entry]:
        """Returns the visible entries of these groups, active or not, except disabled ones."""
        return [
            entry
            for entry in self._catalogue
            if entry.group in names and entry.disabled is None and self._is_visible(entry)
        ]

    def _is_active(self, entry: Entry) -> bool:
        return self._groups is None or self._groups.is_active(entry.group)

    def _is_visible(self, entry: Entry) -> bool:
        # A predicate is about the host's tools; a model that could not end would go on without end.
        if not self._visible or entry.tool.ends_turn:
            return True
        return all(self._allows(visible, entry.name) for visible in self._visible)

    def _allows(self, visible: Visible, name: str) -> bool:
        try:
            return bool(visible(name, self._caller))
        except Exception:  # noqa: BLE001 - the predicate is the host's code; an error hides the tool
            _LOG.exception("the visibility check of %r failed; the tool is hidden", name)
            return False


def check_predicate(visible: object) -> None:
    """Refuses a predicate that cannot answer at once.

    Raises:
        ConfigurationError: It cannot be called, or is a coroutine function.
    """
    if not callable(visible):
        raise ConfigurationError(f"visible={visible!r}: give a function (tool_name, caller) -> bool")
    if inspect.iscoroutinefunction(visible):
        raise ConfigurationError(
            f"visible={visible.__name__} is a coroutine function: it must answer at once, write `def`"
        )
