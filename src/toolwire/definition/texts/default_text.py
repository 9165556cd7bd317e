"""A default as Python source."""

from __future__ import annotations

import datetime
from typing import Any

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import plain_value


def default_text(value: Any) -> str:
    """Returns a default as Python source; `...` if it has no literal."""
    if isinstance(value, str) and type(value) is str:
        return f'"{value}"' if value.isprintable() and not set('"\\') & set(value) else repr(value)
    if value is None or isinstance(value, bool | bytes) or type(value) in (int, float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return repr(value)
    if type(value) in (list, tuple, set, frozenset, dict) and not value:
        return repr(value)
    try:
        given = plain_value(value)
    except Unrepresentable:
        return "..."
    return default_text(given) if isinstance(given, str) else repr(given)
