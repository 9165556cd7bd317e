"""A tool as Python text: its header line, and the sections of its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.derived import input_schema_of, output_schema_of
from toolwire.definition.shape import MISSING, Parameter
from toolwire.definition.texts.annotation import LITERAL_LIMIT, NO_NAMES, NamedTypes, name_types, schema_text
from toolwire.definition.texts.default_text import default_text
from toolwire.definition.tool import Tool
from toolwire.definition.words import flatten_schema, nearest_hint
from toolwire.vocabulary.errors import DefinitionError

NameOf = Callable[[str], str]
"""Returns the name to write for a tool's name."""

_FIELDS_DEPTH = 3
"""Maximum depth of nested objects whose fields are listed."""

_NAMED_DEPTH = 6
"""Maximum depth with named types, which list no object twice."""


def header(tool: Tool, name_of: NameOf) -> str:
    """Returns `def search(query: str, limit: int = 10) -> list[dict]:`, with `name_of` applied to the tool's name."""
    returns = f" -> {tool.output_annotation}" if tool.output_annotation else ""
    return f"def {name_of(tool.name)}({', '.join(parameter_texts(tool.visible_parameters))}){returns}:"


def signature_line(tool: Tool, name: str) -> str:
    """Returns `search(query: str, limit: int = 10) -> list[dict]` for a tool that its reader knows as `name`."""
    return header(tool, lambda _: name).removeprefix("def ").removesuffix(":")


def sections(tool: Tool, name_of: NameOf) -> list[str]:
    """Returns the non-empty parts of a Google style docstring: description, Args, Types, Returns, Raises, Example.

    Types lists the objects that several arguments or fields share, or that are recursive.
    """
    root = input_schema_of(tool)
    names = name_types(
        {"properties": {parameter.name: parameter.schema for parameter in tool.visible_parameters}} | _definitions(root)
    )
    arguments = [_argument(parameter, root, names) for parameter in tool.visible_parameters]
    examples = [*tool.docs.examples, *(example_text(tool, example, name_of) for example in tool.examples)]
    found = [
        tool.description,
        _section("Args", [text for text in arguments if text]),
        _section("Types", [_type(reference, name, root, names) for reference, name in names.names.items()]),
        _section("Returns", [text for text in [returns_text(tool)] if text]),
        _section("Raises", [_entry(name, text) for name, text in tool.docs.raises]),
        _section("Example", ["\n\n".join(examples)] if examples else [], hang=""),
    ]
    return [part for part in found if part]


def returns_text(tool: Tool) -> str:
    """Returns `list[dict]: description`. Fields of objects follow, unless the author listed some."""
    docs = tool.docs
    kind = docs.returns_type or tool.output_annotation
    schema = output_schema_of(tool) or {}
    given = schema.get("properties", {}).get("result") if tool.is_wrapped_output else schema
    fields = [] if "\n- " in docs.returns else field_lines(given, schema, tool.output_annotation)
    if not docs.returns:
        only_documented = docs.returns_type if docs.returns_type != tool.output_annotation else ""
        return "\n".join([f"{kind} with these fields:", *fields]) if fields else only_documented
    return "\n".join([_entry(kind, docs.returns) if kind else docs.returns, *fields])


def field_lines(
    node: Any, root: Mapping[str, Any], annotation: str = "", depth: int = _FIELDS_DEPTH, names: NamedTypes = NO_NAMES
) -> list[str]:
    """Returns `- name: type - description` for each field of an object, or of objects in an array or an optional.

    A named object is shown by its name, without its fields.
    """
    if "dict" not in annotation and annotation:
        return []
    forms = _forms(node, root, names)
    if len(forms) == 1:
        return _fields(forms[0], root, depth, names)
    lines: list[str] = []
    for number, form in enumerate(forms, 1):
        lines.append(f"- form {number}:")
        lines.extend(f"    {line}" for line in _fields(form, root, depth, names))
    return lines


def call_text(tool: Tool, arguments: Mapping[str, Any], name_of: NameOf = str) -> str:
    """Returns a call such as `search(query='example', limit=10)`.

    Raises:
        DefinitionError: An argument has no visible parameter.
    """
    written = {parameter.name: parameter.program_name for parameter in tool.visible_parameters}
    for name in arguments:
        if name not in written:
            raise DefinitionError(f"tool {tool.name!r} has no parameter {name!r}: {nearest_hint(name, list(written))}")
    given = ", ".join(f"{written[name]}={value!r}" for name, value in arguments.items())
    return f"{name_of(tool.name)}({given})"


def example_text(tool: Tool, example: Any, name_of: NameOf = str) -> str:
    """Returns an author's example as text. It may be a text, or arguments with or without their result."""
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


