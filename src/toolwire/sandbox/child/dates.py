"""`datetime` for programs: at once the module and the class, since models write it both ways.

`datetime.now()`, `datetime.datetime.now()`, `datetime(2024, 1, 1)`, `datetime.timedelta(days=1)`,
`isinstance(x, datetime)` and `datetime.parse(text)` all work. Instances are CPython's own.
"""

import datetime as real
import types
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
    """Makes the class behave as `datetime.datetime` wherever it is looked at, and as the module where that has more."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
        if any(isinstance(base, _Both) for base in bases):
            bases = tuple(real.datetime if isinstance(base, _Both) else base for base in bases)
            return type(name, bases, members)
        return super().__new__(cls, name, bases, members)

    def __call__(cls, *values: Any, **named: Any) -> Any:
        return real.datetime(*values, **named)  # noqa: DTZ001 - whether with a time zone is the program's choice

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
"""What a program knows as `datetime`."""


def import_form() -> types.ModuleType:
    """What `from datetime import ...` takes from: `datetime` is both things there too."""
    module = types.ModuleType("datetime")
    for name, member in _MEMBERS.items():
        setattr(module, name, member)
    vars(module)["datetime"] = datetime
    return module
