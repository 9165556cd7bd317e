"""Calls and values as Python source, as a program writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolwire.definition.naming import program_name, program_parameters
from toolwire.definition.tool import Parameter
from toolwire.protocols.base import DEPTH_LIMIT
from toolwire.protocols.right_call import Blank, Expression
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import plain_value


def call_source(name: str, arguments: Mapping[str, Any], parameters: Sequence[Parameter] = ()) -> str:
    """Returns a call as Python source. Arguments are keywords, unless `parameters` requires positions.

    Raises:
        Unrepresentable: An argument has no Python literal.
    """
    kinds = {parameter.name: parameter.kind for parameter in parameters}
    names = program_parameters(arguments) | {parameter.name: parameter.program_name for parameter in parameters}
    written: list[str] = []
    for key, value in arguments.items():
        source = literal(value, path=key)
        if kinds.get(key) == "positional_only":
            written.append(source)
        elif kinds.get(key) == "var_positional":
            written.append(f"*{source}")
        elif kinds.get(key) == "var_keyword":
            written.append(f"**{source}")
        else:
            written.append(f"{names[key]}={source}")
    return f"{program_name(name)}({', '.join(written)})"


def literal(value: Any, *, path: str = "", depth: int = DEPTH_LIMIT) -> str:
    """Returns the value as Python source. JSON types and tuples stay as they are; other types use their plain form.

    Blanks and expressions of a right form are written as they read.

    Raises:
        Unrepresentable: The value has no plain form, or is nested deeper than `DEPTH_LIMIT`.
    """
    if depth <= 0:
        raise Unrepresentable(f"nested deeper than {DEPTH_LIMIT} levels, or holding itself", path=path)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Blank | Expression):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, list | tuple):
        items = [
            literal(item, path=f"{path}[{place}]", depth=depth - 1)
            for place, item in enumerate(cast("Sequence[Any]", value))
        ]
        return f"({', '.join(items)},)" if isinstance(value, tuple) and items else f"[{', '.join(items)}]"
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return "{" + ", ".join(_pair(key, item, path, depth) for key, item in pairs) + "}"
    try:
        simple = plain_value(value)
    except Unrepresentable as error:
        raise Unrepresentable(error.what, path=f"{path}{error.path}") from error
    return repr(simple) if isinstance(simple, int) else literal(simple, path=path, depth=depth - 1)


def _pair(key: Any, value: Any, path: str, depth: int) -> str:
    return f"{literal(key, path=path, depth=depth - 1)}: {literal(value, path=f'{path}.{key}', depth=depth - 1)}"
