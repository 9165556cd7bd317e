"""Registered tools by name, with suggestions for unknown names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as copy_with
from types import BuiltinMethodType, MethodType

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.registration import DrawnRegistration, Registration
from toolwire.catalogue.similar_names import nearest, skeleton, suggestion
from toolwire.definition.naming import program_name
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import RESERVED_NAMES
from toolwire.vocabulary.errors import RegistrationError
from toolwire.vocabulary.machine.gate import Gate

_LOG = logging.getLogger("toolwire.registry")


class Catalogue:
    """Tools by name, in order of registration. A thread may read while another one adds."""

    def __init__(self, *, alike: set[tuple[str, str]] | None = None) -> None:
        """`alike` is as in `_alike`, if another catalogue has them too."""
        self._lock = threading.Lock()
        # Each new or removed name replaces the dict, so that readers need no lock.
        self._registrations: dict[str, Registration | DrawnRegistration] = {}
        self._written: dict[str, str] = {}
        """Maps the name used in programs to the registered name."""
        self._looks: dict[str, str] = {}
        """Maps the look of a name to the first registered name with that look."""
        self._alike = set[tuple[str, str]]() if alike is None else alike
        """Pairs of servers whose names look alike, and of which a warning told."""
        self._has_deferred = False
        self._drawn: tuple[DrawnRegistration, ...] = ()
        self._gates: dict[str, Gate] = {}
        self._is_whole = True
        self._server_requests: Catalogue | None = None

    def __iter__(self) -> Iterator[Entry]:
        return (entry for registration in self._registrations.values() if (entry := registration.entry) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    @property
    def has_deferred_tools(self) -> bool:
        """True if a call of any tool here needs an event loop or gives a future. Programs then need a loop."""
        return self._has_deferred or (
            bool(self._drawn) and any(_is_deferred(registration) for registration in self._drawn)
        )

    @property
    def is_whole(self) -> bool:
        """False once a tool was removed, or a server of tools was not there. A rule may still name such a tool."""
        return self._is_whole

    def lacks_tools(self) -> None:
        """Notes that tools are missing, because their server is not there."""
        self._is_whole = False

    @property
    def server_requests(self) -> Catalogue:
        """The requests that a gateway passes on to MCP servers. Rules may name them; no model sees or calls them."""
        with self._lock:
            if self._server_requests is None:
                self._server_requests = Catalogue(alike=self._alike)
            return self._server_requests

    def find(self, name: str) -> Entry | None:
        """Returns the entry with exactly that name, disabled or not, or None."""
        # Inlines `_own_entry`, because every call of a tool runs this.
        registration = self._registrations.get(name)
        return None if registration is None else registration.entry

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
            before = self._registrations, dict(self._written), dict(self._looks)
            replaced_ = [
                (registration, registration.base)
                for entry in entries
                if isinstance(registration := before[0].get(entry.name), Registration)
            ]
            try:
                for entry in entries:
                    self._add(entry, replace=replace)
            except RegistrationError:
                registrations, self._written, self._looks = before
                for registration, base in replaced_:
                    registration.put(base)
                self._set(registrations)
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
            registration = other._registrations.get(name)
            if not isinstance(registration, Registration) or registration.entry is None:
                raise other._no_such(name)
            there = self._registrations.get(name)
            if isinstance(there, DrawnRegistration) and there.is_of(registration):
                return
            self._refuse_taken(name)
            self._write(name)
            self._warn_of_look_alike(registration.base)
            self._set({**self._registrations, name: DrawnRegistration(registration, adapt)})

    def change(self, name: str, change: Callable[[Tool], Tool]) -> None:
        """Replaces the tool of an entry by the result of `change`. The rest of the entry stays.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            registration = self._require_registration(name)
            if isinstance(registration, DrawnRegistration):
                registration.change(change)
            else:
                registration.put(copy_with(registration.base, tool=change(registration.base.tool)))
                self._set(self._registrations)

    def disable(self, name: str, reason: str) -> None:
        """Refuses calls of a tool from now on. The model reads the reason, and no model is offered the tool.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            self._require_registration(name).disable(reason)

    def enable(self, name: str) -> None:
        """Accepts calls of a tool again.

        Raises:
            RegistrationError: The name is unknown, or the catalogue that it was drawn from has disabled it.
        """
        with self._lock:
            registration = self._require_registration(name)
            if isinstance(registration, DrawnRegistration) and registration.is_disabled_elsewhere:
                raise RegistrationError(f"the registry has disabled {name!r}: write registry.enable({name!r})")
            registration.enable()

    def remove(self, name: str) -> None:
        """Removes an entry, also from the catalogues that drew it. The name is free again.

        Raises:
            RegistrationError: The name is unknown.
        """
        with self._lock:
            registration = self._require_registration(name)
            self._written.pop(program_name(name), None)
            if self._looks.get(skeleton(name)) == name:
                del self._looks[skeleton(name)]
            self._set({key: there for key, there in self._registrations.items() if key != name})
            self._is_whole = False
            if isinstance(registration, Registration):
                registration.leave()

    def gate_of(self, resource: str) -> Gate:
        """Returns the gate for all calls that need exclusive use of that resource."""
        with self._lock:
            return self._gates.setdefault(resource, Gate())

    def nearest(self, name: str) -> str | None:
        """Returns the registered name that `name` most likely meant, or None."""
        return nearest(name, [entry.name for entry in self])

    def _add(self, entry: Entry, *, replace: bool) -> None:
        there = self._own_entry(entry.name)
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

    def _own_entry(self, name: str) -> Entry | None:
        """Returns an entry of this catalogue alone; `find` of an overlay also looks below."""
        registration = self._registrations.get(name)
        return None if registration is None else registration.entry

    def _require_registration(self, name: str) -> Registration | DrawnRegistration:
        registration = self._registrations.get(name)
        if registration is None or registration.entry is None:
            raise self._no_such(name)
        return registration

    def _refuse_taken(self, name: str) -> None:
        if self._own_entry(name) is not None:
            raise RegistrationError(f"a tool named {name!r} is here already: give this one another name")

    def _put(self, entry: Entry, *, disabled: str | None = None) -> None:
        self._write(entry.name)
        self._warn_of_look_alike(entry)
        there = self._registrations.get(entry.name)
        if isinstance(there, Registration):
            there.put(entry)
            self._set(self._registrations)
        else:
            registration = Registration(entry)
            if disabled is not None:
                registration.disable(disabled)
            self._set({**self._registrations, entry.name: registration})

    def _set(self, registrations: dict[str, Registration | DrawnRegistration]) -> None:
        self._drawn = tuple(
            registration for registration in registrations.values() if isinstance(registration, DrawnRegistration)
        )
        self._has_deferred = any(
            _is_deferred(registration)
            for registration in registrations.values()
            if isinstance(registration, Registration)
        )
        self._registrations = registrations

    def _warn_of_look_alike(self, entry: Entry) -> None:
        look = skeleton(entry.name)
        self._forget(self._looks, look)
        other = self._looks.setdefault(look, _RESERVED_LOOKS.get(look, entry.name))
        servers = (entry.name.rpartition("/")[0], other.rpartition("/")[0])
        if other == entry.name or servers in self._alike:
            return
        if all(servers) and servers[0] != servers[1]:
            # One warning for all of their tools.
            self._alike.add(servers)
            _LOG.warning("the server %a looks like %a: %s", *servers, _ALIKE)
        else:
            _LOG.warning("the tool %a looks like %a: %s=", entry.name, other, _ALIKE)

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
        if there in self._registrations and self._own_entry(there) is None:
            del names[key]


_ALIKE = "a person or a model may take one for the other; give one of them another name"
_RESERVED_LOOKS = {skeleton(name): name for name in RESERVED_NAMES}


def _is_one(first: object, second: object) -> bool:
    """True if both are the same object.

    Python creates a bound method anew on each access, so methods are compared by equality.
    """
    return first is second or (isinstance(first, _METHODS) and first == second)


def _is_deferred(registration: Registration | DrawnRegistration) -> bool:
    entry = registration.entry
    return entry is not None and entry.is_deferred


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
    def has_deferred_tools(self) -> bool:
        return super().has_deferred_tools or self._below.has_deferred_tools

    @property
    def is_whole(self) -> bool:
        return self._below.is_whole

    @property
    def server_requests(self) -> Catalogue:
        return self._below.server_requests

    def find(self, name: str) -> Entry | None:
        own, below = super().find(name), self._below.find(name)
        return own if below is None else _instead(own, below)


def _instead(own: Entry | None, below: Entry) -> Entry:
    """Returns the own entry if it exists, else the one below. The own entry is disabled while the one below is."""
    if own is None:
        return below
    return own if below.disabled is None else copy_with(own, disabled=below.disabled)
