"""Tools of a toolkit: to and from the form of chat models' `tools` parameter, and from functions with options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolwire.definition.from_function import NEEDS_SCHEMA, FunctionShape, docs_of, name_of
from toolwire.definition.from_schema import from_schema
from toolwire.definition.schema_function import signature_of
from toolwire.definition.shape import ParameterKind
from toolwire.definition.tool import Tool
from toolwire.definition.unreadable_returns import unreadable_return
from toolwire.definition.words import short_repr
from toolwire.vocabulary.errors import DefinitionError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatForm:
    """The facts that a chat form states about a tool."""

    name: str
    """The name; empty if the form has none."""
    description: str
    """The description; empty if the form has none."""
    parameters: Mapping[str, Any]
    """The JSON schema of the arguments."""


def chat_form(tool: Tool) -> dict[str, Any]:
    """Returns the nested form: type, and name, description and parameters under `function`.

    Its schemas have no titles.
    """
    fields = {"name": tool.name, "description": tool.whole_description, "parameters": drop_titles(tool.input_schema)}
    return {"type": "function", "function": fields}


def read_chat_form(form: Any, label: str) -> ChatForm:
    """Reads a nested or flat form. `label` names its owner in errors.

    Raises:
        DefinitionError: The form is neither nested nor flat.
    """
    if not isinstance(form, Mapping):
        raise DefinitionError(f"{label}: json_schema={short_repr(form)} is not a dict: write {_FORM}")
    whole = cast("Mapping[str, Any]", form)
    if whole.get("type") != "function":
        bare = " This looks like the parameters alone." if whole.get("type") == "object" else ""
        raise DefinitionError(f'{label}: json_schema lacks "type": "function": write {_FORM}.{bare}')
    inner = whole.get("function", whole)
    if not isinstance(inner, Mapping):
        raise DefinitionError(
            f'{label}: "function" in json_schema must be a dict, not {short_repr(inner)}: write {_FORM}'
        )
    fields = cast("Mapping[str, Any]", inner)
    parameters = fields.get("parameters", _NO_PARAMETERS)
    if not isinstance(parameters, Mapping):
        raise DefinitionError(f'{label}: "parameters" in json_schema must be a dict, not {short_repr(parameters)}')
    return ChatForm(
        name=_text_field(fields, "name", label),
        description=_text_field(fields, "description", label),
        parameters=cast("Mapping[str, Any]", parameters),
    )


def drop_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema without the keyword `title` at any depth. Properties of that name, and values, are kept."""
    return {key: _drop_titles_under(key, value) for key, value in schema.items() if key != "title"}


_FORM = '{"type": "function", "function": {"name": ..., "description": ..., "parameters": {"type": "object", ...}}}'
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}

_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that map names to schemas."""
_VALUES = frozenset({"default", "const", "enum", "examples", "example", "required"})
"""Keywords that hold values, which may look like schemas."""


def _drop_titles_under(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key in _BY_NAME and isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {
            name: drop_titles(cast("dict[str, Any]", node)) if isinstance(node, dict) else node
            for name, node in named.items()
        }
    if isinstance(value, dict):
        return drop_titles(cast("dict[str, Any]", value))
    if isinstance(value, list):
        return [_drop_titles_under("", item) for item in cast("list[Any]", value)]
    return value


def _text_field(fields: Mapping[str, Any], key: str, label: str) -> str:
    value = fields.get(key) or ""
    if not isinstance(value, str):
        raise DefinitionError(f"{label}: {key!r} in json_schema must be a string, not {short_repr(value)}")
    return value


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
    tool = Tool(
        name=_name(function),
        shape=shape,
        docs=shape.docs,
        function=function,
        signature=shape.signature,
        description=description,
    )
    tool.unreadable = unreadable_return(shape.signature.returns)
    return tool


def from_chat_form(
    function: Callable[..., Any], form: Mapping[str, Any], *, description: str | None, given: Collection[str]
) -> Tool:
    """Makes a tool whose arguments follow a schema in chat form, nested or flat. A missing name is the function's.

    `given` are parameters that the host will give.

    Raises:
        DefinitionError: The form is invalid, or the function cannot take an argument of the schema.
    """
    read = read_chat_form(form, f"tool {getattr(function, '__name__', function)!r}")
    said, parameters = description if description is not None else read.description, read.parameters
    if description is None and not said:
        signature = signature_of(function, f"tool {read.name!r}")
        docs = docs_of(function, None if signature is None else signature.names)
        said, parameters = docs.text, _with_texts(parameters, docs.parameters)
    name = read.name or _name(function)
    made: Tool | None = getattr(function, NEEDS_SCHEMA, None)
    if made is None:
        return from_schema(name, said, parameters, None, function, given=given)
    kinds = made.effects.kinds
    tool = from_schema(name, said, parameters, None, function, effects=kinds, check=made.check, given=given)
    tool.is_delegating, tool.inner_tools = made.is_delegating, made.inner_tools
    return tool


def _with_texts(parameters: Mapping[str, Any], texts: Mapping[str, str]) -> Mapping[str, Any]:
    """Returns the schema with the docstring's text for each property that has no description."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping):
        return parameters
    described: dict[str, Any] = {
        name: {"description": texts[name], **node} if isinstance(node, dict) and texts.get(name) else node
        for name, node in cast("Mapping[str, Any]", properties).items()
    }
    return {**parameters, "properties": described}


def _name(function: Callable[..., Any]) -> str:
    if getattr(function, "__name__", "") == "<lambda>":
        raise DefinitionError("a lambda has no name: write it with def, or give a json_schema that has one")
    return name_of(function)
