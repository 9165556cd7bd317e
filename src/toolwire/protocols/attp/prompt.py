"""ATTP's system prompt: rules, tools, modules, templates, constraints, and two examples for the given tools.

Templates and examples have no code fences, because a model copies the form it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolwire.definition.from_function import tool_of
from toolwire.definition.naming import program_name
from toolwire.definition.texts.stub import compact_stub, stub
from toolwire.definition.tool import Tool
from toolwire.protocols.attp.render import call_source, fail_document, success_document
from toolwire.protocols.attp.wording import WORDINGS, AttpWording
from toolwire.protocols.base import Language, Thought, checked
from toolwire.protocols.samples import sample_calls, sample_request, unfit_request
from toolwire.vocabulary.calls import PROGRAM_MODULES

StubStyle = Literal["full", "compact"]

_STUBS: dict[StubStyle, Callable[[Tool], str]] = {"full": stub, "compact": compact_stub}


def describe_attp(
    tools: Iterable[Any],
    *,
    language: Language = "en",
    thought: Thought = "short",
    style: StubStyle = "full",
    modules: Sequence[str] = PROGRAM_MODULES,
) -> str:
    """Returns the system prompt: rules, tools as Python stubs, modules, templates, constraints and two examples.

    `thought="full"` asks for four points of reasoning; the default asks for one line. A full thought costs the model
    about two thirds more tokens per call. `style="compact"` describes each tool in fewer tokens: no examples, one line
    per parameter, and the bounds of its values. `modules` are the ones that programs may use.

    Raises:
        ConfigurationError: The language, the thought style or the stub style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    checked("language", language, WORDINGS)
    words = WORDINGS[language]
    checked("thought", thought, words.thought_rule)
    checked("style", style, _STUBS)
    known = [tool_of(tool) for tool in tools]
    sections = [
        f"{words.title}\n\n{words.introduction}",
        _rules(words, thought),
        f"{words.tools_heading}\n{_tools(known, words, style)}",
        f"{words.modules_heading}\n{words.modules.format(' '.join(modules))}",
        _templates(words, thought),
        "\n".join([words.constraints_heading, *(f"- {constraint}" for constraint in words.constraints)]),
        f"{words.success_heading}\n{_shown(success_example(known, words, thought), words)}",
        f"{words.fail_heading}\n{_shown(fail_example(known, language, thought), words)}",
    ]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def attp_tools_text(tools: Iterable[Any], *, language: Language = "en", style: StubStyle = "full") -> str:
    """Returns the Python stubs of the tools in a code fence, as the system prompt has them.

    Raises:
        ConfigurationError: The language or style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    checked("language", language, WORDINGS)
    checked("style", style, _STUBS)
    return _tools([tool_of(tool) for tool in tools], WORDINGS[language], style)


def _rules(words: AttpWording, thought: Thought) -> str:
    rules = (*words.rules, words.thought_rule[thought])
    return "\n".join([words.rules_heading, *(f"{number}. {rule}" for number, rule in enumerate(rules, 1))])


def _tools(tools: Sequence[Tool], words: AttpWording, style: StubStyle) -> str:
    stubs = ("\n\n" if style == "full" else "\n").join(_STUBS[style](tool).strip() for tool in tools)
    return f"```python\n{stubs}\n```" if tools else words.no_tools


def _templates(words: AttpWording, thought: Thought) -> str:
    thinking = words.thought_template[thought]
    success = success_document(thought=thinking, target=words.target_template, code=words.code_template)
    fail = fail_document(thought=thinking, message=words.message_template)
    return f"{words.templates_heading}\n{words.success_template}\n{success}\n{words.fail_template}\n{fail}"


def _shown(example: Example, words: AttpWording) -> str:
    return f"{words.request.format(example.request)}\n{words.reply}\n{example.reply}"


_OFFER_LIMIT = 3
"""Maximum number of tools that the failing example offers as an alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request and the reply to it."""

    request: str
    reply: str


def success_example(tools: Sequence[Tool], words: AttpWording, thought: Thought) -> Example:
    """Returns a request that needs two calls, and the program that makes them. It uses two tools if possible."""
    samples = sample_calls(tools)
    samples = samples * 2 if len(samples) == 1 else samples
    if not samples:
        code = "numbers = [3, 5, 10]\n__result__ = statistics.mean(numbers)\n"
        thinking = words.no_tool_thought
        if thought == "full":
            thinking = words.full_thought.format(
                words.no_tool_target, words.nothing, words.nothing, words.no_tool_thought
            )
        reply = success_document(thought=thinking, target=words.no_tool_target, code=code)
        return Example(request=words.no_tool_request, reply=reply)
    names = ", ".join(program_name(name) for name in dict.fromkeys(tool.name for tool, _ in samples))
    request = words.and_then.join(dict.fromkeys(_request(tool, words) for tool, _ in samples))
    thinking = words.success_thought.format(names)
    if thought == "full":
        thinking = words.full_thought.format(request, names, words.success_check, words.success_plan)
    return Example(
        request=request,
        reply=success_document(thought=thinking, target=words.success_target, code=_program(samples)),
    )


def fail_example(tools: Sequence[Tool], language: Language, thought: Thought) -> Example:
    """Returns a request that none of the tools can meet, and the reply that says so."""
    words, unfit = WORDINGS[language], unfit_request(tools, language)
    thinking = unfit.thought
    if thought == "full":
        thinking = words.full_thought.format(unfit.request, words.nothing, words.fail_check, words.fail_plan)
    names = ", ".join(program_name(tool.name) for tool in tools[:_OFFER_LIMIT])
    message = unfit.reason + (words.offer.format(names) if names else "")
    return Example(request=unfit.request, reply=fail_document(thought=thinking, message=message))


def _program(samples: Sequence[tuple[Tool, Mapping[str, Any]]]) -> str:
    calls = [
        (program_name(tool.name), call_source(tool.name, arguments, tool.visible_parameters))
        for tool, arguments in samples
    ]
    if calls[0][0] == calls[1][0]:
        names = ["first", "second"]
        result = f"[{', '.join(names)}]"
    else:
        names = [f"{name}_result" for name, _ in calls]
        result = "{" + ", ".join(f'"{name}": {name}_result' for name, _ in calls) + "}"
    lines = [f"{name} = {call}\n" for name, (_, call) in zip(names, calls, strict=True)]
    return f"{''.join(lines)}__result__ = {result}\n"


def _request(tool: Tool, words: AttpWording) -> str:
    otherwise = words.call_request.format(program_name(tool.name))
    return sample_request(tool, otherwise=otherwise, full_stop=words.full_stop)
