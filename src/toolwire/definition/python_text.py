"""A tool as Python text: its header line, and the sections of its docstring."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.annotation import schema_text
from toolwire.definition.naming import program_parameter
from toolwire.definition.shape import MISSING, Parameter
from toolwire.definition.tool import Tool
from toolwire.definition.words import nearest_hint, resolve
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.values import plain

NameOf = Callable[[str], str]
"""What is written for a tool's name."""

_FIELDS_DEPTH = 3
"""Levels of nested objects whose fields are listed."""


def header(tool: Tool, name_of: NameOf) -> str:
    """`def search(query: str, limit: int = 10) -> list[dict]:`, with `name_of` applied to the tool's name."""
    returns = f" -> {tool.output_annotation}" if tool.output_annotation else ""
    return f"def {name_of(tool.name)}({', '.join(_parameters(tool.visible_parameters))}){returns}:"


def signature_line(tool: Tool, name: str) -> str:
    """`search(query: str, limit: int = 10) -> list[dict]`, for a tool that is known by `name` where this is read."""
    return header(tool, lambda _: name).removeprefix("def ").removesuffix(":")


def sections(tool: Tool, name_of: NameOf) -> list[str]:
    """The docstring's parts in Google style: description, Args, Returns, Raises, Example; those that have a text."""
    root = tool.input_schema
    arguments = [_argument(parameter, root) for parameter in tool.visible_parameters]
    examples = [*tool.docs.examples, *(example_text(tool, example, name_of) for example in tool.examples)]
    found = [
        tool.description,
        _section("Args", [text for text in arguments if text]),
        _section("Returns", [text for text in [returns_text(tool)] if text]),
        _section("Raises", [_entry(name, text) for name, text in tool.docs.raises]),
        _section("Example", ["\n\n".join(examples)] if examples else [], hang=""),
    ]
    return [part for part in found if part]


def returns_text(tool: Tool) -> str:
    """`list[dict]: what it gives`, with the fields of objects listed below unless the author listed some."""
    docs = tool.docs
    kind = docs.returns_type or tool.output_annotation
    schema = tool.output_schema or {}
    given = schema.get("properties", {}).get("result") if tool.is_wrapped_output else schema
    fields = [] if "\n- " in docs.returns else field_lines(given, schema, tool.output_annotation)
    if not docs.returns:
        return "\n".join([f"{kind} with these fields:", *fields]) if fields else ""
    return "\n".join([_entry(kind, docs.returns) if kind else docs.returns, *fields])


def field_lines(node: Any, root: Mapping[str, Any], annotation: str = "", depth: int = _FIELDS_DEPTH) -> list[str]:
    """`- name: type - description` for each field of an object, or of an array's or an optional's objects."""
    if "dict" not in annotation and annotation:
        return []
    fields = cast("Mapping[str, Any]", _with_fields(node, root).get("properties", {}))
    required = _with_fields(node, root).get("required", ())
    lines: list[str] = []
    for name, field in fields.items():
        optional = "" if name in required else ", optional"
        text = resolve(field, root).get("description") if "description" not in field else field["description"]
        lines.append(
            f"- {name}: {schema_text(field, root)}{optional}" + (f" - {' '.join(text.split())}" if text else "")
        )
        if depth > 1:
            lines.extend(f"    {line}" for line in field_lines(field, root, "", depth - 1))
    return lines


def call_text(tool: Tool, arguments: Mapping[str, Any], name_of: NameOf = str) -> str:
    """`search(query='example', limit=10)`.

    Raises:
        DefinitionError: an argument that no visible parameter takes.
    """
    names = [parameter.name for parameter in tool.visible_parameters]
    for name in arguments:
        if name not in names:
            raise DefinitionError(f"tool {tool.name!r} has no parameter {name!r}: {nearest_hint(name, names)}")
    given = ", ".join(f"{program_parameter(name)}={value!r}" for name, value in arguments.items())
    return f"{name_of(tool.name)}({given})"


