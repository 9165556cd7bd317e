"""Registered tools by name, with suggestions for unknown names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replaced
from types import BuiltinMethodType, MethodType

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.seat import DrawnSeat, Seat
from toolwire.catalogue.similar_names import nearest, skeleton, suggestion
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
        # Each new or removed name replaces the dict, so that readers need no lock.
        self._seats: dict[str, Seat | DrawnSeat] = {}
        self._written: dict[str, str] = {}
        """Maps the name used in programs to the registered name."""
        self._looks: dict[str, str] = {}
        """Maps the look of a name to the first registered name with that look."""
        self._answers_later = False
        self._drawn: tuple[DrawnSeat, ...] = ()
        self._gates: dict[str, Gate] = {}
        self._is_whole = True
        self._beside: Catalogue | None = None

    def __iter__(self) -> Iterator[Entry]:
        return (entry for seat in self._seats.values() if (entry := seat.entry) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    @property
    def answers_later(self) -> bool:
        """True if a call of any tool here needs an event loop or gives a future. Programs then need a loop."""
        return self._answers_later or (bool(self._drawn) and any(_answers_later(seat) for seat in self._drawn))

    @property
    def is_whole(self) -> bool:
        """False once a tool was removed, or a server of tools was not there. A rule may still name such a tool."""
        return self._is_whole

    def lacks_tools(self) -> None:
        """Notes that tools are missing, because their server is not there."""
        self._is_whole = False

    @property
    def beside(self) -> Catalogue:
        """The requests that a gateway passes on to MCP servers. Rules may name them; no model sees or calls them."""
        with self._lock:
            if self._beside is None:
                self._beside = Catalogue()
            return self._beside

    def find(self, name: str) -> Entry | None:
        """Returns the entry with exactly that name, disabled or not, or None."""
        # Inlines `_held`, because every call of a tool runs this.
        seat = self._seats.get(name)
        return None if seat is None else seat.entry

    def add(self, entry: Entry, *, replace: bool = False) -> None:
        """Adds an entry. Does nothing if the same object is registered with the same options.

        Raises:
            RegistrationError: The name is taken by another object or with other options (unless `replace`), or a
                program could not distinguish it from another tool's.
        """
        with self._lock:
            self._add(entry, replace=replace)

    def add_all(self, entries: Sequence[Entry], *, replace: bool = False) -> None:
        """Adds all entries as `add` does. After an error none of them is added.

        Raises:
            RegistrationError: See `add`.
        """
        with self._lock:
            before = self._seats, dict(self._written), dict(self._looks)
            replaced_ = [(seat, seat.base) for entry in entries if isinstance(seat := before[0].get(entry.name), Seat)]
            try:
                for entry in entries:
                    self._add(entry, replace=replace)
            except RegistrationError:
                seats, self._written, self._looks = before
                for seat, base in replaced_:
                    seat.put(base)
                self._set(seats)
                raise

    def add_new(self, entry: Entry, *, disabled: str | None = None) -> None:
        """Adds an entry under a new name. Refuses a name that is taken, even by the same object.

        `disabled` is the reason if no call may run before `enable`.

        Raises:
            RegistrationError: The name is taken, or a program could not distinguish it from another tool's.
        """
        with self._lock:
            self._refuse_taken(entry.name)
            self._put(entry, disabled=disabled)

    def draw(self, other: Catalogue, name: str, adapt: Callable[[Entry], Entry]) -> None:
        """Adds a tool of another catalogue and follows it: replacing, disabling or removing it there has effect here.

        `adapt` makes the entry that is used here. Drawing the same tool again changes nothing.

        Raises:
            RegistrationError: The other catalogue has no such tool of its own, or the name is taken here.
        """
        with self._lock:
            seat = other._seats.get(name)
            if not isinstance(seat, Seat) or seat.entry is None:
                raise other._no_such(name)
            there = self._seats.get(name)
            if isinstance(there, DrawnSeat) and there.is_of(seat):
                return
            self._refuse_taken(name)
            self._write(name)
            self._warn_of_look_alike(seat.base)
            self._set({**self._seats, name: DrawnSeat(seat, adapt)})

    def change(self, name: str, change: Callable[[Tool], Tool]) -> None:
        """Replaces the tool of an entry by the result of `change`. The rest of the entry stays.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            seat = self._seat(name)
            if isinstance(seat, DrawnSeat):
                seat.change(change)
            else:
                seat.put(replaced(seat.base, tool=change(seat.base.tool)))
                self._set(self._seats)

    def disable(self, name: str, reason: str) -> None:
        """Refuses calls of a tool from now on. The model reads the reason, and no model is offered the tool.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            self._seat(name).disable(reason)

    def enable(self, name: str) -> None:
        """Accepts calls of a tool again.

        Raises:
            RegistrationError: The name is unknown, or the catalogue that it was drawn from has disabled it.
        """
        with self._lock:
            seat = self._seat(name)
            if isinstance(seat, DrawnSeat) and seat.is_disabled_elsewhere:
                raise RegistrationError(f"the registry has disabled {name!r}: write registry.enable({name!r})")
            seat.enable()

    def remove(self, name: str) -> None:
        """Removes an entry, also from the catalogues that drew it. The name is free again.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            seat = self._seat(name)
            self._written.pop(program_name(name), None)
            if self._looks.get(skeleton(name)) == name:
                del self._looks[skeleton(name)]
            self._set({key: there for key, there in self._seats.items() if key != name})
            self._is_whole = False
            if isinstance(seat, Seat):
                seat.leave()

    def gate_of(self, resource: str) -> Gate:
        """Returns the gate for all calls that need exclusive use of that resource."""
        with self._lock:
            return self._gates.setdefault(resource, Gate())

    def nearest(self, name: str) -> str | None:
        """Returns the registered name that `name` most likely meant, or None."""
        return nearest(name, [entry.name for entry in self])

    def _add(self, entry: Entry, *, replace: bool) -> None:
        there = self._held(entry.name)
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
        self._put(entry)

    def _no_such(self, name: str) -> RegistrationError:
        return RegistrationError(f"no tool is named {name!r}{suggestion(self.nearest(name))}")

    def _held(self, name: str) -> Entry | None:
        """Returns an entry of this catalogue alone; `find` of an overlay also looks below."""
        seat = self._seats.get(name)
        return None if seat is None else seat.entry

    def _seat(self, name: str) -> Seat | DrawnSeat:
        seat = self._seats.get(name)
        if seat is None or seat.entry is None:
            raise self._no_such(name)
        return seat

    def _refuse_taken(self, name: str) -> None:
        if self._held(name) is not None:
            raise RegistrationError(f"a tool named {name!r} is here already: give this one another name")

    def _put(self, entry: Entry, *, disabled: str | None = None) -> None:
        self._write(entry.name)
        self._warn_of_look_alike(entry)
        there = self._seats.get(entry.name)
        if isinstance(there, Seat):
            there.put(entry)
            self._set(self._seats)
        else:
            seat = Seat(entry)
            if disabled is not None:
                seat.disable(disabled)
            self._set({**self._seats, entry.name: seat})

    def _set(self, seats: dict[str, Seat | DrawnSeat]) -> None:
        self._drawn = tuple(seat for seat in seats.values() if isinstance(seat, DrawnSeat))
        self._answers_later = any(_answers_later(seat) for seat in seats.values() if isinstance(seat, Seat))
        self._seats = seats

    def _warn_of_look_alike(self, entry: Entry) -> None:
        look = skeleton(entry.name)
        self._forget(self._looks, look)
        other = self._looks.setdefault(look, _RESERVED_LOOKS.get(look, entry.name))
        if other != entry.name:
            _LOG.warning(
                "the tool %a looks like %a: a person or a model may take one for the other; give one of them another "
                "name=",
                *(entry.name, other),
            )

    def _write(self, name: str) -> None:
        written = program_name(name)
        self._forget(self._written, written)
        other = self._written.setdefault(written, name)
        if other != name:
            raise RegistrationError(
                f"programs would write {written!r} for both {other!r} and {name!r}; give one of them another name="
            )

    def _forget(self, names: dict[str, str], key: str) -> None:
        """Frees the key of a name that another catalogue removed."""
        there = names.get(key)
        if there in self._seats and self._held(there) is None:
            del names[key]


_RESERVED_LOOKS = {skeleton(name): name for name in RESERVED_NAMES}


def _is_one(first: object, second: object) -> bool:
    """True if both are the same object.

    Python creates a bound method anew on each access, so methods are compared by equality.
    """
    return first is second or (isinstance(first, _METHODS) and first == second)


def _answers_later(seat: Seat | DrawnSeat) -> bool:
    entry = seat.entry
    return entry is not None and entry.answers_later


_METHODS = (MethodType, BuiltinMethodType)


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
            yield _instead(own.pop(entry.name), entry) if entry.name in own else entry
        yield from own.values()

    @property
    def answers_later(self) -> bool:
        return super().answers_later or self._below.answers_later

    @property
    def is_whole(self) -> bool:
        return self._below.is_whole

    @property
    def beside(self) -> Catalogue:
        return self._below.beside

    def find(self, name: str) -> Entry | None:
        own, below = super().find(name), self._below.find(name)
        return own if below is None else _instead(own, below)


def _instead(own: Entry | None, below: Entry) -> Entry:
    """Returns the own entry if it exists, else the one below. The own entry is disabled while the one below is."""
    if own is None:
        return below
    return own if below.disabled is None else replaced(own, disabled=below.disabled)
