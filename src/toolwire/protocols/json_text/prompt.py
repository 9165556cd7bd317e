"""The system prompt of JSON in text: the form of a call, the tools, and an example with the given tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire.definition.from_function import tool_of
from toolwire.definition.tool import Tool
from toolwire.protocols.attp.render import call_source
from toolwire.protocols.base import Language, Thought, checked
from toolwire.protocols.json_text.render import render_call
from toolwire.protocols.json_text.types import tool_text
from toolwire.protocols.json_text.wording import WORDINGS, JsonWording
from toolwire.protocols.samples import sample_arguments
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall

_REQUEST_LIMIT = 60
"""Maximum length in characters of a tool description that the example uses as its request."""


def describe_json_text(tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
    """Returns the system prompt: the form of a call, the tools with one line per parameter, and an example.

    `thought="full"` asks for a few lines before the calls; the default asks for none.

    Raises:
        ConfigurationError: The language or the thought style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    checked("language", language, WORDINGS)
    words = WORDINGS[language]
    checked("thought", thought, words.thought_rule)
    known = [tool_of(tool) for tool in tools]
    if not known:
        return f"{words.heading}\n{words.no_tools}\n"
    # If `code_execution` is the only tool, the prompt has no heading for tools.
    heading = f"{words.tools_heading}\n" if _listed(known) else ""
    sections = [_rules(words, thought), heading + _tools(known, words), _example(_samples(_listed(known)), words)]
    return "\n\n".join(section for section in sections if section) + "\n"


def json_tools_text(tools: Iterable[Any], *, language: Language = "en") -> str:
    """Returns the tools as in the system prompt. With `code_execution`, the form of a program follows.

    Raises:
        ConfigurationError: The language is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    checked("language", language, WORDINGS)
    words = WORDINGS[language]
    known = [tool_of(tool) for tool in tools]
    return _tools(known, words) if known else words.no_tools


def _listed(tools: Sequence[Tool]) -> list[Tool]:
    return [tool for tool in tools if tool.name != CODE_EXECUTION]


def _tools(tools: Sequence[Tool], words: JsonWording) -> str:
    listed = _listed(tools)
    lines = "\n".join(tool_text(tool) for tool in listed)
    program = _program(_samples(listed), words) if len(listed) < len(tools) else ""
    return "\n\n".join(section for section in (lines, program) if section)


def _rules(words: JsonWording, thought: Thought) -> str:
    rules = [rule for rule in (*words.rules, words.thought_rule[thought]) if rule]
    form = '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'
    return "\n".join([words.heading, words.introduction, form, *(f"- {rule}" for rule in rules)])


def _samples(tools: Sequence[Tool]) -> list[tuple[Tool, Mapping[str, Any]]]:
    """Returns up to two calls that the tools accept, of two different tools if possible."""
    found = [(tool, samples) for tool in tools if (samples := sample_arguments(tool))]
    telling = [(tool, samples) for tool, samples in found if samples[0]] or found
    if len(telling) == 1:
        tool, samples = telling[0]
        return [(tool, arguments) for arguments in samples[:2]]
    return [(tool, samples[0]) for tool, samples in telling[:2]]


def _example(samples: Sequence[tuple[Tool, Mapping[str, Any]]], words: JsonWording) -> str:
    if not samples:
        return ""
    request = words.and_then.join(dict.fromkeys(_request(tool, words) for tool, _ in samples))
    calls = [render_call(ToolCall(tool.name, arguments)) for tool, arguments in samples]
    return "\n".join([words.example, f"> {request}", *calls])


def _program(samples: Sequence[tuple[Tool, Mapping[str, Any]]], words: JsonWording) -> str:
    calls = [call_source(tool.name, arguments, tool.visible_parameters) for tool, arguments in samples]
    return words.program.format(f"__result__ = [{', '.join(calls)}]\n")


def _request(tool: Tool, words: JsonWording) -> str:
    first = tool.description.strip().partition("\n")[0]
    # An outside author's description must not appear as a user's request.
    is_told = first and len(first) <= _REQUEST_LIMIT and not tool.is_outside
    return first if is_told else words.request.format(tool.name)
