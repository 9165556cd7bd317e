"""Fields of frozen classes that are made on every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def setters_of(frozen: type[Any]) -> tuple[Callable[[Any, Any], None], ...]:
    """What sets each field of a frozen dataclass with slots, in order; for its own `__init__`.

    `object.__setattr__` looks each name up, on every call.
    """
    fields: tuple[str, ...] = frozen.__slots__
    return tuple(vars(frozen)[name].__set__ for name in fields)
