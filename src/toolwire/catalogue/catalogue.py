"""Registered tools by name, with suggestions for unknown names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replaced
from types import BuiltinMethodType, MethodType

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.look_alikes import skeleton
from toolwire.catalogue.nearest import nearest, suggestion
from toolwire.definition.naming import program_name
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import RESERVED_NAMES
from toolwire.vocabulary.errors import RegistrationError
from toolwire.vocabulary.gate import Gate

_LOG = logging.getLogger("toolwire.registry")


class Catalogue:
    """Tools by name, in order of registration. A thread may read while another one adds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each change replaces the dict, so that readers need no lock.
        self._entries: dict[str, Entry] = {}
        self._written: dict[str, str] = {}
        """Maps the name used in programs to the registered name."""
        self._looks: dict[str, str] = {}
        """Maps the look of a name to the first registered name with that look."""
        self._is_async = False
        self._gates: dict[str, Gate] = {}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    @property
    def is_async(self) -> bool:
        """True if a call of any tool here needs an event loop. Programs then need one too."""
        return self._is_async

    def find(self, name: str) -> Entry | None:
        """Returns the entry with exactly that name, or None."""
        return self._entries.get(name)

    def add(self, entry: Entry, *, replace: bool = False) -> None:
        """Adds an entry. Does nothing if the same object is registered with the same options.

        Raises:
            RegistrationError: The name is taken by another object or with other options (unless `replace`), or a
                program could not distinguish it from another tool's.
        """
        with self._lock:
            self._put(entry, replace=replace)

    def add_all(self, entries: Sequence[Entry], *, replace: bool = False) -> None:
        """Adds all entries as `add` does. After an error none of them is added.

        Raises:
            RegistrationError: See `add`.
        """
        with self._lock:
            before = self._entries, dict(self._written), dict(self._looks)
            try:
                for entry in entries:
                    self._put(entry, replace=replace)
            except RegistrationError:
                there, self._written, self._looks = before
                self._set(there)
                raise

    def add_new(self, entry: Entry) -> None:
        """Adds an entry under a new name. Refuses a name that is taken, even by the same object.

        Raises:
            RegistrationError: The name is taken, or a program could not distinguish it from another tool's.
        """
        with self._lock:
            if entry.name in self._entries:
                raise RegistrationError(f"a tool named {entry.name!r} is here already: give this one another name")
            self._write(entry.name)
            self._warn_of_look_alike(entry)
            self._set({**self._entries, entry.name: entry})

    def change(self, name: str, change: Callable[[Tool], Tool]) -> None:
        """Replaces the tool of an entry by the result of `change`. The rest of the entry stays.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                raise self._no_such(name)
            self._set({**self._entries, name: replaced(entry, tool=change(entry.tool))})

    def remove(self, name: str) -> None:
        """Removes an entry.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            if name not in self._entries:
                raise self._no_such(name)
            del self._written[program_name(name)]
            if self._looks.get(skeleton(name)) == name:
                del self._looks[skeleton(name)]
            self._set({key: entry for key, entry in self._entries.items() if key != name})

    def gate_of(self, resource: str) -> Gate:
        """Returns the gate for all calls that need exclusive use of that resource."""
        with self._lock:
            return self._gates.setdefault(resource, Gate())

    def nearest(self, name: str) -> str | None:
        """Returns the registered name that `name` most likely meant, or None."""
        return nearest(name, [entry.name for entry in self])

    def _put(self, entry: Entry, *, replace: bool) -> None:
        there = self._entries.get(entry.name)
        if there is not None and not replace:
            if not _is_one(there.handle, entry.handle):
                raise RegistrationError(
                    f"a tool named {entry.name!r} is registered already; "
                    "give another name= or prefix=, or replace=True to put this one in its place"
                )
            if not there.has_options_of(entry):
                # Accepting the new options silently could lose a permission.
                raise RegistrationError(
                    f"{entry.name!r} is registered already with other options; replace=True takes the new ones"
                )
            return
        self._write(entry.name)
        self._warn_of_look_alike(entry)
        self._set({**self._entries, entry.name: entry})

    def _no_such(self, name: str) -> RegistrationError:
        return RegistrationError(f"no tool is named {name!r}{suggestion(self.nearest(name))}")

    def _set(self, entries: dict[str, Entry]) -> None:
        self._is_async = any(entry.is_async for entry in entries.values())
        self._entries = entries

    def _warn_of_look_alike(self, entry: Entry) -> None:
        look = skeleton(entry.name)
        other = self._looks.setdefault(look, _RESERVED_LOOKS.get(look, entry.name))
        if other != entry.name:
            _LOG.warning(
                "the tool %a looks like %a: a person or a model may take one for the other; give one of them another "
                "name=",
                *(entry.name, other),
            )

    def _write(self, name: str) -> None:
        written = program_name(name)
        other = self._written.setdefault(written, name)
        if other != name:
            raise RegistrationError(
                f"programs would write {written!r} for both {other!r} and {name!r}; give one of them another name="
            )


_RESERVED_LOOKS = {skeleton(name): name for name in RESERVED_NAMES}


def _is_one(first: object, second: object) -> bool:
    """True if both are the same object. Python creates a bound method anew on each access, so methods are compared by
    equality.
    """
    return first is second or (isinstance(first, _METHODS) and first == second)


_METHODS = (MethodType, BuiltinMethodType)
