"""ATTP's system prompt: rules, tools, modules, templates, constraints, and examples.

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
from toolwire.protocols.samples import finish_of, sample_arguments, sample_calls, sample_request, unfit_request
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
    keeps_variables: bool = False,
) -> str:
    """Returns the system prompt: rules, tools as Python stubs, modules, templates, constraints and examples.

    `thought="full"` asks for four points of reasoning; the default asks for one line. A full thought costs the model
    about two thirds more tokens per call. `style="compact"` describes each tool in fewer tokens: no examples, one line
    per parameter, and the bounds of its values. `modules` are the ones that programs may use. With `keeps_variables`
    one more sentence says that a program has the variables of earlier ones.

    Raises:
        ConfigurationError: The language, the thought style or the stub style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    checked("language", language, WORDINGS)
    words = WORDINGS[language]
    checked("thought", thought, words.thought_rule)
    checked("style", style, _STUBS)
    known = [tool_of(tool) for tool in tools]
    finish = finish_of(known)
    ending = words.plain_ending if finish is None else words.finish_ending.format(program_name(finish.name))
    sections = [
        f"{words.title}\n\n{words.introduction}\n{ending}",
        _rules(words, thought),
        f"{words.tools_heading}\n{_tools(known, words, style)}",
        "\n".join(
            [
                words.modules_heading,
                words.modules.format(" ".join(modules)),
                *([words.kept_variables] if keeps_variables else []),
            ]
        ),
        _templates(words, thought),
        "\n".join([words.constraints_heading, *(f"- {constraint}" for constraint in words.constraints)]),
        # A small model gives up if the last thing that it reads is an example of giving up.
        f"{words.fail_heading}\n{_shown(fail_example(known, language, thought), words)}",
        f"{words.success_heading}\n{_successes(known, finish, words, thought)}",
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
    if not tools:
        return words.no_tools
    has_examples = style == "full" and any(tool.examples or tool.docs.examples for tool in tools)
    return f"```python\n{stubs}\n```{words.examples_note if has_examples else ''}"


def _templates(words: AttpWording, thought: Thought) -> str:
    thinking = words.thought_template[thought]
    success = success_document(thought=thinking, target=words.target_template, code=words.code_template)
    fail = fail_document(thought=thinking, message=words.message_template)
    return f"{words.templates_heading}\n{words.success_template}\n{success}\n{words.fail_template}\n{fail}"


def _shown(example: Example, words: AttpWording) -> str:
    return f"{words.request.format(example.request)}\n{words.reply}\n{example.reply}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request and the reply to it."""

    request: str
    reply: str


def _successes(tools: Sequence[Tool], finish: Tool | None, words: AttpWording, thought: Thought) -> str:
    """Returns the examples that succeed. Only the last one calls the tool that ends the work, in its last line."""
    if all(tool.ends_turn for tool in tools):
        return _shown(_no_tool_example(finish, words, thought), words)
    samples = sample_calls(tools)
    note = f"{words.made_up.format(samples.made_up)}\n" if samples.made_up else ""
    *first, last = samples.examples
    examples = [*(_success_example(calls, None, words, thought) for calls in first)]
    examples.append(_success_example(last, finish, words, thought))
    return note + "\n".join(_shown(example, words) for example in examples)


def _success_example(
    samples: Sequence[tuple[Tool, Mapping[str, Any]]], finish: Tool | None, words: AttpWording, thought: Thought
) -> Example:
    """Returns a request and the program that makes these calls, and ends the work if `finish` is given."""
    names = ", ".join(program_name(name) for name in dict.fromkeys(tool.name for tool, _ in samples))
    request = _request([tool for tool, _ in samples], words)
    thinking = words.success_thought.format(names)
    if thought == "full":
        thinking = words.full_thought.format(request, names, words.success_check, words.success_plan)
    return Example(
        request=request,
        reply=success_document(thought=thinking, target=words.success_target, code=_program(samples, finish)),
    )


def _no_tool_example(finish: Tool | None, words: AttpWording, thought: Thought) -> Example:
    """Returns a request that a program without calls of other tools meets."""
    ending = None if finish is None else _finish_call(finish, "str(statistics.mean(numbers))")
    code = f"numbers = [3, 5, 10]\n{ending or '__result__ = statistics.mean(numbers)'}\n"
    thinking = words.no_tool_thought
    if thought == "full":
        thinking = words.full_thought.format(words.no_tool_target, words.nothing, words.nothing, words.no_tool_thought)
    reply = success_document(thought=thinking, target=words.no_tool_target, code=code)
    return Example(request=words.no_tool_request, reply=reply)


def fail_example(tools: Sequence[Tool], language: Language, thought: Thought) -> Example:
    """Returns a request that none of the tools can meet, and the reply that says so."""
    words, unfit = WORDINGS[language], unfit_request(tools, language)
    thinking = unfit.thought
    if thought == "full":
        thinking = words.full_thought.format(unfit.request, words.nothing, words.fail_check, words.fail_plan)
    return Example(request=unfit.request, reply=fail_document(thought=thinking, message=unfit.reason))


def _program(samples: Sequence[tuple[Tool, Mapping[str, Any]]], finish: Tool | None) -> str:
    calls = [call_source(tool.name, arguments, tool.visible_parameters) for tool, arguments in samples]
    found = "str(first)" if len(calls) == 1 else 'f"{first}, {second}"'
    ending = None if finish is None else _finish_call(finish, found)
    if len(calls) == 1:
        return f"__result__ = {calls[0]}\n" if ending is None else f"first = {calls[0]}\n{ending}\n"
    return f"first = {calls[0]}\nsecond = {calls[1]}\n{ending or '__result__ = [first, second]'}\n"


def _finish_call(finish: Tool, found: str) -> str | None:
    """Returns the call that ends the work, with the source of a text if that is all it takes, else with sample values.

    None if no sample fits.
    """
    parameters = finish.visible_parameters
    if len(parameters) == 1 and _takes_text(parameters[0].schema):
        return f"{program_name(finish.name)}({parameters[0].program_name}={found})"
    samples = sample_arguments(finish)
    return call_source(finish.name, samples[0], parameters) if samples else None


def _takes_text(schema: Mapping[str, Any]) -> bool:
    return schema.keys() <= _PLAIN_TEXT and schema.get("type", "string") == "string"


_PLAIN_TEXT = {"type", "title", "description"}
"""The keywords of a schema that takes any text, if its type is a string or not given."""


def _request(tools: Sequence[Tool], words: AttpWording) -> str:
    if len(tools) > len({tool.name for tool in tools}):
        return words.twice.format(program_name(tools[0].name))
    return words.and_then.join(
        sample_request(tool, otherwise=words.call_request.format(program_name(tool.name)), full_stop=words.full_stop)
        for tool in tools
    )
