"""Groups of tools, switched on and off together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from toolwire.catalogue.nearest import nearest, suggestion
from toolwire.vocabulary.errors import RegistrationError

BASIC = "basic"
"""The group of every tool that is put into no other: always there, always active."""


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Tools that are switched on and off together. `toolkit.update_tool_groups` switches; a group itself is fixed."""

    name: str
    """What tools and models call it."""
    description: str
    """What its tools are for, for a model that may activate it."""
    active: bool = False
    """Whether its tools are offered and can be called."""
    notes: str | None = None
    """What a model should mind while the group is active; None when there is nothing."""


class Groups:
    """The groups of one toolkit. Safe to read from any thread while another one switches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced as a whole on each change, so that readers need no lock.
        self._groups = {BASIC: ToolGroup(BASIC, "Tools that are always there.", active=True)}
        self.switchable: frozenset[str] | None = frozenset()
        """The groups that a model may switch; None: all of them."""

    def __iter__(self) -> Iterator[ToolGroup]:
        return iter(self._groups.values())

    def is_active(self, name: str) -> bool:
        """Whether there is an active group of that name."""
        group = self._groups.get(name)
        return group is not None and group.active

    def is_switchable(self, name: str) -> bool:
        """Whether a model may switch it."""
        return name != BASIC and name in self._groups and (self.switchable is None or name in self.switchable)

    def find(self, name: str) -> ToolGroup | None:
        """The group as it is now; None when there is none."""
        return self._groups.get(name)

    def create(self, group: ToolGroup) -> None:
        """Adds a group.

        Raises:
            RegistrationError: the name is empty, taken, or `basic`.
        """
        if not group.name or not isinstance(group.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(f"a tool group cannot be named {group.name!r}: give it a text")
        if group.name == BASIC:
            raise RegistrationError(f"the tool group {BASIC!r} is always there: give yours another name")
        with self._lock:
            if group.name in self._groups:
                raise RegistrationError(f"a tool group named {group.name!r} exists already: give this one another name")
            self._groups = {**self._groups, group.name: group}

    def switch(self, names: Iterable[str], *, active: bool) -> None:
        """Switches all of these groups, or none.

        Raises:
            RegistrationError: one of them does not exist, or is `basic` and to be switched off.
        """
        chosen = self.known(names)
        if BASIC in chosen and not active:
            raise RegistrationError(f"the tool group {BASIC!r} is always active: leave it out")
        with self._lock:
            self._groups = {
                name: replace(group, active=active) if name in chosen else group for name, group in self._groups.items()
            }

    def remove(self, names: Iterable[str]) -> None:
        """Takes all of these groups away, or none.

        Raises:
            RegistrationError: one of them does not exist, or is `basic`.
        """
        chosen = self.known(names)
        if BASIC in chosen:
            raise RegistrationError(f"the tool group {BASIC!r} cannot be removed: leave it out")
        with self._lock:
            self._groups = {name: group for name, group in self._groups.items() if name not in chosen}

    def let_switch(self, names: Iterable[str] | None) -> None:
        """Lets models switch these groups, and only these; None: all, later ones too.

        Raises:
            RegistrationError: one of them does not exist, or is `basic`.
        """
        chosen = None if names is None else frozenset(self.known(names))
        if chosen is not None and BASIC in chosen:
            raise RegistrationError(f"the tool group {BASIC!r} is always active: leave it out")
        self.switchable = chosen

    def known(self, names: Iterable[str]) -> list[str]:
        """These names, each of which a group has; a single text counts as one name.

        Raises:
            RegistrationError: one that no group has; it names the nearest.
        """
        chosen = [names] if isinstance(names, str) else list(names)
        for name in chosen:
            if name not in self._groups:
                near = nearest(name, self._groups) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
                hint = suggestion(near) or f"; the groups are {', '.join(self._groups)}"
                raise RegistrationError(f"no tool group is named {name!r}{hint}")
        return chosen
