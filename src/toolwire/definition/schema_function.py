"""The function of a tool that is defined by a JSON schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from toolwire.definition.shape import Spread
from toolwire.definition.signature import EMPTY, Signature, inspect_signature, read_signature
from toolwire.definition.words import nearest_hint
from toolwire.vocabulary.errors import DefinitionError


def signature_of(function: Callable[..., Any], label: str) -> Signature | None:
    """Returns the signature of a tool's function. None if Python cannot read it.

    Raises:
        DefinitionError: It cannot be called, or two parameters are annotated with CallContext.
    """
    if not callable(cast("object", function)):
        raise DefinitionError(f"{label}: function={function!r} cannot be called")
    try:
        parameters = inspect_signature(function).parameters
    except (ValueError, TypeError):
        return None
    read = read_signature(function, label)
    is_first = read.context is not None and parameters[read.context].kind is inspect.Parameter.POSITIONAL_ONLY
    return replace(read, context=_UNNAMED) if is_first else read


_UNNAMED = "\0context"
"""Stands for a context parameter that Python passes by position. No property can have this name."""


def context_first(signature: Signature | None) -> Spread | None:
    """Returns the way to call a function whose context parameter is passed by position, else None."""
    return _context_first if signature is not None and signature.context == _UNNAMED else None


def _context_first(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    named = dict(values)
    return function(named.pop(_UNNAMED), **named)


def takable_by(signature: Signature | None) -> frozenset[str] | None:
    """Returns the names that the function takes by keyword. None if it takes any name."""
    if signature is None or any(argument.kind == "var_keyword" for argument in signature.arguments):
        return None
    return frozenset(item.name for item in signature.arguments if item.kind in ("either", "keyword_only"))


def refuse_hidden_name(properties: Mapping[str, Any], signature: Signature, label: str) -> None:
    """Refuses a property that no model could give, because the context parameter has its name.

    Raises:
        DefinitionError: There is one.
    """
    if signature.context in properties:
        raise DefinitionError(
            f"{label}: the property {signature.context!r} has the name of the function's context parameter: write "
            "that parameter first, and '/' after it"
        )


def refuse_untakable(properties: Mapping[str, Any], signature: Signature, label: str, given: Collection[str]) -> None:
    """Refuses properties and a function that do not fit each other.

    Raises:
        DefinitionError: A property has no parameter, or a parameter no property.
    """
    takable = takable_by(signature)
    for name in properties:
        if takable is not None and name not in takable:
            raise DefinitionError(
                f"{label}: the function has no parameter for the property {name!r} ({nearest_hint(name, takable)}): "
                "add it, or **more"
            )
    for argument in signature.arguments:
        needed = argument.default is EMPTY and argument.kind in ("positional_only", "either", "keyword_only")
        if needed and argument.name not in properties and argument.name not in given:
            raise DefinitionError(
                f"{label}: the function needs {argument.name!r}, which the schema lacks: add it to 'properties', or "
                "give it a default"
            )
