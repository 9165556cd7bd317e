"""Annotations in a form that pydantic accepts, and the texts that authors put beside a type."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Annotated, Any, NotRequired, Required, Union, cast, get_args, get_origin

import typing_extensions


def text_metadata(annotation: Any) -> str:
    """Returns the text of `Annotated[T, "text"]`; empty without one."""
    if get_origin(annotation) is not Annotated:
        return ""
    return next((item for item in get_args(annotation)[1:] if isinstance(item, str)), "")


def with_none(annotation: Any, default: Any) -> Any:
    """Returns the type, with None added if None is the default. `limit: int = None` then accepts its own default."""
    if default is not None or _admits_none(annotation):
        return annotation
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return Annotated[(_make_union((inner, None)), *metadata)]
    return _make_union((annotation, None))


def readable_type(annotation: Any) -> Any:
    """Replaces each `typing.TypedDict` in the type with an equal one that pydantic accepts before Python 3.12.

    A TypedDict inside a model or dataclass cannot be replaced; pydantic's error names the import to use.
    """
    return _readable(annotation, {})


def unpack_typed_dict(annotation: Any) -> Any:
    """Returns the TypedDict of `**more: Unpack[TypedDict]`. None for any other annotation."""
    # Before Python 3.12 the two are different objects.
    is_unpacked = get_origin(annotation) in (typing.Unpack, typing_extensions.Unpack)
    return get_args(annotation)[0] if is_unpacked else None


def _admits_none(annotation: Any) -> bool:
    if annotation in (Any, None, types.NoneType, object, inspect.Parameter.empty):
        return True
    origin = get_origin(annotation)
    if origin is Annotated:
        return _admits_none(get_args(annotation)[0])
    return origin in (Union, types.UnionType) and any(_admits_none(option) for option in get_args(annotation))


def _readable(annotation: Any, done: dict[Any, Any]) -> Any:
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return done[annotation] if annotation in done else _equal_typed_dict(annotation, done)
    inner: tuple[Any, ...] = get_args(annotation)
    if not inner:
        return annotation
    origin = get_origin(annotation)
    if origin is Annotated:
        return Annotated[(_readable(inner[0], done), *inner[1:])]
    changed = tuple(_readable(item, done) for item in inner)
    if all(new is old for new, old in zip(changed, inner, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return _make_union(changed)
    return origin[changed[0] if len(changed) == 1 else changed]


def _make_union(options: tuple[Any, ...]) -> Any:
    # `|` fails for types that are text or that come from other libraries; this does not.
    return cast("Any", Union)[options]


def _equal_typed_dict(kind: Any, done: dict[Any, Any]) -> Any:
    """Returns an equal TypedDict. Its fields are added after it is made, so that it may be recursive."""
    # pyright requires literals in the functional form; the metaclass does not.
    extended: Any = cast("Any", typing_extensions.TypedDict)(kind.__name__, {})
    done[kind] = extended
    hints = typing.get_type_hints(kind, include_extras=True)
    required = {name for name, hint in hints.items() if _is_required(name, hint, kind)}
    extended.__annotations__ = {name: _readable(_without_marker(hint), done) for name, hint in hints.items()}
    extended.__required_keys__ = frozenset(required)
    extended.__optional_keys__ = frozenset(hints.keys() - required)
    extended.__doc__ = kind.__doc__
    extended.__module__ = kind.__module__
    return extended


def _is_required(name: str, hint: Any, kind: Any) -> bool:
    # `__required_keys__` misses NotRequired in annotations that are text; the resolved hint has it.
    if get_origin(hint) in (Required, NotRequired):
        return get_origin(hint) is Required
    return name in kind.__required_keys__


def _without_marker(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint
