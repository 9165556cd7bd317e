"""`@reg_toolspec`: marks the methods of a registry's subclass that are its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__toolwire_options__"


@overload
def reg_toolspec(function: F, /) -> F: ...
@overload
def reg_toolspec(**options: Any) -> Callable[[F], F]: ...
def reg_toolspec(function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Marks a method of a `ToolRegistry` subclass as a tool; options are those of `ToolSpec.from_function`."""

    def mark(method: F) -> F:
        from toolwire.definition.from_function import refuse_unknown

        refuse_unknown(options, method.__qualname__)
        setattr(method, _MARK, options)
        return method

    return mark if function is None else mark(function)


def options_of(member: object) -> Mapping[str, Any] | None:
    """The options that the member of a class was marked with; None when it is not marked."""
    return getattr(member, _MARK, None)
