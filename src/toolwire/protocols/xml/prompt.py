"""The XML protocol's system prompt: rules, tools with one line per parameter, and two examples for the given tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire.definition.derived import input_schema_of, once_per_text
from toolwire.definition.from_function import tool_of
from toolwire.definition.json_schema.accepted_types import CONTAINER_TYPES, branch_of
from toolwire.definition.renderings.python_text import field_lines
from toolwire.definition.shape import MISSING, Parameter
from toolwire.definition.tool import Tool
from toolwire.definition.words import describe_values, limit_references, resolve
from toolwire.protocols.base import Language, Thought
from toolwire.protocols.samples import Calls, finish_of, sample_calls, unfit_request, write_examples
from toolwire.protocols.text.wording import XML_WORDINGS, XmlWording, words_in
from toolwire.protocols.xml.element import CallTag
from toolwire.protocols.xml.render import parameter_tag, render_xml
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.values import plain_value

_PLACEHOLDERS: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
_PLACEHOLDER_LEVELS = 3
"""Maximum nesting of lists and objects in the sample call of an instruction. Deeper ones are left empty."""

_NOTES = """\
Notes:
- Write one <tool_call> for each call, exactly in this form and without a code fence.
- Put every value into CDATA, as it is; write lists and objects as JSON, and ]]> inside a value as ]]]]><![CDATA[>.
- Give all required parameters; leave out optional ones that you do not need.
- Call only the tools above, and wait for their results instead of writing them yourself."""


def describe_xml(
    tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short", tag: CallTag = "tool_call"
) -> str:
    """Returns the system prompt: rules, tools and two examples. `thought="full"` asks for thinking in `<think>`.

    Raises:
        ConfigurationError: The language or the thought style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    words = words_in(XML_WORDINGS, language, thought)
    known = [tool_of(tool) for tool in tools]
    finish = finish_of(known)
    return words.prompt.format(
        tag=tag,
        ending=words.ending if finish is None else words.finish_ending.format(finish.name),
        thought_rule=words.thought_rule[thought],
        tools=_tools_section(known, language),
        examples=_examples(known, words, tag),
    )


def xml_tools_text(tools: Iterable[Any], *, language: Language = "en") -> str:
    """Returns each tool with a line for each parameter, as the system prompt has them.

    Raises:
        ConfigurationError: The language is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    words_in(XML_WORDINGS, language)
    return _tools_section([tool_of(tool) for tool in tools], language)


def tool_instruction(tools: Iterable[Any]) -> str:
    """Returns a description and a full sample call of each tool, and notes on the format."""
    blocks = [_block(tool_of(tool)) for tool in tools]
    return "\n\n".join(["Available tools, and how to call each of them:", *blocks, _NOTES])


def _tools_section(tools: Sequence[Tool], language: Language) -> str:
    return "\n\n".join(_entry(tool, language) for tool in tools) or XML_WORDINGS[language].no_tools


@once_per_text
@limit_references
def _entry(tool: Tool, language: Language) -> str:
    words = XML_WORDINGS[language]
    root = input_schema_of(tool)
    lines = [f"### {tool.name}", *([tool.whole_description] if tool.whole_description else [])]
    for parameter in tool.visible_parameters:
        lines.append(
            f"- {_name_or_tag(parameter.name)} ({_facts(parameter, root, words)}){_description_text(parameter, ': ')}"
        )
        lines += [f"    {line}" for line in field_lines(parameter.schema, root)]
    return "\n".join(lines)


def _facts(parameter: Parameter, root: Mapping[str, Any], words: XmlWording) -> str:
    kind = describe_values(parameter.schema, root)
    if parameter.required:
        return kind
    default = _default(parameter)
    return words.optional.format(kind) if default is None else words.default.format(kind, show(default))


def _name_or_tag(name: str) -> str:
    """Returns the parameter's name, or its tag if the name cannot be a tag."""
    tag = parameter_tag(name)
    return name if tag == name else f"<{tag}>"


def _default(parameter: Parameter) -> Any:
    """Returns the default as JSON types. None without a default that can be shown."""
    if parameter.default is MISSING:
        return None
    try:
        return plain_value(parameter.default)
    except Unrepresentable:
        return None


def _description_text(parameter: Parameter, before: str) -> str:
    return f"{before}{' '.join(parameter.description.split())}" if parameter.description else ""


def _examples(tools: Sequence[Tool], words: XmlWording, tag: CallTag) -> str:
    if not tools:
        unfit = unfit_request(tools, words.phrases)
        return words.phrases.example.format(unfit.request, f"<fail>{unfit.reason}</fail>")

    def write_reply(calls: Calls) -> str:
        written = [ToolCall(tool.name, arguments) for tool, arguments in calls]
        return render_xml(written, tools=[tool for tool, _ in calls], tag=tag)

    # Without an example of a failure: small models copied it word for word after their first wrong argument.
    samples = sample_calls(tools)
    return samples.note(words.phrases) + "\n\n".join(write_examples(samples, words.phrases, write_reply))


@limit_references
def _block(tool: Tool) -> str:
    root = input_schema_of(tool)
    lines = [f"### {tool.name}", f"Description: {tool.whole_description}", "Parameters:"]
    for parameter in tool.visible_parameters:
        need = "required" if parameter.required else "optional"
        values, description = describe_values(parameter.schema, root), _description_text(parameter, " - ")
        lines.append(f"  - {_name_or_tag(parameter.name)}: {values} ({need}){description}")
        lines += [f"      {line}" for line in field_lines(parameter.schema, root)]
        default = _default(parameter)
        if default is not None and not parameter.required:
            lines.append(f"    Default: {show(default)}")
    if not tool.visible_parameters:
        lines[-1] = "Parameters: none"
    arguments = {parameter.name: _sample(parameter, root) for parameter in tool.visible_parameters}
    return "\n".join([*lines, "Example:", render_xml([ToolCall(tool.name, arguments)], tools=[tool])])


def _sample(parameter: Parameter, root: Mapping[str, Any]) -> Any:
    default = _default(parameter)
    # An empty list or object does not show how a full one is written.
    return _placeholder(parameter.schema, root, parameter.name) if default in (None, [], {}) else default


def _placeholder(schema: Any, root: Mapping[str, Any], name: str, levels: int = _PLACEHOLDER_LEVELS) -> Any:
    """Returns a value that shows the form: one item of a list, and the required fields of an object."""
    choices = resolve(schema, root).get("enum")
    if choices:
        return choices[0]
    kind = describe_values(schema, root).partition(" ")[0]
    node = branch_of(schema, kind, root) if kind in CONTAINER_TYPES else {}
    if kind == "array":
        places = node.get("prefixItems") or [node.get("items")]
        return [_placeholder(place, root, name.removesuffix("s"), levels - 1) for place in places] if levels else []
    if kind == "object":
        fields: Mapping[str, Any] = node.get("properties") or {}
        needed = [key for key in node.get("required") or () if key in fields] if levels else []
        return {key: _placeholder(fields[key], root, key, levels - 1) for key in needed}
    return _PLACEHOLDERS.get(kind, f"your_{name}_here")
