"""ATTP's system prompt: rules, tools, modules, templates, constraints, and examples.

Templates and examples have no code fences, because a model copies the form it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from toolwire.definition.from_function import tool_of
from toolwire.definition.naming import program_name
from toolwire.definition.renderings.stub import compact_stub, stub
from toolwire.definition.tool import Tool
from toolwire.protocols.attp.render import fail_document, success_document
from toolwire.protocols.base import Language, Thought, check_option
from toolwire.protocols.samples import (
    Calls,
    finish_of,
    sample_arguments,
    sample_calls,
    unfit_request,
    write_examples,
    write_request,
)
from toolwire.protocols.text.python_source import call_source
from toolwire.protocols.text.wording import ATTP_WORDINGS, AttpWording, words_in
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
    words = words_in(ATTP_WORDINGS, language, thought)
    check_option("style", style, _STUBS)
    known = [tool_of(tool) for tool in tools]
    finish = finish_of(known)
    # A small model gives up if the last thing that it reads is an example of giving up.
    return words.prompt.format(
        ending=words.ending if finish is None else words.finish_ending.format(program_name(finish.name)),
        thought_rule=words.thought_rule[thought],
        tools=_tools_section(known, words, style),
        modules=" ".join(modules),
        kept_variables=words.phrases.kept_variables if keeps_variables else "",
        thought_template=words.thought_template[thought],
        fail_example=_fail_example(known, words, thought).rstrip(),
        success_examples=_successes(known, finish, words, thought).rstrip(),
    )


def attp_tools_text(tools: Iterable[Any], *, language: Language = "en", style: StubStyle = "full") -> str:
    """Returns the Python stubs of the tools in a code fence, as the system prompt has them.

    Raises:
        ConfigurationError: The language or style is unknown.
        DefinitionError: One of the objects is not a tool.
    """
    words = words_in(ATTP_WORDINGS, language)
    check_option("style", style, _STUBS)
    return _tools_section([tool_of(tool) for tool in tools], words, style)


def _tools_section(tools: Sequence[Tool], words: AttpWording, style: StubStyle) -> str:
    stubs = ("\n\n" if style == "full" else "\n").join(_STUBS[style](tool).strip() for tool in tools)
    if not tools:
        return words.no_tools
    has_examples = style == "full" and any(tool.examples or tool.docs.examples for tool in tools)
    return f"```python\n{stubs}\n```{words.examples_note if has_examples else ''}"


def _fail_example(tools: Sequence[Tool], words: AttpWording, thought: Thought) -> str:
    """Returns a request that none of the tools can meet, and the reply that says so."""
    unfit = unfit_request(tools, words.phrases)
    thinking = words.fail_thought[thought].format(request=unfit.request, thought=unfit.thought)
    return words.phrases.example.format(unfit.request, fail_document(thought=thinking, message=unfit.reason))


def _successes(tools: Sequence[Tool], finish: Tool | None, words: AttpWording, thought: Thought) -> str:
    """Returns the examples that succeed. Only the last one calls the tool that ends the work, in its last line."""
    if all(tool.ends_turn for tool in tools):
        return _no_tool_example(finish, words, thought)
    samples = sample_calls(tools)

    def write_reply(calls: Calls) -> str:
        names = ", ".join(program_name(name) for name in dict.fromkeys(tool.name for tool, _ in calls))
        request = write_request([tool for tool, _ in calls], words.phrases, program_name)
        return success_document(
            thought=words.success_thought[thought].format(request=request, names=names),
            target=words.success_target,
            code=_program(calls, finish if calls == samples.examples[-1] else None),
        )

    return samples.note(words.phrases) + "\n".join(write_examples(samples, words.phrases, write_reply, program_name))


def _no_tool_example(finish: Tool | None, words: AttpWording, thought: Thought) -> str:
    """Returns a request that a program without calls of other tools meets."""
    ending = None if finish is None else _finish_call(finish, "str(statistics.mean(numbers))")
    code = f"numbers = [3, 5, 10]\n{ending or '__result__ = statistics.mean(numbers)'}\n"
    reply = success_document(thought=words.no_tool_thought[thought], target=words.no_tool_target, code=code)
    return words.phrases.example.format(words.no_tool_request, reply)


def _program(samples: Calls, finish: Tool | None) -> str:
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
