"""The modules that a program may use, with and without an import statement."""

import __future__

import builtins
import importlib
import io
import sys
import types
import uuid
from collections.abc import Collection, Mapping
from typing import Any

from ..values import kind_of
from . import dates

CORE_MODULES = ("math", "json", "datetime", "re", "random", "statistics")
"""Global names of a program."""
MORE_MODULES = (
    "collections", "itertools", "functools", "operator", "string", "textwrap", "decimal", "fractions", "dataclasses",
    "enum", "typing", "types", "copy", "time", "calendar", "zoneinfo", "hashlib", "base64", "binascii", "heapq",
    "bisect", "uuid", "unicodedata", "difflib", "csv", "io", "pprint", "abc", "numbers", "cmath", "contextlib",
)  # fmt: skip
"""Kept among a program's builtins, so that its own names and its tools hide them."""
ASYNCIO = "asyncio"
MODULES = (*CORE_MODULES, *MORE_MODULES, ASYNCIO)
PARTS = {"json.decoder": "json", "json.encoder": "json", "collections.abc": "collections"}
"""Modules that can be imported as a part of another one."""


def load() -> list[str]:
    """Imports all modules, in the zygote: a locked child reads no file. Returns the parts that this machine lacks."""
    # The C library's way to a time stamp asks a daemon, and puts the machine's hardware address into it.
    identities: Any = uuid
    identities._generate_time_safe = None  # noqa: SLF001 - documented nowhere, and the same since Python 3.7
    identities._GETTERS = []  # noqa: SLF001 - without them the node is a random number
    for name in (*CORE_MODULES, *MORE_MODULES, *PARTS):
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            # Some names of a module are imported when first asked for, as `types.CapsuleType` is.
            setattr(module, public, getattr(module, public))
    return [] if dates.load_zones() else ["time zones (the tzdata package, or the system's database)"]


def modules(asyncio: Any) -> dict[str, Any]:
    """Returns the modules by the names that a program writes."""
    found: dict[str, Any] = {name: sys.modules[name] for name in (*CORE_MODULES, *MORE_MODULES)}
    return found | {"datetime": dates.datetime, "io": _io_module(), ASYNCIO: asyncio}


def _io_module() -> types.ModuleType:
    """Returns the part of `io` that needs no file."""
    module = types.ModuleType("io", "Text and bytes in memory.")
    vars(module).update(StringIO=io.StringIO, BytesIO=io.BytesIO)
    return module


class Importer:
    """The program's `__import__`: gives the modules that are present anyway, and others only if `is_open`."""

    def __init__(self, present: Mapping[str, Any]) -> None:
        self.is_open = False
        self._known: dict[str, Any] = {}
        self._from_forms: dict[str, Any] = {}
        self.allow(present)

    @property
    def names(self) -> Collection[str] | None:
        """The names that can be imported; None if any can."""
        return None if self.is_open else self._known.keys()

    def allow(self, present: Mapping[str, Any]) -> None:
        """Lets these modules be imported, and their parts."""
        parts = {part: present[whole] for part, whole in PARTS.items() if whole in present}
        self._present = present
        self._known = {**present, "__future__": __future__, **parts}
        self._from_forms = {part: sys.modules[part] for part in parts}
        if "datetime" in present:
            self._from_forms["datetime"] = dates.import_form()

    def __call__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """As the built-in."""
        if level == 0 and name in self._known:
            if not fromlist:
                return self._known[name]
            found = self._from_forms.get(name, self._known[name])
            _refuse_missing(found, name, fromlist, globals)
            return found
        if kind_of(fromlist) is list and name in sys.modules:
            # Imports of C code also use the program's builtins: `strptime` looks `_strptime` up. Only C code passes a
            # list; import
            # statements pass a tuple or None.
            return sys.modules[name]
        if self.is_open:
            return builtins.__import__(name, globals, locals, fromlist, level)
        raise ImportError(
            f"a program cannot import {name!r}; it has {modules_text(self._present)} without import", name=name
        )


def _refuse_missing(module: Any, name: str, wanted: Any, known: Any) -> None:
    """Refuses names that the module lacks. Python's own error would show the path of the host's library."""
    for each in wanted:
        if each != "*" and not hasattr(module, each):
            there = kind_of(known) is dict and each in known
            hint = f": {each!r} is there without an import" if there else ""
            raise ImportError(f"cannot import name {each!r} from {name!r}{hint}", name=name)


def modules_text(present: Collection[str]) -> str:
    """Returns the names of the present modules as text, in the order of `MODULES`."""
    return ", ".join(name for name in MODULES if name in present)
