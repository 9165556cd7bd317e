"""Texts about a tool for models and people. No text shows a bound parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.definition.derived import input_schema_of
from toolwire.definition.naming import program_parameter
from toolwire.definition.renderings.python_text import (
    example_text,
    field_lines,
    header,
    in_docstring,
    indent_text,
    returns_text,
    sections,
)
from toolwire.definition.shape import MISSING, Parameter
from toolwire.definition.texts.default_text import default_text
from toolwire.definition.tool import Tool
from toolwire.definition.words import limit_references


@limit_references
def docstring_text(tool: Tool) -> str:
    """Returns a docstring in Google style, made from the facts about the tool."""
    return "\n\n".join(sections(tool, str))


@limit_references
def code_text(tool: Tool) -> str:
    """Returns the tool as a function definition with a docstring; `async def` for an async tool."""
    asynchronous = "async " if tool.is_async else ""
    docstring = in_docstring("\n\n".join(sections(tool, program_parameter)))
    # A final quote would merge with the closing quotes. After several lines, the closing quotes have their own line.
    closing = '\n"""' if "\n" in docstring else ' """' if docstring.endswith('"') else '"""'
    body = f'"""{docstring}{closing}\n...' if docstring else "..."
    return f"{asynchronous}{header(tool, program_parameter)}\n{indent_text(body)}"


@limit_references
def prompt_text(tool: Tool) -> str:
    """Returns a description for a prompt: purpose, parameters, return value, errors and examples."""
    root = input_schema_of(tool)
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
    """Returns the flat form: type, name, description, parameters, strict. `extra` adds or replaces top-level fields."""
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
