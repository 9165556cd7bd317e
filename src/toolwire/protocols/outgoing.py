"""Removal of lone surrogates from all text for a model. UTF-8 cannot encode them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from toolwire.vocabulary.text import encodable

_Protocol = TypeVar("_Protocol", bound=type)

_WRITES = ("describe", "tools_text", "render", "format", "refuse", "grammar")
"""The protocol methods whose result goes to a provider."""


def writes_encodable(protocol: _Protocol) -> _Protocol:
    """Class decorator that replaces each lone surrogate in the protocol's output with U+FFFD."""
    for name in _WRITES:
        setattr(protocol, name, _encodable(getattr(protocol, name)))
    return protocol


def _encodable(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def write(*arguments: Any, **options: Any) -> Any:
        return encodable(method(*arguments, **options))

    return write
