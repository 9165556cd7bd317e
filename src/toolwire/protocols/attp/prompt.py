"""ATTP's system prompt: rules, tools, modules, templates, constraints, and two examples for the given tools.

Templates and examples have no code fences, because a model copies the form it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from toolwire.definition.from_function import tool_of
from toolwire.definition.texts.stub import compact_stub, stub
from toolwire.definition.tool import Tool
from toolwire.protocols.attp.example import Example, fail_example, success_example
from toolwire.protocols.attp.render import fail_document, success_document
from toolwire.protocols.attp.wording import WORDINGS, AttpWording
from toolwire.protocols.base import Language, Thought, checked
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
        f"{words.fail_heading}\n{_shown(fail_example(known, words, thought), words)}",
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
