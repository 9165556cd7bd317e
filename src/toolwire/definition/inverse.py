"""Validated values as what would have to be given to get them again."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolwire.vocabulary.values import DEPTH_LIMIT, plain


def given_again(value: Any) -> Any:
    """The value in JSON types, so that validating it gives an equal value.

    `plain` alone would name a model's fields as they are sent; here they are named as they are read.

    Raises:
        Unrepresentable: something in it has no JSON form, or is nested too deeply.
    """
    return plain(_opened(value, DEPTH_LIMIT))


_LEAVES = frozenset({str, int, float, bool, bytes, type(None)})
_LEFT_TO_PLAIN = frozenset({"datetime", "decimal", "uuid", "pathlib"})


def _opened(value: Any, depth: int) -> Any:
    kind = cast("Any", type(value))
    if kind in _LEAVES or kind.__module__ in _LEFT_TO_PLAIN or depth <= 0:
        return value
    if dataclasses.is_dataclass(kind):
        return _opened_fields(value, [field.name for field in dataclasses.fields(kind) if field.init], depth)
    if hasattr(kind, "__pydantic_fields__"):
        return _opened_model(value, depth)
    if isinstance(value, Mapping):
        return {key: _opened(item, depth - 1) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | deque):
        return [_opened(item, depth - 1) for item in cast("Iterable[Any]", value)]
    if isinstance(value, set | frozenset):
        # In the order that `plain` gives to sets.
        ordered = sorted(cast("Iterable[Any]", value), key=lambda item: (type(item).__name__, repr(item)))
        return [_opened(item, depth - 1) for item in ordered]
    return _by_pydantic(value)


def _opened_model(value: Any, depth: int) -> Any:
    kind = cast("Any", type(value))
    if getattr(kind, "__pydantic_root_model__", False):
        return _opened(value.root, depth)
    extra = cast("Mapping[str, Any]", getattr(value, "__pydantic_extra__", None) or {})
    found = _opened_fields(value, list(kind.__pydantic_fields__), depth)
    return found | {name: _opened(item, depth - 1) for name, item in extra.items()}


def _opened_fields(value: Any, names: list[str], depth: int) -> dict[str, Any]:
    kind = cast("Any", type(value))
    fields: Mapping[str, Any] = getattr(kind, "__pydantic_fields__", {})
    config: Mapping[str, Any] = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", {})
    aliased = config.get("validate_by_alias", True)
    return {
        (_alias(fields.get(name)) if aliased else None) or name: _opened(getattr(value, name), depth - 1)
        for name in names
    }


def _alias(field: Any) -> str | None:
    alias: Any = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
    choices: list[Any] = getattr(alias, "choices", [alias])
    return next((choice for choice in choices if isinstance(choice, str)), None)


def _by_pydantic(value: Any) -> Any:
    """URLs, addresses, patterns and such as pydantic writes them; what it cannot write is left as it is."""
    # Loaded here: a tool known by its schema alone never needs it.
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        return value
