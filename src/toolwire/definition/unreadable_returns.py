"""Return types whose values no model can read, found before a call runs."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import inspect
import types
import typing
from concurrent.futures import Future
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple, Union, cast, get_args, get_origin
from uuid import UUID

from toolwire.definition.signature import EMPTY
from toolwire.vocabulary.foreign.plain_forms import may_have_form
from toolwire.vocabulary.questions import InputRequired
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult

READABLE = "return text, numbers, lists, dicts or a model of them"
"""What the owner of a tool should write instead."""


class UnreadableReturn(NamedTuple):
    """A part of a return type that has no plain form."""

    name: str
    """The name of the class."""
    is_whole: bool
    """True if every value that the function may return is of this class."""


_READABLE = (
    *(str, int, float, bytes, bytearray, memoryview, types.NoneType, list, dict, set, frozenset, tuple),
    *(datetime.date, datetime.time, datetime.timedelta, Decimal, Enum, PurePath, UUID, collections.abc.Mapping),
    *(collections.abc.Iterator, collections.abc.AsyncIterator, collections.abc.Awaitable, Future),
    *(ToolResult, ToolResponse, InputRequired),
)
_SAY_NOTHING = (EMPTY, None, Any, object, typing.NoReturn, typing.Never)


def unreadable_return(annotation: Any, *, is_whole: bool = True) -> UnreadableReturn | None:
    """Returns the first part of a return annotation whose values have no plain form. None if there is none.

    An annotation that says little, such as a protocol, an abstract class or a type variable, counts as readable.
    `is_whole` is False for a part of the returned value.
    """
    if any(annotation is one for one in _SAY_NOTHING):
        return None
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return unreadable_return(inner[0], is_whole=is_whole)
    kind = origin or annotation
    if origin in (Union, types.UnionType):
        found = [unreadable_return(option, is_whole=is_whole) for option in inner]
        first = next((one for one in found if one is not None), None)
        return first and first._replace(is_whole=is_whole and all(one is not None and one.is_whole for one in found))
    if not isinstance(kind, type):
        return None
    if not _is_readable(cast("type[Any]", kind)):
        return UnreadableReturn(kind.__name__, is_whole)
    # What is awaited or given by a generator is the result, or a part of it.
    is_around = is_whole and issubclass(kind, collections.abc.Awaitable | Future)
    found = (unreadable_return(item, is_whole=is_around) for item in _values(cast("type[Any]", kind), inner))
    return next((one for one in found if one is not None), None)


def _values(kind: type[Any], inner: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the type arguments that stand for values in the result."""
    if issubclass(kind, collections.abc.Coroutine):
        return inner[2:3]
    if issubclass(kind, collections.abc.Generator | collections.abc.AsyncGenerator):
        return inner[:1]
    is_container = issubclass(kind, list | dict | set | frozenset | tuple | collections.abc.Iterator | Future)
    return inner if is_container or kind in _ABSTRACT_CONTAINERS else ()


_ABSTRACT_CONTAINERS = (
    *(collections.abc.Iterable, collections.abc.Collection, collections.abc.Sequence, collections.abc.Mapping),
    *(collections.abc.Awaitable, collections.abc.AsyncIterable, collections.abc.AsyncIterator),
)


def _is_readable(kind: type[Any]) -> bool:
    if issubclass(kind, _READABLE) or may_have_form(kind) or dataclasses.is_dataclass(kind):
        return True
    if hasattr(kind, "model_dump") or typing.is_typeddict(kind) or inspect.isabstract(kind):
        return True
    if getattr(kind, "_is_protocol", False) or kind.__module__ in ("typing", "collections.abc", "abc"):
        return True
    # A class may be only the base of what is returned.
    return any(_is_readable(one) for one in type.__subclasses__(kind))
