"""The function behind a tool with a schema: whether it can take the arguments that the schema allows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from toolwire.definition.signature import EMPTY, Signature, read_signature
from toolwire.definition.words import nearest_hint
from toolwire.vocabulary.errors import DefinitionError


def signature_of(function: Callable[..., Any], label: str) -> Signature | None:
    if not callable(cast("object", function)):
        raise DefinitionError(f"{label}: function={function!r} cannot be called")
    try:
        inspect.signature(function)
    except (ValueError, TypeError):
        return None
    return read_signature(function, label)


def takable_by(signature: Signature | None) -> frozenset[str] | None:
    """Returns the names that the function takes by keyword. None if it takes any name."""
    if signature is None or any(argument.kind == "var_keyword" for argument in signature.arguments):
        return None
    return frozenset(item.name for item in signature.arguments if item.kind in ("either", "keyword_only"))


def refuse_untakable(properties: Mapping[str, Any], signature: Signature, label: str, given: Collection[str]) -> None:
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
