"""The system prompt: seven parts in two languages, and examples that are themselves right."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from toolwire import tool
from toolwire.definition.from_function import tool_of
from toolwire.definition.renderings.stub import stub
from toolwire.protocols import get
from toolwire.protocols.base import Language, Thought
from toolwire.vocabulary.calls import PROGRAM_MODULES
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError

ATTP = get("attp")


@tool(effects=["read"])
def search_web(query: str, max_results: int = 5) -> list[dict[str, Any]]:
    """Search the web.

    Args:
        query: what to look for
        max_results: how many at most

    Example:
        >>> results = search_web("Python async", max_results=3)
        >>> print(results[0])
    """
    raise NotImplementedError


@tool(effects=["read"])
def count_lines(path: str) -> int:
    """Count a file's lines."""
    raise NotImplementedError


@tool(effects=["read"])
def now() -> str:
    """The time."""
    raise NotImplementedError


@tool(effects=["read"])
def book_table(guests: int, /, *, when: str) -> bool:
    """Book a table."""
    raise NotImplementedError


DOCUMENT = re.compile(r"^thought = .*?^(?:'''|message = [^\n]*)\n", re.DOTALL | re.MULTILINE)
HEADINGS = {
    "en": ["Core rules", "Tools", "Modules", "Templates", "Constraints", "Example that fails", "Example that succeeds"],
    "zh": ["核心规则", "工具", "模块", "模板", "约束", "失败示例", "成功示例"],
}

PROMPT = '''\
# How to use tools: ATTP

You can use tools: reply with a TOML document, and you read what its program gives.
When no tool is needed any more, answer the user in plain text.

## Core rules
1. Output: to use tools, reply with one valid TOML document alone: no text or code fence around it.
2. Tools: check that a tool is listed below before you use it.
3. Code: make all calls the task needs in one Python program; what you want to read goes to `__result__`.
4. Reasoning: say in `thought`, in one line, what you will do and why.

## Tools
```python
```

## Modules
There without import: ALL_MODULES.

## Templates
If it can be done:
thought = "[what you will do and why]"

[tool_call]
status = "success"
target = "[what the calls are to bring]"
code = \'\'\'
# Python; it may call several tools
__result__ = ...
\'\'\'

If it cannot:
thought = "[what you will do and why]"

[tool_call]
status = "fail"
message = "[why not, and what could be done instead]"

## Constraints
- Call no function that is not listed, and import nothing but the modules above.
- No files, network, processes, environment or eval/exec/compile, except through a tool.
- Triple quotes inside the code are """, never \'\'\'.
- Beyond the tools: status "fail"; message gives the reason and another way.

## Example that fails
Request: Book a table for two tonight.
Reply:
thought = "No listed tool can book a table."

[tool_call]
status = "fail"
message = "I have no tool that books tables. Please call the restaurant."

## Example that succeeds
Request: Count a file's lines.
Reply:
thought = "count_lines can do this."

[tool_call]
status = "success"
target = "Get the answer"
code = \'\'\'
__result__ = count_lines(path="/data/report.txt")
\'\'\'

Request: Use count_lines twice.
Reply:
thought = "count_lines can do this."

[tool_call]
status = "success"
target = "Get the answer"
code = \'\'\'
first = count_lines(path="/data/report.txt")
second = count_lines(path="/data/notes.txt")
__result__ = [first, second]
\'\'\'
'''.replace("ALL_MODULES", " ".join(PROGRAM_MODULES))


@pytest.mark.requirement(
    "attp.prompt.whole",
    "attp.prompt.opening",
    "attp.prompt.template-success",
    "attp.prompt.template-fail",
    "attp.prompt.rule-format",
    "attp.prompt.rule-verify",
    "attp.prompt.rule-execution",
    "attp.prompt.rule-thought",
    "attp.prompt.constraint-tools",
    "attp.prompt.constraint-modules",
    "attp.prompt.constraint-fail",
)
def test_the_whole_prompt() -> None:
    prompt = ATTP.describe([count_lines, now])
    stubs = f"{stub(tool_of(count_lines))}\n\n{stub(tool_of(now))}\n"
    assert prompt == PROMPT.replace("```python\n", f"```python\n{stubs}")