def example_text(tool: Tool, example: Any, name_of: NameOf = str) -> str:
    """An example as the author gave it: text, or arguments with or without what came of them."""
    if isinstance(example, str):
        return inspect.cleandoc(example)
    if not isinstance(example, Mapping):
        return repr(example)
    parts = cast("Mapping[str, Any]", example)
    arguments = next((parts[key] for key in ("arguments", "inputs", "input") if key in parts), parts)
    names = {parameter.name for parameter in tool.visible_parameters}
    if not isinstance(arguments, Mapping) or not names.issuperset(cast("Mapping[str, Any]", arguments)):
        return repr(dict(parts))
    lines = [f">>> {call_text(tool, cast('Mapping[str, Any]', arguments), name_of)}"]
    lines += [repr(parts[key]) for key in ("result", "output", "expected") if key in parts and arguments is not parts]
    return "\n".join(lines)


def default_text(value: Any) -> str:
    """A default as a program would write it; `...` when it cannot."""
    if isinstance(value, str) and type(value) is str:
        return f'"{value}"' if value.isprintable() and not set('"\\') & set(value) else repr(value)
    if value is None or isinstance(value, bool | bytes) or type(value) in (int, float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return repr(value)
    if type(value) in (list, tuple, set, frozenset, dict) and not value:
        return repr(value)
    try:
        given = plain(value)
    except Unrepresentable:
        return "..."
    return default_text(given) if isinstance(given, str) else repr(given)


def indented(text: str, by: str = "    ") -> str:
    """The text with every line that is not empty moved right."""
    return "\n".join(f"{by}{line}" if line.strip() else "" for line in text.split("\n"))


def in_docstring(text: str) -> str:
    """The text as it must stand between triple quotes to be read as itself."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _parameters(parameters: Sequence[Parameter]) -> list[str]:
    """With `/` after the last positional-only one, and `*` before the first keyword-only one if no `*rest` is."""
    texts: list[str] = []
    kinds = [parameter.kind for parameter in parameters]
    for place, parameter in enumerate(parameters):
        if parameter.kind == "keyword_only" and not {"keyword_only", "var_positional"} & set(kinds[:place]):
            texts.append("*")
        texts.append(_parameter(parameter))
        if parameter.kind == "positional_only" and "positional_only" not in kinds[place + 1 :]:
            texts.append("/")
    return texts


def _parameter(parameter: Parameter) -> str:
    stars = {"var_positional": "*", "var_keyword": "**"}.get(parameter.kind, "")
    text = f"{stars}{program_parameter(parameter.name)}"
    if parameter.annotation:
        text += f": {parameter.annotation}"
    if parameter.required or stars:
        return text
    default = "..." if parameter.default is MISSING else default_text(parameter.default)
    return f"{text} = {default}" if parameter.annotation else f"{text}={default}"


def _argument(parameter: Parameter, root: Mapping[str, Any]) -> str:
    fields = field_lines(parameter.schema, root, parameter.annotation)
    if not parameter.description and not fields:
        return ""
    text = parameter.description or f"{parameter.annotation} with these fields:"
    return "\n".join([_entry(program_parameter(parameter.name), text), *fields])


def _entry(name: str, text: str) -> str:
    return f"{name}: {text}" if text else f"{name}:"


def _section(title: str, entries: list[str], hang: str = "    ") -> str:
    """The entries under a heading; the lines after an entry's first are set in by `hang` more."""
    if not entries:
        return ""
    hung = (entry.replace("\n", f"\n{hang}") for entry in entries)
    return "\n".join([f"{title}:", *(indented(entry) for entry in hung)])


def _with_fields(node: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The object's schema that a value, its elements or its only alternative has; `{}` when there is none."""
    resolved = resolve(node, root)
    if resolved.get("properties"):
        return resolved
    if "items" in resolved:
        return _with_fields(resolved["items"], root)
    options = [_with_fields(option, root) for option in resolved.get("anyOf", ())]
    kept = [option for option in options if option]
    return kept[0] if len(kept) == 1 else {}
