"""`datetime` for programs: the module and the class in one, since models write it both ways.

`datetime.now()`, `datetime.datetime.now()`, `datetime(2024, 1, 1)`, `datetime.timedelta(days=1)`,
`isinstance(x, datetime)` and `datetime.parse(text)` all work. Instances are CPython's own.

Time zones need no file: the zygote reads the time zone database, and programs read it from their memory.
"""

import datetime as real
import importlib
import io
import os
import types
import zoneinfo
from collections.abc import Iterable, Iterator
from typing import Any

MODULE_NAMES = ("date", "time", "timedelta", "timezone", "tzinfo", "UTC", "MINYEAR", "MAXYEAR")
"""Names that mean the module's member; `datetime.datetime.date`, the method, stays reachable through instances."""


def parse(text: Any) -> real.datetime:
    """The moment an ISO 8601 text names; a date alone is its midnight."""
    if not isinstance(text, str):
        raise TypeError(f"datetime.parse: argument must be str, not {type(text).__name__}")
    try:
        return real.datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"datetime.parse: {text!r} is not ISO 8601, such as 2024-01-31 or 2024-01-31T12:30:00Z"
        ) from None


_MEMBERS: dict[str, Any] = {name: getattr(real, name) for name in MODULE_NAMES}
_MEMBERS["datetime"] = real.datetime
_MEMBERS["parse"] = parse


class _Both(type):
    """Makes the class behave as `datetime.datetime`, and as the module for names that only the module has."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
        if any(isinstance(base, _Both) for base in bases):
            bases = tuple(real.datetime if isinstance(base, _Both) else base for base in bases)
            return type(name, bases, members)
        return super().__new__(cls, name, bases, members)

    def __call__(cls, *values: Any, **named: Any) -> Any:
        return real.datetime(*values, **named)  # noqa: DTZ001 - the program chooses whether to use a time zone

    def __getattribute__(cls, name: str) -> Any:
        found = _MEMBERS.get(name)
        return getattr(real.datetime, name) if found is None else found

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, real.datetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, real.datetime)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is real.datetime

    def __hash__(cls) -> int:
        return hash(real.datetime)

    def __repr__(cls) -> str:
        return repr(real.datetime)

    def __dir__(cls) -> list[str]:
        return sorted({*dir(real.datetime), *_MEMBERS})


class _Program(real.datetime, metaclass=_Both):
    pass


datetime: Any = _Program
"""The object that a program sees as `datetime`."""


def import_form() -> types.ModuleType:
    """Returns the module for `from datetime import ...`; its `datetime` is also module and class in one."""
    module = types.ModuleType("datetime")
    for name, member in _MEMBERS.items():
        setattr(module, name, member)
    vars(module)["datetime"] = datetime
    return module


_MAGIC = b"TZif"
_OTHER_FORMS = frozenset({"posix", "right"})
"""Folders of a database that hold all zones once more."""
_NO_ZONE = "posixrules"


def load_zones() -> bool:
    """Makes `zoneinfo` read from memory what its search path holds now; False if no zone is there."""
    zones = read_zones(zoneinfo.TZPATH)

    def load(key: str) -> io.BytesIO:
        data = zones.get(key)
        if data is None:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(data)

    def available() -> set[str]:
        return set(zones)

    common: Any = importlib.import_module("zoneinfo._common")
    module: Any = zoneinfo
    zoneinfo.reset_tzpath(to=())
    common.load_tzdata = load
    module.available_timezones = available
    return bool(zones)


def read_zones(folders: Iterable[str]) -> dict[str, bytes]:
    """Each zone's file by the zone's name, links too; the first folder that has a zone counts."""
    zones: dict[str, bytes] = {}
    # A quarter of the names are links to the same zones.
    once: dict[bytes, bytes] = {}
    for folder in (folder.rstrip("/") for folder in folders):
        for key in _keys(folder):
            data = b"" if key in zones or key == _NO_ZONE else _read_file(f"{folder}/{key}")
            if data.startswith(_MAGIC):
                zones[key] = once.setdefault(data, data)
    return zones


def _keys(folder: str) -> Iterator[str]:
    """The paths of a folder's files below it. Not by `pathlib`, which takes three times as long."""
    for place, folders, names in os.walk(folder):
        if place == folder:
            folders[:] = [name for name in folders if name not in _OTHER_FORMS]
        below = place[len(folder) + 1 :]
        yield from (f"{below}/{name}" if below else name for name in names)


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        # A link to nowhere, or a file that is not for us.
        return b""
