"""A catalogue on top of another one: a few entries of its own, and all entries of the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry


class Overlay(Catalogue):
    """A catalogue whose entries hide entries of the same name below.

    It follows the catalogue below live and never changes it.
    """

    def __init__(self, below: Catalogue) -> None:
        super().__init__()
        self._below = below

    def __iter__(self) -> Iterator[Entry]:
        own = {entry.name: entry for entry in super().__iter__()}
        for entry in self._below:
            yield _instead(own.pop(entry.name, None), entry)
        yield from own.values()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._below

    @property
    def is_async(self) -> bool:
        return super().is_async or self._below.is_async

    @property
    def is_whole(self) -> bool:
        return self._below.is_whole

    def find(self, name: str) -> Entry | None:
        own, below = super().find(name), self._below.find(name)
        return own if below is None else _instead(own, below)


def _instead(own: Entry | None, below: Entry) -> Entry:
    """Returns the own entry if it exists, else the one below. The own entry is disabled while the one below is."""
    if own is None:
        return below
    return own if below.disabled is None else replace(own, disabled=below.disabled)
