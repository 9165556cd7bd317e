"""The system prompt of JSON in text: the form of a call, the tools, and an example with the given tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.derived import once_per_text, schema_with_root_fields
from toolwire.definition.from_function import tool_of
from toolwire.definition.naming import program_path
from toolwire.definition.tool import Tool
from toolwire.definition.words import limit_references, resolve
from toolwire.protocols.base import Language, Thought
from toolwire.protocols.json_text.render import render_calls
from toolwire.protocols.samples import Calls, Samples, finish_of, sample_calls, write_examples
from toolwire.protocols.text.python_source import call_source
from toolwire.protocols.text.wording import JSON_WORDINGS, JsonWording, words_in
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall


def describe_json_text(
    tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short", keeps_variables: bool = False
) -> str:
    """Returns the system prompt: the form of a call, the tools with one line per parameter, and an example.

    `thought="full"` asks for a few lines before the calls; the default asks for none. With `keeps_variables`, the form
    of a program ends with the sentence that a program has the variables of earlier ones.

    Raises:
        ConfigurationError: The language or the thought style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    words = words_in(JSON_WORDINGS, language, thought)
    known = [tool_of(tool) for tool in tools]
    if not known:
        return f"{words.heading}\n{words.no_tools}\n"
    finish, listed = finish_of(known), _direct_tools(known)
    rules = words.prompt.format(
        # The examples show the form, if there are any.
        form="" if listed else '<tool_call>\n[{"name": "...", "arguments": {...}}]\n</tool_call>\n',
        ending=words.ending if finish is None else words.finish_ending.format(finish.name),
        thought_rule=words.thought_rule[thought],
    )
    described = _tools_section(known, words, keeps_variables=keeps_variables)
    sections = [f"{words.heading}\n{rules}", described]
    # If `code_execution` is the only tool, the prompt has no heading for tools.
    if listed:
        sections = [sections[0], f"{words.tools_heading}\n{described}", _examples(sample_calls(listed), words)]
    return "\n\n".join(sections) + "\n"


def json_tools_text(tools: Iterable[Any], *, language: Language = "en") -> str:
    """Returns the tools as in the system prompt. With `code_execution`, the form of a program follows.

    Raises:
        ConfigurationError: The language is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    words = words_in(JSON_WORDINGS, language)
    known = [tool_of(tool) for tool in tools]
    return _tools_section(known, words) if known else words.no_tools


def _direct_tools(tools: Sequence[Tool]) -> list[Tool]:
    return [tool for tool in tools if tool.name != CODE_EXECUTION]


def _tools_section(tools: Sequence[Tool], words: JsonWording, *, keeps_variables: bool = False) -> str:
    listed = _direct_tools(tools)
    sections = ["\n".join(tool_text(tool) for tool in listed)] if listed else []
    if len(listed) < len(tools):
        sections.append(_program(listed, words) + (words.phrases.kept_variables if keeps_variables else ""))
    return "\n\n".join(sections)


def _examples(samples: Samples, words: JsonWording) -> str:
    def write_reply(calls: Calls) -> str:
        return render_calls([ToolCall(tool.name, arguments) for tool, arguments in calls])

    examples = "\n".join(write_examples(samples, words.phrases, write_reply))
    return f"{words.examples_heading}\n{samples.note(words.phrases)}{examples}"


def _program(tools: Sequence[Tool], words: JsonWording) -> str:
    if not tools:
        return words.program.format("__result__ = statistics.mean([3, 5, 10])\n")
    samples = sample_calls(tools)
    calls = [_program_call(tool, arguments) for tool, arguments in samples.calls]
    text = words.program.format(f"__result__ = [{', '.join(calls)}]\n")
    return f"{text}\n{samples.note(words.phrases)}".rstrip("\n")


def _program_call(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Returns a call in a program, with the tool's name in the same spelling as in the list of tools if possible."""
    source = call_source(tool.name, arguments, tool.visible_parameters)
    return program_path(tool.name) + source[source.index("(") :] if program_path(tool.name) == tool.name else source


