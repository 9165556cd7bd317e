"""The one way out of every protocol: no text for a model holds a lone surrogate, which UTF-8 cannot encode."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from toolwire.vocabulary.text import encodable

_Protocol = TypeVar("_Protocol", bound=type)

_WRITES = ("describe", "render", "format", "refuse", "grammar")
"""The methods of a protocol whose answer goes to a provider."""


def writes_encodable(protocol: _Protocol) -> _Protocol:
    """Class decorator: the protocol's answers have U+FFFD in place of each lone surrogate."""
    for name in _WRITES:
        setattr(protocol, name, _encodable(getattr(protocol, name)))
    return protocol


def _encodable(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def write(*arguments: Any, **options: Any) -> Any:
        return encodable(method(*arguments, **options))

    return write
