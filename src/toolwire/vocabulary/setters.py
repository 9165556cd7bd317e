"""Fast field setters for frozen classes that are created on every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def setters_of(frozen: type[Any]) -> tuple[Callable[[Any, Any], None], ...]:
    """Returns the setter of each field of a frozen dataclass with slots, in order, for its own `__init__`.

    They are faster than `object.__setattr__`, which looks up each name on every call.
    """
    fields: tuple[str, ...] = frozen.__slots__
    return tuple(vars(frozen)[name].__set__ for name in fields)