@pytest.mark.requirement("attp.format.thought-points")
def test_the_full_thought_has_the_four_points_in_rule_and_template() -> None:
    short, full = (ATTP.describe([now], thought=thought) for thought in ("short", "full"))
    rule = next(line for line in full.splitlines() if line.startswith("4. Reasoning:"))
    template = ATTP.parse(DOCUMENT.findall(full)[0]).thought
    assert rule == "4. Reasoning: give the four points of the template in `thought`."
    assert [point.partition(":")[0] for point in template.splitlines()] == [
        "1. Request",
        "2. Tools",
        "3. Check",
        "4. Plan",
    ]
    assert rule not in short


@pytest.mark.requirement("attp.prompt.examples-valid")
@pytest.mark.parametrize("tools", [[], [now], [count_lines], [search_web, count_lines], [book_table, now]])
@pytest.mark.parametrize("thought", ["short", "full"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_templates_and_examples_are_replies_that_parse_and_compile(
    tools: list[Any], thought: Thought, language: Language
) -> None:
    prompt = ATTP.describe(tools, language=language, thought=thought)
    replies = [ATTP.parse(document) for document in DOCUMENT.findall(prompt)]
    success, failure = (1, True, ()), (0, False, ())
    examples = [success] if tools in ([], [now]) else [success, success]
    assert [(len(reply.calls), reply.failure is None, reply.problems) for reply in replies] == [
        success,
        failure,
        failure,
        *examples,
    ]
    for reply in replies:
        assert (reply.thought.count("\n") == 4) is (thought == "full")
        for call in reply.calls:
            ast.parse(call.arguments["code"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_seven_parts_stand_in_order(language: Language) -> None:
    prompt = ATTP.describe([search_web], language=language)
    assert re.findall(r"^## (.*)$", prompt, re.MULTILINE) == HEADINGS[language]
    rules = prompt.partition(HEADINGS[language][0])[2].partition("##")[0]
    assert re.findall(r"^(\d)\.", rules, re.MULTILINE) == ["1", "2", "3", "4"]


def example_code(tools: list[Any]) -> str:
    prompt = ATTP.describe(tools)
    return str(ATTP.parse(DOCUMENT.findall(prompt)[-1]).calls[0].arguments["code"])


@pytest.mark.requirement("attp.prompt.example-success", "attp.prompt.template-several")
@pytest.mark.parametrize(
    ("tools", "code"),
    [
        (
            [now, search_web, count_lines],
            (
                'first = search_web(query="Python async", max_results=3)\n'
                'second = count_lines(path="/data/report.txt")\n'
                "__result__ = [first, second]\n"
            ),
        ),
        (
            [search_web],
            (
                'first = search_web(query="Python async", max_results=3)\n'
                'second = search_web(query="quarterly report")\n'
                "__result__ = [first, second]\n"
            ),
        ),
        ([now], "__result__ = now()\n"),
        (
            [book_table],
            (
                'first = book_table(3, when="first")\n'
                'second = book_table(5, when="second")\n'
                "__result__ = [first, second]\n"
            ),
        ),
        ([], "numbers = [3, 5, 10]\n__result__ = statistics.mean(numbers)\n"),
    ],
)
def test_the_second_example_makes_several_calls_to_the_tools_given(tools: list[Any], code: str) -> None:
    assert example_code(tools) == code


@pytest.mark.requirement("attp.prompt.example-fail")
def test_the_fail_example_asks_for_what_no_tool_does() -> None:
    assert "Request: Book a table" in ATTP.describe([count_lines])
    assert "Request: Turn off the light" in ATTP.describe([book_table])


def test_no_tools_are_said_to_be_none() -> None:
    assert (
        "\n## Tools\nThere are no tools. A program can only work things out with the modules below.\n"
        in ATTP.describe([])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": "fr"}, "language='fr' is unknown: write one of 'en', 'zh'"),
        ({"thought": "long"}, "thought='long' is unknown: write one of 'short', 'full'"),
    ],
)
def test_an_unknown_option_is_told_which_there_are(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ATTP.describe([], **options)
    assert str(caught.value) == message


def test_a_value_that_is_not_a_tool_is_refused() -> None:
    with pytest.raises(DefinitionError):
        ATTP.describe([3])
