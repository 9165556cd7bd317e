"""Tools from functions that a toolkit registers. The caller chooses the parts of signature and docstring to include."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from toolwire.definition.chat_form import read_chat_form
from toolwire.definition.from_function import FunctionShape, docs_of, name_of
from toolwire.definition.from_schema import from_schema
from toolwire.definition.shape import ParameterKind
from toolwire.definition.tool import Tool
from toolwire.vocabulary.errors import DefinitionError


def from_tool_function(
    function: Callable[..., Any],
    *,
    description: str | None,
    include_long_description: bool,
    include_var_positional: bool,
    include_var_keyword: bool,
) -> Tool:
    """Makes a tool that calls the function. A model neither sees nor can give the parameters that are not included.

    Raises:
        DefinitionError: The function cannot become a tool.
    """
    left_out: list[ParameterKind] = []
    if not include_var_positional:
        left_out.append("var_positional")
    if not include_var_keyword:
        left_out.append("var_keyword")
    shape = FunctionShape(function, _name(function), functools.partial(docs_of, function), leave_out=left_out)
    if description is None and not include_long_description:
        description = shape.docs().summary
    return Tool(
        name=_name(function),
        shape=shape,
        docs=shape.docs,
        function=function,
        is_async=shape.signature.is_async,
        context_parameter=shape.signature.context,
        description=description,
    )


def from_chat_form(
    function: Callable[..., Any], form: Mapping[str, Any], *, description: str | None, given: Collection[str]
) -> Tool:
    """Makes a tool whose arguments follow a schema in chat form, nested or flat. A missing name is the function's.

    `given` are parameters that the host will give.

    Raises:
        DefinitionError: The form is invalid, or the function cannot take an argument of the schema.
    """
    read = read_chat_form(form, f"tool {getattr(function, '__name__', function)!r}")
    said = description if description is not None else read.description or docs_of(function).description
    name = read.name or _name(function)
    return from_schema(name, said, read.parameters, None, function, given=given)


def _name(function: Callable[..., Any]) -> str:
    if getattr(function, "__name__", "") == "<lambda>":
        raise DefinitionError("a lambda has no name: write it with def, or give a json_schema that has one")
    return name_of(function)