def indent_text(text: str) -> str:
    """Indents every non-empty line of the text."""
    return "\n".join(f"    {line}" if line.strip() else "" for line in text.split("\n"))


def in_docstring(text: str) -> str:
    """Escapes the text for use between triple quotes."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def parameter_texts(parameters: Sequence[Parameter]) -> list[str]:
    """Returns the parameters of a signature, with `/` after positional-only and `*` before keyword-only ones."""
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
    text = f"{stars}{parameter.program_name}"
    if parameter.annotation:
        text += f": {parameter.annotation}"
    if parameter.required or stars:
        return text
    default = "..." if parameter.default is MISSING else default_text(parameter.default)
    return f"{text} = {default}" if parameter.annotation else f"{text}={default}"


def _argument(parameter: Parameter, root: Mapping[str, Any], names: NamedTypes) -> str:
    fields = field_lines(parameter.schema, root, parameter.annotation, _NAMED_DEPTH, names)
    named = schema_text(parameter.schema, root, names)
    is_named = not fields and any(name in named for name in names.names.values())
    facts = "; ".join(part for part in (named if is_named else "", facts_text(parameter.schema, root)) if part)
    text = f"{parameter.description} ({facts})" if parameter.description and facts else parameter.description or facts
    if not text and not fields:
        return ""
    return "\n".join([_entry(parameter.program_name, text or f"{parameter.annotation} with these fields:"), *fields])


def facts_text(schema: Any, root: Mapping[str, Any]) -> str:
    """Returns facts that a Python type does not show: values of a long enumeration, tuple items, patterns of keys."""
    node = flatten_schema(schema, root)
    values = cast("list[Any]", node.get("enum") or [])
    if len(values) > LITERAL_LIMIT:
        listed = ", ".join(repr(value) for value in values[:LITERAL_LIMIT])
        return f"one of {listed}, ... ({len(values)} in all)"
    places = cast("list[Any]", node.get("prefixItems") or [])
    if len(places) > 1:
        return f"in order: {', '.join(schema_text(place, root) for place in places)}"
    patterns = cast("dict[str, Any]", node.get("patternProperties") or {})
    return f"keys match {' or '.join(patterns)}" if patterns else ""


def _definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in root.items() if key != "properties"}


def _type(reference: str, name: str, root: Mapping[str, Any], names: NamedTypes) -> str:
    text = _description({"$ref": reference}, root)
    inner = flatten_schema({"$ref": reference}, root)
    fields = field_lines(inner, root, depth=_NAMED_DEPTH, names=names)
    return "\n".join([_entry(name, text or "dict with these fields:"), *fields])


def _optional(field: Any) -> str:
    default = cast("dict[str, Any]", field).get("default") if isinstance(field, dict) else None
    return ", optional" if default is None else f" = {default_text(default)}"


def _description(field: Any, root: Mapping[str, Any]) -> str:
    node = cast("dict[str, Any]", field) if isinstance(field, dict) else {}
    text = " ".join(str(node.get("description") or flatten_schema(field, root).get("description") or "").split())
    facts = facts_text(field, root)
    return f"{text} ({facts})" if text and facts else text or facts


def _entry(name: str, text: str) -> str:
    return f"{name}: {text}" if text else f"{name}:"


def _section(title: str, entries: list[str], hang: str = "    ") -> str:
    """Returns the entries under a heading. Further lines of an entry are indented by `hang`."""
    if not entries:
        return ""
    hung = (entry.replace("\n", f"\n{hang}") for entry in entries)
    return "\n".join([f"{title}:", *(indent_text(entry) for entry in hung)])


def _fields(node: Mapping[str, Any], root: Mapping[str, Any], depth: int, names: NamedTypes) -> list[str]:
    required = node.get("required", ())
    lines: list[str] = []
    for name, field in cast("Mapping[str, Any]", node["properties"]).items():
        optional = "" if name in required else _optional(field)
        text = _description(field, root)
        lines.append(f"- {name}: {schema_text(field, root, names)}{optional}" + (f" - {text}" if text else ""))
        if depth > 1:
            lines.extend(f"    {line}" for line in field_lines(field, root, "", depth - 1, names))
    return lines


def _forms(node: Any, root: Mapping[str, Any], names: NamedTypes, depth: int = 8) -> list[dict[str, Any]]:
    """Returns the schemas of the objects that a value, its elements or its alternatives may be, without named ones."""
    if depth <= 0 or names.name_of(node):
        return []
    whole = flatten_schema(node, root)
    if whole.get("properties"):
        return [whole]
    for key in ("items", "additionalProperties"):
        if isinstance(whole.get(key), dict):
            return _forms(whole[key], root, names, depth - 1)
    options = [option for key in ("anyOf", "oneOf") for option in whole.get(key, ())]
    return [form for option in options for form in _forms(option, root, names, depth - 1)]
