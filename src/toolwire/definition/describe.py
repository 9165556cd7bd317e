"""Texts about a tool for models and people. Bound parameters show in none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.definition.naming import program_parameter
from toolwire.definition.python_text import (
    call_text,
    default_text,
    example_text,
    field_lines,
    header,
    in_docstring,
    indented,
    returns_text,
    sections,
)
from toolwire.definition.shape import MISSING, Parameter
from toolwire.definition.tool import Tool
from toolwire.definition.words import bounded


@bounded
def docstring_text(tool: Tool) -> str:
    """A docstring in Google style, made from what is known of the tool."""
    return "\n\n".join(sections(tool, str))


@bounded
def code_text(tool: Tool) -> str:
    """The tool as a function definition with its docstring; `async def` for one that is awaited."""
    asynchronous = "async " if tool.is_async else ""
    docstring = in_docstring("\n\n".join(sections(tool, program_parameter)))
    # A quote at the end would run into the closing ones; several lines end on a line of their own.
    closing = '\n"""' if "\n" in docstring else ' """' if docstring.endswith('"') else '"""'
    body = f'"""{docstring}{closing}\n...' if docstring else "..."
    return f"{asynchronous}{header(tool, program_parameter)}\n{indented(body)}"


def signature_text(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """A call of it: `search_database(query='example', limit=10)`.

    Raises:
        DefinitionError: an argument that no visible parameter takes.
    """
    return call_text(tool, arguments)


@bounded
def prompt_text(tool: Tool) -> str:
    """A description for a prompt: what it does, parameters, what it gives, errors and examples."""
    root = tool.input_schema
    parts = [f"{tool.name}: {tool.description}" if tool.description else tool.name]
    entries = [_parameter_lines(parameter, root) for parameter in tool.visible_parameters]
    parts.append("\n".join(["Parameters:", *entries]) if entries else "Parameters: none")
    returns = returns_text(tool) or tool.output_annotation
    if returns and returns != "None":
        parts.append(f"Returns: {_hung(returns)}")
    if tool.docs.raises:
        parts.append("\n".join(["Raises:", *(f"- {name}: {_hung(text)}" for name, text in tool.docs.raises)]))
    examples = [*tool.docs.examples, *(example_text(tool, example) for example in tool.examples)]
    if examples:
        parts.append("\n".join(["Examples:", *examples]))
    return "\n\n".join(parts)


def jsonschema_form(tool: Tool, **extra: Any) -> dict[str, Any]:
    """The flat form: type, name, description, parameters, strict; `extra` adds or replaces top-level fields."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": True,
        **extra,
    }


def _parameter_lines(parameter: Parameter, root: Mapping[str, Any]) -> str:
    facts = [parameter.annotation] if parameter.annotation else []
    if parameter.required:
        facts.append("required")
    else:
        facts.append("optional" if parameter.default is MISSING else f"default {default_text(parameter.default)}")
    text = f": {_hung(parameter.description)}" if parameter.description else ""
    fields = field_lines(parameter.schema, root, parameter.annotation)
    return "\n".join([f"- {parameter.name} ({', '.join(facts)}){text}", *(f"    {line}" for line in fields)])


def _hung(text: str) -> str:
    return text.replace("\n", "\n    ")