CHOICES_LIMIT = 24
"""Maximum number of allowed values that are listed."""

_DEPTH = 4
_CHOICE_LIMIT = 200
"""Maximum number of characters of an allowed value that are shown."""

_DEFAULT_LIMIT = 60
"""Maximum length in characters of a default that is shown."""


@once_per_text
@limit_references
def tool_text(tool: Tool) -> str:
    """Describes a tool as `search(query: string, limit?: integer = 10): What it does`.

    A line for each described parameter follows. Names are those that a call uses; `?` marks optional parameters.
    """
    schema = schema_with_root_fields(tool)
    fields = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = cast("list[str]", schema.get("required") or [])
    listed = [_field_text(name, node, schema, is_required=name in required) for name, node in fields.items()]
    head = f"{tool.name}({', '.join(listed)})"
    description = " ".join(tool.whole_description.split())
    lines = [f"{head}: {description}" if description else head]
    for name, node in fields.items():
        text = _description(node, schema)
        if text:
            lines.append(f"  {name}: {text}")
    return "\n".join(lines)


def type_text(node: Any, root: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """Describes the JSON type of a schema: `string[]`, `"a" | "b"`, `{name: string, age?: integer}`, `any`."""
    schema = resolve(node, root)
    if "const" in schema:
        return _choice(schema["const"])
    if "enum" in schema:
        return _choices(cast("list[Any]", schema["enum"]))
    options = cast("list[Any]", schema.get("anyOf") or schema.get("oneOf") or [])
    if options:
        return _join_options([type_text(option, root, depth - 1) for option in options]) if depth > 0 else "any"
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return _join_options([type_text({**schema, "type": one}, root, depth) for one in cast("list[str]", kind)])
    if kind == "array":
        return _array(schema, root, depth)
    if kind == "object":
        return _object(schema, root, depth)
    return str(kind or "any")


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    places = cast("list[Any]", schema.get("prefixItems") or [])
    if places and depth > 0:
        return f"[{', '.join(type_text(place, root, depth - 1) for place in places)}]"
    inner = type_text(schema.get("items"), root, depth - 1) if depth > 0 else "any"
    return f"({inner})[]" if " | " in inner and not inner.startswith("{") else f"{inner}[]"


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    fields = cast("Mapping[str, Any]", schema.get("properties") or {})
    if not fields or depth <= 0:
        more = schema.get("additionalProperties")
        return f"{{[key]: {type_text(more, root, depth - 1)}}}" if isinstance(more, dict) and depth > 0 else "object"
    required = cast("list[str]", schema.get("required") or [])
    inner = [
        _field_text(name, node, root, is_required=name in required, depth=depth - 1, note=_description(node, root))
        for name, node in fields.items()
    ]
    return f"{{{', '.join(inner)}}}"


def _field_text(
    name: str, node: Any, root: Mapping[str, Any], *, is_required: bool, depth: int = _DEPTH, note: str = ""
) -> str:
    text = f"{name}{'' if is_required else '?'}: {type_text(node, root, depth)}"
    schema = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    default = _json(schema["default"]) if schema.get("default") is not None else ""
    if default and len(default) <= _DEFAULT_LIMIT:
        text += f" = {default}"
    return f"{text} /* {note.replace('*/', '* /')} */" if note else text


def _description(node: Any, root: Mapping[str, Any]) -> str:
    schema = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    return " ".join(str(schema.get("description") or resolve(node, root).get("description") or "").split())


def _choices(values: list[Any]) -> str:
    listed = " | ".join(map(_choice, values[:CHOICES_LIMIT]))
    return f"{listed} | ..." if len(values) > CHOICES_LIMIT else listed


def _choice(value: Any) -> str:
    if isinstance(value, list | dict):
        return "array" if isinstance(value, list) else "object"
    is_long = isinstance(value, str) and len(value) > _CHOICE_LIMIT
    return f"{_json(value[:_CHOICE_LIMIT])}..." if is_long else _json(value)


def _join_options(options: list[str]) -> str:
    return " | ".join(dict.fromkeys(options))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
