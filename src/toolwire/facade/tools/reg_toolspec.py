"""`@reg_toolspec`: marks the methods of a class that are tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar, Unpack, cast, overload

from toolwire.definition.author_options import FunctionOptions
from toolwire.vocabulary.errors import DefinitionError

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_toolwire_options"


@overload
def reg_toolspec(function: F, /) -> F: ...
@overload
def reg_toolspec(**options: Unpack[FunctionOptions]) -> Callable[[F], F]: ...
def reg_toolspec(function: F | None = None, /, **options: Unpack[FunctionOptions]) -> F | Callable[[F], F]:
    """Marks a method as a tool: of a `ToolRegistry` subclass, or of an instance that is registered.

    Options are those of `ToolSpec.from_function`. `@staticmethod` and `@classmethod` may be above or below it.

    Raises:
        DefinitionError: an option is unknown, or the marked object is not a method.
    """

    def mark(method: F) -> F:
        from toolwire.definition.from_function import refuse_unknown

        if not _is_method(method):
            raise DefinitionError(f"@reg_toolspec on {method!r:.80}: mark a method, written with def")
        refuse_unknown(options, cast("Any", method).__qualname__)
        setattr(method, _MARK, options)
        return method

    return mark if function is None else mark(function)


def find_marked_methods(kind: type, *, apart_from: type = object) -> dict[str, Mapping[str, Any]]:
    """Returns the options of each marked method of the class and its bases, by name, without those of `apart_from`.

    A method that overrides a marked one takes over its mark; None in its place removes the tool.

    Raises:
        DefinitionError: a marked object is not a method, or another object hides a marked method.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for base in reversed(kind.__mro__):
        if base in apart_from.__mro__:
            continue
        for name, member in vars(base).items():
            options = _options_of(member)
            if member is None:
                found.pop(name, None)
            elif (options is not None or name in found) and not _is_method(member):
                raise DefinitionError(
                    f"{base.__name__}.{name} is a {type(member).__name__}, and it was marked as a tool: "
                    "mark a method, or write None in its place to take the tool away"
                )
            elif options is not None:
                found[name] = options
    return found


def _is_method(member: object) -> bool:
    return isinstance(member, FunctionType | staticmethod | classmethod)


def _options_of(member: object) -> Mapping[str, Any] | None:
    """Returns the options of the mark on a class member, or on the function that it wraps; None without a mark."""
    inner: Any = member
    if isinstance(member, staticmethod | classmethod):
        inner = cast("Any", member).__func__
    elif isinstance(member, property):
        inner = member.fget
    elif isinstance(member, cached_property):
        inner = cast("Any", member).func
    if isinstance(member, type):
        return None
    own = getattr(cast("object", member), _MARK, None)
    return getattr(inner, _MARK, None) if own is None else own
