"""The check of our dicts by an SDK's own types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter


def accepted(kind: Any, value: Any) -> bool:
    """Whether the type accepts the value and keeps all of it.

    Raises:
        ValidationError: it does not take it.
    """
    adapter = TypeAdapter(kind)  # held here: the lazy iterators need its definitions
    return _whole(adapter.validate_python(value)) == value


def _whole(value: Any) -> Any:
    """The value with the lazy iterators run that pydantic makes of `Iterable`."""
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, str | bytes | int | float | bool | None):
        return value
    return [_whole(item) for item in value]
