"""Groups of tools that are activated together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.vocabulary.errors import RegistrationError

BASIC = "basic"
"""The group of every tool without another group. It always exists and is always active."""


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Tools that are activated together.

    The object is immutable; `toolkit.update_tool_groups` activates and deactivates.

    Attributes:
        name: The name for tools and models.
        description: The purpose of its tools, for a model that may activate the group.
        active: True if its tools are offered and can be called.
        notes: Advice for the model while the group is active, or None.
    """

    name: str
    description: str
    active: bool = False
    notes: str | None = None


class Groups:
    """The groups of one toolkit. A thread may read while another one changes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each change replaces the dict, so that readers need no lock.
        self._groups = {BASIC: ToolGroup(BASIC, "Tools that are always there.", active=True)}
        self.switchable: frozenset[str] | None = frozenset()
        """Names of the groups that a model may switch; None allows all."""
        self._switched = frozenset[str]()
        """Names of the groups that this process has switched."""

    def __iter__(self) -> Iterator[ToolGroup]:
        return iter(self._groups.values())

    def is_active(self, name: str) -> bool:
        """True if an active group has that name."""
        group = self._groups.get(name)
        return group is not None and group.active

    def is_switchable(self, name: str) -> bool:
        """True if a model may switch the group."""
        return name != BASIC and name in self._groups and (self.switchable is None or name in self.switchable)

    def is_switched(self, name: str) -> bool:
        """True if this process has switched the group."""
        return name in self._switched

    def find(self, name: str) -> ToolGroup | None:
        """Returns the current state of the group, or None if it does not exist."""
        return self._groups.get(name)

    def create(self, group: ToolGroup) -> None:
        """Adds a group.

        Raises:
            RegistrationError: The name is empty, taken, or `basic`.
        """
        if not group.name or not isinstance(group.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(f"a tool group cannot be named {group.name!r}: give it a name")
        if group.name == BASIC:
            raise RegistrationError(f"the tool group {BASIC!r} is always there: give yours another name")
        with self._lock:
            if group.name in self._groups:
                raise RegistrationError(f"a tool group named {group.name!r} exists already: give this one another name")
            self._groups = {**self._groups, group.name: group}

    def switch(self, names: Iterable[str], *, active: bool) -> None:
        """Activates or deactivates all of these groups. After an error no group has changed.

        Raises:
            RegistrationError: A group does not exist, or `basic` would be deactivated.
        """
        chosen = self.require_names(names)
        if BASIC in chosen and not active:
            raise RegistrationError(f"the tool group {BASIC!r} is always active: leave it out")
        with self._lock:
            self._switched |= frozenset(chosen)
            self._groups = {
                name: replace(group, active=active) if name in chosen else group for name, group in self._groups.items()
            }

    def switch_on_again(self, names: Iterable[str]) -> None:
        """Activates groups that were active in an earlier process, except those that this process has switched."""
        with self._lock:
            chosen = frozenset(names) - self._switched
            self._groups = {
                name: replace(group, active=True) if name in chosen else group for name, group in self._groups.items()
            }

    def remove(self, names: Iterable[str]) -> None:
        """Removes all of these groups. After an error no group was removed.

        Raises:
            RegistrationError: A group does not exist, or is `basic`.
        """
        chosen = self.require_names(names)
        if BASIC in chosen:
            raise RegistrationError(f"the tool group {BASIC!r} cannot be removed: leave it out")
        with self._lock:
            self._switched -= frozenset(chosen)
            self._groups = {name: group for name, group in self._groups.items() if name not in chosen}

    def let_switch(self, names: Iterable[str] | None) -> None:
        """Allows models to switch only these groups; None allows all, including later ones.

        Raises:
            RegistrationError: A group does not exist, or is `basic`.
        """
        chosen = None if names is None else frozenset(self.require_names(names))
        if chosen is not None and BASIC in chosen:
            raise RegistrationError(f"the tool group {BASIC!r} is always active: leave it out")
        self.switchable = chosen

    def require_names(self, names: Iterable[str]) -> list[str]:
        """Returns the names as a list after checking that each group exists. A single text is one name.

        Raises:
            RegistrationError: A group does not exist. The message suggests the nearest name.
        """
        chosen = [names] if isinstance(names, str) else list(names)
        for name in chosen:
            if name not in self._groups:
                near = nearest(name, self._groups) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
                hint = suggestion(near) or f"; the groups are {', '.join(self._groups)}"
                raise RegistrationError(f"no tool group is named {name!r}{hint}")
        return chosen
